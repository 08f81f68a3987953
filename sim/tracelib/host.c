/* host.c -- what a call of the library is told of its work: sim/process/host.h, as sim/process/host.c is for the program. */
#include "../process/host.h"

#include "../array/array.h"
#include "../process/textfile.h"
#include "../text/escape.h"
#include "call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE = 8192, AGAIN = 50000000 }; /* nanoseconds between two questions */

/* The call that this thread works for; of the threads of its team, too. */
static _Thread_local call *now;
static _Thread_local int is_caller;

/* ---- lines ---- */

static void keep_line(const char *before, const char *message, va_list args)
{
    char raw[LINE], line[2 * LINE + 16];
    const size_t n = strlen(before);
    memcpy(line, before, n);
    vsnprintf(raw, sizeof raw, message, args);
    escape_text(line + n, 2 * LINE, raw);
    char *own = strdup(line);
    if (own && array_room(&now->lines, now->n_lines, sizeof *now->lines) == 0) {
        now->lines[now->n_lines++] = own;
        return;
    }
    free(own);
    (void)host_no_memory();
}

int fail(int exit_code, const char *message, ...)
{
    va_list args;
    va_start(args, message);
    now->failed = now->n_lines;
    keep_line("", message, args);
    va_end(args);
    return exit_code;
}

void note(const char *message, ...)
{
    va_list args;
    if (now->quiet)
        return;
    va_start(args, message);
    keep_line("note: ", message, args);
    va_end(args);
}

void host_warn(const char *message, ...)
{
    va_list args;
    va_start(args, message);
    keep_line("note: ", message, args);
    va_end(args);
}

int host_no_memory(void)
{
    atomic_store(&now->no_memory, 1);
    return CALL_IO;
}

/* ---- how far it is, and whether it is to go on ---- */

static long long clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Who stops is told of it once. */
static void ask_caller(void)
{
    const long long at = now->progress && is_caller && !now->stopped ? clock_now() : 0;
    if (!at || at < now->due)
        return;
    const uint64_t done = atomic_load(&now->done), total = atomic_load(&now->total);
    now->stopped = now->progress(now->context, done < total ? done : total, total) != 0;
    now->due = clock_now() + AGAIN;
    if (now->stopped && now->asked)
        *now->asked = 1;
}

void host_expect(uint64_t bytes)
{
    atomic_fetch_add(&now->total, bytes);
}

void host_again(uint64_t bytes)
{
    atomic_fetch_add(&now->total, bytes);
}

void host_reach(uint64_t done)
{
    (void)done; /* what host_worked has told */
    ask_caller();
}

void host_worked(uint64_t bytes)
{
    atomic_fetch_add(&now->done, bytes);
    ask_caller();
}

void host_ask(atomic_int *number)
{
    now->asked = number;
    if (number && now->stopped)
        *number = 1;
}

int host_processes(void)
{
    return 1;
}

/* A single process has nobody to compare it with. */
char *text_file_read(const char *path, size_t most, size_t *n, trace_error *error)
{
    return trace_text_file_whole(path, most, n, error);
}

/* ---- the call ---- */

static void begin_thread(void *context)
{
    surroundings ignored; /* it ends with the call */
    now = context;
    tracelib_surroundings_enter(&ignored, now->locale);
}

int tracelib_call_begin(call *c, unsigned threads)
{
    c->failed = SIZE_MAX;
    c->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    c->team = c->locale ? parallel_team_new(threads, begin_thread, c) : NULL;
    if (!c->team) {
        if (c->locale)
            freelocale(c->locale);
        return -1;
    }
    tracelib_surroundings_enter(&c->own, c->locale);
    c->outer_team = parallel_team_use(c->team);
    c->outer = now;
    now = c;
    is_caller = 1;
    c->due = c->progress ? clock_now() + AGAIN : 0;
    return 0;
}

void tracelib_call_end(call *c)
{
    now = c->outer;
    is_caller = now != NULL;
    (void)parallel_team_use(c->outer_team);
    parallel_team_free(c->team);
    tracelib_surroundings_leave(&c->own);
    freelocale(c->locale);
}

void tracelib_call_clear(call *c)
{
    for (size_t i = 0; i < c->n_lines; i++)
        free(c->lines[i]);
    free(c->lines);
}
