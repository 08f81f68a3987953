/* open.c -- what a training of a transformer has beside parameters: formats of arithmetic, tables of
 * rotary positions; see train.h. */
#include "../trainer.h"

#include <stdlib.h>

static int open_rotary(train *t, char *error)
{
    const train_settings *s = &t->run->settings;
    const size_t places = s->decoder.context, half = train_head_size(s) / 2;
    float *values = malloc(2 * places * half * sizeof *values);
    if (!values)
        return train_fail(error, "out of memory");
    int code = mpsim_rotary(values, values + places * half, places, half, 10000.0)
                   ? train_fail(error, "rotary positions")
                   : 0;
    for (int k = 0; k < 2 && !code; k++) {
        train_tensor *x = &t->rotary[k];
        *x = (train_tensor){.format = mpsim_format_find("binary32"), .rows = places, .cols = half};
        if (t->e->ops->alloc(t->e, x) || t->e->ops->put(t->e, x, values + (size_t)k * places * half))
            code = train_engine_failed(t, "rotary positions", error);
    }
    free(values);
    return code;
}

static int open_math(mpsim_format *f, const char *own, const char *all, char *error)
{
    return mpsim_format_parse(f, own[0] ? own : all) ? train_fail(error, "math '%.15s': no format", own[0] ? own : all)
                                                     : 0;
}

int train_decoder_open(train *t, char *error)
{
    const train_settings *s = &t->run->settings;
    if (!train_is_text(s))
        return 0;
    if (open_math(&t->math_norm, s->decoder.math_norm, s->math, error) ||
        open_math(&t->math_softmax, s->decoder.math_softmax, s->math, error))
        return -1;
    return s->decoder.rotary ? open_rotary(t, error) : 0;
}
