/* protowalk.h -- the fields of a protobuf message, walked through in their order (onnx.c). Source: the encoding of protobuf. */
#pragma once

#include "bytewalk.h"

enum { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2, PROTO_FIXED32 = 5 };

typedef struct proto_field {
    uint64_t number, value; /* value: of a varint; or the bytes of what follows */
    unsigned wire;
    uint64_t end; /* of it */
} proto_field;

/* trace_proto_next -- the next field before `end`, whose content is not read yet, but that of a varint; w->at is where it begins. 0, or -1
 * with *w->error filled. */
int trace_proto_next(bytewalk *w, uint64_t end, proto_field *f);
