/* compare.h -- how far the last of several runs is from the others, beside the noise of one run from step to step and,
 * with several others, beside the spread between those. */
#pragma once

#include "runs.h"

enum { PARTS = 4, ENOUGH_STEPS = 8 };

/* A quarter of the common steps: b is the last run, a the mean of the others. */
typedef struct run_part {
    size_t from, to; /* common steps, the last excluded */
    double a, b, gap;
    double error; /* the gap is known to this, each way, with 95 % */
} run_part;

typedef enum run_verdict {
    RUNS_SAME,   /* to the last digit */
    RUNS_LOST,   /* one of them becomes Inf or NaN */
    RUNS_FEW,    /* too few common steps */
    RUNS_NO_GAP, /* none that shows */
    RUNS_SMALL,  /* one that shows, smaller than the noise of a step */
    RUNS_APART,  /* a larger one */
    RUNS_WITHIN, /* of what the others give among themselves */
    RUNS_OUTSIDE
} run_verdict;

typedef enum run_trend { TREND_NONE, TREND_GROWS, TREND_SHRINKS } run_trend;

typedef struct comparison {
    run_part parts[PARTS];
    double noise[RUNS_MAX]; /* of a step: the median of the moves from one to the next, over 0.954 */
    double own;             /* the same of the gap                             */
    double near;            /* correlation of the gap with that of the next step, without its mean and trend */
    double together;        /* correlation of what the runs do from step to step; NaN: not known */
    size_t first;           /* the first step that differs; .n: none           */
    size_t apart;           /* from which the gap stays beyond the noise; .n: none */
    run_trend trend;
    /* of several others: the means of the last part */
    double ends[RUNS_MAX], middle, spread, reach; /* reach: where 19 of 20 further runs like them would end, each way */
    run_verdict verdict;
} comparison;

void log_compare(comparison *c, const log_runs *r);
extern const char *const log_run_verdicts[]; /* their names, up to NULL */
