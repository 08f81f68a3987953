/* core.h -- dot products of tensor cores in integers of 64 bits, and chains of binary32.
 *
 * One addition takes up to `length` products and the accumulator. Numbers are s 2^(e - p + 1) with
 * p significant bits, e not below the format's emin, not normalised below it; a product has S = s s',
 * E = e + e'. The largest E of all terms that are not zero rules: each magnitude is cut off below
 * 2^(E - fraction), the sum is exact, and is cut to 1 + kept bits (fewer where subnormal numbers of
 * binary32 end). A sum of zero is +0. Read from what is known of the hardware, not from the
 * library. */
#pragma once

#include "layer.h"

typedef struct oracle_core {
    const char *operands;
    int length, fraction, kept; /* length 0: a chain of binary32: 1 rounding (kept 1) or 2 */
} oracle_core;

/* Hopper's for operands of that format; of fp8: wgmma's. NULL if there is none. Of others: ampere's (m16n8k16, also
 * volta's m8n8k4, ada's), blackwell's (mma.sync, of fp8 tcgen05). */
const oracle_core *oracle_core_find(const char *operand);
const oracle_core *oracle_core_of(const char *architecture, const char *operand);

/* A number taken apart: value = significand 2^(exponent - p + 1). */
typedef struct oracle_part {
    float value;
    int32_t significand, exponent;
} oracle_part;

oracle_part oracle_take_apart(const oracle_format *f, float x);

/* +0 + a[0] b[0] + ..., n products; the strides count elements. */
float core_dot(const oracle_core *c, int precision_a, const oracle_part *a, size_t stride_a, int precision_b,
               const oracle_part *b, size_t stride_b, size_t n);
/* The same from s. */
float core_dot_from(const oracle_core *c, float s, int precision_a, const oracle_part *a, size_t stride_a,
                    int precision_b, const oracle_part *b, size_t stride_b, size_t n);
