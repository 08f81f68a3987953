/* outfile.h -- a file that appears complete or not at all; not for other folders. */
#pragma once

#include "trace.h"

typedef struct outfile outfile;

/* trace_outfile_open -- begin to write a file under a temporary name beside `path`. "-" and /dev/stdout are standard
 * output, /dev/stderr is standard error, whoever may open them; a device or pipe is written to directly; of a symbolic link the target is
 * replaced; what replaces a file has its mode and its access control list, no other attributes. NULL on failure, or if it is an
 * input. */
outfile *trace_outfile_open(const char *path, trace_error *error);
int trace_outfile_write(outfile *o, const void *p, size_t n, trace_error *error);
/* trace_outfile_has_places -- whether bytes may be written at any place: it is a file under a temporary name. */
int trace_outfile_has_places(const outfile *o);
/* trace_outfile_make_places -- from here on trace_outfile_write_at writes, behind the `begun` bytes that were written: what has no
 * places waits for trace_outfile_close in a file without a name. 0, or -1 with *error. */
int trace_outfile_make_places(outfile *o, uint64_t begun, trace_error *error);
/* trace_outfile_write_at -- n bytes at an offset; from several threads, each byte once. */
int trace_outfile_write_at(outfile *o, uint64_t offset, const void *p, size_t n, trace_error *error);
/* trace_outfile_finish -- flush and close, but leave the file under its temporary name, trace_outfile_name (where nothing is renamed, that is
 * its path): 0, or -1 with *error. trace_outfile_close -- that, if it has not been done, and rename; frees o always. */
int trace_outfile_finish(outfile *o, trace_error *error);
int trace_outfile_close(outfile *o, trace_error *error);
void trace_outfile_abandon(outfile *o); /* accepts NULL: removes the temporary file */

const char *trace_outfile_path(const outfile *o);
const char *trace_outfile_name(const outfile *o);

/* trace_outfile_descriptor -- that of "-", /dev/stdout and /dev/stderr; -1 for others. */
int trace_outfile_descriptor(const char *path);
/* trace_outfile_target -- what trace_outfile_open would replace at `path`, through symbolic links, although nothing may be there:
 * memory for the caller. NULL and *direct = 1: nothing, it is a device, a pipe or a folder; NULL and 0: errno. */
char *trace_outfile_target(const char *path, int *direct);
