/* timing.h -- what the benchmarks share: clocks, and the middle of several times. */
#pragma once

#include <stdlib.h>
#include <time.h>

static inline double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* CPU time of the calling thread. */
static inline double now_of_thread(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static inline int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of n times, which are sorted. */
static inline double middle(double *t, size_t n)
{
    qsort(t, n, sizeof *t, compare);
    return t[n / 2];
}
