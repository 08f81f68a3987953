/* scaledmm.c -- see mpsim/scaledmm.h. */
#include "../base/environment.h"
#include "../base/matrix.h"
#include "../base/words.h"
#include "../round/scalar.h"

#include <mpsim/scaledmm.h>

#include <stdlib.h>

enum { CHAIN = 128, TILE = 64, TILE_CONTIGUOUS = 128, PARTS = 1 << 20 /* at most */ };

/* ---- by name ---- */

static const struct architecture {
    const char *name, *model;
    uint8_t first, last; /* orders of its kernels */
} architectures[] = {
    {"hopper", "hopper-wgmma-fp8-fp32", MPSIM_SPLIT_CONTIGUOUS, MPSIM_SPLIT_CONTIGUOUS},
    {"ada", "ada-fp8-fp32", MPSIM_SPLIT_SERIAL, MPSIM_SPLIT_PAIRWISE},
};
enum { ARCHITECTURES = sizeof architectures / sizeof architectures[0] };

static const char *const orders[] = {"contiguous", "serial", "pairwise"};
static const char *const outs[] = {"binary32", "bf16", "fp16", "e4m3", "e5m2"};
enum { ORDERS = sizeof orders / sizeof orders[0], OUTS = sizeof outs / sizeof outs[0] };

static int is_out(const mpsim_format *f)
{
    for (int i = 0; i < OUTS; i++)
        if (mpsim_format_same(f, mpsim_format_find(outs[i])))
            return 1;
    return 0;
}

/* What the words have said: each at most once. */
typedef struct said {
    int architecture, fast, order, parts, out; /* -1: nothing; out, parts: 0 */
} said;

static int set_once(int *field, int value)
{
    const int first = *field < 0;
    *field = value;
    return first;
}

static int parse_parts(uint32_t *parts, const char *text, size_t n)
{
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9' || v > 100000)
            return 0;
        v = 10 * v + (uint32_t)(text[i] - '0');
    }
    *parts = v;
    return n > 0 && v > 0 && v <= PARTS;
}

/* One word of n letters: 1, or 0 where it is none or was said. */
static int take_word(mpsim_scaled_mm *p, said *s, const char *text, size_t n)
{
    char value[32];
    for (int i = 0; i < ARCHITECTURES; i++)
        if (mpsim_same_word(text, n, architectures[i].name))
            return set_once(&s->architecture, i);
    for (int i = 0; i < ORDERS; i++)
        if (mpsim_same_word(text, n, orders[i]))
            return set_once(&s->order, i);
    if (mpsim_same_word(text, n, "fast") || mpsim_same_word(text, n, "slow"))
        return set_once(&s->fast, mpsim_same_word(text, n, "fast"));
    if (n > 2 && mpsim_same_word(text, 2, "S="))
        return set_once(&s->parts, 1) && parse_parts(&p->parts, text + 2, n - 2);
    if (n > 4 && n - 4 < sizeof value && mpsim_same_word(text, 4, "out=")) {
        memcpy(value, text + 4, n - 4);
        value[n - 4] = 0;
        return set_once(&s->out, 1) && mpsim_format_parse(&p->out, value) == MPSIM_OK && is_out(&p->out);
    }
    return 0;
}

mpsim_status mpsim_scaled_mm_parse(mpsim_scaled_mm *p, const char *name)
{
    static const char own[] = "torch-scaled-mm";
    mpsim_scaled_mm x;
    said s = {-1, -1, -1, -1, -1};
    if (!p || !name)
        return MPSIM_EINVAL;
    const size_t n = strcspn(name, ":");
    if (!mpsim_same_word(name, n, own))
        return MPSIM_ENOTFOUND;
    if (strlen(name) >= sizeof x.name)
        return MPSIM_EINVAL;
    memset(&x, 0, sizeof x);
    x.out = *mpsim_format_find("bf16");
    for (const char *at = name + n; *at;) {
        const size_t word = strcspn(at + 1, ":");
        if (!take_word(&x, &s, at + 1, word))
            return MPSIM_EINVAL;
        at += 1 + word;
    }
    const struct architecture *a = &architectures[s.architecture < 0 ? 0 : s.architecture];
    x.fast = s.fast > 0;
    x.order = s.order < 0 ? a->first : (uint8_t)s.order;
    if (x.order < a->first || x.order > a->last)
        return MPSIM_EINVAL;
    const mpsim_status status = mpsim_model_parse(&x.model, a->model);
    if (status != MPSIM_OK)
        return status;
    memcpy(x.name, own, sizeof own - 1);
    memcpy(x.name + sizeof own - 1, name + n, strlen(name + n) + 1);
    *p = x;
    return MPSIM_OK;
}

/* ---- the sums ---- */

typedef struct product {
    const mpsim_scaled_mm *p;
    mpsim_model chain;
    size_t rows, columns, depth;
    const mpsim_matrix *a, *b;
    const mpsim_pool *pool;
    unsigned char *gathered_a, *gathered_b; /* lines of a part, or NULL */
} product;

static size_t at(const mpsim_matrix *x, size_t line, size_t k, int lines_are_columns)
{
    return (x->transposed != 0) != lines_are_columns ? k * x->stride + line : line * x->stride + k;
}

/* The elements of part s, side by side in rows: their number. fp8 has one byte. */
static size_t gather(const product *g, size_t s, unsigned char *to, const mpsim_matrix *x, size_t lines, int columns)
{
    const size_t step = at(x, 0, 1, columns); /* from k to k + 1 */
    const unsigned char *from = (const unsigned char *)x->codes;
    size_t n = 0;
    for (size_t i = 0; i < lines; i++)
        for (size_t tile = s; tile * TILE < g->depth; tile += g->p->parts) {
            const size_t first = tile * TILE, count = g->depth - first < TILE ? g->depth - first : TILE;
            const unsigned char *line = from + at(x, i, first, columns);
            if (step == 1)
                memcpy(to + n, line, count);
            for (size_t k = 0; step != 1 && k < count; k++)
                to[n + k] = line[k * step];
            n += count;
        }
    return lines ? n / lines : 0;
}

/* d = the sum of part s. */
static mpsim_status sum_of_part(const product *g, size_t s, float *d)
{
    mpsim_matrix a = *g->a, b = *g->b;
    size_t n;
    if (g->gathered_a) {
        n = gather(g, s, g->gathered_a, g->a, g->rows, 0);
        gather(g, s, g->gathered_b, g->b, g->columns, 1);
        a = (mpsim_matrix){g->a->format, g->gathered_a, n, 0};
        b = (mpsim_matrix){g->b->format, g->gathered_b, n, 1};
    } else {
        const size_t tiles = g->depth ? (g->depth - 1) / TILE_CONTIGUOUS + 1 : 0;
        const size_t each = tiles ? (tiles - 1) / g->p->parts + 1 : 0;
        const size_t first = s * each < tiles ? s * each * TILE_CONTIGUOUS : g->depth;
        const size_t last = (s + 1) * each < tiles ? (s + 1) * each * TILE_CONTIGUOUS : g->depth;
        n = last - first;
        a.codes = (const char *)a.codes + mpsim_format_code_bytes(a.format) * (n ? at(&a, 0, first, 0) : 0);
        b.codes = (const char *)b.codes + mpsim_format_code_bytes(b.format) * (n ? at(&b, 0, first, 1) : 0);
    }
    return mpsim_gemm(&g->chain, g->rows, g->columns, n, &a, &b, NULL, d, g->columns, NULL, g->pool);
}

/* x += y, in the default environment. */
static void add(float *x, const float *y, size_t n)
{
    const mpsim_environment before = mpsim_environment_default();
    for (size_t i = 0; i < n; i++)
        x[i] += y[i];
    mpsim_environment_restore(before);
}

/* The sums of all parts, added in their order; `slot` and `part` are for n numbers. */
static mpsim_status sums(const product *g, float *sum, float *slot, float *part, size_t n)
{
    const size_t parts = g->p->parts, half = parts / 2 + parts % 2;
    const int pairwise = g->p->order == MPSIM_SPLIT_PAIRWISE && parts > 1;
    mpsim_status s = sum_of_part(g, pairwise ? parts - 1 : 0, sum);
    for (size_t i = pairwise ? 0 : 1; s == MPSIM_OK && i < (pairwise ? half : parts); i++) {
        s = sum_of_part(g, i, slot);
        if (s == MPSIM_OK && pairwise && i + half < parts - 1) {
            s = sum_of_part(g, i + half, part);
            add(slot, part, n);
        }
        if (s == MPSIM_OK)
            add(sum, slot, n);
    }
    return s;
}

/* ---- what becomes of them ---- */

/* sum alpha as binary32; the product is exact in binary64, and an exact zero is +0. Narrow results: times *scale_result. */
static void scale(float *y, size_t n, float alpha, const float *scale_result)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((double)y[i] * (double)alpha + 0.0);
    for (size_t i = 0; scale_result && i < n; i++)
        y[i] = (float)((double)y[i] * (double)*scale_result);
}

/* The results of n sums, which are overwritten. Narrow ones saturate, infinities too. */
static mpsim_status epilogue(const mpsim_scaled_mm *p, float *sum, size_t n, float scale_a, float scale_b,
                             const float *scale_result, void *d)
{
    const int narrow = p->out.bits == 8;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.nan = MPSIM_NANS_ONES;
    r.overflow = narrow ? MPSIM_OVERFLOW_MAX : MPSIM_OVERFLOW_INF;
    r.infinity = narrow ? MPSIM_INFINITY_MAX : MPSIM_INFINITY_KEEP;
    r.no_inf = narrow ? MPSIM_NO_INF_MAX : MPSIM_NO_INF_NAN;
    const mpsim_environment before = mpsim_environment_default();
    scale(sum, n, (float)((double)scale_a * (double)scale_b), narrow ? scale_result : NULL);
    mpsim_environment_restore(before);
    return mpsim_encode_array_f32(&p->out, &r, NULL, d, sum, n, NULL);
}

/* ---- the whole ---- */

static int is_valid(const mpsim_scaled_mm *p)
{
    return p && p->parts > 0 && p->parts <= PARTS && p->order < ORDERS && p->fast <= 1 && is_out(&p->out) &&
           mpsim_model_check(&p->model) == MPSIM_OK && p->model.chunk == 0 && p->model.result.format.bits == 32;
}

static mpsim_status run(product *g, float scale_a, float scale_b, const float *scale_result, void *d)
{
    const size_t n = g->rows * g->columns;
    float *memory = (float *)malloc((3 * n + 1) * sizeof *memory);
    if (!memory)
        return MPSIM_ENOMEM;
    mpsim_status s = sums(g, memory, memory + n, memory + 2 * n, n);
    if (s == MPSIM_OK)
        s = epilogue(g->p, memory, n, scale_a, scale_b, scale_result, d);
    free(memory);
    return s;
}

mpsim_status mpsim_scaled_mm_run(const mpsim_scaled_mm *p, size_t rows, size_t columns, size_t depth,
                                 const mpsim_matrix *a, const mpsim_matrix *b, float scale_a, float scale_b,
                                 const float *scale_result, void *d, const mpsim_pool *pool)
{
    if (!is_valid(p) || !mpsim_is_operand(a, rows, depth) || !mpsim_is_operand(b, depth, columns) ||
        (rows && columns && !d) || !mpsim_is_pool(pool))
        return MPSIM_EINVAL;
    if (!mpsim_model_accepts(&p->model, a->format, b->format) || a->format->bits != 8 || b->format->bits != 8)
        return MPSIM_ERANGE;
    if (rows == 0 || columns == 0)
        return MPSIM_OK;
    if (columns > SIZE_MAX / 16 / rows || (depth && (rows > SIZE_MAX / depth || columns > SIZE_MAX / depth)))
        return MPSIM_ENOMEM;
    product g = {
        .p = p, .chain = p->model, .rows = rows, .columns = columns, .depth = depth, .a = a, .b = b, .pool = pool};
    if (!p->fast)
        g.chain.chunk = CHAIN;
    if (p->parts > 1 && p->order != MPSIM_SPLIT_CONTIGUOUS) {
        g.gathered_a = (unsigned char *)malloc(rows * depth + 1);
        g.gathered_b = (unsigned char *)malloc(columns * depth + 1);
    }
    const int missing = p->parts > 1 && p->order != MPSIM_SPLIT_CONTIGUOUS && (!g.gathered_a || !g.gathered_b);
    const mpsim_status s = missing ? MPSIM_ENOMEM : run(&g, scale_a, scale_b, scale_result, d);
    free(g.gathered_a);
    free(g.gathered_b);
    return s;
}
