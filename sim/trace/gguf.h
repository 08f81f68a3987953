/* gguf.h -- the head of a GGUF file, read once from its begin to its end; of gguf.c, in ggufhead.c. */
#pragma once

#include "impl.h"

typedef struct gguf {
    trace *t;
    const trace_options *options;
    trace_error *error;
    int big;            /* big-endian                                  */
    uint64_t alignment; /* of the data of tensors                      */
    uint64_t room;      /* bytes of names and values that may be kept  */
    uint64_t at;        /* what follows next                           */
    size_t fill, used;  /* of the buffer, which ends at t->at          */
    unsigned char buffer[4096];
} gguf;

/* All: 0, or -1 with *g->error filled. */

int trace_gguf_skip(gguf *g, uint64_t n);
/* trace_gguf_number -- an unsigned integer of so many bytes. */
int trace_gguf_number(gguf *g, unsigned bytes, uint64_t *u);
/* trace_gguf_string -- UTF-8 without NUL, kept with the trace; NULL: failed. */
const char *trace_gguf_string(gguf *g, const char *what);
/* trace_gguf_pair -- a key and its value, which become metadata. */
int trace_gguf_pair(gguf *g);
