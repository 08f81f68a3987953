/* options.h -- options of a command from one table: parsing, --help and errors.
 *
 * A command describes its options once, as rows of option; the values go to variables through
 * typed pointers. Errors are one line on stderr and exit code 2. */
#pragma once

#include "../text/option.h"
#include "../process/host.h"
#include "suggestion.h"

#include <stddef.h>
#include <stdint.h>

typedef enum option_type {
    OPTION_FLAG,   /* int *: set to 1                                                    */
    OPTION_STRING, /* const char **: the argument                                        */
    OPTION_INPUT,  /* the same: a file, or a folder, that is read                        */
    OPTION_OUTPUT, /* the same: a file that is written                                   */
    OPTION_LIST,   /* option_list *: every occurrence, in order                          */
    OPTION_INPUTS, /* the same: files that are read                                      */
    OPTION_COUNT,  /* uint64_t *: a non-negative integer, see parse_count                */
    OPTION_HEADING /* a heading in the help; no option                                   */
} option_type;

/* option_is_path -- whether an option's argument is the path of a file. */
static inline int option_is_path(option_type type)
{
    return type == OPTION_INPUT || type == OPTION_INPUTS || type == OPTION_OUTPUT;
}

typedef struct option_row {
    char letter; /* or 0 */
    const char *name;
    option_type type;
    void *value;
    const char *argument; /* name of the argument in the help; NULL for flags */
    const char *help;
} option_row;

/* What a command is, and needs (confine.h). */
enum {
    COMMAND_CONFINED = 1 << 0, /* in a sandbox if nothing else is said     */
    COMMAND_DATA = 1 << 1,     /* reads policies, templates, vectors of the program's own */
    COMMAND_FOLDERS = 1 << 2,  /* makes folders for its outputs            */
    COMMAND_GNUPLOT = 1 << 3,  /* runs gnuplot                             */
    COMMAND_WORDS = 1 << 4,    /* its operands are no files: they may be empty */
    COMMAND_SCRIPT = 1 << 5    /* options end where operands begin: what follows is another program's */
};

typedef struct command command;

struct command {
    const char *name;
    const char *operands; /* "FILE..." */
    const char *summary;  /* one line */
    int (*run)(const command *self, int argc, char **argv);
    unsigned traits;
};

/* options_parse -- parse argv[1..]; argv[0] is the command's name. -h and --help, --progress, --sandbox and
 * --no-sandbox are always options; the sandbox is closed (confine.h) when it goes on. On return *first is the index of the first operand. -1: go on; otherwise an exit
 * code (after --help: EXIT_OK). `more` is text for the end of the help: examples, definitions;
 * or NULL. The table ends with a NULL name. */
int options_parse(const command *c, const option_row *table, int argc, char **argv, int *first, const char *more);
