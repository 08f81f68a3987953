/* stack.h -- stacks of matrices: checks, where their matrices are, how their numbers are read and written. */
#pragma once

#include <mpsim/product.h>

enum { MPSIM_STACK_OUTER = MPSIM_STACK_RANK - 2 };

/* mpsim_is_stack -- a valid format, a rank, codes if there are elements, of which there are no more than a size_t counts.
 * writable: no two elements may be one, as far as strides of 0 say. */
int mpsim_is_stack(const mpsim_stack *x, int writable);

static inline size_t mpsim_stack_rows(const mpsim_stack *x)
{
    return x->shape[x->rank - 2];
}

static inline size_t mpsim_stack_cols(const mpsim_stack *x)
{
    return x->shape[x->rank - 1];
}

/* Whether codes are values of float. */
static inline int mpsim_is_f32(const mpsim_format *f)
{
    return f->bits == 32 && f->ebits == 8 && f->mbits == 23 && f->bias == 127 && f->inf;
}

/* The matrices of a stack: dimension 0 varies slowest. */
typedef struct mpsim_outer {
    uint32_t rank;
    size_t shape[MPSIM_STACK_OUTER];
} mpsim_outer;

/* The steps, in codes, from matrix to matrix of a stack along each of them, and within a matrix. */
typedef struct mpsim_steps {
    int64_t outer[MPSIM_STACK_OUTER], row, col;
} mpsim_steps;

mpsim_outer mpsim_outer_of(const mpsim_stack *x);
size_t mpsim_outer_count(const mpsim_outer *o);
/* mpsim_steps_in -- those of x, which has the dimensions of `o`, or 1, or none. 0 if it has not. */
int mpsim_steps_in(mpsim_steps *s, const mpsim_stack *x, const mpsim_outer *o);
/* mpsim_steps_across -- the same, and its rows and columns are so many, or 1. */
int mpsim_steps_across(mpsim_steps *s, const mpsim_stack *x, const mpsim_outer *o, size_t rows, size_t cols);
/* mpsim_matrix_at -- where matrix i begins, in codes. */
int64_t mpsim_matrix_at(const mpsim_outer *o, const mpsim_steps *s, size_t i);

/* mpsim_read_codes, mpsim_write_codes -- n codes of `bytes` bytes, from code number `first` on, `step` apart; side by side. */
void mpsim_read_codes(void *to, const void *codes, size_t bytes, int64_t first, int64_t step, size_t n);
void mpsim_write_codes(void *codes, size_t bytes, int64_t first, int64_t step, size_t n, const void *from);
/* mpsim_read_f32, mpsim_read_f64 -- values of n codes; formats within binary32, any. */
void mpsim_read_f32(float *to, const mpsim_format *f, const void *codes, int64_t first, int64_t step, size_t n);
void mpsim_read_f64(double *to, const mpsim_format *f, const void *codes, int64_t first, int64_t step, size_t n);

/* mpsim_operand_copy -- an operand whose codes are those of x, in memory of its own, row after row. */
mpsim_status mpsim_operand_copy(mpsim_operand *o, const mpsim_stack *x, const mpsim_pool *pool);
