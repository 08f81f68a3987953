/* tensors.h -- the tensors of a file, cast on all threads and written in their order. */
#pragma once

#include "contents.h"
#include "convert.h"

typedef struct caster {
    const target *to;
    const mpsim_format *out; /* what is written: the target's format, or a wider one */
    uint64_t seed;
    int npy;             /* column-major tensors stay so; a byte for each code of few bits */
    int counted;         /* counts are wanted                       */
    mpsim_counts counts; /* of what was written                     */
} caster;

/* cast_caster_write -- n tensors of t, cast or copied, are the data of w. 0, or -1 with *error filled. */
int cast_caster_write(caster *c, trace *t, const content *all, size_t n, trace_writer *w, trace_error *error);
