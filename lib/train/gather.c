/* gather.c -- gradients of micro-batches are added, those of ranks reduced; see train.h. */
#include "trainer.h"

#include <stdlib.h>

uint32_t train_micro_batches(const train_settings *s)
{
    return train_is_text(s) ? s->decoder.accumulate : 1;
}

uint32_t train_ranks(const train_settings *s)
{
    return train_is_text(s) ? s->decoder.ranks : 1;
}

/* ---- the sums of a parameter ---- */

static size_t sums_of(const train *t)
{
    const size_t ranks = train_ranks(&t->run->settings);
    return ranks > 1 ? ranks + 1 : train_micro_batches(&t->run->settings) > 1 ? 1 : 0;
}

static void drop_sums(const train *t, train_param *p)
{
    for (size_t i = 0; p->sums && i < sums_of(t); i++)
        if (p->sums[i].data)
            t->e->ops->release(t->e, &p->sums[i]);
    free(p->sums);
    p->sums = NULL;
    p->source = &p->wgrad;
}

static int open_sums(train *t, train_param *p, char *error)
{
    const size_t n = sums_of(t);
    const int several = train_micro_batches(&t->run->settings) > 1;
    p->sums = calloc(n, sizeof *p->sums);
    if (!p->sums)
        return train_fail(error, "out of memory");
    for (size_t i = 0; i < n; i++) {
        p->sums[i] = (train_tensor){
            .format = several ? &t->accumulate : p->wgrad.format, .rows = p->wgrad.rows, .cols = p->wgrad.cols};
        if (i > 0 && i == n - 1)
            p->sums[i].format = mpsim_format_find("binary32");
        if (t->e->ops->alloc(t->e, &p->sums[i]))
            return train_engine_failed(t, p->name, error);
    }
    p->source = &p->sums[n - 1];
    return 0;
}

/* ---- all of them ---- */

static int set_format(mpsim_format *f, const char *text, char *error)
{
    return mpsim_format_parse(f, text) || !train_fits_binary32(f)
               ? train_fail(error, "gradients in '%.15s': " TRAIN_NO_FIT, text)
               : 0;
}

int train_gather_open(train *t, char *error)
{
    const train_decoder *d = &t->run->settings.decoder;
    train_gather_close(t);
    if (sums_of(t) == 0)
        return 0;
    t->reduce =
        (mpsim_reduce){.result = *mpsim_format_find("binary32"), .order = d->reduce, .average = MPSIM_AVERAGE_AFTER};
    if (set_format(&t->accumulate, d->accumulate_format, error) || set_format(&t->reduce.wire, d->wire, error) ||
        set_format(&t->reduce.accumulator, d->sum, error))
        return -1;
    for (size_t i = 0; i < t->n_params; i++)
        if (open_sums(t, &t->params[i], error))
            return -1;
    return 0;
}

void train_gather_close(train *t)
{
    for (size_t i = 0; i < t->n_params; i++)
        drop_sums(t, &t->params[i]);
}

/* ---- in a step ---- */

int train_gather(train *t, uint32_t micro, uint32_t rank, char *error)
{
    const train_ops *ops = t->e->ops;
    train_pair list[TRAIN_PARAMS];
    size_t n = 0;
    for (size_t i = 0; i < t->n_params; i++) {
        train_param *p = &t->params[i];
        train_tensor *to = p->sums ? &p->sums[rank] : NULL;
        if (to && micro && ops->add(t->e, to, to, &p->wgrad, NULL))
            return train_engine_failed(t, p->name, error);
        if (to && !micro)
            list[n++] = (train_pair){.y = to, .x = &p->wgrad};
    }
    return ops->cast_list(t->e, list, n, MPSIM_ROUND_NEAREST_EVEN) ? train_engine_failed(t, "gradients", error) : 0;
}

int train_gather_ranks(train *t, char *error)
{
    const size_t ranks = train_ranks(&t->run->settings), n = t->n_params;
    if (ranks == 1)
        return 0;
    const train_tensor **x = malloc((n ? n : 1) * ranks * sizeof *x);
    train_sum list[TRAIN_PARAMS];
    if (!x)
        return train_fail(error, "out of memory");
    for (size_t i = 0; i < n; i++) {
        list[i] = (train_sum){.y = &t->params[i].sums[ranks], .x = x + i * ranks};
        for (size_t k = 0; k < ranks; k++)
            x[i * ranks + k] = &t->params[i].sums[k];
    }
    const int code = t->e->ops->reduce(t->e, &t->reduce, list, n, ranks);
    free(x);
    return code ? train_engine_failed(t, "gradients", error) : 0;
}
