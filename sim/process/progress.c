/* progress.c -- see progress.h. Whoever counts something after the line is due writes it: no thread of its own. */
#include "progress.h"

#include "../record/cells.h"
#include "../text/words.h"
#include "../trace/temporary.h"
#include "../trace/trace.h"
#include "world.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { AUTO, ALWAYS, NEVER, LINE = 256 };
enum { MILLISECOND = 1000000, FIRST = 1000 * MILLISECOND, AGAIN = 200 * MILLISECOND };

static int when = AUTO, is_terminal;
static const char *unit;          /* "steps"; NULL: bytes    */
static atomic_ullong done, total; /* total 0: not known      */
static atomic_llong due;          /* 0: nothing is counted   */
static long long began;
static char said[128]; /* what is being done      */
static atomic_int shown;

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 * MILLISECOND + t.tv_nsec;
}

int progress_option(const char *word)
{
    static const char *const words[] = {"auto", "always", "never"};
    for (int i = 0; i < 3; i++)
        if (strcmp(word, words[i]) == 0) {
            when = i;
            return 0;
        }
    return -1;
}

/* ---- the line ---- */

static const char *amount(char out[32], uint64_t n)
{
    return unit ? text_count(out, n) : text_bytes(out, n);
}

static const char *duration(char out[32], double seconds)
{
    const double s = seconds < 359999 ? seconds : 359999; /* a hundred hours */
    if (s < 60)
        snprintf(out, 32, "%.0f s", s);
    else
        snprintf(out, 32, "%d:%02d%s", (int)s / (s < 3600 ? 60 : 3600), (int)s / (s < 3600 ? 1 : 60) % 60,
                 s < 3600 ? " min" : " h");
    return out;
}

/* "1.2 GiB of 16.0 GiB, 7 %, 2.1 GiB a second, 7 s left" */
static void append_numbers(char line[LINE], uint64_t n, uint64_t all, double seconds)
{
    char a[32], b[32];
    const double rate = (double)n / seconds;
    const char *between = unit ? " " : "", *what = unit ? unit : "";
    if (n <= all && all > 0)
        text_add(line, LINE, "%s of %s%s%s, %d %%", amount(a, n), amount(b, all), between, what,
                 (int)(100.0 * (double)n / (double)all));
    else
        text_add(line, LINE, "%s%s%s", amount(a, n), unit ? " " : " read", what);
    if (unit && rate < 100)
        text_add(line, LINE, ", %.3g a second", rate);
    else
        text_add(line, LINE, ", %s a second", amount(a, (uint64_t)rate));
    if (n <= all && n > 0)
        text_add(line, LINE, ", %s left", duration(b, (double)(all - n) / rate));
}

static void write_line(long long at)
{
    char line[LINE] = "";
    const uint64_t n = atomic_load(&done), all = atomic_load(&total);
    text_add(line, LINE, "%s%s", said, said[0] && (n || all) ? ": " : "");
    if (n || all)
        append_numbers(line, n, all, (double)(at - began) / 1e9);
    struct winsize size;
    if (is_terminal && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && strlen(line) >= size.ws_col)
        line[size.ws_col - 1] = '\0';
    fprintf(stderr, is_terminal ? "\r%s\033[K" : "%s\n", line);
    fflush(stderr);
    atomic_store(&shown, is_terminal);
}

/* ---- counting ---- */

/* What a signal's handler does before the program ends. */
static void erase(int number)
{
    static const char clear[] = "\r\033[K";
    (void)number;
    if (atomic_exchange(&shown, 0) && write(STDERR_FILENO, clear, sizeof clear - 1) < 0)
        return;
}

static void begin(void)
{
    if (atomic_load(&due))
        began = now(); /* other work of the same command */
    if (atomic_load(&due) || when == NEVER || world_rank())
        return;
    is_terminal = isatty(STDERR_FILENO);
    if (!is_terminal && when != ALWAYS)
        return;
    if (is_terminal && world_size() == 1)
        trace_temporary_last(erase);
    began = now();
    atomic_store(&done, 0);
    atomic_store(&due, began + FIRST);
}

static void count_bytes(size_t n)
{
    if (!unit)
        progress_add(n);
}

void progress_expect(uint64_t bytes)
{
    if (!atomic_load(&total))
        begin();
    unit = NULL;
    atomic_fetch_add(&total, bytes);
    trace_watch_reads(atomic_load(&due) ? count_bytes : NULL);
}

void progress_again(uint64_t bytes)
{
    if (!unit && atomic_load(&total))
        atomic_fetch_add(&total, bytes);
}

void progress_steps(const char *what, uint64_t n)
{
    begin();
    unit = what;
    atomic_store(&done, 0);
    atomic_store(&total, n);
}

/* Writes the line if it is due, one thread alone. */
static void tick(void)
{
    long long then = atomic_load(&due);
    if (!then)
        return;
    const long long at = now();
    if (at >= then && atomic_compare_exchange_strong(&due, &then, at + (is_terminal ? AGAIN : FIRST)))
        write_line(at);
}

void progress_add(uint64_t n)
{
    atomic_fetch_add(&done, n);
    tick();
}

void progress_reach(uint64_t n)
{
    unsigned long long so_far = atomic_load(&done);
    while (so_far < n && !atomic_compare_exchange_weak(&done, &so_far, n))
        continue;
    tick();
}

void progress_say(const char *words, ...)
{
    va_list arguments;
    if (!atomic_load(&due))
        return;
    va_start(arguments, words);
    vsnprintf(said, sizeof said, words, arguments);
    va_end(arguments);
    tick();
}

/* ---- the end ---- */

void progress_hide(void)
{
    if (atomic_exchange(&shown, 0)) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}

void progress_end(void)
{
    trace_watch_reads(NULL);
    atomic_store(&due, 0);
    atomic_store(&total, 0);
    said[0] = '\0';
    progress_hide();
}
