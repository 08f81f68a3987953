/* gradient.c -- unscale, check, norm, clip; see mpsim/gradient.h. */
#include <mpsim/gradient.h>

#include "../base/extent.h"
#include "../base/words.h"
#include "../round/scalar.h"
#include "kernel/kernel.h"

#include <mpsim/stats.h>

#include <math.h>
#include <string.h>

/* ---- unscale ---- */

float mpsim_unscale_factor(double scale)
{
    return (float)(1 / scale);
}

/* Elements that are rounded after they are multiplied: so many at a time stay in the first cache. */
enum { BLOCK = 1024 };

/* The magnitude of x as bits: of what is not finite they are at least NOT_FINITE. */
static const uint32_t NOT_FINITE = 0x7f800000;

static uint32_t magnitude(float x)
{
    return mpsim_bits_f32(x) & 0x7fffffff;
}

/* y = x * s, or x / s; the largest magnitudes of both enter *in and *out. */
static void scale_array(float *y, const float *x, float s, int divides, size_t n, uint32_t *in, uint32_t *out)
{
    const mpsim_optim_kernels *k = mpsim_optim_kernels_active();
    /* which of two NaNs a product is, an instruction decides: that of the scalar code does */
    size_t i = k && !isnan(s) ? k->scale(y, x, s, divides, n, in, out) : 0;
    for (; i < n; i++) {
        const uint32_t before = magnitude(x[i]);
        y[i] = divides ? x[i] / s : x[i] * s;
        *in = before > *in ? before : *in;
        *out = magnitude(y[i]) > *out ? magnitude(y[i]) : *out;
    }
}

/* The same, rounded to h, of which MPSIM_FOUND_* is returned. */
static unsigned scale_to(const mpsim_held *h, float *y, const float *x, float s, int divides, size_t n)
{
    uint32_t in = 0, out = 0;
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        scale_array(y + i, x + i, s, divides, m, &in, &out);
        if (h->exact)
            continue;
        mpsim_hold_array(h, y + i, m);
        for (size_t k = i; k < i + m && out < NOT_FINITE; k++)
            out = magnitude(y[k]) > out ? magnitude(y[k]) : out;
    }
    return (in >= NOT_FINITE ? (unsigned)MPSIM_FOUND_INPUT : 0) |
           (out >= NOT_FINITE ? (unsigned)MPSIM_FOUND_OUTPUT : 0);
}

unsigned mpsim_unscale_array(mpsim_unscale_rule rule, double scale, const mpsim_format *f, float *y, const float *x,
                             size_t n)
{
    const mpsim_held h = mpsim_hold(f);
    const float s = (float)scale;
    if (!mpsim_fits(n, sizeof *x))
        return MPSIM_FOUND_INPUT | MPSIM_FOUND_OUTPUT;
    float inverse = mpsim_unscale_factor(scale);
    if (rule == MPSIM_UNSCALE_ROUNDED)
        inverse = mpsim_hold_one(&h, inverse);
    if (rule == MPSIM_UNSCALE_DIVIDE)
        return scale_to(&h, y, x, s, 1, n);
    if (inverse != 1)
        return scale_to(&h, y, x, inverse, 0, n);
    uint32_t most = 0;
    if (n > 0 && y != x)
        memmove(y, x, n * sizeof *y);
    for (size_t i = 0; i < n && most < NOT_FINITE; i++)
        most = magnitude(y[i]);
    return most < NOT_FINITE ? 0 : MPSIM_FOUND_INPUT | MPSIM_FOUND_OUTPUT;
}

void mpsim_scale_array(const mpsim_format *f, float *y, const float *x, size_t n, float factor)
{
    const mpsim_held h = mpsim_hold(f);
    scale_to(&h, y, x, factor, 0, mpsim_fits(n, sizeof *x) ? n : 0);
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

/* The squares of n elements, of those that are finite; an infinity is counted. -1: a NaN. */
static int add_squares(mpsim_sum *sum, const float *x, size_t n, int *infinite)
{
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            return -1;
        if (isinf(x[i]))
            *infinite = 1;
        else
            mpsim_sum_add_square(sum, (double)x[i]);
    }
    return 0;
}

float mpsim_norm(const mpsim_format *f, const float *x, size_t n)
{
    const mpsim_optim_kernels *k = mpsim_optim_kernels_active();
    mpsim_sum sum;
    int infinite = 0;
    mpsim_sum_init(&sum);
    if (!mpsim_fits(n, sizeof *x))
        return NAN;
    for (size_t i = 0; i < n; i += MPSIM_SQUARES_BLOCK) {
        const size_t m = n - i < MPSIM_SQUARES_BLOCK ? n - i : MPSIM_SQUARES_BLOCK;
        double parts[MPSIM_SQUARES_PARTS];
        const size_t done = k ? k->squares(parts, x + i, m) : 0;
        for (size_t p = 0; done > 0 && p < MPSIM_SQUARES_PARTS; p++)
            if (parts[p] != 0)
                mpsim_sum_add(&sum, parts[p]);
        if (add_squares(&sum, x + i + done, m - done, &infinite))
            return NAN;
    }
    return infinite ? INFINITY : round_to(f, sqrt(mpsim_sum_value(&sum)));
}

/* ---- clip ---- */

static const char *const clip_names[MPSIM_CLIP_RULES] = {
    [MPSIM_CLIP_NONE] = "none",           [MPSIM_CLIP_TORCH] = "torch",
    [MPSIM_CLIP_TORCH_CPU] = "torch-cpu", [MPSIM_CLIP_APEX] = "apex",
    [MPSIM_CLIP_MEGATRON] = "megatron",   [MPSIM_CLIP_MEGATRON_FLOAT] = "megatron-float",
    [MPSIM_CLIP_DEEPSPEED] = "deepspeed", [MPSIM_CLIP_DEEPSPEED_ZERO] = "deepspeed-zero",
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

int mpsim_clip_unscales(mpsim_clip_rule rule)
{
    return rule == MPSIM_CLIP_DEEPSPEED || rule == MPSIM_CLIP_DEEPSPEED_ZERO || rule == MPSIM_CLIP_FAIRSEQ;
}

static int is_torch(mpsim_clip_rule rule)
{
    return rule == MPSIM_CLIP_TORCH || rule == MPSIM_CLIP_TORCH_CPU;
}

double mpsim_clip_total(mpsim_clip_rule rule, const mpsim_format *f, const float *norms, size_t n)
{
    const float norm = mpsim_norm(is_torch(rule) ? f : NULL, norms, n);
    if (rule == MPSIM_CLIP_MEGATRON_FLOAT) /* total.item() ** 0.5 of a binary32 sum of squares */
        return sqrt((double)(norm * norm));
    return (double)norm;
}

/* A number over a tensor is the number times the tensor's reciprocal (torch.Tensor.__rdiv__), on
 * CUDA also a tensor over a number. All in binary32. */
static float number_over(double number, float tensor)
{
    return 1 / tensor * (float)number;
}

/* The coefficient as a tensor of the norm's format. 1e-6 is binary32 on CUDA; ATen's CPU kernels
 * round it to the tensor's format. A NaN passes the clamp. */
static double clip_tensor(const mpsim_format *f, int on_cpu, float norm, double max_norm)
{
    const mpsim_held h = mpsim_hold(f);
    const float epsilon = on_cpu ? mpsim_hold_one(&h, 1e-6f) : 1e-6f;
    const float sum = mpsim_hold_one(&h, norm + epsilon);
    const float inverse = mpsim_hold_one(&h, 1 / sum);
    const float coefficient = mpsim_hold_one(&h, inverse * (float)max_norm);
    return coefficient > 1 ? 1 : (double)coefficient;
}

/* One divisor for unscaling and clipping. FP16_Optimizer has a Python float; a NaN is not > 1. */
static double clip_deepspeed(double norm, double max_norm, double scale)
{
    const double clip = (norm / scale + 1e-6) / max_norm;
    return 1 / (clip > 1 ? clip * scale : scale);
}

/* ZeRO has a tensor: binary32, on CUDA; clamp lets a NaN pass. */
static double clip_deepspeed_zero(float norm, double max_norm, double scale)
{
    const float s = (float)scale;
    const float clip = (norm * (1 / s) + 1e-6f) * (1 / (float)max_norm);
    return (double)(1 / ((clip < 1 ? 1 : clip) * s));
}

/* The multiply factor is a number, the norm a tensor. */
static double clip_fairseq(float norm, double max_norm, double scale)
{
    const float factor = mpsim_unscale_factor(scale), unscaled = factor * norm;
    if (!((double)unscaled > max_norm))
        return 1 / scale;
    return (double)(factor * number_over(max_norm, unscaled));
}

mpsim_clip mpsim_clip_factor(mpsim_clip_rule rule, const mpsim_format *f, double norm, double max_norm, double scale)
{
    mpsim_clip c = {
        .factor = 1, .apply = 1, .clipped = norm > max_norm, .unscales = (uint8_t)mpsim_clip_unscales(rule)};
    const float tensor = (float)norm;
    switch (rule) {
    case MPSIM_CLIP_TORCH:
    case MPSIM_CLIP_TORCH_CPU:
        c.factor = clip_tensor(f, rule == MPSIM_CLIP_TORCH_CPU, tensor, max_norm);
        break;
    case MPSIM_CLIP_APEX:
    case MPSIM_CLIP_MEGATRON:
        c.factor = clip_tensor(NULL, 0, tensor, max_norm);
        break;
    case MPSIM_CLIP_MEGATRON_FLOAT:
        c.factor = max_norm / (norm + 1e-6);
        c.apply = c.factor < 1;
        break;
    case MPSIM_CLIP_DEEPSPEED:
        c.factor = clip_deepspeed(norm, max_norm, scale);
        break;
    case MPSIM_CLIP_DEEPSPEED_ZERO:
        c.factor = clip_deepspeed_zero(tensor, max_norm, scale);
        break;
    case MPSIM_CLIP_FAIRSEQ:
        c.factor = clip_fairseq(tensor, max_norm, scale);
        break;
    case MPSIM_CLIP_NONE:
    case MPSIM_CLIP_RULES:
    default:
        c.apply = c.clipped = 0;
        break;
    }
    if (c.unscales)
        c.clipped = norm / scale > max_norm;
    return c;
}
