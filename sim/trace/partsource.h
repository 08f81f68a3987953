/* partsource.h -- the files, or sections of files, that the parts of a trace are in (parts.c): they are opened when
 * they are needed, from any thread, and the one that nobody has read for longest is closed when too many are. */
#pragma once

#include "impl.h"

typedef struct part_sources part_sources;

part_sources *trace_part_sources_new(trace *t, const trace_options *options, trace_error *error);
void trace_part_sources_free(part_sources *s); /* accepts NULL */

/* As trace_parts_add, trace_parts_use and trace_parts_leave (parts.h). */
int trace_part_sources_add(part_sources *s, const char *path, uint64_t at, uint64_t bytes, uint32_t *number,
                           trace_error *error);
trace *trace_part_sources_use(part_sources *s, uint32_t number, trace_error *error);
void trace_part_sources_leave(part_sources *s, uint32_t number);
const char *trace_part_sources_path(const part_sources *s, uint32_t number);

/* trace_part_grow -- room for one more in an array of n, which counts as memory of t. */
int trace_part_grow(trace *t, void **array, size_t n, size_t *room, size_t size, trace_error *error);
