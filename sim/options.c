/* options.c -- see options.h. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 64, HELP_COLUMN = 27, HELP_WIDTH = 92 };

/* ---- messages ---- */

static int quiet;

int fail(int exit_code, const char *message, ...)
{
    va_list args;
    fflush(stdout);
    fputs("mpsim: ", stderr);
    va_start(args, message);
    vfprintf(stderr, message, args);
    va_end(args);
    fputc('\n', stderr);
    return exit_code;
}

void note(const char *message, ...)
{
    va_list args;
    if (quiet)
        return;
    fflush(stdout);
    fputs("mpsim: note: ", stderr);
    va_start(args, message);
    vfprintf(stderr, message, args);
    va_end(args);
    fputc('\n', stderr);
}

void note_quiet(void)
{
    quiet = 1;
}

/* ---- values ---- */

int parse_count(uint64_t *n, const char *text)
{
    static const struct {
        const char *suffix;
        uint64_t factor;
    } units[] = {{"", 1},
                 {"k", 1000},
                 {"M", 1000000},
                 {"G", 1000000000},
                 {"Ki", (uint64_t)1 << 10},
                 {"Mi", (uint64_t)1 << 20},
                 {"Gi", (uint64_t)1 << 30}};
    char *end;
    if (*text < '0' || *text > '9')
        return -1;
    errno = 0;
    const uint64_t v = strtoull(text, &end, 0);
    if (errno)
        return -1;
    if (*end == '^') {
        const uint64_t power = strtoull(end + 1, &end, 10);
        if (v != 2 || *end || power > 63)
            return -1;
        *n = (uint64_t)1 << power;
        return 0;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].suffix) == 0 && v <= UINT64_MAX / units[i].factor) {
            *n = v * units[i].factor;
            return 0;
        }
    return -1;
}

int parse_number(double *x, const char *text)
{
    char *end;
    if (strncmp(text, "2^", 2) == 0) {
        const long e = strtol(text + 2, &end, 10);
        if (end == text + 2 || *end || e < -1074 || e > 1023)
            return -1;
        *x = ldexp(1, (int)e);
        return 0;
    }
    *x = strtod(text, &end);
    return end == text || *end || !isfinite(*x) ? -1 : 0;
}

/* ---- help ---- */

/* Print words of `text` between columns HELP_COLUMN and HELP_WIDTH; the cursor is at
 * column `at`. */
static void print_wrapped(const char *text, int at)
{
    if (at >= HELP_COLUMN) {
        putchar('\n');
        at = 0;
    }
    printf("%*s", HELP_COLUMN - at, "");
    at = HELP_COLUMN;
    while (*text) {
        const int n = (int)strcspn(text, " ");
        if (at > HELP_COLUMN && at + 1 + n > HELP_WIDTH) {
            printf("\n%*s", HELP_COLUMN, "");
            at = HELP_COLUMN;
        }
        at += printf("%s%.*s", at > HELP_COLUMN ? " " : "", n, text);
        text += n;
        text += *text != '\0';
    }
    putchar('\n');
}

static void print_help(const command *c, const option_row *table, const char *more)
{
    printf("Usage: mpsim %s [option]... %s\n\n%s.\n", c->name, c->operands, c->summary);
    for (const option_row *o = table; o->name; o++) {
        if (o->type == OPTION_HEADING) {
            printf("\n%s\n", o->name);
            continue;
        }
        int at = printf(o->letter ? "  -%c, " : "      ", o->letter);
        at += printf("--%s", o->name);
        if (o->argument)
            at += printf(" %s", o->argument);
        print_wrapped(o->help, at);
    }
    int at = printf("      --help");
    print_wrapped("print this help and exit", at);
    if (more)
        printf("\n%s", more);
}

/* ---- parsing ---- */

static int append(option_list *l, const char *text)
{
    const char **items = realloc(l->items, (l->count + 1) * sizeof *items);
    if (!items)
        return -1;
    l->items = items;
    l->items[l->count++] = text;
    return 0;
}

void option_list_clear(option_list *l)
{
    free(l->items);
    l->items = NULL;
    l->count = 0;
}

static int set(const command *c, const option_row *o, const char *text)
{
    switch (o->type) {
    case OPTION_FLAG:
        *(int *)o->value = 1;
        return -1;
    case OPTION_STRING:
        *(const char **)o->value = text;
        return -1;
    case OPTION_LIST:
        return append(o->value, text) ? fail(EXIT_IO, "out of memory") : -1;
    case OPTION_COUNT:
        if (parse_count(o->value, text) == 0)
            return -1;
        return fail(EXIT_USAGE, "%s: --%s: '%s' is not a non-negative integer", c->name, o->name,
                    text);
    case OPTION_HEADING:
        break;
    }
    return -1;
}

int options_parse(const command *c, const option_row *table, int argc, char **argv, int *first,
                  const char *more)
{
    struct option longs[OPTIONS_MAX];
    char shorts[2 * OPTIONS_MAX + 3] = ":";
    const option_row *row[OPTIONS_MAX];
    int n = 0;
    size_t s = 1;
    for (const option_row *o = table; o->name; o++) {
        if (o->type == OPTION_HEADING || n == OPTIONS_MAX - 2)
            continue;
        const int has_argument = o->argument != NULL;
        longs[n] = (struct option){o->name, has_argument, NULL, 256 + n};
        row[n++] = o;
        if (o->letter) {
            shorts[s++] = o->letter;
            if (has_argument)
                shorts[s++] = ':';
        }
    }
    longs[n] = (struct option){"help", no_argument, NULL, 'h' + 1000};
    longs[n + 1] = (struct option){NULL, 0, NULL, 0};
    shorts[s] = '\0';

    opterr = 0;
    optind = 1;
    for (;;) {
        const int at = optind;
        const int k = getopt_long(argc, argv, shorts, longs, NULL);
        if (k == -1)
            break;
        if (k == 'h' + 1000) {
            print_help(c, table, more);
            return EXIT_OK;
        }
        if (k == '?' || k == ':') {
            const char *word = argv[at < argc ? at : argc - 1];
            const char *why = k == ':' ? "needs an argument" : "is not an option";
            if (optopt > 0 && optopt < 256 && strncmp(word, "--", 2) != 0)
                return fail(EXIT_USAGE, "%s: -%c %s; try 'mpsim %s --help'", c->name, optopt, why,
                            c->name);
            if (k == '?' && optopt >= 256)
                why = "takes no argument";
            return fail(EXIT_USAGE, "%s: %s %s; try 'mpsim %s --help'", c->name, word, why,
                        c->name);
        }
        const option_row *o = NULL;
        if (k >= 256)
            o = row[k - 256];
        for (int i = 0; !o && i < n; i++)
            if (row[i]->letter == k)
                o = row[i];
        const int code = o ? set(c, o, optarg) : -1;
        if (code >= 0)
            return code;
    }
    *first = optind;
    return -1;
}
