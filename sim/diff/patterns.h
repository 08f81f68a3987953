/* patterns.h -- differences that the measure of two tensors shows by itself. Each is a verdict_judge; flipped_bit
 * is of one element, flipped_bits of several. */
#pragma once

#include "verdict.h"

verdict_judge pattern_codes, pattern_flipped_bit, pattern_flipped_bits, pattern_byte_order, pattern_reinterpreted,
    pattern_negated, pattern_zeroed, pattern_clipped, pattern_non_finite, pattern_sum_order, pattern_close,
    pattern_unrelated;
