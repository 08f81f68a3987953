/* account.c -- see account.h. */
#include "account.h"

#include "../base/counts.h"
#include "../round/rng.h"

#include <math.h>

enum { BATCH = MPSIM_BLOCK_BATCH };

typedef mpsim_block_pass work;
typedef mpsim_block_group group;
typedef mpsim_block_span span;

static int exponent(float x)
{
    return (int)(mpsim_bits_f32(x) >> 23) - 127;
}

/* Whether block k is one of kernel/errors.h. Its products and values are finite, and what does not
 * vanish is far from the subnormal numbers. */
static int is_plain(const work *w, group *g, size_t k)
{
    const int e = exponent(g->inverse[k]), of = exponent(g->factor[k]);
    const int largest = (int)(g->amax[k] >> 23) - 127;
    g->top[k] = (int16_t)(2 * (e + w->step));
    return (e + w->lowest >= -90) & (e + w->highest <= 120) & (of >= -120) & (of <= 119) & (largest <= 119) &
           (largest + of <= 118) & (g->amax[k] > 0);
}

/* Zeros stay zeros if the numbers that they meet are ones. */
static int is_zero(const work *w, const group *g, size_t k)
{
    const mpsim_blocks *out = w->reference.out;
    return g->amax[k] == 0 && isfinite(g->factor[k]) && g->factor[k] > 0 && isfinite(g->inverse[k]) && !out->codes &&
           !out->values && !out->origin;
}

void mpsim_block_sort(work *w, group *g, const span *s)
{
    size_t left = 0;
    g->any_plain = g->any_left = 0;
    for (size_t k = 0; k < s->n; k++) {
        g->plain[k] = (!(g->left[k] | g->irregular[k])) & is_plain(w, g, k);
        if (!g->plain[k])
            g->left[k] = g->left[k] || !is_zero(w, g, k);
        g->any_plain |= g->plain[k];
        g->any_left |= g->left[k];
        g->seen[k].nonzero = g->plain[k];
        left += g->left[k];
    }
    w->found.compared += (s->n - left) * s->h * s->width;
}

/* n elements of block k, from element `at` of the matrix on: a batch of the reference. */
static void account_batch(work *w, group *g, size_t k, size_t at, size_t n)
{
    const mpsim_block_work *r = &w->reference;
    const mpsim_blocks *out = r->out;
    const float *x = r->x + at, *origin = out->origin ? out->origin + at : x;
    uint32_t room[BATCH + MPSIM_RNG_ROOM];
    float own[BATCH], *values = out->values ? out->values + at : own;
    mpsim_counts counts = {0, 0, 0, 0, 0};
    w->functions->careful(&w->kernel, out->codes ? out->codes + at : NULL, values, x, g->factor + k, g->inverse + k,
                          r->rng ? mpsim_rng_words(room, r->rng, at, n) : NULL, n, 1, &counts);
    if (out->counts)
        mpsim_counts_add(out->counts, &counts);
    mpsim_counts_add(&out->stats->casts.counts, &counts);
    mpsim_cast_stats_add_values(&out->stats->casts, origin, values, n);
    mpsim_block_see(out->stats, &g->seen[k], x, values, n, counts.overflow);
}

void mpsim_block_account_left(work *w, group *g, const span *s, size_t at)
{
    for (size_t k = 0; k < s->n; k++)
        for (size_t i = 0; g->left[k] && i < s->width; i += BATCH)
            account_batch(w, g, k, at + k * s->width + i, s->width - i < BATCH ? s->width - i : BATCH);
}

void mpsim_block_account(work *w, group *g, const span *s, size_t at)
{
    const mpsim_block_work *r = &w->reference;
    const mpsim_blocks *out = r->out;
    const size_t total = s->n * s->width; /* more than a batch: one wide block */
    uint32_t room[BATCH + MPSIM_RNG_ROOM];
    for (size_t i = 0, m; i < total; i += m) {
        m = total - i < BATCH ? total - i : BATCH;
        const mpsim_block_row row = {.x = r->x + at + i,
                                     .origin = out->origin ? out->origin + at + i : NULL,
                                     .words = r->rng ? mpsim_rng_words(room, r->rng, at + i, m) : NULL,
                                     .codes = out->codes ? out->codes + at + i : NULL,
                                     .values = out->values ? out->values + at + i : NULL,
                                     .width = s->n > 1 ? s->width : m,
                                     .n = s->n,
                                     .factor = g->factor,
                                     .inverse = g->inverse,
                                     .plain = g->plain,
                                     .top = g->top,
                                     .seen = g->seen};
        w->account(&w->kernel, &row, &w->errors);
    }
}
