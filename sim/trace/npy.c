/* npy.c -- numpy's array files, versions 1 to 3. Source: numpy.lib.format. */
#include "impl.h"

#include "../array/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* An array of texts, objects, dates: refused, but an archive lists it, and its bytes can be compared. Always -1. */
static int no_numbers(trace *t, const npy_header *h, const char *dtype, uint64_t at, uint64_t size, trace_entry *entry,
                      trace_error *error)
{
    trace_tensor *x = &entry->tensor;
    uint64_t bytes, *shape = trace_alloc(t, h->rank * sizeof *shape);
    t->not_numbers = 0;
    if (!shape)
        return trace_no_memory(t, error);
    if (trace_shape_bytes(h->shape, h->rank, 8, &x->count, &bytes))
        return -1;
    t->not_numbers = 1;
    memcpy(shape, h->shape, h->rank * sizeof *shape);
    x->dtype = dtype;
    x->shape = shape;
    x->rank = h->rank;
    x->offset = at;
    entry->bytes = size - at;
    entry->coded = 1;
    return -1;
}

/* What elements of V1 and V2 are, where our writer said so and the caller says nothing. */
static int assume(trace *t, trace_options *o, const npy_header *h, uint64_t at, trace_error *error)
{
    const mpsim_format *f = mpsim_format_find(h->holds);
    if (!h->holds[0])
        return 0;
    if (!f) {
        mpsim_format *own = trace_alloc(t, sizeof *own);
        if (!own)
            return trace_no_memory(t, error);
        if (mpsim_format_parse(own, h->holds) != MPSIM_OK)
            return trace_fail(t, error, at, "npy header is not valid: '# mpsim: %s' names no format", h->holds);
        f = own;
    }
    o->assume_v1 = o->assume_v1 ? o->assume_v1 : f;
    o->assume_v2 = o->assume_v2 ? o->assume_v2 : f;
    return 0;
}

/* The dict; `at` is where it begins. */
static int describe(trace *t, const char *text, size_t n, uint64_t at, uint64_t size, const trace_options *options,
                    trace_entry *entry, trace_error *error)
{
    npy_header h;
    size_t bad;
    unsigned bits = 0;
    trace_tensor *x = &entry->tensor;
    const char *why = trace_npy_header_parse(&h, text, n, &bad);
    if (why)
        t->not_numbers = strncmp(why, "a structured dtype", 18) == 0;
    if (why)
        trace_fail(t, error, at + bad, "npy header is not valid: %s", why);
    if (why)
        return t->not_numbers ? no_numbers(t, &(npy_header){.rank = 0}, "structured", at + n, size, entry, error) : -1;
    trace_options said = *options;
    if (assume(t, &said, &h, at, error))
        return -1;
    if (trace_npy_dtype(t, h.descr, at + h.descr_at, &said, x, &bits, error))
        return t->not_numbers ? no_numbers(t, &h, x->dtype, at + n, size, entry, error) : -1;
    if (trace_shape_bytes(h.shape, h.rank, bits, &x->count, &entry->bytes))
        return trace_fail(t, error, at + h.shape_at, "the shape is too large");
    uint64_t *shape = trace_alloc(t, h.rank * sizeof *shape);
    if (!shape)
        return trace_no_memory(t, error);
    memcpy(shape, h.shape, h.rank * sizeof *shape);
    x->shape = shape;
    x->rank = h.rank;
    x->fortran = h.fortran != 0;
    x->offset = at + n;
    if (entry->bytes != size - x->offset)
        return trace_fail(t, error, x->offset, "the header promises %" PRIu64 " bytes of data, there are %" PRIu64,
                          entry->bytes, size - x->offset);
    return 0;
}

int trace_npy_entry(trace *t, uint64_t size, const trace_options *options, trace_entry *entry, uint64_t *header_bytes,
                    trace_error *error)
{
    unsigned char p[12];
    t->not_numbers = 0;
    if (size < 10)
        return trace_fail(t, error, 0, "%" PRIu64 " bytes are too few for an npy file", size);
    if (trace_bytes(t, p, 10, error))
        return -1;
    if (memcmp(p, "\x93NUMPY", 6) != 0)
        return trace_fail(t, error, 0, "not an npy file: wrong magic");
    if (p[6] < 1 || p[6] > 3 || p[7] != 0)
        return trace_fail(t, error, 6, "npy version %d.%d is not known", p[6], p[7]);
    uint64_t n = p[8] | (uint64_t)p[9] << 8, at = 10;
    if (p[6] > 1) {
        if (size < 12)
            return trace_fail(t, error, 0, "%" PRIu64 " bytes are too few for an npy file", size);
        if (trace_bytes(t, p + 10, 2, error))
            return -1;
        n |= (uint64_t)p[10] << 16 | (uint64_t)p[11] << 24;
        at = 12;
    }
    if (n > t->max_header)
        return trace_fail(t, error, 8, "header length %" PRIu64 " is above the cap of %" PRIu64, n, t->max_header);
    if (n > size - at)
        return trace_fail(t, error, 8, "header length %" PRIu64 ", but the file has %" PRIu64 " bytes", n, size);
    char *text = array_memory(n, 1);
    if (!text)
        return trace_no_memory(t, error);
    const int bad = trace_bytes(t, text, (size_t)n, error) ||
                    describe(t, text, (size_t)n, at, size, options, entry, error);
    free(text);
    *header_bytes = at + n;
    return bad ? -1 : 0;
}

static int open_npy(trace *t, const trace_options *options, trace_error *error)
{
    uint64_t header;
    trace_entry *e = trace_add(t, error);
    if (!e)
        return -1;
    e->tensor.name = "";
    return trace_npy_entry(t, t->size, options, e, &header, error);
}

const trace_layout_type trace_layout_npy = {.name = "npy", .open = open_npy};
