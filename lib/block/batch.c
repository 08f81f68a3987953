/* batch.c -- the reference of scaled quantisation, and statistics of casts; see batch.h. */
#include "batch.h"

#include "../base/counts.h"
#include "../round/rng.h"

#include <math.h>
#include <string.h>

enum { BATCH = MPSIM_BLOCK_BATCH };

typedef mpsim_block_work work;

/* ---- casts ---- */

/* NaNs show in torch's codes: y is the NaN of the factor, else that of x, else x86's own, which is
 * negative. */
static float settle_nan(float y, float x, float factor)
{
    return mpsim_rule_settle(y, factor, x);
}

static void correct_torch(const work *w, const float *y, size_t n, uint8_t *codes)
{
    if (w->irregular && w->f->nan == MPSIM_NAN_NONE)
        for (size_t i = 0; i < n; i++)
            if (isnan(y[i]))
                codes[i] = mpsim_rule_torch_nan(w->f, y[i]);
}

/* microxcaling rounds as sign(a) * floor(|a| + 1/2) in binary32: a zero loses its sign, and the
 * sum of the number below 1/2 is 1. */
static void correct_microx(const work *w, const float *y, size_t n, uint8_t *codes, mpsim_counts *counts)
{
    const int away = w->recipe->element_mode == MPSIM_ROUND_NEAREST_AWAY;
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = mpsim_bits_f32(y[i]);
        if (u == 0x80000000u) {
            codes[i] = 0;
        } else if (away && (u & 0x7fffffffu) == w->below_half) {
            codes[i] |= 1;
            counts->subnormal++;
        }
    }
}

static void encode_fp4_grid(const work *w, size_t from, size_t n, uint8_t *codes, mpsim_counts *counts)
{
    for (size_t i = 0; i < n; i++) {
        const float y = w->y[from + i];
        unsigned flags = 0;
        codes[i] = 7; /* NaN: +6 */
        if (!isnan(y)) {
            const uint32_t word = mpsim_rng_word(w->rng->seed, w->rng->stream, w->rng->index + w->start + from + i);
            codes[i] = mpsim_rule_fp4_random(y, word, &flags);
        }
        mpsim_count_flags(counts, flags);
    }
}

/* n elements of the batch, from element `from` on. */
static void encode(const work *w, size_t from, size_t n, uint8_t *codes, mpsim_counts *counts)
{
    mpsim_rng at = {0, 0, 0};
    const float *y = w->y + from;
    if (w->fp4_grid) {
        encode_fp4_grid(w, from, n, codes, counts);
        return;
    }
    if (w->rng) {
        at = *w->rng;
        at.index += w->start + from;
    }
    mpsim_encode_array_f32(w->f, &w->rounding, w->rng ? &at : NULL, codes, y, n, counts);
    if (w->rule->cast == MPSIM_CAST_TORCH)
        correct_torch(w, y, n, codes);
    else if (w->rule->cast == MPSIM_CAST_MICROX)
        correct_microx(w, y, n, codes, counts);
}

/* ---- values and statistics ---- */

static void dequantize(const work *w, float *values, const uint8_t *codes)
{
    const int over = w->rule->dequantize == MPSIM_OVER_FACTOR;
    for (size_t i = 0; i < w->n; i++) {
        const float q = w->decoded[codes[i]];
        values[i] = over ? q / w->factor[i] : q * w->inverse[i];
    }
}

/* Whether q is the scaled element x, in exact numbers. */
static int is_exact(const work *w, size_t i, float x, double q)
{
    if (w->rule->divides)
        return q * (double)w->inverse[i] == (double)x;
    return q == (double)x * (double)w->factor[i];
}

static void add_casts(const work *w, mpsim_cast_stats *to, const mpsim_counts *c, const float *values)
{
    const float *origin = w->out->origin ? w->out->origin : w->x;
    if (!to)
        return;
    mpsim_counts_add(&to->counts, c);
    mpsim_cast_stats_add_values(to, origin + w->start, values, w->n);
}

/* Whether the cast counts an overflow of element i. */
static int overflows(const work *w, size_t i)
{
    uint8_t code;
    unsigned flags = 0;
    mpsim_counts one = {0, 0, 0, 0, 0};
    if (!w->rng) { /* faster than preparing an array */
        (void)mpsim_encode_f32(w->f, &w->rounding, w->y[i], 0, &flags);
        return (flags & MPSIM_FLAG_OVERFLOW) != 0;
    }
    encode(w, i, 1, &code, &one);
    return one.overflow > 0;
}

/* Add the batch to the statistics. `cast` is what the cast of the scaled elements counted: of it,
 * subnormal results and overflow stand; an element whose product overflowed before it is added, and one
 * whose code stands for a value beyond binary32. */
static void account(const work *w, const uint8_t *codes, const float *values, const mpsim_counts *cast)
{
    const mpsim_blocks *out = w->out;
    mpsim_counts c = {.subnormal = cast->subnormal, .overflow = cast->overflow};
    const float *x = w->x + w->start;
    for (size_t i = 0; i < w->n; i++) {
        const double q = (double)w->decoded[codes[i]];
        if (isnan(x[i])) {
            c.nan++;
        } else if (isfinite(x[i])) {
            c.inexact += !is_exact(w, i, x[i], q) || !isfinite(values[i]);
            c.underflow += x[i] != 0 && q == 0;
            c.overflow += !isfinite(w->y[i]) || (isfinite(q) && !isfinite(values[i]) && !overflows(w, i));
        }
    }
    if (out->counts)
        mpsim_counts_add(out->counts, &c);
    add_casts(w, out->casts, &c, values);
    add_casts(w, out->stats ? &out->stats->casts : NULL, &c, values);
    if (w->seen)
        mpsim_block_see(out->stats, w->seen, x, values, w->n, c.overflow);
}

void mpsim_block_batch_flush(work *w)
{
    uint8_t own_codes[BATCH];
    float own_values[BATCH];
    const mpsim_blocks *out = w->out;
    uint8_t *codes = out->codes ? out->codes + w->start : own_codes;
    float *values = out->values ? out->values + w->start : own_values;
    mpsim_counts counts = {0, 0, 0, 0, 0};
    if (w->n == 0)
        return;
    encode(w, 0, w->n, codes, &counts);
    const int accounts = out->casts || out->counts || out->stats;
    if (out->values || accounts)
        dequantize(w, values, codes);
    if (accounts)
        account(w, codes, values, &counts);
    w->n = 0;
    w->irregular = 0;
}

void mpsim_block_batch_add(work *w, size_t at, size_t n, float factor, float inverse, int irregular)
{
    while (n > 0) {
        if (w->n == BATCH || at != w->start + w->n)
            mpsim_block_batch_flush(w);
        if (w->n == 0)
            w->start = at;
        const size_t room = BATCH - w->n, m = n < room ? n : room;
        const float *x = w->x + at;
        float *y = w->y + w->n;
        for (size_t i = 0; i < m; i++) {
            y[i] = w->rule->divides ? x[i] / inverse : x[i] * factor;
            w->factor[w->n + i] = factor;
            w->inverse[w->n + i] = inverse;
        }
        if (irregular)
            for (size_t i = 0; i < m; i++)
                y[i] = settle_nan(y[i], x[i], factor);
        w->irregular |= irregular;
        w->n += m;
        at += m;
        n -= m;
    }
}
