/* dot.h -- the reference of dot products, for dot.c and gemm.c. */
#pragma once

#include "../round/scalar.h"

#include <mpsim/dot.h>

/* Element k is code number first + k stride. */
typedef struct mpsim_vector {
    const mpsim_format *format;
    const void *codes;
    size_t bytes; /* of a code */
    size_t first, stride;
} mpsim_vector;

/* Both operands of a dot product, and their scales: one code a block, or format NULL where all are 1. */
typedef struct mpsim_vectors {
    mpsim_vector a, b, scales_a, scales_b;
} mpsim_vectors;

/* What mpsim_dot and mpsim_gemm require of model, operands and random numbers. */
mpsim_status mpsim_dot_check(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb,
                             const mpsim_rng *rng);

/* What the functions with scales require of the model and one operand's scales. */
mpsim_status mpsim_scales_check(const mpsim_model *m, const mpsim_scales *s);

/* mpsim_dot on checked arguments; c is a number of m->result.format, or +0; `index` is that of the
 * first random word. */
mpsim_status mpsim_dot_reference(const mpsim_model *m, const mpsim_vectors *v, size_t n, mpsim_number c,
                                 const mpsim_rng *rng, uint64_t index, uint64_t *d);
