/* help.h -- what a program and its commands take, from the tables of their options, in the forms that people and shells
 * read: text, a manual page, completions.
 *
 * A program's completions call each command for its part, so there is no second table of options. */
#pragma once

#include "options.h"

#include <stdio.h>

typedef enum help_form {
    HELP_TEXT, /* of a command with many options those that are common */
    HELP_ALL,
    HELP_MAN,  /* a page of section 1 in the macros of man(7) */
    HELP_BASH, /* completions: of a command its part, of a program all, with the parts of its commands in it */
    HELP_ZSH,
    HELP_FISH
} help_form;

/* help_form_find -- the form that `word` names, as in --help=man; text for NULL. 0, or -1 where none is. */
int help_form_find(help_form *form, const char *word);
/* Their names. */
#define HELP_FORMS "all, man, bash, zsh or fish"

/* Options that every command has, behind its own in help and parsing. */
enum { HELP_OWN = 4 };
/* help_own -- their rows, whose values are NULL. */
void help_own(const command *c, option_row own[HELP_OWN]);

/* help_command -- on standard output. `more`: text behind the options, or NULL. Of it lines that begin with blanks or have
 * columns stay as they are, other lines are paragraphs, and "Examples:" is a heading of its own. */
void help_command(help_form form, const command *c, const option_row *table, const char *more);

/* What `mpsim help NAME` shows beside commands: a command with an option. */
typedef struct help_topic {
    const char *name, *summary;
    const char *command, *option;
} help_topic;

typedef struct program {
    const char *name;         /* mpsim                 */
    const char *usage;        /* how it is called      */
    const char *about;        /* a sentence: what it does */
    const command *commands;  /* ends with a NULL name */
    const help_topic *topics; /* the same; or NULL     */
    const char *more;         /* as of a command       */
} program;

/* help_program -- on standard output or, as text, on `to`. Completions call run() of each command for its part. */
void help_program(help_form form, const program *p, FILE *to);
