/* options.h -- options of a command from one table: parsing, --help and errors.
 *
 * A command describes its options once, as rows of option; the values go to variables through
 * typed pointers. Errors are one line on stderr and exit code 2. */
#ifndef MPSIM_SIM_OPTIONS_H
#define MPSIM_SIM_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

/* Exit codes of the program. */
enum {
    EXIT_OK = 0,
    EXIT_CHECK = 1,   /* a check failed                 */
    EXIT_USAGE = 2,   /* the command line is wrong      */
    EXIT_DATA = 3,    /* bad input data                 */
    EXIT_IO = 4,      /* input, output or out of memory */
    EXIT_PARTIAL = 5  /* some inputs failed             */
};

typedef enum option_type {
    OPTION_FLAG,   /* int *: set to 1                                                    */
    OPTION_STRING, /* const char **: the argument                                        */
    OPTION_LIST,   /* option_list *: every occurrence, in order                          */
    OPTION_COUNT,  /* uint64_t *: a non-negative integer; 1Ki, 2M, 2^20 and 0x10 work    */
    OPTION_HEADING /* a heading in the help; no option                                   */
} option_type;

typedef struct option_list {
    const char **items;
    size_t count;
} option_list;

typedef struct option_row {
    char letter; /* or 0 */
    const char *name;
    option_type type;
    void *value;
    const char *argument; /* name of the argument in the help; NULL for flags */
    const char *help;
} option_row;

typedef struct command {
    const char *name;
    const char *operands; /* "FILE..." */
    const char *summary;  /* one line */
    int (*run)(int argc, char **argv);
} command;

extern const command commands[]; /* ends with a NULL name */

/* options_parse -- parse argv[1..]; argv[0] is the command's name. On return *first is the
 * index of the first operand. -1: go on; otherwise an exit code (after --help: EXIT_OK).
 * `more` is text for the end of the help: examples, definitions; or NULL. The table ends with
 * a NULL name. */
int options_parse(const command *c, const option_row *table, int argc, char **argv, int *first,
                  const char *more);
void option_list_clear(option_list *l);

/* Values that several commands take. Each returns 0, or -1 if the text is not one. */
int parse_count(uint64_t *n, const char *text);
int parse_number(double *x, const char *text); /* decimal, hex float, 2^k; finite */

/* fail -- print "mpsim: MESSAGE" on stderr and return the exit code. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int fail(int exit_code, const char *message, ...);

/* note -- the same on stderr for what is not an error. Silent after note_quiet. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void note(const char *message, ...);
void note_quiet(void);

#endif
