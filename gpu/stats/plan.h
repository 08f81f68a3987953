/* plan.h -- from casts to what the kernel of binary32 elements needs, and back from what it counted. Plain C; not of
 * the device. */
#pragma once

#include "state.h"

#include <mpsim/summary.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { STATS_MOST_DROPPED = 22 }; /* bits, of a cast that takes the short way (window.cuh) */

/* A cast to nearest or toward zero with a power of two as a scale; what lib/stats/target.h says of it. */
typedef struct stats_cast {
    unsigned least, normal, over;
    int drop, floor;
    unsigned scale; /* 2^(32 - drop): what brings the bits that are dropped to the top; 0: none are */
    int shift;      /* the window's kernel has squares of errors times 2^shift */
    int truncates, flushes, saturates;
    int largest_exp; /* of the lowest bit of `largest` */
    double largest;
} stats_cast;

/* 0: it is no such cast. */
int stats_plan(stats_cast *to, const mpsim_cast *cast);

/* What n elements came to, added to the accumulators. */
void stats_read(const unsigned long long *state, uint64_t n, unsigned want, size_t n_casts, mpsim_stats *stats,
                mpsim_histogram *histogram, mpsim_cast_stats *casts);

#ifdef __cplusplus
}
#endif
