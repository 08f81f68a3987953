/* kernel.h -- functions of arrays and rows in vectors, beside scalar.h, functions.h and transformer.h, which say what they
 * are: the same operations in the same order, with the same bits. Compiled once for each instruction set that has a fused
 * multiply-add. The bits of a NaN, too: what has a NaN among its operands is left to the loops over one number at a time
 * (activation.c, softmax.c, norm.c, columns.c), and a NaN that an operation makes has the same bits everywhere. */
#pragma once

#include "../transformer.h"

#include <mpsim/transformer.h>

#include <stddef.h>

typedef struct mpsim_layer_kernels mpsim_layer_kernels;

/* y[i] = f(x[i]); y may be x. */
typedef void mpsim_layer_function(float *y, const float *x, size_t n);

typedef mpsim_number_counts mpsim_count_function(const float *x, size_t n);

/* The rounding of n numbers in place. */
typedef void mpsim_round_function(const mpsim_math *m, float *x, size_t n);

/* ---- activations ---- */

typedef struct mpsim_activate_job {
    mpsim_activation kind;
    mpsim_math m, out; /* of operations, of results */
    mpsim_gelu g;
    const mpsim_layer_kernels *kernels; /* whose functions of arrays the loops over one number call */
} mpsim_activate_job;

/* v: the values of gates x; NULL but of SWIGLU. y may be x or v. */
typedef void mpsim_activate_function(const mpsim_activate_job *j, float *y, const float *x, const float *v, size_t n);

/* dv: the gradients of values, or NULL. Results may be operands. */
typedef void mpsim_activate_back_function(const mpsim_activate_job *j, float *dx, float *dv, const float *dy,
                                          const float *x, const float *v, size_t n);

/* ---- the table ---- */

struct mpsim_layer_kernels {
    mpsim_layer_function *exp, *exp2, *tanh, *erf, *sigmoid, *log, *cos;
    mpsim_count_function *count;
    mpsim_round_function *round;
    mpsim_activate_function *activate;
    mpsim_activate_back_function *activate_back;
};

extern const mpsim_layer_kernels mpsim_layer_kernels_neon, mpsim_layer_kernels_avx2, mpsim_layer_kernels_avx512;

/* One number at a time. */
mpsim_activate_function mpsim_activate_plain;
mpsim_activate_back_function mpsim_activate_back_plain;

/* mpsim_layer_kernels_active -- those of the instruction set in use, or loops over the scalar code. */
const mpsim_layer_kernels *mpsim_layer_kernels_active(void);
