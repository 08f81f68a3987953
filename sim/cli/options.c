/* options.c -- see options.h. */
#include "options.h"

#include "../text/words.h"
#include "confine.h"
#include "help.h"
#include "../process/progress.h"
#include "rules.h"

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
    case OPTION_QUIET:
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
    default: /* once all options are there */
        return -1;
    }
}

static int set_word(const command *c, const option_row *o, const char *text)
{
    const size_t n = strlen(text);
    int i = 0;
    for (const char *word = o->argument; *word; i++) {
        const size_t k = strcspn(word, "|");
        if (k == n && memcmp(word, text, n) == 0) {
            if (o->type == OPTION_WORD)
                *(int *)o->value = i;
            else if (o->type == OPTION_BYTE)
                *(unsigned char *)o->value = (unsigned char)i;
            else
                *(const char **)o->value = text;
            return -1;
        }
        word += k + (word[k] != '\0');
    }
    char list[256] = "";
    for (const char *at = o->argument; *at; at++)
        text_add(list, sizeof list, *at == '|' ? ", " : "%c", *at);
    return fail(EXIT_USAGE, "%s: --%s: '%s' is not one of %s", c->name, o->name, text, list);
}

static int set_read(const command *c, const option_row *o, const char *text)
{
    const option_reader *r = o->value;
    char where[80];
    snprintf(where, sizeof where, "%s: --%s", c->name, o->name);
    const int code = r->read(r->to, where, text);
    if (code < 0)
        return fail(EXIT_USAGE, "%s: '%s' is not %s", where, text, r->expects);
    return code ? code : -1;
}

static int is_whole(option_type type)
{
    return type == OPTION_COUNT || type == OPTION_COUNT32 || type == OPTION_COUNT64;
}

/* A number of the kind that its row says, in its range. */
static int set_number(const command *c, const option_row *table, const option_row *o, const char *text)
{
    const option_range *r = range_of(table, o->name);
    char wanted[96];
    uint64_t n = 0;
    double x = 0;
    const int whole = is_whole(o->type);
    const int bad = o->type == OPTION_COUNT ? 0 : whole ? parse_count(&n, text) : parse_number(&x, text);
    if (whole)
        x = (double)(o->type == OPTION_COUNT ? *(const uint64_t *)o->value : n);
    if (!bad && (!r || range_has(r, x)) && (o->type != OPTION_COUNT32 || n <= UINT32_MAX)) {
        if (o->type == OPTION_NUMBER)
            *(double *)o->value = x;
        else if (o->type == OPTION_COUNT32)
            *(uint32_t *)o->value = (uint32_t)n;
        else if (o->type == OPTION_COUNT64)
            *(uint64_t *)o->value = n;
        return -1;
    }
    number_say(wanted, sizeof wanted, whole, r);
    return fail(EXIT_USAGE, "%s: --%s: '%s' is not %s", c->name, o->name, text, wanted);
}

/* What waits for all options, from the last argument of each. */
static int set_late(const command *c, const option_row *table, const option_row *o, const char *text)
{
    switch (o->type) {
    case OPTION_QUIET: /* whatever --progress says */
        note_quiet();
        return -1;
    case OPTION_WORD:
    case OPTION_BYTE:
    case OPTION_CHOICE:
        return set_word(c, o, text);
    case OPTION_READ:
    case OPTION_THEN:
        return set_read(c, o, text);
    case OPTION_COUNT:
    case OPTION_COUNT32:
    case OPTION_COUNT64:
    case OPTION_NUMBER:
        return set_number(c, table, o, text);
    default:
        return -1;
    }
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
    const char *texts[OPTIONS_MAX] = {NULL};
    uint64_t defaults[OPTIONS_MAX] = {0};
    confine_wish wish = CONFINE_AS_USUAL;
    int n = 0;
    size_t s = (size_t)snprintf(shorts, sizeof shorts, "%s:", c->traits & COMMAND_SCRIPT ? "+" : "");
    for (const option_row *o = table; o->name; o++) {
        if (!option_is(o->type))
            continue;
        if (n == OPTIONS_MAX - HELP_OWN - 1)
            return fail(EXIT_IO, "%s: more than %d options", c->name, OPTIONS_MAX - HELP_OWN - 1);
        const int has_argument = o->argument != NULL;
        longs[n] = (struct option){o->name, has_argument, NULL, 256 + n};
        defaults[n] = o->type == OPTION_COUNT ? *(const uint64_t *)o->value : 0;
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
        int at = k - 256;
        for (int i = 0; at < 0 && i < n; i++)
            if (row[i]->letter == k)
                at = i;
        texts[at] = optarg ? optarg : "";
        const int code = set(c, row[at], optarg);
        if (code >= 0)
            return code;
    }
    *first = optind;
    const options_given given = {row, texts, defaults, n, argc - optind, argv + optind, &rule_options};
    int code = -1, i = 0;
    for (const option_row *o = table; o->name && code < 0; o++) {
        const char *text = option_is(o->type) ? texts[i++] : o->type == OPTION_THEN ? "" : NULL;
        code = text ? set_late(c, table, o, text) : -1;
    }
    if (code >= 0 || (code = rules_check(c, table, &given)) >= 0)
        return code;
    for (i = optind; i < argc && !(c->traits & COMMAND_WORDS); i++)
        if (!*argv[i])
            return fail(EXIT_USAGE, "%s: operand %d is empty", c->name, i - optind + 1);
    char why[256];
    return confine(c, table, argv + optind, argc - optind, wish, why, sizeof why)
               ? fail(EXIT_USAGE, "%s: --sandbox: %s", c->name, why)
               : -1;
}
