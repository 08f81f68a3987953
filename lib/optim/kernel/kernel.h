/* kernel.h -- the loops of optimizer steps and gradients in vectors, beside the scalar code that says
 * what they are: fused.c, ops.c, lowp.c, reference.c, gradient.c.
 *
 * Each does the same operations in the same order, V_LANES elements at a time, and returns how many
 * elements it has done, from the first on. It stops before a vector with a result that is a NaN, which
 * the scalar code does then, so that its bits are those of the scalar code, too; and before the
 * elements that do not fill a vector. Compiled once for each instruction set. */
#pragma once

#include "../steps.h"

/* ---- whole steps of parameters that are rounded where they are stored, if at all ---- */

typedef size_t mpsim_step_function(const mpsim_optim_job *j, const mpsim_optim_block *b, const mpsim_optim_results *r);

/* ---- tensor operations of n elements: y, operands a and b, scalar s ---- */

typedef size_t mpsim_op_function(float *y, const float *a, const float *b, float s, size_t n);

/* ---- gradients ---- */

/* y = x * s, or x / s; whole vectors. The larger magnitudes of x and y, as bits, enter *in, *out. */
typedef size_t mpsim_scale_function(float *y, const float *x, float s, int divides, size_t n, uint32_t *in,
                                    uint32_t *out);

/* The exact sum of squares of whole vectors of finite elements, at most MPSIM_SQUARES_BLOCK of them,
 * as the sum of so many binary64 numbers. 0 elements are done where that does not hold it. */
enum { MPSIM_SQUARES_BLOCK = 1024, MPSIM_SQUARES_PARTS = 4 };
typedef size_t mpsim_squares_function(double parts[MPSIM_SQUARES_PARTS], const float *x, size_t n);

/* ---- steps in binary64 ---- */

typedef struct mpsim_reference_arrays {
    double *p, *m, *v, *vmax; /* NULL: not needed */
    const double *g;
} mpsim_reference_arrays;

/* One of whole tensors. */
void mpsim_adafactor_reference(const mpsim_reference *r, const mpsim_reference_arrays *a, size_t n);

typedef size_t mpsim_reference_function(const mpsim_reference *r, const mpsim_reference_arrays *a, size_t n);

/* moved[i]: 1 if the step in binary64 changes t->param[i], else 0. Of Adam's family; a NaN is a change. */
typedef size_t mpsim_moves_function(const mpsim_reference *r, const mpsim_optim_tensor *t, uint32_t *moved);

/* ---- all of an instruction set ---- */

typedef struct mpsim_optim_kernels {
    mpsim_step_function *step[MPSIM_STEP_KERNELS];
    mpsim_op_function *op[MPSIM_OPS];
    mpsim_scale_function *scale;
    mpsim_squares_function *squares;
    mpsim_reference_function *reference;
    mpsim_moves_function *moves;
} mpsim_optim_kernels;

extern const mpsim_optim_kernels mpsim_optim_kernels_generic, mpsim_optim_kernels_avx2, mpsim_optim_kernels_avx512;

/* mpsim_optim_kernels_active -- those of the instruction set in use; NULL: the scalar code alone. */
const mpsim_optim_kernels *mpsim_optim_kernels_active(void);
