/* help.c -- see help.h. */
#include "help.h"

#include "../text/screen.h"
#include "../text/words.h"
#include "columns.h"
#include "completion.h"
#include "manual.h"
#include "rules.h"

#include <string.h>

enum {
    COLUMN = 27,
    WIDTH = 80,
    TITLE = 16,
    NAMES = 12,
    INDENT = 14
}; /* of all terminals, and of what shows a pipe on one */

int help_form_find(help_form *form, const char *word)
{
    static const char *const names[] = {
        [HELP_ALL] = "all", [HELP_MAN] = "man", [HELP_BASH] = "bash", [HELP_ZSH] = "zsh", [HELP_FISH] = "fish"};
    *form = HELP_TEXT;
    if (!word)
        return 0;
    for (int i = HELP_ALL; i <= HELP_FISH; i++)
        if (strcmp(word, names[i]) == 0) {
            *form = (help_form)i;
            return 0;
        }
    return -1;
}

void help_own(const command *c, option_row own[HELP_OWN])
{
    const int confined = (c->traits & COMMAND_CONFINED) != 0;
    own[0] = (option_row){0,    "progress", OPTION_STRING,
                          NULL, "WHEN",     "show progress: auto (default: on a terminal), always or never"};
    own[1] = (option_row){0,
                          "sandbox",
                          OPTION_FLAG,
                          NULL,
                          NULL,
                          confined ? "access the named inputs and outputs alone (default where the kernel can)"
                                   : "access the named inputs and outputs alone; exit code 2 if the kernel cannot"};
    own[2] = (option_row){0, "no-sandbox", OPTION_FLAG, NULL, NULL, confined ? "no sandbox" : "no sandbox (default)"};
    own[3] = (option_row){'h', "help", OPTION_FLAG, NULL, NULL, "print this help and exit"};
}

/* " auto|always|never", on another line from the word that is too far to the right; the column behind it. */
static int print_argument(int at, const char *argument)
{
    putchar(' ');
    for (at++; *argument;) {
        const size_t n = strcspn(argument, "|") + 1, k = n <= strlen(argument) ? n : n - 1;
        if (at + (int)k > WIDTH)
            at = printf("\n%*s", INDENT, "") - 1;
        at += printf("%.*s", (int)k, argument);
        argument += k;
    }
    return at;
}

static void print_option(char letter, const char *name, const char *argument, const char *help)
{
    int at = printf(letter ? "  -%c, " : "      ", letter);
    at += printf("--%s", name);
    if (argument)
        at = print_argument(at, argument);
    text_beside(stdout, at, COLUMN, WIDTH, help);
}

static void print_heading(const char *title)
{
    printf("\n%s\n", title);
}

static void print_row(const option_row *o)
{
    if (o->type == OPTION_HEADING)
        print_heading(o->name);
    else if (option_is(o->type))
        print_option(o->letter, o->name, o->argument, o->help);
}

/* What goes together, a sentence a line. */
static void print_rules(const option_row *table)
{
    char line[4096];
    const char *title = "\nWhat goes together\n";
    for (const option_row *o = table; o->name; o++) {
        rule_say(line, sizeof line, table, o, &rule_options);
        if (!*line)
            continue;
        printf("%s  ", title);
        text_wrap(stdout, 4, WIDTH, " ", line);
        title = "";
    }
}

/* ---- a short help: some options, and examples ---- */

/* Which options are common; NULL: the command has no short help. */
static const option_row *common_of(const option_row *table)
{
    for (const option_row *o = table; o->name; o++)
        if (o->type == OPTION_COMMON)
            return o;
    return NULL;
}

static int is_among(const char *names, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = names; *at; at += strspn(at, " ")) {
        const size_t k = strcspn(at, " ");
        if (k == n && memcmp(at, name, n) == 0)
            return 1;
        at += k;
    }
    return 0;
}

static void print_common(const option_row *table, const char *names)
{
    const option_row *heading = NULL;
    char rest[128];
    int others = 0;
    for (const option_row *o = table; o->name; o++) {
        heading = o->type == OPTION_HEADING ? o : heading;
        if (!option_is(o->type))
            continue;
        if (!is_among(names, o->name)) {
            others++;
            continue;
        }
        if (heading)
            print_row(heading);
        heading = NULL;
        print_row(o);
    }
    snprintf(rest, sizeof rest, "%d more options, which options go together, and what the output means",
             others + HELP_OWN - 1);
    putchar('\n');
    print_option('h', "help", NULL, "print this help and exit");
    print_option(0, "help=all", NULL, rest);
}

/* The text behind the options, from its examples on. */
static const char *examples_of(const char *more)
{
    const char *at = more ? strstr(more, "Examples:\n") : NULL;
    return at ? at : "";
}

/* ---- all of it ---- */

static void print_column(const char *title, const char *what)
{
    text_beside(stdout, printf("  %s", title), TITLE, WIDTH, what);
}

static void print_all(const option_row *table, const option_row own[HELP_OWN], const char *more)
{
    for (const option_row *o = table; o->name; o++)
        print_row(o);
    for (int i = 0; i < HELP_OWN; i++)
        print_row(&own[i]);
    print_rules(table);
    columns_each(table, print_heading, print_column);
    if (more) {
        putchar('\n');
        screen_text(stdout, WIDTH, more);
    }
}

static void print_command(const command *c, const option_row *table, const option_row own[HELP_OWN], const char *more,
                          int all)
{
    const option_row *common = all ? NULL : common_of(table);
    printf("Usage: mpsim %s [option]... ", c->name);
    text_wrap(stdout, (int)strlen(c->name) + 26, WIDTH, " ", c->operands);
    printf("\n%s.\n", c->summary);
    if (!common) {
        print_all(table, own, more);
        return;
    }
    print_common(table, common->name);
    putchar('\n');
    if (common->help) {
        text_wrap(stdout, 0, WIDTH, " ", common->help);
        putchar('\n');
    }
    screen_text(stdout, WIDTH, examples_of(more));
}

void help_command(help_form form, const command *c, const option_row *table, const char *more)
{
    option_row own[HELP_OWN];
    help_own(c, own);
    switch (form) {
    case HELP_TEXT:
    case HELP_ALL:
        print_command(c, table, own, more, form == HELP_ALL);
        break;
    case HELP_MAN:
        manual_command(c, table, own, more);
        break;
    case HELP_BASH:
    case HELP_ZSH:
    case HELP_FISH:
        completion_command(form, c, table, own);
        break;
    }
}

static void print_summary(FILE *to, const char *name, const char *summary)
{
    text_beside(to, fprintf(to, "  %s", name), NAMES, WIDTH, summary);
}

static void print_program(const program *p, FILE *to)
{
    fprintf(to, "Usage: %s COMMAND [option]... [operand]...\n\n%s.\n", p->usage, p->about);
    for (const command *c = p->commands; c->name; c++) {
        if (c->group)
            fprintf(to, "\n%s\n", c->group);
        print_summary(to, c->name, c->summary);
    }
    if (p->topics)
        fprintf(to, "\n'%s help TOPIC' lists what there is\n", p->name);
    for (const help_topic *t = p->topics; t && t->name; t++)
        print_summary(to, t->name, t->summary);
    fprintf(to, "\n%s", p->more);
}

void help_program(help_form form, const program *p, FILE *to)
{
    switch (form) {
    case HELP_TEXT:
    case HELP_ALL:
        print_program(p, to);
        break;
    case HELP_MAN:
        manual_program(p);
        break;
    case HELP_BASH:
    case HELP_ZSH:
    case HELP_FISH:
        completion_program(form, p);
        break;
    }
}
