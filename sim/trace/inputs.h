/* inputs.h -- the files that a run of the program reads: no output replaces one of them.
 *
 * A function that opens a file to read it adds the file, standard input included; one that opens a file to write it
 * asks here first. Files are compared by device and inode, not by name: links and other spellings of a path do not
 * matter. Only a state may be replaced, by the output that is declared as its successor. */
#pragma once

#include "trace.h"

/* trace_inputs_watch -- from now on files are remembered, to the end of the program. */
void trace_inputs_watch(void);

/* trace_inputs_add -- an open file is an input; only regular files count. */
void trace_inputs_add(int fd);
/* trace_inputs_add_path -- the same before it is opened; "-" is standard input, NULL nothing. */
void trace_inputs_add_path(const char *path);
/* trace_inputs_renew -- the input `in` is a state, which the output that is called `out` may replace: a
 * checkpoint that goes on. Either may be NULL. */
void trace_inputs_renew(const char *in, const char *out);

/* trace_inputs_check -- 0 if an output may go to `out` ("-": standard output); else -1, and *error says that
 * it is an input. */
int trace_inputs_check(const char *out, trace_error *error);
/* trace_inputs_check_file -- the same of a file that is known, where the output that is called `out` goes. */
struct stat;
int trace_inputs_check_file(const struct stat *s, const char *out, trace_error *error);
