/* open.c -- what a training of a transformer has beside parameters: formats of arithmetic, tables of
 * rotary positions; see train.h. */
#include "../trainer.h"

#include <math.h>
#include <stdlib.h>

/* exp, ln of binary64, correctly rounded. */
static double function(mpsim_function which, double x)
{
    const mpsim_format *fp64 = mpsim_format_find("binary64");
    mpsim_rounding r;
    uint64_t code;
    double y;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    memcpy(&code, &x, sizeof code);
    code = mpsim_function_apply(which, fp64, fp64, &r, code, 0, NULL);
    memcpy(&y, &code, sizeof y);
    return y;
}

static void fill(float *cosines, float *sines, size_t places, size_t half)
{
    const double ln_base = function(MPSIM_FUNCTION_LOG, 10000.0);
    for (size_t c = 0; c < half; c++) {
        const double ratio = (2 * (double)c) / (double)(2 * half);
        const double w = function(MPSIM_FUNCTION_EXP, -ratio * ln_base);
        for (size_t p = 0; p < places; p++) {
            double a = (double)p * w;
            const double turns = floor(a * 0x1.45f306dc9c883p-3 + 0.5);
            a = a - turns * 0x1.921fb54442d18p+2;
            cosines[p * half + c] = mpsim_cos((float)a);
            sines[p * half + c] = mpsim_sin((float)a);
        }
    }
}

static int open_rotary(train *t, char *error)
{
    const train_settings *s = &t->run->settings;
    const size_t places = s->decoder.context, half = train_head_size(s) / 2;
    float *values = malloc(2 * places * half * sizeof *values);
    if (!values)
        return train_fail(error, "out of memory");
    fill(values, values + places * half, places, half);
    int code = 0;
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
