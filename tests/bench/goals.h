/* goals.h -- what a row of the benchmarks is to reach. */
#pragma once

typedef struct bench_goal {
    /* Patterns of the row's words, any of those separated by blanks. isa: NULL is the best of the machine. */
    const char *operation, *what, *how, *isa;
    unsigned threads;
    enum { GOAL_RATIO, GOAL_SPEED } kind; /* speed: a second */
    double least;
    const char *words; /* of who set it */
} bench_goal;

extern const bench_goal bench_goals[]; /* ends with a NULL operation; the first that fits a row holds */

/* bench_goal_of -- the goal of a row, or NULL. */
const bench_goal *bench_goal_of(const char *operation, const char *what, const char *how, const char *isa,
                                unsigned threads);
