/* product.c -- products of stacks: a job of gemm.c for each matrix, whose tiles end in d; see mpsim/product.h.
 *
 * Nothing is copied that can be read in place: panels are packed from any strides, numbers are rounded as they are
 * packed, and each tile of sums ends in the caller's memory (epilogue.c). Operands that must be written first
 * (codes of a recipe, a transform, negative strides) get memory of their own (enter.c). Callers are the trainer's
 * CPU engine, python's _product.py and mpsim.emulate. */
#include "../base/environment.h"
#include "../base/matrix.h"
#include "dot.h"
#include "epilogue.h"
#include "job.h"
#include "pieces.h"
#include "shape.h"

#include <math.h>
#include <stdlib.h>

/* ---- a product on its way ---- */

/* An operand: as it is read, where its matrices are. */
typedef struct side {
    mpsim_operand o; /* memory: of a copy that was made for this product */
    mpsim_steps steps;
    mpsim_entry entry;
    int enters;           /* the entry is needed */
    uint8_t *scale_codes; /* of factors with a format, for each line; or NULL */
} side;

typedef struct product {
    const mpsim_product *p;
    side a, b;
    mpsim_outer outer;
    size_t rows, columns, depth, matrices;
    mpsim_steps d, bias, add, start;
    mpsim_epilogue e;
    const mpsim_pool *pool; /* of each matrix */
    mpsim_status status[MPSIM_PIECES];
} product;

/* ---- operands ---- */

/* Whether the panels of gemm.c read it where it lies. */
static int is_readable(const mpsim_operand *o)
{
    const mpsim_stack *x = &o->stack;
    return x->strides[x->rank - 2] >= 0 && x->strides[x->rank - 1] >= 0 &&
           (mpsim_format_same(o->format, x->format) ||
            (mpsim_in_binary32(o->format) && mpsim_in_binary32(x->format) && x->format->zero != MPSIM_ZERO_NONE));
}

static mpsim_status copy_side(side *s, const mpsim_operand *o, const mpsim_pool *pool)
{
    const mpsim_entering how = {.format = o->format, .mode = o->mode};
    mpsim_stack x = o->stack;
    if (mpsim_format_same(o->format, x.format)) { /* in order */
        mpsim_operand copy;
        const mpsim_status status = mpsim_operand_copy(&copy, &x, pool);
        s->o.stack = copy.stack;
        s->o.memory = copy.memory;
        return status;
    }
    const mpsim_status status = mpsim_operand_enter(&s->o, &x, &how, NULL, pool);
    s->o.inverse = o->inverse;
    return status;
}

static mpsim_status begin_side(side *s, const mpsim_operand *o, const mpsim_outer *outer, const mpsim_pool *pool)
{
    s->o = *o;
    s->o.memory = NULL;
    mpsim_status status = MPSIM_OK;
    if (!is_readable(o))
        status = copy_side(s, o, pool);
    if (!mpsim_steps_in(&s->steps, &s->o.stack, outer))
        return status ? status : MPSIM_EINVAL;
    s->enters = !mpsim_format_same(s->o.format, s->o.stack.format);
    s->entry = (mpsim_entry){.from = s->o.stack.format,
                             .to = s->o.format,
                             .as_values = mpsim_is_f32(s->o.stack.format),
                             .rounds = !o->rounded && !mpsim_is_f32(s->o.format)};
    mpsim_rounding_init(&s->entry.rounding, (mpsim_round_mode)o->mode);
    if (s->enters && s->entry.rounds)
        mpsim_ready_init(&s->entry.ready, s->entry.to, &s->entry.rounding, 1);
    return status;
}

static mpsim_source source_at(const side *s, int64_t at, size_t k)
{
    const mpsim_stack *x = &s->o.stack;
    const int64_t bytes = (int64_t)mpsim_format_code_bytes(x->format);
    const int64_t first = at + (int64_t)k * s->steps.col;
    return (mpsim_source){s->o.format, s->enters ? &s->entry : NULL,
                          x->codes ? (const char *)x->codes + first * bytes : NULL, (size_t)s->steps.row,
                          (size_t)s->steps.col};
}

/* Which matrix of an operand with factors begins at that code. */
static size_t number_of(const side *s, int64_t at)
{
    const size_t n = mpsim_stack_rows(&s->o.stack) * mpsim_stack_cols(&s->o.stack);
    return n ? (size_t)at / n : 0;
}

/* ---- scales ---- */

static size_t matrices_of(const mpsim_stack *x)
{
    size_t n = 1;
    for (uint32_t i = 0; i + 2 < x->rank; i++)
        n *= x->strides[i] == 0 ? 1 : x->shape[i];
    return n;
}

/* The scale codes of every line. */
static mpsim_status expand_scales(side *s)
{
    const mpsim_operand *o = &s->o;
    const size_t rows = mpsim_stack_rows(&o->stack), matrices = matrices_of(&o->stack), lines = rows * matrices;
    mpsim_rounding r;
    mpsim_status status = MPSIM_OK;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    s->scale_codes = (uint8_t *)malloc(lines * o->grid_cols * mpsim_format_code_bytes(o->scales) + 1);
    if (!s->scale_codes)
        return MPSIM_ENOMEM;
    for (size_t i = 0; i < lines && !status; i++) {
        const size_t from = i / rows * o->grid_rows + i % rows / o->block_rows;
        status = mpsim_encode_array_f32(o->scales, &r, NULL, s->scale_codes + i * o->grid_cols,
                                        o->factors + from * o->grid_cols, o->grid_cols, NULL);
    }
    return status;
}

static mpsim_scales scales_at(const side *s, int64_t at)
{
    const size_t line = number_of(s, at) * mpsim_stack_rows(&s->o.stack);
    return (mpsim_scales){s->o.scales, s->scale_codes + line * s->o.grid_cols, s->o.grid_cols};
}

/* ---- one matrix ---- */

typedef struct matrix {
    product *p;
    int64_t a, b, start; /* where they begin */
    mpsim_ending ending;
} matrix;

static mpsim_addend addend_at(const mpsim_stack *x, const mpsim_outer *o, const mpsim_steps *s, size_t i)
{
    if (!x)
        return (mpsim_addend){0};
    return (mpsim_addend){x->format, x->codes, mpsim_matrix_at(o, s, i), s->row, s->col};
}

static matrix matrix_of(product *p, size_t i)
{
    const mpsim_product *w = p->p;
    return (matrix){.p = p,
                    .a = mpsim_matrix_at(&p->outer, &p->a.steps, i),
                    .b = mpsim_matrix_at(&p->outer, &p->b.steps, i),
                    .start = w->start ? mpsim_matrix_at(&p->outer, &p->start, i) : 0,
                    .ending = {.e = &p->e,
                               .d = w->d->codes,
                               .first = mpsim_matrix_at(&p->outer, &p->d, i),
                               .row = p->d.row,
                               .col = p->d.col,
                               .bias = addend_at(w->bias, &p->outer, &p->bias, i),
                               .add = addend_at(w->add, &p->outer, &p->add, i)}};
}

static void take(void *self, size_t first, size_t rows, size_t column, size_t columns, const void *codes)
{
    mpsim_end_sums((mpsim_ending *)self, first, rows, column, columns, codes, N);
}

/* The first values of the chains as a matrix; memory: for a copy. */
static mpsim_status start_of(const matrix *x, mpsim_matrix *c, void **memory)
{
    const product *p = x->p;
    const mpsim_stack *s = p->p->start;
    const size_t bytes = mpsim_format_code_bytes(s->format);
    *c = (mpsim_matrix){s->format, (const char *)s->codes + x->start * (int64_t)bytes, (size_t)p->start.row, 0};
    if (p->start.col == 1 && p->start.row >= (int64_t)p->columns)
        return MPSIM_OK;
    *memory = malloc(p->rows * p->columns * bytes + 1);
    if (!*memory)
        return MPSIM_ENOMEM;
    for (size_t i = 0; i < p->rows; i++)
        mpsim_read_codes((char *)*memory + i * p->columns * bytes, s->codes, bytes,
                         x->start + (int64_t)i * p->start.row, p->start.col, p->columns);
    *c = (mpsim_matrix){s->format, *memory, p->columns, 0};
    return MPSIM_OK;
}

/* Whether results are the sums as they are, in rows without gaps. */
static int is_direct(const product *p)
{
    const mpsim_epilogue *e = &p->e;
    return !e->rounds && !e->counting && !e->scales && !e->multiplies && !p->p->bias && !p->p->add && p->d.col == 1 &&
           p->d.row >= (int64_t)p->columns;
}

static mpsim_status multiply_whole(matrix *x, size_t i)
{
    const product *p = x->p;
    const mpsim_source a = source_at(&p->a, x->a, 0), b = source_at(&p->b, x->b, 0);
    const mpsim_taker taker = {take, &x->ending};
    const int scaled = p->p->model->block && p->a.o.factors;
    mpsim_matrix c;
    void *memory = NULL;
    mpsim_scales sa, sb;
    mpsim_rng rng;
    job g = {
        .m = p->p->model, .a = &a, .b = &b, .rows = p->rows, .columns = p->columns, .depth = p->depth, .taker = &taker};
    if (p->p->start) {
        const mpsim_status s = start_of(x, &c, &memory);
        if (s)
            return s;
        g.c = &c;
    }
    if (scaled) {
        sa = scales_at(&p->a, x->a);
        sb = scales_at(&p->b, x->b);
        g.scales_a = &sa;
        g.scales_b = &sb;
    }
    if (p->p->rng) {
        rng = *p->p->rng;
        rng.index += (uint64_t)i * p->rows * p->columns << 32;
        g.rng = &rng;
    }
    if (is_direct(p)) {
        g.taker = NULL;
        g.d = (char *)p->p->d->codes + x->ending.first * (int64_t)mpsim_format_code_bytes(p->e.lies);
        g.d_stride = (size_t)p->d.row;
    }
    const mpsim_status s = mpsim_job_run(&g, p->pool);
    free(memory);
    return s;
}

/* ---- blocks of the depth, each times its factors ---- */

typedef struct promotion {
    matrix *x;
    const float *a, *b; /* factors of the block, of row and column 0, grid_cols apart */
    float *sums;        /* of all rows, some columns */
    size_t first, columns;
} promotion;

/* sums = fma(both factors, sums of a block, sums). */
static void promote(void *self, size_t first, size_t rows, size_t column, size_t columns, const void *codes)
{
    const promotion *o = (const promotion *)self;
    const product *p = o->x->p;
    const mpsim_operand *a = &p->a.o, *b = &p->b.o;
    const float *block = (const float *)codes;
    for (size_t i = 0; i < rows; i++) {
        const float fa = o->a[(first + i) / a->block_rows * a->grid_cols];
        float *s = o->sums + (first + i) * o->columns + column;
        for (size_t j = 0; j < columns; j++)
            s[j] = fmaf(fa * o->b[(o->first + column + j) / b->block_rows * b->grid_cols], block[i * N + j], s[j]);
    }
}

static void end_rows(void *some, size_t piece, size_t first, size_t n)
{
    const promotion *o = (const promotion *)some;
    const mpsim_environment before = mpsim_environment_default();
    (void)piece;
    for (size_t i = first; i < first + n; i += MPSIM_ENDING_ROWS)
        for (size_t j = 0; j < o->columns; j += N)
            mpsim_end_sums(&o->x->ending, i, first + n - i < MPSIM_ENDING_ROWS ? first + n - i : MPSIM_ENDING_ROWS,
                           o->first + j, o->columns - j < N ? o->columns - j : N, o->sums + i * o->columns + j,
                           o->columns);
    mpsim_environment_restore(before);
}

static mpsim_status multiply_some(promotion *o)
{
    const product *p = o->x->p;
    const mpsim_operand *a = &p->a.o, *b = &p->b.o;
    const float *fa = a->factors + number_of(&p->a, o->x->a) * a->grid_rows * a->grid_cols;
    const float *fb = b->factors + number_of(&p->b, o->x->b) * b->grid_rows * b->grid_cols;
    const mpsim_taker taker = {promote, o};
    memset(o->sums, 0, p->rows * o->columns * sizeof *o->sums);
    for (size_t k = 0; k < p->depth; k += a->block_cols) {
        const mpsim_source sa = source_at(&p->a, o->x->a, k);
        const mpsim_source sb = source_at(&p->b, o->x->b + (int64_t)o->first * p->b.steps.row, k);
        const size_t left = p->depth - k;
        const job g = {.m = p->p->model,
                       .a = &sa,
                       .b = &sb,
                       .rows = p->rows,
                       .columns = o->columns,
                       .depth = left < a->block_cols ? left : a->block_cols,
                       .taker = &taker};
        o->a = fa + k / a->block_cols;
        o->b = fb + k / a->block_cols;
        const mpsim_status s = mpsim_job_run(&g, p->pool);
        if (s)
            return s;
    }
    mpsim_pieces(p->pool, p->rows, MPSIM_ENDING_ROWS, (double)o->columns, end_rows, o);
    return MPSIM_OK;
}

static mpsim_status multiply_blocks(matrix *x)
{
    enum { ELEMENTS = 1 << 20, LEAST = 64 };
    const product *p = x->p;
    const size_t fits = ELEMENTS / p->rows / N * N, width = fits > LEAST ? fits : LEAST;
    promotion o = {.x = x};
    mpsim_status s = MPSIM_OK;
    o.sums = (float *)malloc(p->rows * (width < p->columns ? width : p->columns) * sizeof *o.sums + 1);
    if (!o.sums)
        return MPSIM_ENOMEM;
    for (size_t j = 0; j < p->columns && !s; j += width) {
        o.first = j;
        o.columns = p->columns - j < width ? p->columns - j : width;
        s = multiply_some(&o);
    }
    free(o.sums);
    return s;
}

static mpsim_status multiply(product *p, size_t i)
{
    matrix x = matrix_of(p, i);
    return p->a.o.factors && !p->p->model->block ? multiply_blocks(&x) : multiply_whole(&x, i);
}

static void begin_epilogue(product *p)
{
    const mpsim_product *w = p->p;
    mpsim_epilogue_init(&p->e, &w->model->result.format, w->numbers, w->d->format);
    mpsim_epilogue_scale(&p->e, w->a->inverse, w->b->inverse, w->factor);
    p->e.add_factor = w->add_factor;
    p->e.weighs = w->add_factor != 1;
    p->e.counting = w->counts != NULL;
}

static mpsim_status begin(product *p, const mpsim_product *w, const mpsim_pool *pool)
{
    mpsim_product_shape shape;
    const mpsim_status s = mpsim_is_pool(pool) ? mpsim_product_shape_of(&shape, w) : MPSIM_EINVAL;
    if (s)
        return s;
    p->p = w;
    p->outer = shape.outer;
    p->matrices = shape.matrices;
    p->rows = shape.rows;
    p->columns = shape.columns;
    p->depth = shape.depth;
    p->d = shape.d;
    p->bias = shape.bias;
    p->add = shape.add;
    p->start = shape.start;
    begin_epilogue(p);
    return MPSIM_OK;
}

/* ---- all of them ---- */

/* Where b serves all matrices of the last dimension, and those of a and d lie below one another, they are one matrix. */
static int joins(const product *p)
{
    const uint32_t last = p->outer.rank - 1;
    const mpsim_product *w = p->p;
    const int64_t rows = (int64_t)p->rows;
    return p->outer.rank && !w->a->factors && p->b.steps.outer[last] == 0 &&
           p->a.steps.outer[last] == rows * p->a.steps.row && p->d.outer[last] == rows * p->d.row &&
           (!w->bias || p->bias.outer[last] == rows * p->bias.row) &&
           (!w->add || p->add.outer[last] == rows * p->add.row) &&
           (!w->start || p->start.outer[last] == rows * p->start.row);
}

static void join(product *p)
{
    while (p->matrices && joins(p)) {
        p->rows *= p->outer.shape[--p->outer.rank];
        p->matrices = mpsim_outer_count(&p->outer);
    }
}

static void some_matrices(void *whole, size_t piece, size_t first, size_t n)
{
    product *p = (product *)whole;
    for (size_t i = first; i < first + n && !p->status[piece]; i++)
        p->status[piece] = multiply(p, i);
}

/* Products of one that threads are woken for: below about a millisecond they cost more than they save. */
#define LARGE 0x1p+21

static mpsim_status run(product *p, const mpsim_pool *pool)
{
    const double work = (double)p->rows * (double)p->columns * (double)(p->depth + 16);
    const size_t threads = !pool ? 1 : pool->threads ? pool->threads(pool->self) : 2;
    const int apart = p->matrices >= 2 * threads || work < LARGE; /* a thread has a matrix, not a part of each */
    p->pool = apart ? NULL : pool;
    mpsim_pieces(apart ? pool : NULL, p->matrices, 1, work / 16, some_matrices, p);
    for (size_t i = 0; i < MPSIM_PIECES; i++)
        if (p->status[i])
            return p->status[i];
    return (mpsim_status)atomic_load(&p->e.status);
}

void mpsim_product_init(mpsim_product *p)
{
    memset(p, 0, sizeof *p);
    p->factor = p->add_factor = 1;
}

mpsim_status mpsim_product_run(const mpsim_product *w, const mpsim_pool *pool)
{
    product p;
    memset(&p, 0, sizeof p);
    mpsim_status s = begin(&p, w, pool);
    if (s || p.matrices == 0 || p.rows == 0 || p.columns == 0)
        return s;
    s = begin_side(&p.a, w->a, &p.outer, pool);
    if (!s)
        s = begin_side(&p.b, w->b, &p.outer, pool);
    if (!s && w->a->scales) {
        s = expand_scales(&p.a);
        s = s ? s : expand_scales(&p.b);
    }
    if (!s) {
        join(&p);
        s = run(&p, pool);
    }
    if (!s)
        mpsim_epilogue_count(&p.e, p.p->counts);
    free(p.a.scale_codes);
    free(p.b.scale_codes);
    mpsim_operand_free(&p.a.o);
    mpsim_operand_free(&p.b.o);
    return s;
}

mpsim_status mpsim_product_of(const mpsim_product *p, const mpsim_stack *a, const mpsim_entering *how_a,
                              const mpsim_stack *b, const mpsim_entering *how_b, const mpsim_pool *pool)
{
    mpsim_operand of_a, of_b;
    if (!p)
        return MPSIM_EINVAL;
    mpsim_product whole = *p;
    mpsim_status s = mpsim_operand_enter(&of_a, a, how_a, NULL, pool);
    if (s)
        return s;
    s = mpsim_operand_enter(&of_b, b, how_b, NULL, pool);
    if (!s) {
        whole.a = &of_a;
        whole.b = &of_b;
        s = mpsim_product_run(&whole, pool);
        mpsim_operand_free(&of_b);
    }
    mpsim_operand_free(&of_a);
    return s;
}
