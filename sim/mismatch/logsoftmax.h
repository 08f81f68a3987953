/* logsoftmax.h -- what a side makes of the logits of a token. */
#pragma once

#include "arithmetic.h"

/* mismatch_temper -- divide by the temperature, in binary32 with `narrow`, else in binary64; words that top-k and top-p drop
 * become -infinity. `sorted` is room for n numbers. */
void mismatch_temper(const arithmetic *a, double *x, double *sorted, size_t n, int narrow);

/* mismatch_log_probability -- of a word: log(s) and x[word] - m with the maximum m and the sum s of exp(x - m), in one piece, in
 * chunks, or of ranks. `room` is for 2 n numbers. */
double mismatch_log_probability(const arithmetic *a, const float *x, float *room, size_t n, uint32_t word);
