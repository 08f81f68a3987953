/* check.h -- libmpsim-cuda judged: what it counts beside the CPU's library, and how long that takes. */
#pragma once

#include <stddef.h>
#include <stdio.h>

enum { STATS_CHECK_FAILED = -1, STATS_CHECK_NO_DEVICE = -2 };

/* How much: the largest arrays of the comparison; elements of what is timed, 0: nothing is; so many times each. The
 * report, JSON (schema mpsim.gpu-statistics/1, data/gpu/keys.tsv), may be NULL. Lines for people go to `to`. Returns how many
 * comparisons differ, or one of the constants above. */
typedef struct stats_check_plan {
    size_t largest, timed;
    int repeat;
    FILE *to, *json;
    int (*due)(unsigned question); /* whether it is asked; NULL: all are */
    const char *record;            /* text of a report: the CPU's library must count what it has; NULL: none */
    unsigned piece, pieces;        /* of the questions those whose number modulo `pieces` is `piece`; 0, 0: all */
} stats_check_plan;

#ifdef __cplusplus
extern "C"
#endif
    int
    stats_check(const stats_check_plan *plan);
