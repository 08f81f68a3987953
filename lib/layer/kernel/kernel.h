/* kernel.h -- exp, exp2, tanh, erf, sigmoid, log and cos of arrays in vectors, beside scalar.h and functions.h, which say
 * what they are: the same operations in the same order, with the same bits, but for which NaN a NaN is.
 * Compiled once for each instruction set that has a fused multiply-add. */
#pragma once

#include <mpsim/layer.h>

#include <stddef.h>

/* y[i] = f(x[i]); y may be x. */
typedef void mpsim_layer_function(float *y, const float *x, size_t n);

typedef mpsim_number_counts mpsim_count_function(const float *x, size_t n);

typedef struct mpsim_layer_kernels {
    mpsim_layer_function *exp, *exp2, *tanh, *erf, *sigmoid, *log, *cos;
    mpsim_count_function *count;
} mpsim_layer_kernels;

extern const mpsim_layer_kernels mpsim_layer_kernels_avx2, mpsim_layer_kernels_avx512;

/* mpsim_layer_kernels_active -- those of the instruction set in use, or loops over the scalar code. */
const mpsim_layer_kernels *mpsim_layer_kernels_active(void);
