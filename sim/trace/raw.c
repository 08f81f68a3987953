/* raw.c -- elements without a header: the caller says what they are. */
#include "impl.h"

#include <inttypes.h>
#include <string.h>

/* The sides of the shape, where one is left to the file with what it has: `left` bytes. Fills count and bytes of e, too. */
static int measure(uint64_t *sides, trace *t, trace_entry *e, const uint64_t *shape, size_t rank, uint64_t left,
                   const mpsim_format *f, trace_error *error)
{
    const unsigned bits = (unsigned)mpsim_format_code_bytes(f) * 8;
    size_t rest = rank; /* none */
    for (size_t i = 0; i < rank; i++) {
        sides[i] = shape[i] == TRACE_RAW_REST ? 1 : shape[i];
        if (shape[i] == TRACE_RAW_REST && rest < rank)
            return trace_fail(t, error, TRACE_NO_OFFSET, "the shape leaves more than one dimension to the file");
        rest = shape[i] == TRACE_RAW_REST ? i : rest;
    }
    int bad = trace_shape_bytes(sides, rank, bits, &e->tensor.count, &e->bytes);
    if (!bad && rest < rank && e->bytes && left % e->bytes == 0) {
        sides[rest] = left / e->bytes;
        bad = trace_shape_bytes(sides, rank, bits, &e->tensor.count, &e->bytes);
    }
    return bad ? trace_fail(t, error, TRACE_NO_OFFSET, "the shape is too large") : 0;
}

static int open_raw(trace *t, const trace_options *o, trace_error *error)
{
    const mpsim_format *f = o->raw_format;
    const unsigned width = (unsigned)mpsim_format_code_bytes(f);
    uint64_t left, dimension, sides[TRACE_RANK_MAX];
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
    if (measure(sides, t, e, shape, rank, left, f, error))
        return -1;
    if (e->bytes != left)
        return trace_fail(t, error, o->raw_offset, "the shape needs %" PRIu64 " bytes of %s, there are %" PRIu64,
                          e->bytes, f->name, left);

    uint64_t *copy = trace_alloc(t, rank * sizeof *copy);
    char *name = trace_string(t, f->name, strlen(f->name));
    if (!copy || !name)
        return trace_no_memory(t, error);
    if (rank)
        memcpy(copy, sides, rank * sizeof *copy);
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
