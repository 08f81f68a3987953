/* sweep.h -- long tests, each in a process of its own, with one line of TAP each as they end. */
#pragma once

#include <stddef.h>

typedef struct sweep_plan {
    const char *program; /* for messages */
    size_t n;            /* tests, at most SWEEP_MOST */
    /* In the child: write one line, without its end, to the descriptor; 0 if the test passed. */
    int (*run)(size_t i, int to);
    /* What test i is, if it died without a line. */
    void (*name)(size_t i, char *text, size_t size);
} sweep_plan;

enum { SWEEP_MOST = 512 };

/* sweep_run -- all tests, `jobs` at a time, on the instruction set that MPSIM_ISA names. Returns the
 * exit status of the program. */
int sweep_run(const sweep_plan *s, long jobs);
