/* matrix.h -- checks of a matrix in memory, and of threads, that a caller gives. */
#pragma once

#include "extent.h"

#include <mpsim/dot.h>

/* A matrix of the given size in a valid format: codes if there are any, a stride that holds a line, and no code beyond
 * what memory can hold. */
static inline int mpsim_is_matrix(const mpsim_matrix *x, size_t rows, size_t columns)
{
    const size_t across = x->transposed ? rows : columns, lines = x->transposed ? columns : rows;
    if (rows == 0 || columns == 0)
        return 1;
    return x->codes && (lines == 1 || x->stride >= across) &&
           mpsim_lines_fit(lines, across, x->stride, mpsim_format_code_bytes(x->format));
}

/* The same of a matrix whose format nothing has been asked of yet; NULL is none. */
static inline int mpsim_is_operand(const mpsim_matrix *x, size_t rows, size_t columns)
{
    return x && mpsim_format_check(x->format) == MPSIM_OK && mpsim_is_matrix(x, rows, columns);
}

static inline int mpsim_is_pool(const mpsim_pool *pool)
{
    return !pool || pool->run;
}
