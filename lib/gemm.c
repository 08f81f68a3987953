/* gemm.c -- matrix products: operands are unpacked once into panels, tiles of the result are
 * independent tasks; see mpsim/dot.h. */
#include "codes.h"
#include "dot.h"
#include "tile.h"

#include <stdlib.h>

enum { N = MPSIM_TILE };

typedef struct job {
    const mpsim_model *m;
    const mpsim_matrix *a, *b, *c; /* c may be NULL */
    size_t rows, columns, depth;
    size_t padded;  /* depth of the panels: chunks of order QUADS are filled up with zeros  */
    void *d;
    size_t d_stride;
    const mpsim_rng *rng;
    size_t panels, blocks; /* of columns, of rows: a task is one of each                    */
    size_t block_rows;
    /* the fast path: */
    int fast;
    mpsim_tile tile;
    unsigned char *a_values, *b_values; /* rows x padded; panels x padded x N               */
    int16_t *a_exponents, *b_exponents;
    unsigned char *a_special, *b_special; /* 1: the row (column) has an infinity or a NaN   */
    unsigned char *failed;                /* by task: out of memory                         */
} job;

static size_t index_in(const mpsim_matrix *x, size_t i, size_t j)
{
    return x->transposed ? j * x->stride + i : i * x->stride + j;
}

/* ---- panels ---- */

/* Where product k of the model's order stands in the operands. */
static size_t source_of(const job *g, size_t k)
{
    const size_t chunk = g->m->chunk;
    return g->m->order == MPSIM_ORDER_QUADS ? k - k % chunk + mpsim_fused_quads(k % chunk, chunk) : k;
}

/* Value and exponent of one operand at place `at` of a panel. */
static int put(const job *g, unsigned char *values, int16_t *exponents, size_t at,
               const mpsim_format *f, uint64_t code)
{
    const mpsim_term t = mpsim_scalar_term(f, g->m->operand_emin, code);
    const mpsim_number x = mpsim_scalar_unpack(f, code);
    if (t.kind != MPSIM_NUMBER_FINITE)
        return 1;
    exponents[at] = (int16_t)(t.s ? t.e : MPSIM_TILE_ZERO);
    if (g->tile.wide)
        ((double *)(void *)values)[at] = mpsim_number_to_f64(x);
    else
        ((float *)(void *)values)[at] = mpsim_number_to_f32(x);
    return 0;
}

static void pack(size_t i, void *context)
{
    const job *g = (const job *)context;
    const mpsim_matrix *x = i < g->rows ? g->a : g->b;
    const size_t bytes = mpsim_format_code_bytes(x->format);
    if (i < g->rows) { /* a row of a */
        for (size_t k = 0; k < g->padded; k++) {
            const size_t from = source_of(g, k), at = i * g->padded + k;
            if (from >= g->depth)
                g->a_exponents[at] = MPSIM_TILE_ZERO;
            else if (put(g, g->a_values, g->a_exponents, at, x->format,
                         mpsim_code_load(x->codes, bytes, index_in(x, i, from))))
                g->a_special[i] = 1;
        }
        return;
    }
    const size_t panel = i - g->rows, first = panel * N;
    for (size_t k = 0; k < g->padded; k++)
        for (size_t j = 0; j < N; j++) {
            const size_t from = source_of(g, k), at = (panel * g->padded + k) * N + j;
            if (from >= g->depth || first + j >= g->columns)
                g->b_exponents[at] = MPSIM_TILE_ZERO;
            else if (put(g, g->b_values, g->b_exponents, at, x->format,
                         mpsim_code_load(x->codes, bytes, index_in(x, from, first + j))))
                g->b_special[first + j] = 1;
        }
}

static void free_panels(job *g)
{
    free(g->a_values);
    free(g->b_values);
    free(g->a_exponents);
    free(g->b_exponents);
    free(g->a_special);
    free(g->b_special);
}

static int product_fits(size_t *product, size_t a, size_t b)
{
    *product = a * b;
    return b == 0 || a <= SIZE_MAX / b;
}

/* Zeroed memory for the panels. What is not put is special, and done by the reference. */
static mpsim_status new_panels(job *g)
{
    size_t a, b;
    if (!product_fits(&a, g->rows, g->padded) || !product_fits(&b, g->panels * N, g->padded))
        return MPSIM_ENOMEM;
    g->a_values = (unsigned char *)calloc(a + 1, mpsim_tile_real(&g->tile));
    g->b_values = (unsigned char *)calloc(b + 1, mpsim_tile_real(&g->tile));
    g->a_exponents = (int16_t *)calloc(a + 1, sizeof(int16_t));
    g->b_exponents = (int16_t *)calloc(b + 1, sizeof(int16_t));
    g->a_special = (unsigned char *)calloc(g->rows + 1, 1);
    g->b_special = (unsigned char *)calloc(g->panels * N + 1, 1);
    if (g->a_values && g->b_values && g->a_exponents && g->b_exponents && g->a_special &&
        g->b_special)
        return MPSIM_OK;
    free_panels(g);
    return MPSIM_ENOMEM;
}

/* ---- tiles ---- */

static mpsim_number addend(const job *g, size_t i, size_t j)
{
    const mpsim_format *f = &g->m->result.format;
    if (!g->c)
        return mpsim_number_make(0, 0, 0);
    return mpsim_scalar_unpack(
        f, mpsim_code_load(g->c->codes, mpsim_format_code_bytes(f), index_in(g->c, i, j)));
}

static void store(const job *g, size_t i, size_t j, uint64_t code)
{
    mpsim_code_store(g->d, mpsim_format_code_bytes(&g->m->result.format), i * g->d_stride + j, code);
}

static mpsim_status element(const job *g, size_t i, size_t j)
{
    const mpsim_matrix *a = g->a, *b = g->b;
    const mpsim_vector va = {a->format, a->codes, mpsim_format_code_bytes(a->format),
                             index_in(a, i, 0), a->transposed ? a->stride : 1};
    const mpsim_vector vb = {b->format, b->codes, mpsim_format_code_bytes(b->format),
                             index_in(b, 0, j), b->transposed ? 1 : b->stride};
    const uint64_t base = g->rng ? g->rng->index + ((uint64_t)(i * g->columns + j) << 32) : 0;
    uint64_t d;
    const mpsim_status s =
        mpsim_dot_reference(g->m, &va, &vb, g->depth, addend(g, i, j), g->rng, base, &d);
    if (s == MPSIM_OK)
        store(g, i, j, d);
    return s;
}

/* Row i of a panel of columns by the fast path. Returns the columns that the reference must do. */
static unsigned fast_row(const job *g, size_t i, size_t panel, const mpsim_number *c,
                         mpsim_number *d)
{
    const size_t real = mpsim_tile_real(&g->tile), at = i * g->padded;
    const unsigned char *a = g->a_values + at * real;
    const unsigned char *b = g->b_values + panel * g->padded * N * real;
    const int16_t *ea = g->a_exponents + at, *eb = g->b_exponents + panel * g->padded * N;
    const mpsim_rounded *outer = &g->m->outer;
    double s[N];
    unsigned redo = 0;
    if (g->m->chunk == 0) {
        for (int j = 0; j < N; j++)
            s[j] = mpsim_number_to_f64(c[j]);
        redo = mpsim_tile_steps(&g->tile, a, ea, b, eb, s, g->padded);
        for (int j = 0; j < N; j++)
            d[j] = mpsim_number_f64(s[j]);
        return redo;
    }
    for (int j = 0; j < N; j++)
        d[j] = c[j];
    for (size_t k = 0; k < g->padded; k += g->m->chunk) {
        const size_t n = g->padded - k < g->m->chunk ? g->padded - k : g->m->chunk;
        for (int j = 0; j < N; j++)
            s[j] = 0;
        redo |= mpsim_tile_steps(&g->tile, a + k * real, ea + k, b + k * N * real, eb + k * N, s, n);
        for (int j = 0; j < N; j++) {
            unsigned flags = 0;
            const mpsim_number sum =
                mpsim_number_add(d[j], mpsim_number_f64(s[j]),
                                 outer->rounding.mode == MPSIM_ROUND_DOWN, &flags);
            const uint64_t code = mpsim_scalar_encode(&outer->format, &outer->rounding,
                                                      outer->rounding.mode, sum, 0, &flags);
            d[j] = mpsim_scalar_unpack(&outer->format, code);
        }
    }
    return redo;
}

static mpsim_status row_of_tile(const job *g, size_t i, size_t panel)
{
    const size_t first = panel * N, n = g->columns - first < N ? g->columns - first : N;
    const mpsim_rounded *result = &g->m->result;
    mpsim_number c[N], d[N];
    unsigned redo = ~0u;
    if (g->fast && !g->a_special[i]) {
        unsigned special = 0;
        for (size_t j = 0; j < N; j++) {
            c[j] = mpsim_number_make(0, 0, 0);
            if (j >= n)
                continue;
            c[j] = addend(g, i, first + j);
            if (c[j].kind != MPSIM_NUMBER_FINITE || g->b_special[first + j]) {
                special |= 1u << j;
                c[j] = mpsim_number_make(0, 0, 0);
            }
        }
        redo = fast_row(g, i, panel, c, d) | special;
    }
    for (size_t j = 0; j < n; j++) {
        if (redo >> j & 1) {
            const mpsim_status s = element(g, i, first + j);
            if (s != MPSIM_OK)
                return s;
        } else {
            unsigned flags;
            store(g, i, first + j,
                  mpsim_scalar_encode(&result->format, &result->rounding, result->rounding.mode,
                                      d[j], 0, &flags));
        }
    }
    return MPSIM_OK;
}

static void compute(size_t task, void *context)
{
    const job *g = (const job *)context;
    const size_t panel = task / g->blocks, first = task % g->blocks * g->block_rows;
    const size_t end = g->rows - first < g->block_rows ? g->rows : first + g->block_rows;
    for (size_t i = first; i < end; i++)
        if (row_of_tile(g, i, panel) != MPSIM_OK)
            g->failed[task] = 1;
}

/* ---- the whole ---- */

static void run_here(void *self, size_t n, void (*task)(size_t i, void *job), void *context)
{
    (void)self;
    for (size_t i = 0; i < n; i++)
        task(i, context);
}

/* A matrix of the given size: a stride that holds a row, codes if there are any. */
static int is_matrix(const mpsim_matrix *x, size_t rows, size_t columns)
{
    const size_t across = x->transposed ? rows : columns, lines = x->transposed ? columns : rows;
    return rows == 0 || columns == 0 || (x->codes && (lines == 1 || x->stride >= across));
}

static int same_format(const mpsim_format *a, const mpsim_format *b)
{
    return a->bits == b->bits && a->ebits == b->ebits && a->mbits == b->mbits && a->inf == b->inf &&
           a->nan == b->nan && a->zero == b->zero && a->bias == b->bias &&
           a->max_finite == b->max_finite;
}

mpsim_status mpsim_gemm(const mpsim_model *m, size_t rows, size_t columns, size_t depth,
                        const mpsim_matrix *a, const mpsim_matrix *b, const mpsim_matrix *c, void *d,
                        size_t d_stride, const mpsim_rng *rng, const mpsim_pool *pool)
{
    static const mpsim_pool here = {run_here, NULL};
    if (!a || !b)
        return MPSIM_EINVAL;
    mpsim_status s = mpsim_dot_check(m, a->format, b->format, rng);
    if (s != MPSIM_OK)
        return s;
    const mpsim_matrix to = {&m->result.format, d, d_stride, 0};
    if (!is_matrix(a, rows, depth) || !is_matrix(b, depth, columns) ||
        !is_matrix(&to, rows, columns))
        return MPSIM_EINVAL;
    if (c && (!c->format || !same_format(c->format, &m->result.format) ||
              !is_matrix(c, rows, columns)))
        return MPSIM_EINVAL;
    if (rows == 0 || columns == 0)
        return MPSIM_OK;

    job g = {.m = m, .a = a, .b = b, .c = c, .rows = rows, .columns = columns, .depth = depth,
             .padded = depth, .d = d, .d_stride = d_stride, .rng = rng};
    g.panels = (columns - 1) / N + 1;
    if (m->order == MPSIM_ORDER_QUADS && depth % m->chunk != 0)
        g.padded += m->chunk - depth % m->chunk;
    if (!pool)
        pool = &here;
    g.fast = !mpsim_is_stochastic(m->outer.rounding.mode) &&
             !mpsim_is_stochastic(m->result.rounding.mode) &&
             mpsim_tile_init(&g.tile, m, a->format, b->format);
    g.block_rows = g.fast ? 32 : 1; /* the reference takes its time for a row */
    g.blocks = (rows - 1) / g.block_rows + 1;
    size_t tasks;
    if (!product_fits(&tasks, g.panels, g.blocks))
        return MPSIM_ENOMEM;
    g.failed = (unsigned char *)calloc(tasks, 1);
    if (!g.failed)
        return MPSIM_ENOMEM;
    if (g.fast) {
        s = new_panels(&g);
        if (s != MPSIM_OK) {
            free(g.failed);
            return s;
        }
        pool->run(pool->self, rows + g.panels, pack, &g);
    }
    pool->run(pool->self, tasks, compute, &g);
    for (size_t i = 0; i < tasks; i++)
        if (g.failed[i])
            s = MPSIM_ENOMEM;
    if (g.fast)
        free_panels(&g);
    free(g.failed);
    return s;
}
