/* check.h -- libmpsim-cuda judged: what it counts beside the CPU's library, and how long that takes. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* How much: the largest arrays of the comparison; elements of what is timed, 0: nothing is; so many times each. The
 * report, JSON (schema mpsim.gpu-statistics/1), may be NULL. Lines for people go to `to`. Returns how many comparisons differ, -1 if
 * the device fails. */
typedef struct stats_check_plan {
    size_t largest, timed;
    int repeat;
    FILE *to, *json;
    int (*due)(unsigned question); /* whether it is asked; NULL: all are */
} stats_check_plan;

#ifdef __cplusplus
extern "C"
#endif
    int
    stats_check(const stats_check_plan *plan);
