/* options.c -- see options.h. */
#include "options.h"

#include "../text/escape.h"
#include "../text/words.h"
#include "confine.h"
#include "help.h"
#include "progress.h"
#include "world.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 128, PROGRESS = 1, SANDBOX, NO_SANDBOX };

/* ---- messages ---- */

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

void note(const char *message, ...)
{
    char line[2 * LINE + 32];
    va_list args;
    if (quiet || world_rank())
        return;
    progress_hide();
    va_start(args, message);
    make_line(line, "note: ", message, args);
    va_end(args);
    print_line(line);
}

void note_quiet(void)
{
    (void)progress_option("never");
    quiet = 1;
}

/* ---- suggestions ---- */

void fold_word(char *out, size_t size, const char *text)
{
    size_t n = 0;
    for (; text[n] && n + 1 < size; n++)
        out[n] = (char)(text[n] == '-' ? '_' : tolower((unsigned char)text[n]));
    out[n] = '\0';
}

/* Letters to insert, delete, replace or swap with their neighbour between two words of fewer
 * than 64 letters. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][64];
    const size_t n = strlen(b);
    for (size_t j = 0; j <= n; j++)
        rows[0][j] = j;
    size_t i = 1;
    for (; a[i - 1]; i++) {
        const size_t *before = rows[(i + 1) % 3], *above = rows[(i - 1) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[(i - 1) % 3][n];
}

void suggestion_init(suggestion *s, const char *word)
{
    memset(s, 0, sizeof *s);
    fold_word(s->word, sizeof s->word, word);
    const size_t half = strlen(s->word) / 2; /* in short words two letters are too many */
    s->distance = half < 2 ? half : 2;
}

void suggestion_consider(suggestion *s, const char *candidate)
{
    enum { AT_MOST = 3 };
    char folded[sizeof s->word];
    fold_word(folded, sizeof folded, candidate);
    const size_t d = distance(s->word, folded), n = strlen(s->text);
    if (d > s->distance || (d == s->distance && s->count == AT_MOST))
        return;
    if (d < s->distance)
        s->count = 0;
    s->distance = d;
    snprintf(s->text + (s->count ? n : 0), sizeof s->text - (s->count ? n : 0), "%s%s", s->count ? " or " : "",
             candidate);
    s->count++;
}

const char *suggestion_end(suggestion *s, const char *otherwise)
{
    char found[sizeof s->text];
    if (!s->count)
        return otherwise;
    memcpy(found, s->text, sizeof found);
    const int n = snprintf(s->text, sizeof s->text, ": did you mean %.*s?", (int)sizeof s->text - 20, found);
    return n > 0 ? s->text : otherwise;
}

/* ---- parsing ---- */

static int set_count(const command *c, const option_row *o, const char *text)
{
    const int status = parse_count(o->value, text);
    if (status == 0)
        return -1;
    return fail(EXIT_USAGE,
                status == NUMBER_RANGE ? "%s: --%s: '%s' is larger than 2^64 - 1"
                                       : "%s: --%s: '%s' is not a non-negative integer",
                c->name, o->name, text);
}

static int set(const command *c, const option_row *o, const char *text)
{
    switch (o->type) {
    case OPTION_FLAG:
        *(int *)o->value = 1;
        return -1;
    case OPTION_STRING:
    case OPTION_INPUT:
    case OPTION_OUTPUT:
        *(const char **)o->value = text;
        return -1;
    case OPTION_LIST:
    case OPTION_INPUTS:
        return option_list_add(o->value, text) ? fail(EXIT_IO, "out of memory") : -1;
    case OPTION_COUNT:
        return set_count(c, o, text);
    case OPTION_HEADING:
        break;
    }
    return -1;
}

/* Long options that `word` may have been meant to be, as the end of a message; or `otherwise`. */
static const char *nearest(suggestion *s, const char *word, const struct option *longs, const char *otherwise)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    suggestion_init(s, name);
    for (; longs->name; longs++) {
        snprintf(name, sizeof name, "--%s", longs->name);
        suggestion_consider(s, name);
    }
    return suggestion_end(s, otherwise);
}

int options_parse(const command *c, const option_row *table, int argc, char **argv, int *first, const char *more)
{
    struct option longs[OPTIONS_MAX];
    char shorts[2 * OPTIONS_MAX + 4] = ":";
    const option_row *row[OPTIONS_MAX];
    confine_wish wish = CONFINE_AS_USUAL;
    int n = 0;
    size_t s = 1;
    for (const option_row *o = table; o->name; o++) {
        if (o->type == OPTION_HEADING)
            continue;
        if (n == OPTIONS_MAX - HELP_OWN - 1)
            return fail(EXIT_IO, "%s: more than %d options", c->name, OPTIONS_MAX - HELP_OWN - 1);
        const int has_argument = o->argument != NULL;
        longs[n] = (struct option){o->name, has_argument, NULL, 256 + n};
        row[n++] = o;
        if (o->letter) {
            shorts[s++] = o->letter;
            if (has_argument)
                shorts[s++] = ':';
        }
    }
    longs[n] = (struct option){"help", optional_argument, NULL, 'h'};
    shorts[s++] = 'h';
    longs[n + 1] = (struct option){"progress", required_argument, NULL, PROGRESS};
    longs[n + 2] = (struct option){"sandbox", no_argument, NULL, SANDBOX};
    longs[n + 3] = (struct option){"no-sandbox", no_argument, NULL, NO_SANDBOX};
    longs[n + 4] = (struct option){NULL, 0, NULL, 0};
    shorts[s] = '\0';

    opterr = 0;
    optind = 1;
    for (;;) {
        const int k = getopt_long(argc, argv, shorts, longs, NULL);
        if (k == -1)
            break;
        if (k == 'h') {
            help_form form;
            if (help_form_find(&form, optarg))
                return fail(EXIT_USAGE, "%s: --help is alone or " HELP_FORMS ", not '%s'", c->name, optarg);
            help_command(form, c, table, more);
            return EXIT_OK;
        }
        if (k == '?' || k == ':') {
            const char *word = argv[optind - 1]; /* also where operands were moved behind it */
            const char *why = k == ':' ? "needs an argument" : "is not an option";
            char try[64];
            suggestion near;
            snprintf(try, sizeof try, "; try 'mpsim %s --help'", c->name);
            if (optopt > 0 && optopt < 256 && strncmp(word, "--", 2) != 0)
                return fail(EXIT_USAGE, "%s: -%c %s%s", c->name, optopt, why, try);
            if (k == '?' && optopt >= 256)
                why = "takes no argument";
            if (k == '?' && optopt < 256)
                return fail(EXIT_USAGE, "%s: %s %s%s", c->name, word, why, nearest(&near, word, longs, try));
            return fail(EXIT_USAGE, "%s: %s %s%s", c->name, word, why, try);
        }
        if (k == PROGRESS) {
            if (progress_option(optarg))
                return fail(EXIT_USAGE, "%s: --progress is auto, always or never, not '%s'", c->name, optarg);
            continue;
        }
        if (k == SANDBOX || k == NO_SANDBOX) {
            wish = k == SANDBOX ? CONFINE_YES : CONFINE_NO;
            continue;
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
    char why[256];
    return confine(c, table, argv + optind, argc - optind, wish, why, sizeof why)
               ? fail(EXIT_USAGE, "%s: --sandbox: %s", c->name, why)
               : -1;
}
