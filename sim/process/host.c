/* host.c -- what the program is told of its work (host.h): lines on standard error, progress, signals. */
#include "host.h"

#include "../array/need.h"
#include "../text/escape.h"
#include "../trace/temporary.h"
#include "progress.h"
#include "world.h"

#include <stdarg.h>
#include <stdio.h>

static int quiet;

enum { LINE = 8192 };

/* One line for stderr, whatever the names in it are. */
static void make_line(char line[2 * LINE + 32], const char *before, const char *message, va_list args)
{
    char raw[LINE], escaped[2 * LINE];
    vsnprintf(raw, sizeof raw, message, args);
    snprintf(line, 2 * LINE + 32, "mpsim: %s%s\n", before, escape_text(escaped, sizeof escaped, raw));
}

static void print_line(const char *line)
{
    fflush(stdout);
    fputs(line, stderr);
}

int fail(int exit_code, const char *message, ...)
{
    progress_hide();
    char line[2 * LINE + 32];
    va_list args;
    va_start(args, message);
    make_line(line, "", message, args);
    va_end(args);
    if (!world_keep(line))
        print_line(line);
    return exit_code;
}

static void print_note(const char *message, va_list args)
{
    char line[2 * LINE + 32];
    if (world_rank())
        return;
    progress_hide();
    make_line(line, "note: ", message, args);
    print_line(line);
}

void note(const char *message, ...)
{
    va_list args;
    if (quiet)
        return;
    va_start(args, message);
    print_note(message, args);
    va_end(args);
}

void host_warn(const char *message, ...)
{
    va_list args;
    va_start(args, message);
    print_note(message, args);
    va_end(args);
}

void note_quiet(void)
{
    (void)progress_option("never");
    quiet = 1;
}

int host_no_memory(void)
{
    (void)need(NULL);
    return EXIT_IO;
}

void host_expect(uint64_t bytes)
{
    progress_expect(bytes);
}

void host_again(uint64_t bytes)
{
    progress_again(bytes);
}

void host_reach(uint64_t done)
{
    progress_reach(done);
}

/* The program counts what is read (progress.h). */
void host_worked(uint64_t bytes)
{
    (void)bytes;
}

void host_ask(atomic_int *number)
{
    trace_temporary_ask(number);
}

int host_processes(void)
{
    return world_size();
}
