/* frame.h -- what the benchmarks share: clocks, references of the same run, rows with their goals, as a
 * table for people and as CSV.
 *
 * A benchmark is a program of jobs. bench_run measures a job and what it is compared with by turns
 * (R J R J R), so that both see the same machine, and prints the medians as a row. The time of one
 * thread is its CPU time, that of several is by the wall clock. Nothing here judges: a goal that is
 * missed is printed, no more. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct bench {
    const char *program;
    size_t n;       /* elements of x and y: 2^26, fewer with --quick or --tiny */
    double seconds; /* that the repeats of a job may take: a slow one does not take all elements */
    int repeats, quick;
    float *x, *y; /* after bench_data: the input of all jobs, room for the results of one */
    FILE *csv;
    const char *only;
    int met, missed, disturbed;
    int first; /* of the programs that write this CSV: it prints the head */
} bench;

/* What is measured. `name` is what a row calls it that is compared with it. */
typedef struct bench_job bench_job;
struct bench_job {
    const char *operation, *what, *how; /* "round", "fp16", "nearest-even" */
    const char *name;
    const char *isa;  /* NULL: mpsim_isa_active() */
    unsigned threads; /* 0: one */
    size_t n;         /* elements, or operations */
    double bytes;     /* that one of them reads and writes: ratios are of bytes a second */
    void (*run)(void *context, size_t from, size_t n);
    void *context;
    const bench_job *to; /* what it is compared with, or NULL */
};

/* What a row says. Those who measure by themselves print it with bench_print. */
typedef struct bench_row {
    const char *operation, *what, *how;
    const char *isa;      /* NULL: mpsim_isa_active() */
    unsigned threads;     /* 0: one */
    double n, per_second; /* elements, or operations, of a run, and how many a second */
    double ratio;         /* to what `to` names; 0: compared with nothing */
    const char *to;
    double spread;   /* of that: (largest - smallest) / median of its times; 0: unknown */
    double to_bytes; /* bytes a second of that; 0: unknown */
} bench_row;

/* bench_begin -- read the arguments and print the head: 0, or the exit code of main after a message. */
int bench_begin(bench *b, int argc, char **argv, const char *program);

/* bench_data -- allocate x and y, fill x: random sign and significand, 2^-40 to 2^20. 0, or 1. */
int bench_data(bench *b);

/* bench_random -- fill memory with random bits. */
void bench_random(void *to, size_t bytes, uint64_t seed);

/* bench_part -- a heading, and those of the columns. */
void bench_part(bench *b, const char *heading);

/* bench_copy, bench_sum -- memcpy from x to y, and a plain vectorised sum of x: to compare with. */
bench_job bench_copy(bench *b);
bench_job bench_sum(bench *b);

/* bench_run -- measure a job, print its row. */
void bench_run(bench *b, const bench_job *j);
void bench_print(bench *b, const bench_row *r);

/* bench_wants -- whether --only takes rows of that operation, or of that format, recipe, model. */
int bench_wants(const bench *b, const char *operation, const char *what);

/* bench_seconds -- CPU seconds of one run, for those who print rows by themselves: the median of the
 * repeats after one to warm up, which alone counts if it takes too long. */
double bench_seconds(const bench *b, void (*run)(void *context), void *context);

/* bench_end -- the last lines. Returns the exit code of main: 0, or 1 if a write failed. */
int bench_end(bench *b);
