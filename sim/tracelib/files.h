/* files.h -- the files of a reader: found, opened when they are wanted, a bounded number of them open. */
#pragma once

#include "../trace/maps.h"
#include "../trace/trace.h"
#include "../trace/wanted.h"

/* trace_error.exit; IO is also that of want of memory. */
enum { FILES_NONE = 0, FILES_USAGE = 2, FILES_DATA = 3, FILES_IO = 4 };

enum { FILES_OPEN = 64 }; /* at most, but for those that cannot be opened again */

typedef struct reader_file {
    trace *t;      /* NULL: closed */
    uint64_t used; /* when it was wanted last */
} reader_file;

typedef struct reader_files {
    wanted_words wanted;
    int keep_going;
    int folders; /* all paths are directories */
    wanted_form form;
    input_maps maps;
    trace_tree tree;
    reader_file *files; /* tree.count of them */
    size_t open[FILES_OPEN], n_open;
    uint64_t now;
    char **notes; /* lines */
    size_t n_notes;
} reader_files;

/* tracelib_files_put -- an option, whose value outlives the files. 0; -1 with *error filled, whose exit code is 0 where there is no such
 * option. */
int tracelib_files_put(reader_files *f, const char *name, const char *value, trace_error *error);

/* tracelib_files_find -- the files that paths stand for. 0, or -1 with *error filled. */
int tracelib_files_find(reader_files *f, const char *const *paths, size_t n, trace_error *error);

/* tracelib_files_passes -- whether a file that cannot be read is passed over; tracelib_files_trace -- file i, open; the traces of others that were open
 * may be closed. NULL with *error filled. */
int tracelib_files_passes(const reader_files *f, const trace_error *error);
trace *tracelib_files_trace(reader_files *f, size_t i, trace_error *error);

/* tracelib_files_note -- another line; 0, or -1 without memory. */
int tracelib_files_note(reader_files *f, const char *line);

void tracelib_files_clear(reader_files *f);
