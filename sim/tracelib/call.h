/* call.h -- a call of the library that does the work of a command: the messages of that work (sim/process/host.h), and the threads and the
 * surroundings that it has.
 *
 * All of these belong to the call, by thread-local pointers, so that calls may run side by side, and one within
 * another (from its progress). Threads are a parallel_team: they begin when there is work, take no signals and are
 * joined at the end of the call, so that fork and dlclose meet none. Code that cannot return an error (a cell of a
 * table, a note) calls host_no_memory, which marks the call; its result is not used then. In the program it ends
 * the process. tests/sim/t-report.c lets each allocation fail. */
#pragma once

#include "surroundings.h"

#include <mpsim/report.h>

#include <signal.h>
#include <stdatomic.h>
#include <threads/parallel.h>

/* Of the program (sim/cli/options.h). */
enum { CALL_USAGE = 2, CALL_IO = 4 };

typedef struct call {
    int quiet;
    mpsim_progress *progress; /* or NULL */
    void *context;
    /* The rest is the call's: lines, without "mpsim: "; the last one that says why something failed, or SIZE_MAX. */
    char **lines;
    size_t n_lines, failed;
    atomic_int no_memory;
    atomic_ullong done, total; /* bytes */
    atomic_int *asked;
    int stopped;
    long long due; /* when progress is called next */
    locale_t locale;
    surroundings own;
    parallel_team *team, *outer_team;
    struct call *outer; /* which asked its caller, who calls again */
} call;

/* tracelib_call_begin -- *c is all zero but for the first three; from now on what this thread does is the call's, on at most so many
 * threads (0: those that are free). 0, or -1 without memory, and nothing has begun. tracelib_call_end -- not any more; lines stay until
 * tracelib_call_clear. */
int tracelib_call_begin(call *c, unsigned threads);
void tracelib_call_end(call *c);
void tracelib_call_clear(call *c);
