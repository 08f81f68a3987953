/* options.h -- options of a command from one table: parsing, --help and errors.
 *
 * A command describes its options once, as rows of option; the values go to variables through
 * typed pointers. What an argument may be, and which options go together, are rows, too.
 * Errors are one line on stderr and exit code 2.
 *
 * Values are read and rules checked (rules.c) after the whole line has been read and before any file is opened.
 * --help and the manual page show the same rules. Commands check by hand only what depends on files, formats or
 * models. */
#pragma once

#include "../text/option.h"
#include "../process/host.h"
#include "suggestion.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

typedef enum option_type {
    OPTION_FLAG,    /* int *: set to 1                                                    */
    OPTION_STRING,  /* const char **: the argument                                        */
    OPTION_INPUT,   /* the same: a file, or a folder, that is read                        */
    OPTION_OUTPUT,  /* the same: a file that is written                                   */
    OPTION_LIST,    /* option_list *: every occurrence, in order                          */
    OPTION_INPUTS,  /* the same: files that are read                                      */
    OPTION_COUNT,   /* uint64_t *: a non-negative integer, see parse_count                */
    OPTION_NUMBER,  /* double *: a finite number, see parse_number                        */
    OPTION_COUNT32, /* uint32_t *, OPTION_COUNT64: uint64_t *; read late, and given whatever number it is */
    OPTION_COUNT64,
    OPTION_BYTE,    /* unsigned char *: the same as OPTION_WORD                           */
    OPTION_WORD,    /* int *: which of the words of `argument`, as "uniform|normal", it is */
    OPTION_CHOICE,  /* const char **: one of these words                                  */
    OPTION_READ,    /* option_reader *: what a function reads, see READS                  */
    OPTION_QUIET,   /* a flag: note_quiet                                                 */
    OPTION_THEN,    /* option_reader *: called once the rows above are read, before those below */
    OPTION_HEADING, /* a heading in the help                                               */
    OPTION_COMMON, /* `name`: the options that a short help has, see COMMON; `help`: a paragraph behind them, or NULL */
    OPTION_COLUMNS,  /* `name`: a heading of columns of the report, of the option_columns * */
    OPTION_RANGE,    /* `name`: options, whose numbers are in the option_range *           */
    OPTION_EXCLUDES, /* `name` and `argument`: what does not go together; `help`: why, or NULL */
    OPTION_NEEDS     /* `name` needs `argument`                                           */
} option_type;

/* option_is -- whether a row is an option. */
static inline int option_is(option_type type)
{
    return type < OPTION_THEN;
}

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

/* What reads the argument of an option, the last one that was given, once all are there: 0; -1 if it is not what `expects`
 * says, as "a positive number or amax"; or an exit code after a message, which begins with `where`, as "dot: --scale". */
typedef struct option_reader {
    int (*read)(void *to, const char *where, const char *text);
    void *to;
    const char *expects;
} option_reader;

/* From `least` to `most`, or above `least`; `most` itself may be outside. */
typedef struct option_range {
    double least, most;
    int above, below;
} option_range;

/* Columns of a table for people that help describes, as the table of the record's fields does. COLUMNS: a row for those of `record` that
 * `shows` has; what a row above has is left out. */
typedef struct option_columns {
    const struct record_kind *record;
    unsigned shows;
} option_columns;
#define COLUMNS(heading, record, shows)                                                      \
    {                                                                                        \
        0, heading, OPTION_COLUMNS, &(option_columns){record, (unsigned)(shows)}, NULL, NULL \
    }

/* Rows of rules, beside the options that they are about (rules.h). A list has terms, with blanks between. A term holds where
 * all of its parts do, with '+' between: NAME (an option that was given; a count: other than its default), NAME=WORD, NAME>N, NAME#N (of a list: more than N);
 * in capitals operands: FILE (there are some), FILE=1, FILE>2, GROUP=cpu (one of them). A '!' before a part is its opposite. Of options that the command does not have none was given.
 *
 * READS      the value of an OPTION_READ row
 * RANGE      the numbers of these options, where they are given, are from least to most; ABOVE: above least
 * EXCLUSIVE  one of the terms at most holds
 * EXCLUDES   a term of `a` and one of `b` do not hold both; with "" for `b` none of `a`
 * NEEDS      where a term of `a` holds, one of `b` does; with "" for `a` always
 * `why` follows the message, behind a colon; or NULL. */
#define READS(function, target, what) (&(option_reader){function, target, what})
#define RANGE(names, least, most)                                                                  \
    {                                                                                              \
        0, names, OPTION_RANGE, &(option_range){(double)(least), (double)(most), 0, 0}, NULL, NULL \
    }
#define ABOVE(names, least)                                                                  \
    {                                                                                        \
        0, names, OPTION_RANGE, &(option_range){(double)(least), HUGE_VAL, 1, 0}, NULL, NULL \
    }
#define EXCLUSIVE(terms, why)                      \
    {                                              \
        0, terms, OPTION_EXCLUDES, NULL, NULL, why \
    }
#define EXCLUDES(a, b, why)                 \
    {                                       \
        0, a, OPTION_EXCLUDES, NULL, b, why \
    }
#define NEEDS(a, b, why)                 \
    {                                    \
        0, a, OPTION_NEEDS, NULL, b, why \
    }

/* COMMON -- where a command has many options: those that --help shows, with blanks between; --help=all shows all of them. */
#define COMMON(names)                             \
    {                                             \
        0, names, OPTION_COMMON, NULL, NULL, NULL \
    }

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
    const char *group; /* the heading of the first command of a group, or NULL */
};

/* options_parse -- parse argv[1..]; argv[0] is the command's name. -h and --help, --progress, --sandbox and
 * --no-sandbox are always options; the sandbox is closed (confine.h) when it goes on. On return *first is the index of the first operand. -1: go on; otherwise an exit
 * code (after --help: EXIT_OK). `more` is text for the end of the help: examples, definitions;
 * or NULL. The table ends with a NULL name. */
int options_parse(const command *c, const option_row *table, int argc, char **argv, int *first, const char *more);
