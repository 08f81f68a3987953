/* block.c -- scaled quantisation of matrices; see mpsim/block.h. */
#include <mpsim/block.h>

#include "../base/extent.h"
#include "../base/counts.h"
#include "../round/rng.h"
#include "account.h"

#include <math.h>
#include <string.h>

enum { BATCH = MPSIM_BLOCK_BATCH };

typedef mpsim_block_pass work;
typedef mpsim_block_group group;
typedef mpsim_block_span span;

/* ---- sizes ---- */

static uint64_t at_least_one(uint64_t n)
{
    return n ? n : 1;
}

/* The extent of a block along a dimension of n elements. */
static uint64_t extent(uint32_t block, uint64_t n)
{
    return at_least_one(block ? block : n);
}

/* How many blocks lie along it. */
static uint64_t blocks(uint32_t block, uint64_t n)
{
    const uint64_t one = extent(block, n);
    return n / one + (n % one != 0);
}

void mpsim_block_grid(const mpsim_block_recipe *b, size_t rows, size_t cols, size_t *grid_rows, size_t *grid_cols)
{
    *grid_rows = (size_t)blocks(b->block_rows, rows);
    *grid_cols = (size_t)blocks(b->block_cols, cols);
}

int mpsim_block_divides(const mpsim_block_recipe *b)
{
    const mpsim_scale_rule_row *rule = mpsim_scale_rule_at(b->rule);
    return rule && rule->divides;
}

/* Sums and products that end at UINT64_MAX. */
static uint64_t plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* Of n elements of at most 8 bits, packed. */
static uint64_t row_bytes(uint64_t n, unsigned bits)
{
    return n / 8 * bits + (n % 8 * bits + 7) / 8;
}

uint64_t mpsim_block_bytes(const mpsim_block_recipe *b, uint64_t rows, uint64_t cols)
{
    const mpsim_scale_rule_row *rule = mpsim_scale_rule_at(b->rule);
    const mpsim_format *f = mpsim_format_find(b->element);
    if (!rule || !f)
        return 0;
    const uint64_t grid_rows = blocks(b->block_rows, rows), grid_cols = blocks(b->block_cols, cols);
    const uint64_t c = extent(b->block_cols, cols);
    const uint64_t row = plus(times(cols / c, row_bytes(c, f->bits)), row_bytes(cols % c, f->bits));
    const uint64_t scales = times(times(grid_rows, grid_cols), rule->scale_bytes);
    return plus(plus(times(rows, row), scales), rule->has_tensor ? sizeof(float) : 0);
}

/* ---- amax ---- */

/* The bits of the largest magnitude among n elements and `so_far`: magnitudes grow with their bits,
 * and a NaN is larger than infinity unless it is dropped. */
static uint32_t amax_scalar(const float *x, size_t n, int drops_nan, uint32_t so_far)
{
    int32_t m = (int32_t)so_far;
    for (size_t i = 0; i < n; i++) {
        int32_t a = (int32_t)(mpsim_bits_f32(x[i]) & 0x7fffffffu);
        a = drops_nan && a > 0x7f800000 ? 0 : a;
        m = a > m ? a : m;
    }
    return (uint32_t)m;
}

/* Of n blocks of a row, `width` wide each; bits are those of the rows before, or 0. */
static void amax_row(const work *w, uint32_t *bits, const float *x, size_t width, size_t n, int drops_nan)
{
    if (w->functions)
        w->functions->amax(bits, x, width, n, drops_nan);
    else
        for (size_t k = 0; k < n; k++)
            bits[k] = amax_scalar(x + k * width, width, drops_nan, bits[k]);
}

/* ---- blocks ---- */

/* NaN is dropped here where the rule does, so that a block with one is known before. */
static void drop_nans(const work *w, group *g, const span *s)
{
    const mpsim_block_work *r = &w->reference;
    for (size_t k = 0; r->rule->drops_nan && k < s->n; k++) {
        if (g->amax[k] <= 0x7f800000u)
            continue;
        g->amax[k] = 0;
        for (size_t i = s->top; i < s->top + s->h; i++)
            g->amax[k] = amax_scalar(r->x + i * r->cols + s->left + k * s->width, s->width, 1, g->amax[k]);
        g->left[k] = 1;
    }
}

/* Blocks of which there is more than x holds. */
static void raise_amax(const mpsim_block_work *r, group *g, const span *s)
{
    for (size_t k = 0; k < s->n; k++)
        g->amax[k] = amax_scalar(r->out->block_amax + s->index + k, 1, r->rule->drops_nan, g->amax[k]);
}

/* Block k; returns k. Blocks of one amax, as infinity and 0, have one scale, which block `last` may have. */
static size_t scale_block(const mpsim_block_work *r, group *g, size_t k, size_t last)
{
    const float amax = mpsim_f32_bits(g->amax[k]);
    const int known = last != k && g->amax[last] == g->amax[k];
    const mpsim_block_scale one = known ? (mpsim_block_scale){g->factor[last], g->inverse[last], g->code[last]}
                                        : mpsim_rule_block(&r->env, amax);
    g->factor[k] = one.factor;
    g->inverse[k] = one.inverse;
    g->code[k] = one.code;
    g->irregular[k] = !isfinite(amax) || !isfinite(one.factor);
    return k;
}

static void scale_blocks(const work *w, group *g, const span *s)
{
    const mpsim_block_work *r = &w->reference;
    const mpsim_block_scales to = {g->factor, g->inverse, g->code, g->irregular};
    memset(g->amax, 0, (s->n + 15) / 16 * 16 * sizeof *g->amax);
    memset(g->left, 0, s->n);
    for (size_t i = s->top; i < s->top + s->h; i++)
        amax_row(w, g->amax, r->x + i * r->cols + s->left, s->width, s->n, r->rule->drops_nan && !w->account);
    if (w->account)
        drop_nans(w, g, s);
    if (r->out->block_amax)
        raise_amax(r, g, s);
    const int done = w->functions && w->functions->scales(&r->env, g->amax, s->n, &to);
    size_t last = 0;
    for (size_t k = 0; k < s->n; k++)
        if (!done || g->amax[k] >= 0x7f800000u)
            last = scale_block(r, g, k, last);
}

static void store_scales(const mpsim_blocks *out, const group *g, const span *s)
{
    if (out->scale_codes)
        memcpy(out->scale_codes + s->index, g->code, s->n * sizeof *g->code);
    if (out->scales)
        memcpy(out->scales + s->index, g->factor, s->n * sizeof *g->factor);
    if (out->inverses)
        memcpy(out->inverses + s->index, g->inverse, s->n * sizeof *g->inverse);
    if (out->amax)
        memcpy(out->amax + s->index, g->amax, s->n * sizeof *g->amax);
}

/* All blocks of a row at once. */
static void add_to_batch(work *w, group *g, const span *s, size_t at)
{
    mpsim_block_work *r = &w->reference;
    for (size_t k = 0; k < s->n; k++) {
        if (r->out->stats) { /* a batch for each block */
            mpsim_block_batch_flush(r);
            r->seen = &g->seen[k];
        }
        mpsim_block_batch_add(r, at + k * s->width, s->width, g->factor[k], g->inverse[k], g->irregular[k]);
    }
}

/* Blocks of NaN, of infinity, of little but subnormal numbers: they take the careful cast. Returns whether there are any. */
static int find_careful(group *g, const span *s)
{
    int any = 0;
    for (size_t k = 0; k < s->n; k++) {
        const int small = g->amax[k] - 1 < (127u - 108) << 23;
        g->careful[k] = (uint8_t)(g->irregular[k] | small);
        any |= g->careful[k];
    }
    return any;
}

/* Blocks from k on that are cast by one function. */
static size_t alike(const group *g, size_t k, size_t n)
{
    size_t end = k + 1;
    while (end < n && g->careful[end] == g->careful[k])
        end++;
    return end - k;
}

/* Elements i to i + m - 1 of a row at `at`: blocks, or a part of one wide block. */
static void cast_blocks(work *w, const group *g, const span *s, size_t at, size_t m)
{
    const mpsim_block_work *r = &w->reference;
    const mpsim_blocks *out = r->out;
    const size_t width = s->n > 1 ? s->width : m;
    uint32_t room[BATCH + MPSIM_RNG_ROOM];
    const uint32_t *words = r->rng ? mpsim_rng_words(room, r->rng, at, m) : NULL;
    for (size_t k = 0, n; k < s->n; k += n) {
        const size_t i = k * width;
        n = g->any_careful ? alike(g, k, s->n) : s->n;
        mpsim_block_cast_function *cast = g->any_careful && g->careful[k] ? w->functions->careful : w->cast;
        cast(&w->kernel, out->codes ? out->codes + at + i : NULL, out->values ? out->values + at + i : NULL,
             r->x + at + i, g->factor + k, g->inverse + k, words ? words + i : NULL, width, n, out->counts);
    }
}

static void cast_row(work *w, const group *g, const span *s, size_t at)
{
    const mpsim_block_work *r = &w->reference;
    const size_t total = s->n * s->width; /* more than a batch: one wide block */
    const int whole = !r->rng && !r->out->counts;
    w->kernel.ahead = (s->h > 1 ? s->h * r->cols : total) * sizeof *r->x;
    for (size_t i = 0, m; i < total; i += m) {
        m = total - i < BATCH || whole ? total - i : BATCH;
        cast_blocks(w, g, s, at + i, m);
    }
}

static void cast_span(work *w, group *g, const span *s)
{
    g->any_careful = w->cast && find_careful(g, s);
    for (size_t i = s->top; i < s->top + s->h; i++) {
        const size_t at = i * w->reference.cols + s->left;
        if (w->cast)
            cast_row(w, g, s, at);
        else
            add_to_batch(w, g, s, at);
        if (w->reference.out->stats)
            mpsim_block_batch_flush(&w->reference);
    }
}

static void account_span(work *w, group *g, const span *s)
{
    mpsim_block_sort(w, g, s);
    for (size_t i = s->top; i < s->top + s->h; i++) {
        const size_t at = i * w->reference.cols + s->left;
        if (g->any_plain)
            mpsim_block_account(w, g, s, at);
        if (g->any_left)
            mpsim_block_account_left(w, g, s, at);
    }
}

/* ---- all blocks ---- */

static void run_span(work *w, const span *s)
{
    group g;
    const mpsim_blocks *out = w->reference.out;
    scale_blocks(w, &g, s);
    store_scales(out, &g, s);
    if (!(out->codes || out->values || out->casts || out->counts || out->stats))
        return;
    memset(g.seen, 0, s->n * sizeof *g.seen);
    if (w->account)
        account_span(w, &g, s);
    else
        cast_span(w, &g, s);
    if (out->stats && !out->block_amax)
        mpsim_block_tell(out->stats, w->reference.rule, g.seen, g.code, g.inverse, s->n);
}

static void run(work *w)
{
    const mpsim_block_work *r = &w->reference;
    const size_t height = (size_t)extent(r->recipe->block_rows, r->rows);
    const size_t width = (size_t)extent(r->recipe->block_cols, r->cols);
    const size_t most = width < BATCH ? BATCH / width : 1, whole = r->cols / width;
    size_t grid_rows, grid_cols;
    mpsim_block_grid(r->recipe, r->rows, r->cols, &grid_rows, &grid_cols);
    for (size_t i = 0; grid_cols > 0 && i < grid_rows; i++) {
        span s = {.top = i * height, .width = width};
        s.h = r->rows - s.top < height ? r->rows - s.top : height;
        for (size_t j = 0; j < whole; j += s.n) {
            s.n = whole - j < most ? whole - j : most;
            s.left = j * width;
            s.index = i * grid_cols + j;
            run_span(w, &s);
        }
        if (whole < grid_cols) { /* a narrower one */
            s.n = 1;
            s.left = whole * width;
            s.index = i * grid_cols + whole;
            s.width = r->cols - s.left;
            run_span(w, &s);
        }
    }
    mpsim_block_batch_flush(&w->reference);
}

/* ---- quantising ---- */

/* The largest magnitude of all elements. */
static float amax_of_all(const work *w)
{
    const mpsim_block_work *r = &w->reference;
    uint32_t bits = 0;
    amax_row(w, &bits, r->x, r->rows * r->cols, 1, r->rule->drops_nan);
    return mpsim_f32_bits(bits);
}

static void prepare(work *all, float amax, float given)
{
    mpsim_block_work *w = &all->reference;
    const mpsim_block_recipe *b = w->recipe;
    const mpsim_format *f = w->f;
    mpsim_element_rounding(&w->rounding, b);
    for (uint64_t code = 0; code < 256; code++)
        w->decoded[code] = (float)mpsim_decode(f, code);
    w->below_half = mpsim_below_half(f);
    w->fp4_grid = w->rule->fp4_only && w->rule->cast == MPSIM_CAST_CUDA && w->rng;
    mpsim_scale_env_set(&w->env, b, f, given);
    if (w->rule->has_tensor)
        mpsim_rule_tensor(&w->env, !(amax < 0) ? amax : amax_of_all(all));
    all->cast = mpsim_block_kernel_init(&all->kernel, w, &all->account);
    all->lowest = mpsim_emin(f) - f->mbits;
    all->highest = w->env.emax + 1;
    /* errors are below two steps of the largest numbers; those of the origin come to them */
    all->step = w->env.emax - f->mbits + (w->out->origin ? 7 : 2);
    mpsim_cast_stats_init(&all->found);
    mpsim_block_errors_begin(&all->errors, &all->found);
}

/* What was accounted for here goes to the caller; its sums then are in the one form that they have. */
static void finish(work *w)
{
    const mpsim_blocks *out = w->reference.out;
    if (!out->stats)
        return;
    mpsim_block_errors_move(&w->errors, 0);
    mpsim_cast_stats_merge(&out->stats->casts, &w->found);
    out->stats->underflow += w->found.counts.underflow; /* plain blocks: finite values, 0 as the codes */
    out->stats->saturated += w->found.counts.overflow;
    if (out->counts)
        mpsim_counts_add(out->counts, &w->found.counts);
}

mpsim_status mpsim_block_quantize(const mpsim_block_recipe *b, const float *x, size_t rows, size_t cols, float amax,
                                  float given, const mpsim_rng *rng, const mpsim_blocks *out, float *tensor_scale)
{
    work w;
    mpsim_block_work *r = &w.reference;
    if (mpsim_block_check(b) != MPSIM_OK || !out || (!x && rows && cols) ||
        !mpsim_fits(mpsim_elements(rows, cols), sizeof *x))
        return MPSIM_EINVAL;
    const int stochastic = mpsim_is_stochastic(b->element_mode);
    if ((stochastic && !rng) || (mpsim_scale_rule_at(b->rule)->takes_given && !(given >= 0)))
        return MPSIM_EINVAL;
    r->recipe = b;
    r->rule = mpsim_scale_rule_at(b->rule);
    r->f = mpsim_format_find(b->element);
    r->rng = stochastic ? rng : NULL;
    r->x = x;
    r->rows = rows;
    r->cols = cols;
    r->out = out;
    r->start = r->n = 0;
    r->irregular = 0;
    r->seen = NULL;
    w.functions = mpsim_block_functions_active();
    prepare(&w, amax, given);
    if (tensor_scale)
        *tensor_scale = r->env.decode;
    run(&w);
    finish(&w);
    return MPSIM_OK;
}
