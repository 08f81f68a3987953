/* recipe.c -- delayed scaling, and the scale that TransformerEngine takes from an amax. */
#include <mpsim/recipe.h>

#include "../base/extent.h"
#include "kernel/kernel.h"
#include "scalar.h"

#include <float.h>
#include <math.h>

/* ---- from amax to a scale ---- */

float mpsim_fp8_scale(float amax, float fp8_max, float epsilon, float for_inf, int power_of_two)
{
    return mpsim_rule_fp8(amax, fp8_max, epsilon, for_inf, power_of_two);
}

float mpsim_amax(const float *x, size_t n)
{
    const mpsim_block_functions *fast = mpsim_block_functions_active();
    uint32_t bits = 0;
    float m = 0;
    if (!mpsim_fits(n, sizeof *x))
        return m;
    if (fast) {
        fast->amax(&bits, x, n, 1, 1);
        return mpsim_f32_bits(bits);
    }
    for (size_t i = 0; i < n; i++) {
        const float a = fabsf(x[i]);
        m = a > m ? a : m; /* a NaN compares false */
    }
    return m;
}

/* ---- delayed scaling ---- */

void mpsim_delayed_config_init(mpsim_delayed_config *c, const mpsim_format *f)
{
    c->history = 1024;
    c->algorithm = MPSIM_AMAX_MAX;
    c->variant = MPSIM_DELAYED_BULK;
    c->margin = 0;
    c->fp8_max = (float)mpsim_format_max(f);
}

mpsim_status mpsim_delayed_config_check(const mpsim_delayed_config *c)
{
    if (!c || c->history < 1 || c->algorithm > MPSIM_AMAX_MOST_RECENT || c->variant > MPSIM_DELAYED_PYTHON ||
        c->margin < -126 || c->margin > 126)
        return MPSIM_EINVAL;
    return isfinite(c->fp8_max) && c->fp8_max > 0 ? MPSIM_OK : MPSIM_EINVAL;
}

mpsim_status mpsim_delayed_init(mpsim_delayed *d, const mpsim_delayed_config *c, float *history)
{
    if (!d || !history || mpsim_delayed_config_check(c) != MPSIM_OK)
        return MPSIM_EINVAL;
    d->config = *c;
    d->scale = d->scale_inverse = 1;
    d->history = history;
    for (uint32_t i = 0; i < c->history; i++)
        history[i] = 0;
    return MPSIM_OK;
}

/* The larger of both; a NaN is dropped, or propagates. */
static float larger(float a, float b, int propagates)
{
    if (isnan(a) || isnan(b)) /* fmaxf of C keeps a signalling one */
        return propagates ? (float)NAN : isnan(a) ? b : a;
    return a > b ? a : b;
}

void mpsim_delayed_record(mpsim_delayed *d, float amax)
{
    d->history[0] = larger(d->history[0], amax, d->config.variant == MPSIM_DELAYED_PYTHON);
}

/* Slot 0 goes to the end, the others one slot down; slot 0 is emptied. */
static void roll(float *history, uint32_t n, float last)
{
    for (uint32_t i = 1; i < n; i++)
        history[i] = i + 1 < n ? history[i + 1] : last;
    history[0] = 0;
}

/* The amax that the scale is made of: the window is `last` and slots 1 to n - 1. */
static float window_amax(const mpsim_delayed *d, float last)
{
    const int propagates = d->config.variant == MPSIM_DELAYED_PYTHON;
    float amax = propagates ? last : larger(0, last, 0);
    if (d->config.algorithm == MPSIM_AMAX_MOST_RECENT)
        return last;
    for (uint32_t i = 1; i < d->config.history; i++)
        amax = larger(amax, d->history[i], propagates);
    return amax;
}

/* In torch a number over a tensor is the tensor's reciprocal times the number: two roundings. */
static float new_scale(const mpsim_delayed_config *c, float amax)
{
    const float scale = c->variant == MPSIM_DELAYED_PYTHON ? 1 / amax * c->fp8_max / ldexpf(1, c->margin)
                                                           : c->fp8_max * ldexpf(1, -c->margin) / amax;
    return isinf(scale) ? FLT_MAX : scale;
}

void mpsim_delayed_update(mpsim_delayed *d, float reduced)
{
    const float last = reduced != 0 ? reduced : d->history[0];
    if (d->config.variant == MPSIM_DELAYED_BULK && last == 0)
        return;
    const float amax = window_amax(d, last);
    roll(d->history, d->config.history, last);
    if (isfinite(amax) && amax > 0)
        d->scale = new_scale(&d->config, amax);
    d->scale_inverse = 1 / d->scale;
}
