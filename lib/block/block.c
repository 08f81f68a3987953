/* block.c -- scaled quantisation of matrices; see mpsim/block.h. */
#include <mpsim/block.h>

#include "../base/counts.h"
#include "../round/rng.h"
#include "../round/scalar.h"
#include "scale.h"

#include <math.h>
#include <string.h>

/* Elements are scaled into a batch, block after block, and cast together. */
enum { BATCH = 1024 };

typedef struct work {
    const mpsim_block_recipe *recipe;
    const mpsim_scale_rule_row *rule;
    const mpsim_format *f;
    mpsim_rounding rounding;
    const mpsim_rng *rng; /* NULL unless stochastic */
    const float *x;
    size_t rows, cols;
    const mpsim_blocks *out;
    mpsim_scale_env env;
    float decoded[256];  /* the value of every code                                    */
    uint32_t below_half; /* the bits of the number below half of the smallest one     */
    int fp4_grid;        /* NVFP4's stochastic rounding                                */
    size_t start, n;     /* the batch: elements start to start + n - 1 of the matrix   */
    int irregular;       /* it may hold NaNs                                           */
    float y[BATCH];      /* scaled elements                                            */
    float factor[BATCH], inner[BATCH];
} work;

/* ---- sizes ---- */

static size_t at_least_one(size_t n)
{
    return n ? n : 1;
}

/* The extent of a block along a dimension of n elements. */
static size_t extent(uint32_t block, size_t n)
{
    return at_least_one(block ? block : n);
}

void mpsim_block_grid(const mpsim_block_recipe *b, size_t rows, size_t cols, size_t *grid_rows,
                      size_t *grid_cols)
{
    const size_t r = extent(b->block_rows, rows), c = extent(b->block_cols, cols);
    *grid_rows = rows / r + (rows % r != 0);
    *grid_cols = cols / c + (cols % c != 0);
}

uint64_t mpsim_block_bytes(const mpsim_block_recipe *b, size_t rows, size_t cols)
{
    const mpsim_scale_rule_row *rule = mpsim_scale_rule_at(b->rule);
    const mpsim_format *f = mpsim_format_find(b->element);
    size_t grid_rows, grid_cols;
    if (!rule || !f)
        return 0;
    mpsim_block_grid(b, rows, cols, &grid_rows, &grid_cols);
    const size_t c = extent(b->block_cols, cols);
    const uint64_t whole = ((uint64_t)c * f->bits + 7) / 8;
    const uint64_t last = ((uint64_t)(cols % c) * f->bits + 7) / 8;
    return (uint64_t)rows * (cols / c * whole + last) +
           (uint64_t)grid_rows * grid_cols * rule->scale_bytes +
           (rule->tensor ? sizeof(float) : 0);
}

/* ---- amax ---- */

/* The bits of the largest magnitude among n elements and `so_far`: magnitudes grow with their bits,
 * and a NaN is larger than infinity unless it is dropped. */
static uint32_t amax_bits(const float *x, size_t n, int drops_nan, uint32_t so_far)
{
    int32_t m = (int32_t)so_far;
    for (size_t i = 0; i < n; i++) {
        int32_t a = (int32_t)(mpsim_bits_f32(x[i]) & 0x7fffffffu);
        a = drops_nan && a > 0x7f800000 ? 0 : a;
        m = a > m ? a : m;
    }
    return (uint32_t)m;
}

/* ---- casts ---- */

/* NaNs show in torch's codes: y is the NaN of the factor, else that of x, else x86's own, which is
 * negative. */
static float settle_nan(float y, float x, float factor)
{
    if (!isnan(y))
        return y;
    const uint32_t from =
        isnan(factor) ? mpsim_bits_f32(factor) : isnan(x) ? mpsim_bits_f32(x) : 0xffc00000u;
    return mpsim_f32_bits(from | 0x400000u);
}

/* torchao's conversion to FP4 and FP6 knows no NaN and rounds its bits like a number's. */
static uint8_t torch_nan_code(const mpsim_format *f, float y)
{
    const uint32_t u = mpsim_bits_f32(y), a = u & 0x7fffffffu;
    const int drop = 23 - f->mbits;
    const uint32_t odd = a >> drop & 1;
    const uint32_t rebias = (uint32_t)(127 - f->bias) << 23;
    const uint32_t m = (a - rebias + (((uint32_t)1 << (drop - 1)) - 1) + odd) >> drop;
    return (uint8_t)((m & 0xff) | mpsim_sign_bit(f, (int)(u >> 31)));
}

static void correct_torch(const work *w, uint8_t *codes)
{
    if (w->irregular && w->f->nan == MPSIM_NAN_NONE)
        for (size_t i = 0; i < w->n; i++)
            if (isnan(w->y[i]))
                codes[i] = torch_nan_code(w->f, w->y[i]);
}

/* microxcaling rounds as sign(a) * floor(|a| + 1/2) in binary32: a zero loses its sign, and the
 * sum of the number below 1/2 is 1. */
static void correct_microx(const work *w, uint8_t *codes, mpsim_counts *counts)
{
    const int away = w->recipe->element_mode == MPSIM_ROUND_NEAREST_AWAY;
    for (size_t i = 0; i < w->n; i++) {
        const uint32_t u = mpsim_bits_f32(w->y[i]);
        if (u == 0x80000000u) {
            codes[i] = 0;
        } else if (away && (u & 0x7fffffffu) == w->below_half) {
            codes[i] |= 1;
            counts->subnormal++;
        }
    }
}

/* E2M1 by random bits, as TransformerEngine's software form of cvt.rs: the random part of a step is
 * added, and the sum truncated on the grid where it lies. */
static float fp4_step(float a)
{
    return a < 2 ? 0.5f : a < 4 ? 1 : 2;
}

static float fp4_stochastic(float a, uint32_t word, unsigned *flags)
{
    const float t = fmaf((float)(word >> 24) / 256, fp4_step(a), a);
    const float q = floorf(t / fp4_step(t)) * fp4_step(t);
    *flags = q > 6 ? MPSIM_FLAG_OVERFLOW : q == 0.5f ? MPSIM_FLAG_SUBNORMAL : 0;
    return q > 6 ? 6 : q;
}

static void encode_fp4_grid(const work *w, uint8_t *codes, mpsim_counts *counts)
{
    static const uint8_t code_of[13] = {0, 1, 2, 3, 4, 0, 5, 0, 6, 0, 0, 0, 7}; /* by 2 q */
    for (size_t i = 0; i < w->n; i++) {
        unsigned flags = 0;
        codes[i] = 7; /* NaN: +6 */
        if (!isnan(w->y[i])) {
            const uint32_t word =
                mpsim_rng_word(w->rng->seed, w->rng->stream, w->rng->index + w->start + i);
            const float q = fp4_stochastic(fabsf(w->y[i]), word, &flags);
            codes[i] = (uint8_t)(code_of[(int)(2 * q)] | (signbit(w->y[i]) ? 8 : 0));
            if (isinf(w->y[i]))
                flags = 0;
        }
        mpsim_count_flags(counts, flags);
    }
}

static void encode(const work *w, uint8_t *codes, mpsim_counts *counts)
{
    mpsim_rng at = {0, 0, 0};
    if (w->fp4_grid) {
        encode_fp4_grid(w, codes, counts);
        return;
    }
    if (w->rng) {
        at = *w->rng;
        at.index += w->start;
    }
    mpsim_encode_array_f32(w->f, &w->rounding, w->rng ? &at : NULL, codes, w->y, w->n, counts);
    if (w->rule->cast == MPSIM_CAST_TORCH)
        correct_torch(w, codes);
    else if (w->rule->cast == MPSIM_CAST_MICROX)
        correct_microx(w, codes, counts);
}

/* ---- values and statistics ---- */

static void dequantize(const work *w, float *values, const uint8_t *codes)
{
    switch (w->rule->dequantize) {
    case MPSIM_OVER_FACTOR:
        for (size_t i = 0; i < w->n; i++)
            values[i] = w->decoded[codes[i]] / w->factor[i];
        break;
    case MPSIM_TWO_SCALES:
        for (size_t i = 0; i < w->n; i++)
            values[i] = w->decoded[codes[i]] * w->inner[i] * w->env.decode;
        break;
    default:
        for (size_t i = 0; i < w->n; i++)
            values[i] = w->decoded[codes[i]] * w->inner[i];
    }
}

/* Add the batch to the statistics. `cast` is what the cast of the scaled elements counted: of it,
 * subnormal results and overflow stand; an element whose product overflowed before it is added. */
static void account(const work *w, const uint8_t *codes, const float *values,
                    const mpsim_counts *cast)
{
    mpsim_cast_stats *to = w->out->casts;
    mpsim_counts c = {.subnormal = cast->subnormal, .overflow = cast->overflow};
    const float *x = w->x + w->start;
    for (size_t i = 0; i < w->n; i++) {
        const double q = (double)w->decoded[codes[i]];
        if (isnan(x[i])) {
            c.nan++;
        } else if (isfinite(x[i])) {
            c.inexact += !(q == (double)x[i] * (double)w->factor[i]);
            c.underflow += x[i] != 0 && q == 0;
            c.overflow += !isfinite(w->y[i]) || (isfinite(q) && !isfinite(values[i]));
        }
    }
    mpsim_counts_add(&to->counts, &c);
    mpsim_cast_stats_add_values(to, x, values, w->n);
}

/* Cast the batch and empty it. */
static void flush(work *w)
{
    uint8_t own_codes[BATCH];
    float own_values[BATCH];
    const mpsim_blocks *out = w->out;
    uint8_t *codes = out->codes ? out->codes + w->start : own_codes;
    float *values = out->values ? out->values + w->start : own_values;
    mpsim_counts counts = {0, 0, 0, 0, 0};
    if (w->n == 0)
        return;
    encode(w, codes, &counts);
    if (out->values || out->casts)
        dequantize(w, values, codes);
    if (out->casts)
        account(w, codes, values, &counts);
    w->n = 0;
    w->irregular = 0;
}

/* Scale n elements of one row of a block, from element `at` of the matrix on. */
static void scale_run(work *w, size_t at, size_t n, const mpsim_block_scale *s, int irregular)
{
    while (n > 0) {
        if (w->n == BATCH || at != w->start + w->n)
            flush(w);
        if (w->n == 0)
            w->start = at;
        const size_t room = BATCH - w->n, m = n < room ? n : room;
        const float *x = w->x + at;
        float *y = w->y + w->n;
        for (size_t i = 0; i < m; i++) {
            y[i] = x[i] * s->factor;
            w->factor[w->n + i] = s->factor;
            w->inner[w->n + i] = s->inner;
        }
        if (irregular)
            for (size_t i = 0; i < m; i++)
                y[i] = settle_nan(y[i], x[i], s->factor);
        w->irregular |= irregular;
        w->n += m;
        at += m;
        n -= m;
    }
}

/* ---- blocks ---- */

/* The scale of the block of h x n elements from element `at` on; its results at `index`. */
static mpsim_block_scale scale_block(const work *w, size_t at, size_t h, size_t n, size_t index,
                                     int *irregular)
{
    const mpsim_blocks *out = w->out;
    uint32_t bits = 0;
    for (size_t r = 0; r < h; r++)
        bits = amax_bits(w->x + at + r * w->cols, n, w->rule->drops_nan, bits);
    const float amax = mpsim_f32_bits(bits);
    const mpsim_block_scale s = w->rule->block(&w->env, amax);
    if (out->scale_codes)
        out->scale_codes[index] = s.code;
    if (out->scales)
        out->scales[index] = s.factor;
    if (out->inverses)
        out->inverses[index] = s.inverse;
    if (out->amax)
        out->amax[index] = amax;
    *irregular = !isfinite(amax) || !isfinite(s.factor);
    return s;
}

/* Blocks `first` to `first` + n - 1 of a row of blocks that begins at matrix row `top`. */
static void run_blocks(work *w, size_t top, size_t h, size_t first, size_t n, size_t index)
{
    const size_t width = extent(w->recipe->block_cols, w->cols);
    mpsim_block_scale scale[BATCH];
    uint8_t irregular[BATCH];
    for (size_t k = 0; k < n; k++) {
        const size_t left = (first + k) * width;
        const size_t m = w->cols - left < width ? w->cols - left : width;
        int odd;
        scale[k] = scale_block(w, top * w->cols + left, h, m, index + k, &odd);
        irregular[k] = (uint8_t)odd;
    }
    if (!(w->out->codes || w->out->values || w->out->casts))
        return;
    for (size_t r = top; r < top + h; r++)
        for (size_t k = 0; k < n; k++) {
            const size_t left = (first + k) * width;
            const size_t m = w->cols - left < width ? w->cols - left : width;
            scale_run(w, r * w->cols + left, m, &scale[k], irregular[k]);
        }
}

static void run(work *w)
{
    const size_t height = extent(w->recipe->block_rows, w->rows);
    const size_t width = extent(w->recipe->block_cols, w->cols);
    const size_t group = width < BATCH ? BATCH / width : 1;
    size_t grid_rows, grid_cols;
    mpsim_block_grid(w->recipe, w->rows, w->cols, &grid_rows, &grid_cols);
    for (size_t i = 0; i < grid_rows; i++) {
        const size_t top = i * height, h = w->rows - top < height ? w->rows - top : height;
        for (size_t j = 0; j < grid_cols; j += group) {
            const size_t n = grid_cols - j < group ? grid_cols - j : group;
            run_blocks(w, top, h, j, n, i * grid_cols + j);
        }
    }
    flush(w);
}

/* ---- quantising ---- */

static void prepare(work *w, float amax, float given)
{
    const mpsim_block_recipe *b = w->recipe;
    const mpsim_format *f = w->f;
    mpsim_rounding *r = &w->rounding;
    const size_t n = w->rows * w->cols;
    mpsim_rounding_init(r, (mpsim_round_mode)b->element_mode);
    r->sr_bits = b->sr_bits;
    r->overflow = MPSIM_OVERFLOW_MAX;
    r->infinity = MPSIM_INFINITY_MAX;
    r->nan = w->rule->cast == MPSIM_CAST_TORCH ? MPSIM_NANS_ONES_SIGNED : MPSIM_NANS_ONES;
    for (uint64_t code = 0; code < 256; code++)
        w->decoded[code] = (float)mpsim_decode(f, code);
    w->below_half = mpsim_bits_f32((float)mpsim_format_min_positive(f) / 2) - 1;
    w->fp4_grid = w->rule->fp4_only && w->rule->cast == MPSIM_CAST_CUDA && w->rng;
    w->env.recipe = b;
    w->env.max = (float)mpsim_format_max(f);
    w->env.emax = (int)(f->max_finite >> f->mbits) - f->bias;
    w->env.mbits = f->mbits;
    w->env.given = given;
    w->env.encode = w->env.decode = 1;
    if (w->rule->tensor)
        w->rule->tensor(&w->env, !(amax < 0) ? amax
                                             : mpsim_f32_bits(amax_bits(w->x, n,
                                                                        w->rule->drops_nan, 0)));
}

mpsim_status mpsim_block_quantize(const mpsim_block_recipe *b, const float *x, size_t rows,
                                  size_t cols, float amax, float given, const mpsim_rng *rng,
                                  const mpsim_blocks *out, float *tensor_scale)
{
    work w;
    if (mpsim_block_check(b) != MPSIM_OK || !out || (!x && rows && cols))
        return MPSIM_EINVAL;
    const int stochastic = mpsim_is_stochastic(b->element_mode);
    if ((stochastic && !rng) || (mpsim_scale_rule_at(b->rule)->takes_given && !(given >= 0)))
        return MPSIM_EINVAL;
    w.recipe = b;
    w.rule = mpsim_scale_rule_at(b->rule);
    w.f = mpsim_format_find(b->element);
    w.rng = stochastic ? rng : NULL;
    w.x = x;
    w.rows = rows;
    w.cols = cols;
    w.out = out;
    w.start = w.n = 0;
    w.irregular = 0;
    prepare(&w, amax, given);
    if (tensor_scale)
        *tensor_scale = w.env.decode;
    run(&w);
    return MPSIM_OK;
}

/* ---- Hadamard ---- */

mpsim_status mpsim_hadamard(float *x, size_t n)
{
    static const float sign[16] = {1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};
    if (n % 16 != 0 || (n > 0 && !x))
        return MPSIM_EINVAL;
    for (size_t g = 0; g < n; g += 16) {
        float *v = x + g;
        for (size_t i = 0; i < 16; i++)
            v[i] *= sign[i];
        for (size_t half = 1; half < 16; half *= 2)
            for (size_t i = 0; i < 16; i++)
                if (!(i & half)) {
                    const float a = v[i], b = v[i + half];
                    v[i] = a + b;
                    v[i + half] = a - b;
                }
        for (size_t i = 0; i < 16; i++)
            v[i] *= 0.25f;
    }
    return MPSIM_OK;
}
