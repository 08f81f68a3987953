/* protowalk.c -- see protowalk.h. */
#include "protowalk.h"

#include <inttypes.h>

int trace_proto_next(bytewalk *w, uint64_t end, proto_field *f)
{
    uint64_t key;
    if (trace_walk_varint(w, end, &key))
        return -1;
    f->number = key >> 3;
    f->wire = key & 7;
    f->value = f->wire == PROTO_FIXED64 ? 8 : f->wire == PROTO_FIXED32 ? 4 : 0;
    const int has_number = f->wire == PROTO_VARINT || f->wire == PROTO_BYTES;
    if (!has_number && !f->value)
        return trace_fail(w->t, w->error, w->at, "field %" PRIu64 " has wire type %u, which ONNX does not use",
                          f->number, f->wire);
    if (has_number && trace_walk_varint(w, end, &f->value))
        return -1;
    const uint64_t n = f->wire == PROTO_VARINT ? 0 : f->value;
    if (n > end - w->at)
        return trace_fail(w->t, w->error, w->at, "field %" PRIu64 " of %" PRIu64 " bytes ends past its message",
                          f->number, n);
    f->end = w->at + n;
    return 0;
}
