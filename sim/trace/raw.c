/* raw.c -- elements without a header: the caller says what they are. */
#include "impl.h"

#include <inttypes.h>
#include <string.h>

static int open_raw(trace *t, const trace_options *o, trace_error *error)
{
    const mpsim_format *f = o->raw_format;
    const unsigned width = (unsigned)mpsim_format_code_bytes(f);
    uint64_t left, dimension;
    trace_entry *e = trace_add(t, error);
    if (!e)
        return -1;
    if (o->raw_offset > t->size)
        return trace_fail(t, error, TRACE_NO_OFFSET,
                          "the offset %" PRIu64 " is past the end; the file has %" PRIu64 " bytes", o->raw_offset,
                          t->size);
    left = t->size - o->raw_offset;
    dimension = left / width;

    const int whole = !o->raw_shape && !o->raw_rank;
    const uint64_t *shape = whole ? &dimension : o->raw_shape;
    const size_t rank = whole ? 1 : o->raw_rank;
    if (whole && left % width)
        return trace_fail(t, error, o->raw_offset, "%" PRIu64 " bytes are not a whole number of %s elements", left,
                          f->name);
    if (rank > TRACE_RANK_MAX)
        return trace_fail(t, error, TRACE_NO_OFFSET, "more than %d dimensions", TRACE_RANK_MAX);
    if (trace_shape_bytes(shape, rank, width * 8, &e->tensor.count, &e->bytes))
        return trace_fail(t, error, TRACE_NO_OFFSET, "the shape is too large");
    if (e->bytes != left)
        return trace_fail(t, error, o->raw_offset, "the shape needs %" PRIu64 " bytes of %s, there are %" PRIu64,
                          e->bytes, f->name, left);

    uint64_t *copy = trace_alloc(t, rank * sizeof *copy);
    char *name = trace_string(t, f->name, strlen(f->name));
    if (!copy || !name)
        return trace_no_memory(t, error);
    if (rank)
        memcpy(copy, shape, rank * sizeof *copy);
    e->tensor.name = "";
    e->tensor.dtype = name;
    e->tensor.format = f;
    e->tensor.shape = copy;
    e->tensor.rank = rank;
    e->tensor.offset = o->raw_offset;
    e->tensor.big_endian = o->raw_big_endian != 0;
    return 0;
}

const trace_layout_type trace_layout_raw = {.name = "raw", .open = open_raw};
