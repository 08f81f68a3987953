/* gradient.c -- unscale, check, norm, clip; see mpsim/gradient.h. */
#include <mpsim/gradient.h>

#include "optim_steps.h"
#include "words.h"

#include <mpsim/stats.h>

#include <math.h>
#include <string.h>

/* ---- unscale ---- */

float mpsim_unscale_factor(double scale)
{
    return (float)(1 / scale);
}

/* MPSIM_FOUND_* of an array: `found` if an element is not finite. */
static unsigned find(const float *x, size_t n, unsigned found)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return found;
    return 0;
}

unsigned mpsim_unscale_array(mpsim_unscale_rule rule, double scale, const mpsim_format *f,
                             float *y, const float *x, size_t n)
{
    const mpsim_held h = mpsim_hold(f);
    const float s = (float)scale, inverse = mpsim_unscale_factor(scale);
    unsigned found = find(x, n, MPSIM_FOUND_INPUT);
    if (rule == MPSIM_UNSCALE_DIVIDE) {
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] / s;
        mpsim_hold_array(&h, y, n);
    } else if (inverse != 1) {
        mpsim_scale_array(f, y, x, n, inverse);
    } else if (n > 0 && y != x) {
        memmove(y, x, n * sizeof *y);
    }
    return found | find(y, n, MPSIM_FOUND_OUTPUT);
}

void mpsim_scale_array(const mpsim_format *f, float *y, const float *x, size_t n, float factor)
{
    const mpsim_held h = mpsim_hold(f);
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * factor;
    mpsim_hold_array(&h, y, n);
}

/* ---- norm ---- */

/* x rounded once to f, as binary32. */
static float round_to(const mpsim_format *f, double x)
{
    const mpsim_held h = mpsim_hold(f);
    mpsim_rounding r;
    if (h.exact)
        return (float)x;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_round_array_f64(f, &r, NULL, &x, &x, 1, NULL);
    return (float)x;
}

float mpsim_norm(const mpsim_format *f, const float *x, size_t n)
{
    mpsim_sum sum;
    int infinite = 0;
    mpsim_sum_init(&sum);
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            return NAN;
        if (isinf(x[i]))
            infinite = 1;
        else
            mpsim_sum_add_square(&sum, (double)x[i]);
    }
    return infinite ? INFINITY : round_to(f, sqrt(mpsim_sum_value(&sum)));
}

/* ---- clip ---- */

static const char *const clip_names[MPSIM_CLIP_RULES] = {
    [MPSIM_CLIP_NONE] = "none",
    [MPSIM_CLIP_TORCH] = "torch",
    [MPSIM_CLIP_APEX] = "apex",
    [MPSIM_CLIP_MEGATRON] = "megatron",
    [MPSIM_CLIP_MEGATRON_FLOAT] = "megatron-float",
    [MPSIM_CLIP_DEEPSPEED] = "deepspeed",
    [MPSIM_CLIP_DEEPSPEED_ZERO] = "deepspeed-zero",
    [MPSIM_CLIP_FAIRSEQ] = "fairseq",
};

const char *mpsim_clip_name(mpsim_clip_rule rule)
{
    return (unsigned)rule < MPSIM_CLIP_RULES ? clip_names[rule] : NULL;
}

mpsim_status mpsim_clip_parse(mpsim_clip_rule *rule, const char *name)
{
    if (!rule || !name)
        return MPSIM_EINVAL;
    for (int i = 0; i < MPSIM_CLIP_RULES; i++)
        if (mpsim_same_word(name, strlen(name), clip_names[i])) {
            *rule = (mpsim_clip_rule)i;
            return MPSIM_OK;
        }
    return MPSIM_ENOTFOUND;
}

float mpsim_clip_total(mpsim_clip_rule rule, const mpsim_format *f, const float *norms, size_t n)
{
    return mpsim_norm(rule == MPSIM_CLIP_TORCH ? f : NULL, norms, n);
}

/* The coefficient as a tensor of the norm's format. A number over a tensor is the number times the
 * tensor's reciprocal (torch.Tensor.__rdiv__). 1e-6 is binary32 here, as on CUDA; ATen's CPU kernels
 * round it to the tensor's format. A NaN passes the clamp. */
static double clip_tensor(const mpsim_format *f, float norm, double max_norm)
{
    const mpsim_held h = mpsim_hold(f);
    const float sum = mpsim_hold_one(&h, norm + 1e-6f);
    const float inverse = mpsim_hold_one(&h, 1 / sum);
    const float coefficient = mpsim_hold_one(&h, inverse * (float)max_norm);
    return coefficient > 1 ? 1 : (double)coefficient;
}

/* DeepSpeed: one divisor for unscaling and clipping, in binary64; clamp lets a NaN pass. */
static double clip_deepspeed(mpsim_clip_rule rule, float norm, double max_norm, double scale)
{
    const double clip = ((double)norm / scale + 1e-6) / max_norm;
    const int divides = clip > 1 || (rule == MPSIM_CLIP_DEEPSPEED_ZERO && isnan(clip));
    return 1 / (divides ? clip * scale : scale);
}

static double clip_fairseq(float norm, double max_norm, double scale)
{
    const double factor = 1 / scale, unscaled = factor * (double)norm;
    return unscaled > max_norm ? factor * (max_norm / unscaled) : factor;
}

mpsim_clip mpsim_clip_factor(mpsim_clip_rule rule, const mpsim_format *f, float norm,
                             double max_norm, double scale)
{
    mpsim_clip c = {.factor = 1, .apply = 1, .clipped = (double)norm > max_norm};
    switch (rule) {
    case MPSIM_CLIP_TORCH:
        c.factor = clip_tensor(f, norm, max_norm);
        break;
    case MPSIM_CLIP_APEX:
    case MPSIM_CLIP_MEGATRON:
        c.factor = clip_tensor(NULL, norm, max_norm);
        break;
    case MPSIM_CLIP_MEGATRON_FLOAT:
        c.factor = max_norm / ((double)norm + 1e-6);
        c.apply = c.factor < 1;
        break;
    case MPSIM_CLIP_DEEPSPEED:
    case MPSIM_CLIP_DEEPSPEED_ZERO:
        c.factor = clip_deepspeed(rule, norm, max_norm, scale);
        c.unscales = 1;
        break;
    case MPSIM_CLIP_FAIRSEQ:
        c.factor = clip_fairseq(norm, max_norm, scale);
        c.unscales = 1;
        break;
    case MPSIM_CLIP_NONE:
    case MPSIM_CLIP_RULES:
    default:
        c.apply = c.clipped = 0;
        break;
    }
    if (c.unscales)
        c.clipped = (double)norm / scale > max_norm;
    return c;
}
