/* bytewalk.h -- a file walked through from its begin to its end, by small pieces: for layouts whose directory is all over
 * it (msgpack.c, onnx*.c). Nothing is read beyond an end that the caller gives. */
#pragma once

#include "impl.h"

typedef struct bytewalk {
    trace *t;
    trace_error *error;
    uint64_t at;    /* what follows next           */
    uint64_t begin; /* of what is in the buffer    */
    size_t fill;
    unsigned char buffer[4096];
} bytewalk;

/* All: 0, or -1 with *w->error filled: too little is left before `end`. */

int trace_walk_take(bytewalk *w, uint64_t end, void *to, size_t n);
int trace_walk_skip(bytewalk *w, uint64_t end, uint64_t n);
/* trace_walk_number -- an unsigned integer of so many bytes, the highest first. */
int trace_walk_number(bytewalk *w, uint64_t end, unsigned bytes, uint64_t *u);
/* trace_walk_varint -- seven bits in a byte, the lowest first, as protobuf has them. */
int trace_walk_varint(bytewalk *w, uint64_t end, uint64_t *u);
/* trace_walk_text -- n bytes as a string of the trace, escaped where they are not UTF-8 or hold NULs; NULL: failed. */
const char *trace_walk_text(bytewalk *w, uint64_t end, uint64_t n);
