/* windows.c -- which tokens of a text a step takes, and which are held back; see train.h. */
#include "trainer.h"

/* floor(x * n / 2^32), of any n. */
static uint64_t share_of(uint32_t x, uint64_t n)
{
    return (uint64_t)x * (n >> 32) + ((uint64_t)x * (uint32_t)n >> 32);
}

void train_windows(const train *t, uint32_t micro, uint32_t rank, size_t *starts)
{
    const train_settings *s = &t->run->settings;
    const train_decoder *d = &s->decoder;
    const uint64_t stream = train_stream("text windows");
    const uint64_t first = ((t->step * d->accumulate + micro) * d->ranks + rank) * s->batch;
    for (uint32_t b = 0; b < s->batch; b++)
        starts[b] = (size_t)share_of(mpsim_rng_word(s->seed, stream, first + b), t->text->trained - d->context);
}

size_t train_windows_held(const train_text *x, const train_settings *s)
{
    const size_t there = x->held ? (x->held - 1) / s->decoder.context : 0;
    return there < s->decoder.validation ? there : s->decoder.validation;
}

int train_text_check(const train_text *x, const train_settings *s, char *error)
{
    const train_decoder *d = &s->decoder;
    if (strcmp(x->name, d->text) != 0 || x->digest != d->text_digest)
        return train_fail(error, "text '%.63s' (digest %016llx) is not the text of the run, '%.63s' (%016llx)", x->name,
                          (unsigned long long)x->digest, d->text, (unsigned long long)d->text_digest);
    if (x->vocabulary > d->vocabulary)
        return train_fail(error, "text '%.63s' has token %lu, beyond the vocabulary of %lu", x->name,
                          (unsigned long)x->vocabulary - 1, (unsigned long)d->vocabulary);
    if (x->trained <= d->context)
        return train_fail(error, "text '%.63s': %zu training tokens are too few for a context of %lu", x->name,
                          x->trained, (unsigned long)d->context);
    if (d->validation && x->held <= d->context)
        return train_fail(error, "text '%.63s': %zu validation tokens are too few for a context of %lu", x->name,
                          x->held, (unsigned long)d->context);
    return 0;
}
