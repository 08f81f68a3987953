/* matrix.c -- a product of two matrices: its arguments are checked and become a job of gemm.c; see mpsim/dot.h. */
#include "../base/matrix.h"
#include "dot.h"
#include "job.h"

mpsim_source mpsim_source_of(const mpsim_matrix *x, int columns)
{
    const int along = x->transposed ? !columns : columns;
    return (mpsim_source){x->format, NULL, x->codes, along ? 1 : x->stride, along ? x->stride : 1};
}

static mpsim_status multiply(const mpsim_model *m, size_t rows, size_t columns, size_t depth, const mpsim_matrix *a,
                             const mpsim_scales *sa, const mpsim_matrix *b, const mpsim_scales *sb,
                             const mpsim_matrix *c, void *d, size_t d_stride, const mpsim_rng *rng,
                             const mpsim_pool *pool)
{
    if (!a || !b)
        return MPSIM_EINVAL;
    mpsim_status s = mpsim_dot_check(m, a->format, b->format, rng);
    if (s != MPSIM_OK)
        return s;
    const mpsim_matrix to = {&m->result.format, d, d_stride, 0};
    if (!mpsim_is_matrix(a, rows, depth) || !mpsim_is_matrix(b, depth, columns) ||
        !mpsim_is_matrix(&to, rows, columns) || !mpsim_is_pool(pool))
        return MPSIM_EINVAL;
    if (c && (!c->format || !mpsim_format_same(c->format, &m->result.format) || !mpsim_is_matrix(c, rows, columns)))
        return MPSIM_EINVAL;
    const mpsim_source rows_of_a = mpsim_source_of(a, 0), columns_of_b = mpsim_source_of(b, 1);
    const job g = {.m = m,
                   .a = &rows_of_a,
                   .b = &columns_of_b,
                   .c = c,
                   .scales_a = sa,
                   .scales_b = sb,
                   .rows = rows,
                   .columns = columns,
                   .depth = depth,
                   .d = d,
                   .d_stride = d_stride,
                   .rng = rng};
    return mpsim_job_run(&g, pool);
}

mpsim_status mpsim_gemm(const mpsim_model *m, size_t rows, size_t columns, size_t depth, const mpsim_matrix *a,
                        const mpsim_matrix *b, const mpsim_matrix *c, void *d, size_t d_stride, const mpsim_rng *rng,
                        const mpsim_pool *pool)
{
    return multiply(m, rows, columns, depth, a, NULL, b, NULL, c, d, d_stride, rng, pool);
}

/* The scales of `lines` lines of `depth` elements. */
static mpsim_status check_scales(const mpsim_model *m, const mpsim_scales *x, size_t lines, size_t depth)
{
    const mpsim_status s = mpsim_scales_check(m, x);
    if (s != MPSIM_OK)
        return s;
    const size_t blocks = depth ? (depth - 1) / m->block + 1 : 0;
    return (lines <= 1 || x->stride >= blocks) &&
                   mpsim_lines_fit(lines, blocks, x->stride, mpsim_format_code_bytes(x->format))
               ? MPSIM_OK
               : MPSIM_EINVAL;
}

mpsim_status mpsim_gemm_scaled(const mpsim_model *m, size_t rows, size_t columns, size_t depth, const mpsim_matrix *a,
                               const mpsim_scales *sa, const mpsim_matrix *b, const mpsim_scales *sb,
                               const mpsim_matrix *c, void *d, size_t d_stride, const mpsim_rng *rng,
                               const mpsim_pool *pool)
{
    mpsim_status s = mpsim_model_check(m);
    if (s == MPSIM_OK)
        s = check_scales(m, sa, rows, depth);
    if (s == MPSIM_OK)
        s = check_scales(m, sb, columns, depth);
    return s == MPSIM_OK ? multiply(m, rows, columns, depth, a, sa, b, sb, c, d, d_stride, rng, pool) : s;
}
