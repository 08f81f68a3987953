/* patterns.h -- differences that the measure of two tensors shows by itself. Each is a verdict_judge; flipped_bit
 * is of one element, flipped_bits of several. */
#pragma once

#include "verdict.h"

verdict_judge diff_pattern_codes, diff_pattern_flipped_bit, diff_pattern_flipped_bits, diff_pattern_byte_order,
    diff_pattern_reinterpreted, diff_pattern_negated, diff_pattern_zeroed, diff_pattern_clipped,
    diff_pattern_non_finite, diff_pattern_sum_order, diff_pattern_close, diff_pattern_unrelated;
