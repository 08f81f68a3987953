/* blockstat.h -- what a block recipe does to a matrix, counted element by element: the judge of
 * mpsim/blockstats.h and of what stat prints of it.
 *
 * Scales and elements by the published formulas (data/vectors/blocks/record_torchao.py, TransformerEngine,
 * torchao, DeepSeek-V3, DeepGEMM, OCP MX 1.0), in the machine's binary32; elements by comparing with the
 * midpoints of their grid; sums in rationals of GMP. Shares nothing with lib/, nor with oracle/block.h. */
#pragma once

#include <gmp.h>
#include <stddef.h>
#include <stdint.h>

typedef enum judged_rule {
    JUDGED_FLOOR,
    JUDGED_EVEN,
    JUDGED_CEIL,
    JUDGED_RCEIL,
    JUDGED_TE,
    JUDGED_DEEPGEMM,
    JUDGED_DEEPSEEK,
    JUDGED_NVFP4,
    JUDGED_NVFP4_ONE
} judged_rule;

typedef struct judged_recipe {
    const char *words; /* as typed */
    judged_rule rule;
    int exponent_bits, fraction_bits, bias; /* of an element */
    double max;
    size_t rows, cols; /* of a block; 0: all */
} judged_recipe;

enum { JUDGED_MIN = -149, JUDGED_BINS = 277 };

typedef struct judged {
    uint64_t elements, underflow, subnormal, overflow, spoilt, inexact, compared;
    uint64_t blocks, zero_blocks, saturated_blocks, lost_blocks, nonfinite_blocks;
    uint64_t least_scales, largest_scales, scale_zero, scale_nonfinite;
    uint64_t scales[JUDGED_BINS]; /* by floor(log2) - JUDGED_MIN */
    double max_rel_err;
    mpq_t squares, errors; /* of the compared elements    */
} judged;

void judged_init(judged *j);
void judged_clear(judged *j);

/* judge_blocks -- add what becomes of a matrix. `origin`: what errors are against; NULL: x. `values`
 * (or NULL) receives what the elements stand for. */
void judge_blocks(judged *j, const judged_recipe *r, const float *x, const float *origin, size_t rows, size_t cols,
                  float *values);

double judged_mse(const judged *j);     /* NaN: nothing compared                  */
double judged_sqnr_db(const judged *j); /* the same; infinite: no error           */

/* judge_hadamard -- TransformerEngine's transform of groups of 16 elements of each row, in place; a tail
 * stays as it is. judge_hadamard_back: its inverse. */
void judge_hadamard(float *x, size_t rows, size_t cols);
void judge_hadamard_back(float *x, size_t rows, size_t cols);
