/* output.h -- where a report goes. It appears when it is complete: it waits in an unnamed
 * temporary file, so that a failure, or a kill, leaves no part of it behind. Of several processes (world.h) the first
 * writes it; the others' goes to their standard output, which leads nowhere.
 *
 * The lines of --ndjson are the exception: they appear as they come. A call that fails is exit code 4 and one line
 * with its reason; an interrupted call is repeated. Reports go through trace_whole_stream, which keeps the reason
 * that stdio loses; tests/cli/faults.sh lets every call fail. */
#pragma once

#include "../record/cells.h"

#include <stdio.h>

struct outfile;

typedef struct output {
    FILE *file;       /* write here                                        */
    const char *path; /* where it goes in the end; NULL: file is stdout    */
    int fd;           /* the temporary file under it                       */
    int is_screen;    /* a text for a terminal, whose lines are folded     */
} output;

/* output_watch -- once, by main: from now on SIGINT, SIGTERM and SIGHUP remove what is temporary, and the
 * files that are read are remembered, so that none of them is replaced. */
void output_watch(void);
/* output_open -- `path` NULL or "-" is standard output. 0, or an exit code after a message. */
int output_open(output *o, const char *path);
/* output_open_stream -- the same, but lines to standard output go out as they come. */
int output_open_stream(output *o, const char *path);
/* output_open_report -- output_open; a text that goes to a terminal fits its columns (screen.h). */
int output_open_report(output *o, const char *path, report_style style);
/* output_close -- check, and copy to the destination. 0, or an exit code after a message
 * (without one if the reader of a pipe has gone). */
int output_close(output *o);
/* output_end -- output_close, or where `code` is not 0 output_abandon: then it is `code`. */
int output_end(output *o, int code);
/* output_hold -- the first half of it, of what output_open opened: *held is complete, but under a temporary name
 * (trace_outfile_name); output_keep is the other, trace_outfile_abandon forgets it. Both 0, or an exit code after a message. */
int output_hold(output *o, struct outfile **held);
int output_keep(struct outfile *held);
/* output_failed -- EXIT_IO after a message, where the stream of what output_open opened has an error. */
int output_failed(void);
/* output_check -- say early what would fail late: what is written replaces no input, and no folder. 0,
 * or an exit code after a message. output_open does it, too. */
int output_check(const char *path);
/* output_is_same -- whether two outputs (NULL: none; "-": standard output) are one file, that exists or not, or both standard
 * output, or one of them replaces the file that standard output leads to. */
int output_is_same(const char *a, const char *b);
/* output_apart -- the outputs of a command, by their options: 0, or an exit code after a message that two are the same. */
typedef struct output_named {
    const char *what, *path; /* path: NULL: none */
} output_named;
int output_apart(const char *self, const output_named *of, size_t n);
/* output_done -- when all is written: what a terminal had no room for, of texts that went to it at once. */
void output_done(void);
/* output_abandon -- forget what was written. */
void output_abandon(output *o);
