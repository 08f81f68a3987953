/* output.h -- where a report goes. It appears when it is complete: it waits in an unnamed
 * temporary file, so that a failure, or a kill, leaves nothing behind. */
#ifndef MPSIM_SIM_CLI_OUTPUT_H
#define MPSIM_SIM_CLI_OUTPUT_H

#include <stdio.h>

typedef struct output {
    FILE *file;       /* write here                                        */
    const char *path; /* where it goes in the end; NULL: file is stdout    */
} output;

/* output_open -- `path` NULL or "-" is standard output. 0, or an exit code after a message. */
int output_open(output *o, const char *path);
/* output_open_stream -- the same, but lines to standard output go out as they come. */
int output_open_stream(output *o, const char *path);
/* output_close -- check, and copy to the destination. 0, or an exit code after a message
 * (without one if the reader of a pipe has gone). */
int output_close(output *o);
/* output_check_path -- EXIT_USAGE after a message if `out` is the regular file `path`: what is
 * written never replaces what it was made from. Both may be NULL or "-", as on a command line: path
 * "-" is standard input, and out "-" is no file. Else 0. */
int output_check_path(const char *verb, const char *out, const char *path);
/* output_is_same -- whether two outputs are one file, that exists or not. */
int output_is_same(const char *a, const char *b);
/* output_abandon -- forget what was written. */
void output_abandon(output *o);

#endif
