/* gemm.c -- the CPU engine: matrix products, one or a stack of them. */
#include "cpu.h"

#include <math.h>
#include <string.h>

typedef struct encoding {
    const train_tensor *x;
    char *codes;
    mpsim_status status[CPU_PIECES];
} encoding;

/* Numbers of the format: none is rounded. */
static void encode_some(void *job, size_t piece, size_t first, size_t n)
{
    encoding *o = job;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    o->status[piece] = mpsim_encode_array_f32(o->x->format, &r, NULL,
                                              o->codes + first * mpsim_format_code_bytes(o->x->format),
                                              cpu_values(o->x) + first, n, NULL);
}

const void *cpu_codes(train_engine *e, int i, const train_tensor *x)
{
    const size_t n = cpu_size(x);
    if (cpu_is_binary32(x->format))
        return cpu_values(x);
    encoding o = {.x = x, .codes = cpu_buffer(e, i, n * mpsim_format_code_bytes(x->format))};
    if (!o.codes)
        return NULL;
    cpu_pieces(e, n, CPU_IN_CACHE, 1, encode_some, &o);
    for (size_t k = 0; k < CPU_PIECES; k++)
        if (o.status[k]) {
            cpu_fail(e, "codes of %s: %s", x->format->name, mpsim_status_string(o.status[k]));
            return NULL;
        }
    return o.codes;
}

/* ---- shapes ---- */

/* Rows of each matrix of a stack that lies in x: how many, the first, and from matrix to matrix. */
typedef struct slice {
    size_t rows, first, height;
} slice;

static slice slice_of(const train_tensor *x, size_t matrices, const train_part *part)
{
    const size_t height = x->rows / matrices;
    return (slice){.rows = part->n ? part->n : height, .first = part->first, .height = height};
}

/* A stack of products, each rows x depth times depth x columns. */
typedef struct product {
    const train_gemm *g;
    train_tensor *d;
    size_t stacks, shared, columns, depth;
    slice sa, sb, sd;
    mpsim_matrix a, b;      /* the whole tensors */
    float *sums;            /* of stacks x rows x columns; NULL: they are left in d */
    const mpsim_pool *pool; /* for one product */
    int counting;
    mpsim_status status[CPU_PIECES];
    train_counts counts[CPU_PIECES];
} product;

static product product_of(train_tensor *d, const train_gemm *g)
{
    product p = {.g = g, .d = d, .stacks = g->stacks ? g->stacks : 1, .shared = g->shared ? g->shared : 1};
    p.sa = slice_of(g->a, p.stacks, &g->a_part);
    p.sb = slice_of(g->b, p.stacks / p.shared, &g->b_part);
    p.sd = slice_of(d, p.stacks, &g->d_part);
    p.columns = g->b_transposed ? p.sb.rows : g->b->cols;
    p.depth = g->a_transposed ? p.sa.rows : g->a->cols;
    if (g->depth_limit && g->depth_limit < p.depth)
        p.depth = g->depth_limit;
    return p;
}

/* ---- one product ---- */

/* Where the numbers of product i are in d, and where its sums are. */
static float *result_of(const product *p, size_t i)
{
    return cpu_values(p->d) + (i * p->sd.height + p->sd.first) * p->columns;
}

static float *sums_of(const product *p, size_t i)
{
    return p->sums ? p->sums + i * p->sd.rows * p->columns : result_of(p, i);
}

static mpsim_matrix matrix_of(const mpsim_matrix *x, const slice *s, size_t i)
{
    mpsim_matrix m = *x;
    m.codes = (const char *)x->codes + (i * s->height + s->first) * x->stride * mpsim_format_code_bytes(x->format);
    return m;
}

static mpsim_status multiply(const product *p, size_t i, const mpsim_pool *pool)
{
    float *s = sums_of(p, i);
    const mpsim_matrix a = matrix_of(&p->a, &p->sa, i);
    const mpsim_matrix b = matrix_of(&p->b, &p->sb, i / p->shared);
    const mpsim_matrix c = {.format = &p->g->model->result.format, .codes = s, .stride = p->columns};
    return mpsim_gemm(p->g->model, p->sd.rows, p->columns, p->depth, &a, &b, p->g->start == TRAIN_FROM_SUM ? &c : NULL,
                      s, p->columns, NULL, pool);
}

/* ---- blocks of the depth ---- */

typedef struct promotion {
    const train_gemm *g;
    float *s;
    const float *p;
    size_t columns, block;
} promotion;

/* s += the block's sums in p, each times the product of its two factors. */
static void promote(void *job, size_t piece, size_t first, size_t n)
{
    const promotion *o = job;
    const train_gemm *g = o->g;
    const float *a = cpu_values(g->a_blocks), *b = cpu_values(g->b_blocks);
    (void)piece;
    for (size_t i = first; i < first + n; i++)
        for (size_t j = 0; j < o->columns; j++) {
            const float factor = a[i / g->a_rows * g->a_blocks->cols + o->block] *
                                 b[j / g->b_rows * g->b_blocks->cols + o->block];
            o->s[i * o->columns + j] = fmaf(factor, o->p[i * o->columns + j], o->s[i * o->columns + j]);
        }
}

/* The scale codes of `lines` lines, from factors that `rows` of them share. */
static uint8_t *scale_codes(train_engine *e, int buffer, const train_tensor *blocks, size_t lines, size_t rows,
                            const mpsim_format *f)
{
    const size_t each = blocks->cols;
    uint8_t *codes = cpu_buffer(e, buffer, lines * each);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; codes && i < lines; i++)
        for (size_t q = 0; q < each; q++)
            codes[i * each + q] = (uint8_t)mpsim_encode_f32(f, &r, cpu_values(blocks)[i / rows * each + q], 0, NULL);
    return codes;
}

/* The product with the scales of blocks, as the model has it. */
static mpsim_status multiply_scaled(train_engine *e, const product *o)
{
    const train_gemm *g = o->g;
    const mpsim_format *f = mpsim_format_find(g->promote == 16 ? "e4m3" : "e8m0");
    const mpsim_scales a = {f, scale_codes(e, 4, g->a_blocks, o->sd.rows, g->a_rows, f), g->a_blocks->cols};
    const mpsim_scales b = {f, scale_codes(e, 5, g->b_blocks, o->columns, g->b_rows, f), g->b_blocks->cols};
    if (!a.codes || !b.codes)
        return MPSIM_ENOMEM;
    return mpsim_gemm_scaled(g->model, o->sd.rows, o->columns, o->depth, &o->a, &a, &o->b, &b, NULL, sums_of(o, 0),
                             o->columns, NULL, o->pool);
}

/* The sum of sums, each of the products of a block of the depth. */
static mpsim_status multiply_blocks(train_engine *e, const product *o)
{
    const train_gemm *g = o->g;
    const size_t rows = o->sd.rows, cols = o->columns;
    float *s = sums_of(o, 0), *p = cpu_floats(e, 3, rows * cols);
    mpsim_status status = p ? MPSIM_OK : MPSIM_ENOMEM;
    memset(s, 0, rows * cols * sizeof *s);
    for (size_t k = 0; k < o->depth && !status; k += g->promote) {
        mpsim_matrix a = o->a, b = o->b;
        promotion sum = {g, s, p, cols, k / g->promote};
        a.codes = (const char *)a.codes + k * mpsim_format_code_bytes(a.format);
        b.codes = (const char *)b.codes + k * mpsim_format_code_bytes(b.format);
        const size_t n = o->depth - k < g->promote ? o->depth - k : g->promote;
        status = mpsim_gemm(g->model, rows, cols, n, &a, &b, NULL, p, cols, NULL, o->pool);
        if (!status)
            cpu_pieces(e, rows, 1, cols, promote, &sum);
    }
    return status;
}

/* ---- what follows the sums ---- */

/* Rows first to first + n - 1 of product i: s * factor, s + bias[column], d + s, rounding. */
static mpsim_status finish(const product *p, size_t i, size_t first, size_t n, train_counts *counts)
{
    const train_gemm *g = p->g;
    const size_t columns = p->columns;
    float *s = sums_of(p, i) + first * columns, *d = result_of(p, i) + first * columns;
    if (g->a->inverse != 1 || g->b->inverse != 1) {
        const float factor = g->a->inverse * g->b->inverse;
        for (size_t k = 0; k < n * columns; k++)
            s[k] *= factor;
    }
    for (size_t k = 0; g->bias && k < n; k++) {
        const float *bias = cpu_values(g->bias);
        for (size_t j = 0; j < columns; j++)
            s[k * columns + j] += bias[j];
    }
    for (size_t k = 0; g->start == TRAIN_ADD_TO && k < n * columns; k++)
        d[k] += s[k];
    return cpu_round_here(p->d->format, d, n * columns, counts);
}

static void finish_some(void *job, size_t piece, size_t first, size_t n)
{
    product *p = job;
    p->status[piece] = finish(p, 0, first, n, p->counting ? &p->counts[piece] : NULL);
}

static void some_products(void *job, size_t piece, size_t first, size_t n)
{
    product *p = job;
    for (size_t i = first; i < first + n && !p->status[piece]; i++) {
        p->status[piece] = multiply(p, i, NULL);
        if (!p->status[piece])
            p->status[piece] = finish(p, i, 0, p->sd.rows, p->counting ? &p->counts[piece] : NULL);
    }
}

/* ---- all ---- */

/* Products of one that threads are woken for: below about a millisecond they cost more than they save. */
#define LARGE 0x1p+21

static mpsim_status multiply_all(train_engine *e, product *p)
{
    const double work = (double)p->sd.rows * (double)p->columns * (double)p->depth;
    p->pool = work >= LARGE ? e->pool : NULL;
    if (p->stacks > 1) {
        cpu_pieces(e, p->stacks, 1, work < LARGE ? (size_t)(work / 16) : (size_t)LARGE, some_products, p);
    } else {
        const mpsim_status s = p->g->model->block ? multiply_scaled(e, p)
                               : p->g->a_blocks   ? multiply_blocks(e, p)
                                                  : multiply(p, 0, p->pool);
        if (s)
            return s;
        cpu_pieces(e, p->sd.rows, 1, p->columns, finish_some, p);
    }
    for (size_t i = 0; i < CPU_PIECES; i++)
        if (p->status[i])
            return p->status[i];
    return MPSIM_OK;
}

int cpu_gemm(train_engine *e, train_tensor *d, const train_gemm *g, train_counts *counts)
{
    product p = product_of(d, g);
    p.counting = counts != NULL;
    p.a = (mpsim_matrix){.format = g->a->format,
                         .codes = cpu_codes(e, 0, g->a),
                         .stride = g->a->cols,
                         .transposed = g->a_transposed != 0};
    p.b = (mpsim_matrix){.format = g->b->format,
                         .codes = cpu_codes(e, 1, g->b),
                         .stride = g->b->cols,
                         .transposed = g->b_transposed != 0};
    if (!p.a.codes || !p.b.codes)
        return -1;
    if (g->start == TRAIN_ADD_TO) {
        p.sums = cpu_floats(e, 2, p.stacks * p.sd.rows * p.columns);
        if (!p.sums)
            return -1;
    }
    const mpsim_status s = multiply_all(e, &p);
    if (s)
        return cpu_fail(e, "gemm: %s of %s and %s: %s", g->model->name, p.a.format->name, p.b.format->name,
                        mpsim_status_string(s));
    for (size_t i = 0; counts && i < CPU_PIECES; i++)
        cpu_add_counts(counts, &p.counts[i]);
    d->inverse = 1;
    return 0;
}

int cpu_gemm_list(train_engine *e, const train_multiply *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (cpu_gemm(e, list[i].d, list[i].g, list[i].counts))
            return -1;
    return 0;
}
