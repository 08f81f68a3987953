/* differences.h -- the errors of a cast that was done elsewhere. */
#pragma once

#include <mpsim/stats.h>

/* Account for the errors of n elements: q[i] is x[i] * scale, rounded. With `left`, an error that is a normal
 * binary32 number is left there, not squared and added; returns how many. */
size_t mpsim_cast_stats_differences(mpsim_cast_stats *c, double scale, const double *x, const double *q, size_t n,
                                    float *left);

/* `times` elements x of a histogram. */
void mpsim_histogram_repeat(mpsim_histogram *h, double x, uint64_t times);
