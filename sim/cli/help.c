/* help.c -- see help.h. */
#include "help.h"

#include "../text/screen.h"
#include "../text/words.h"
#include "completion.h"
#include "manual.h"
#include "rules.h"

#include <string.h>

enum { COLUMN = 27, WIDTH = 92 };

int help_form_find(help_form *form, const char *word)
{
    static const char *const names[] = {
        [HELP_MAN] = "man", [HELP_BASH] = "bash", [HELP_ZSH] = "zsh", [HELP_FISH] = "fish"};
    *form = HELP_TEXT;
    if (!word)
        return 0;
    for (int i = HELP_MAN; i <= HELP_FISH; i++)
        if (strcmp(word, names[i]) == 0) {
            *form = (help_form)i;
            return 0;
        }
    return -1;
}

void help_own(const command *c, option_row own[HELP_OWN])
{
    const int confined = (c->traits & COMMAND_CONFINED) != 0;
    own[0] =
        (option_row){0,
                     "progress",
                     OPTION_STRING,
                     NULL,
                     "WHEN",
                     "say how far it is, on standard error: auto (default: on a terminal, after a second), always, "
                     "never"};
    own[1] = (option_row){0,
                          "sandbox",
                          OPTION_FLAG,
                          NULL,
                          NULL,
                          confined
                              ? "read the files that the command names, write its outputs, and nothing else: no "
                                "other file, no network, no program; exit code 2 where the kernel cannot (default: "
                                "where it can)"
                              : "read the files that the command names, write its outputs, and nothing else: no "
                                "other file, no network, no program; exit code 2 where the kernel cannot"};
    own[2] = (option_row){0,    "no-sandbox", OPTION_FLAG,
                          NULL, NULL,         confined ? "do without the sandbox" : "do without the sandbox (default)"};
    own[3] = (option_row){'h', "help", OPTION_FLAG, NULL, NULL, "print this help and exit"};
}

static void print_row(const option_row *o)
{
    if (o->type == OPTION_HEADING) {
        printf("\n%s\n", o->name);
        return;
    }
    if (!option_is(o->type))
        return;
    int at = printf(o->letter ? "  -%c, " : "      ", o->letter);
    at += printf("--%s", o->name);
    if (o->argument)
        at += printf(" %s", o->argument);
    text_beside(stdout, at, COLUMN, screen_width(stdout, WIDTH), o->help);
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
        text_wrap(stdout, 4, screen_width(stdout, WIDTH), " ", line);
        title = "";
    }
}

static void print_command(const command *c, const option_row *table, const option_row own[HELP_OWN], const char *more)
{
    screen_line(stdout, "Usage: mpsim %s [option]... %s", c->name, c->operands);
    putchar('\n');
    screen_line(stdout, "%s.", c->summary);
    for (const option_row *o = table; o->name; o++)
        print_row(o);
    for (int i = 0; i < HELP_OWN; i++)
        print_row(&own[i]);
    print_rules(table);
    if (more) {
        putchar('\n');
        screen_text(stdout, more);
    }
}

void help_command(help_form form, const command *c, const option_row *table, const char *more)
{
    option_row own[HELP_OWN];
    help_own(c, own);
    switch (form) {
    case HELP_TEXT:
        print_command(c, table, own, more);
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

static void print_program(const program *p, FILE *to)
{
    fprintf(to, "Usage: %s COMMAND [option]... [operand]...\n\n%s.\n\n", p->usage, p->about);
    for (const command *c = p->commands; c->name; c++)
        fprintf(to, "  %-9s %s\n", c->name, c->summary);
    if (p->topics)
        fprintf(to, "\n'%s help TOPIC' lists what there is:\n\n", p->name);
    for (const help_topic *t = p->topics; t && t->name; t++)
        fprintf(to, "  %-9s %s\n", t->name, t->summary);
    fprintf(to, "\n%s", p->more);
}

void help_program(help_form form, const program *p, FILE *to)
{
    switch (form) {
    case HELP_TEXT:
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
