/* inputs.h -- the files that a run of the program reads: no output replaces one of them.
 *
 * Who opens a file to read it adds it, standard input included; who opens one to write it asks. Files
 * are compared, not names: links and other spellings of a path do not matter. */
#pragma once

#include "trace.h"

/* inputs_watch -- from now on files are remembered, to the end of the program. */
void inputs_watch(void);

/* inputs_add -- an open file is an input; only regular files count. */
void inputs_add(int fd);
/* inputs_add_path -- the same before it is opened; "-" is standard input, NULL nothing. */
void inputs_add_path(const char *path);
/* inputs_renew -- the input `in` is a state, which the output that is called `out` may replace: a
 * checkpoint that goes on. Either may be NULL. */
void inputs_renew(const char *in, const char *out);

/* inputs_check -- 0 if an output may go to `out` ("-": standard output); else -1, and *error says that
 * it is an input. */
int inputs_check(const char *out, trace_error *error);
/* inputs_check_file -- the same of a file that is known, where the output that is called `out` goes. */
struct stat;
int inputs_check_file(const struct stat *s, const char *out, trace_error *error);
