/* options.c -- see options.h. */
#include "options.h"

#include "../text/words.h"
#include "confine.h"
#include "help.h"
#include "../process/progress.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 128, PROGRESS = 1, SANDBOX, NO_SANDBOX };

/* ---- parsing ---- */

static int set_count(const command *c, const option_row *o, const char *text)
{
    uint64_t n;
    int status = parse_count(&n, text);
    if (status == 0 && n > INT64_MAX) /* JSON's integers end there, for many readers and for ours */
        status = NUMBER_RANGE;
    if (status == 0) {
        *(uint64_t *)o->value = n;
        return -1;
    }
    return fail(EXIT_USAGE,
                status == NUMBER_RANGE ? "%s: --%s: '%s' is larger than 2^63 - 1"
                                       : "%s: --%s: '%s' is not a non-negative integer",
                c->name, o->name, text);
}

static int set(const command *c, const option_row *o, const char *text)
{
    if (option_is_path(o->type) && !*text) /* a variable of a script that was not set */
        return fail(EXIT_USAGE, "%s: --%s is empty", c->name, o->name);
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
    char shorts[2 * OPTIONS_MAX + 8] = "";
    const option_row *row[OPTIONS_MAX];
    confine_wish wish = CONFINE_AS_USUAL;
    int n = 0;
    size_t s = (size_t)snprintf(shorts, sizeof shorts, "%s:", c->traits & COMMAND_SCRIPT ? "+" : "");
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
    optind = c->traits & COMMAND_SCRIPT ? 0 : 1; /* 0: also another order of operands */
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
    for (int i = optind; i < argc && !(c->traits & COMMAND_WORDS); i++)
        if (!*argv[i])
            return fail(EXIT_USAGE, "%s: operand %d is empty", c->name, i - optind + 1);
    char why[256];
    return confine(c, table, argv + optind, argc - optind, wish, why, sizeof why)
               ? fail(EXIT_USAGE, "%s: --sandbox: %s", c->name, why)
               : -1;
}
