/* chunks.h -- arrays that Flax has written in pieces (msgpack.c): {CHUNKS_KEY: true, "shape": {"0": side, ...}, "chunks": {"0": array of one
 * dimension, "1": ...}}. Source: flax/serialization.py (flax 0.10), _chunk. */
#pragma once

#include "impl.h"

#define CHUNKS_KEY "__msgpack_chunked_array__"

/* trace_chunks_join -- the map at `path` was read: what was added of entries and of metadata from these numbers on is one array. 0, or -1 with
 * *error filled. */
int trace_chunks_join(trace *t, const char *path, size_t entries, size_t pairs, trace_error *error);
/* `codes` and `close` of such a layout. */
int trace_chunks_codes(const trace *t, const trace_entry *e, uint64_t first, void *codes, size_t n, trace_error *error);
void trace_chunks_close(trace *t);
