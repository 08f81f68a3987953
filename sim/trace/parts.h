/* parts.h -- what the layouts share whose tensors are in pieces in other files (shards.c, zero.c, distcp.c).
 *
 * Such a trace has sources: files, or sections of files, which are traces of their own. A tensor is made of
 * pieces, each a run of its elements or a box of them, and each (a part of) one tensor of a source. Sources are
 * opened when they are needed and closed when too many are open: memory and descriptors stay bounded however
 * many there are. A source that says something else when it is opened again is an error.
 *
 * What the pieces cover is checked at the start, what a file holds when it is opened. A part has no parts. A folder
 * is such a trace by the names in it (folder.c). */
#pragma once

#include "impl.h"

#define PARTS_ONLY UINT32_MAX /* as entry of a piece: the only tensor of its source, which nobody has looked at yet */

/* trace_parts_begin -- t becomes a trace of parts; sources are read as `options` say. */
int trace_parts_begin(trace *t, const trace_options *options, trace_error *error);
void trace_parts_close(trace *t);

/* trace_parts_beside -- a path beside that of t, or in it if it is a directory: trace_alloc'ed, NULL without memory. */
const char *trace_parts_beside(trace *t, const char *name);

/* trace_parts_add -- a new source: `bytes` bytes of a file from `at` on, or all of it (0, 0). Its number in *source; the
 * path lives as long as t. What is not opened at once, an input (inputs.h) has to be made of. */
int trace_parts_add(trace *t, const char *path, uint64_t at, uint64_t bytes, uint32_t *source, trace_error *error);
/* trace_parts_use -- the trace of a source until trace_parts_leave; from any thread. NULL with *error filled. */
trace *trace_parts_use(const trace *t, uint32_t source, trace_error *error);
void trace_parts_leave(const trace *t, uint32_t source);

/* trace_parts_tensor -- a new tensor with the shape of `like` (rank, shape), its dtype and format; what is added next
 * are its pieces. The name lives as long as t. */
trace_entry *trace_parts_tensor(trace *t, const char *name, const trace_tensor *like, trace_error *error);
/* trace_parts_run -- elements [begin, end) of that tensor are those from `first` on of tensor `entry` of a source. */
int trace_parts_run(trace *t, uint32_t source, uint32_t entry, uint64_t first, uint64_t begin, uint64_t end,
                    trace_error *error);
/* trace_parts_box -- a box of that tensor, within it, is tensor `entry` of a source. */
int trace_parts_box(trace *t, uint32_t source, uint32_t entry, const uint64_t *offset, const uint64_t *size,
                    trace_error *error);
/* trace_parts_whole -- after its last piece: the tensor is there, each element once. */
int trace_parts_whole(trace *t, trace_error *error);
/* trace_parts_names -- after the last tensor: no name twice. */
int trace_parts_names(const trace *t, trace_error *error);

/* trace_parts_codes -- `codes` of such layouts. */
int trace_parts_codes(const trace *t, const trace_entry *entry, uint64_t first, void *codes, size_t n,
                      trace_error *error);

/* trace_parts_file -- `file` of such layouts: that of the first piece. */
const char *trace_parts_file(const trace *t, const trace_entry *entry);

/* trace_parts_metadata -- key and value are copied. */
int trace_parts_metadata(trace *t, const char *key, const char *value, trace_error *error);
