/* copy.c -- tensors as they lie in a file, for who copies them: see trace.h.
 *
 * The names of element types that layouts have for what safetensors has, too: NumPy's and PyTorch's. What has no row
 * (complex128, strings, packed integers of a few bits) cannot be copied. */
#include "quantised.h"

#include <string.h>

static const struct {
    const char *dtype, *name;
} names[] = {
    {"int64", "I64"},  {"int32", "I32"},  {"int16", "I16"}, {"int8", "I8"},   {"uint64", "U64"},
    {"uint32", "U32"}, {"uint16", "U16"}, {"uint8", "U8"},  {"bool", "BOOL"}, {"complex64", "C64"},
    {"i8", "I64"},     {"i4", "I32"},     {"i2", "I16"},    {"i1", "I8"},     {"u8", "U64"},
    {"u4", "U32"},     {"u2", "U16"},     {"u1", "U8"},     {"b1", "BOOL"},
};

const char *trace_copy_dtype(const trace_tensor *x)
{
    const char *plain = x->format ? trace_safetensors_dtype(x->format) : NULL;
    if (x->format)
        return plain ? plain : trace_packed_dtype(x->format);
    const trace_dtype *own = trace_dtype_find(x->dtype);
    const char *dtype = x->dtype + (x->dtype[0] && strchr("<>|=", x->dtype[0]));
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !own; i++)
        if (strcmp(names[i].dtype, dtype) == 0)
            return names[i].name;
    return own ? own->name : NULL;
}

int trace_integers(const trace_tensor *x, int *is_signed)
{
    static const char *const words[] = {"I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "BOOL"};
    const char *dtype = x->format ? NULL : trace_copy_dtype(x);
    for (size_t i = 0; dtype && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i], dtype) == 0) {
            *is_signed = dtype[0] == 'I';
            return 1;
        }
    return 0;
}

static void describe(const trace *t, size_t entry, trace_copy *c)
{
    const trace_entry *e = &t->entries[entry];
    *c = (trace_copy){.tensor = e->tensor, .entry = entry, .width = trace_width(e)};
    c->units = e->tensor.format ? e->tensor.count : e->bytes / c->width;
    c->tensor.dtype = e->tensor.format || !(t->type->only_numbers || e->nowhere || e->coded)
                          ? trace_copy_dtype(&e->tensor)
                          : NULL;
    c->packed = trace_packed_dtype(e->tensor.format) ? e->tensor.format : NULL;
    if (c->packed) {
        c->units = (c->units * trace_code_bits(c->packed) + 7) / 8;
        c->tensor.format = NULL;
    }
}

/* The bytes of an entry: in units where these have a byte order, or are not one run of the file. */
static int describe_stored(const trace *t, size_t entry, trace_copy *c)
{
    const trace_entry *e = &t->entries[entry];
    int is_signed;
    if (e->nowhere || (!e->tensor.format && t->type->only_numbers))
        return 0;
    describe(t, entry, c);
    c->tensor.dtype = e->tensor.dtype;
    c->raw = e->tensor.quantised || e->coded ||
             !(e->tensor.format || t->type->codes || trace_integers(&e->tensor, &is_signed));
    if (c->raw) {
        c->width = 1;
        c->units = e->tensor.quantised ? e->tensor.quantised->bytes : e->bytes;
    }
    return 1;
}

size_t trace_copies(const trace *t, size_t i, trace_copy *to)
{
    const quantised *q = (const quantised *)(const void *)t->entries[i].tensor.quantised;
    size_t n = 0;
    int whole = 0;
    for (int p = 0; p < QUANTISED_PARTS && q; p++)
        if (q->parts[p] != QUANTISED_ABSENT) {
            describe(t, q->parts[p], &to[n]);
            whole |= !to[n++].tensor.dtype;
        }
    if (n && !whole)
        return n;
    describe(t, i, &to[0]);
    return to[0].tensor.dtype ? 1 : 0;
}

/* Bytes of packed codes, whatever lies in the file: four codes are two or three of them. */
static int copy_packed(const trace *t, const trace_copy *c, uint64_t first, unsigned char *to, size_t n,
                       trace_error *error)
{
    enum { GROUP = 4, CODES = 16 << 10 };
    unsigned char codes[CODES], bytes[CODES];
    const trace_entry *e = &t->entries[c->entry];
    const size_t group = GROUP * trace_code_bits(c->packed) / 8;
    while (n) {
        const uint64_t code = first / group * GROUP, left = e->tensor.count - code;
        const size_t skip = first % group, m = left < CODES ? (size_t)left : CODES;
        if (trace_stored(t, e, code, codes, m, error))
            return -1;
        const size_t made = trace_pack(c->packed, bytes, codes, m) - skip, taken = made < n ? made : n;
        memcpy(to, bytes + skip, taken);
        first += taken;
        to += taken;
        n -= taken;
    }
    return 0;
}

size_t trace_stored_as(const trace *t, size_t i, trace_copy *to)
{
    const quantised *q = (const quantised *)(const void *)t->entries[i].tensor.quantised;
    size_t n = 0;
    for (int p = 0; p < QUANTISED_PARTS && q; p++)
        if (q->parts[p] != QUANTISED_ABSENT && !describe_stored(t, q->parts[p], &to[n++]))
            return 0;
    return n ? n : describe_stored(t, i, &to[0]) ? 1 : 0;
}

const trace_tensor *trace_loose(const trace *t, size_t i, size_t *at)
{
    for (i = i < t->count ? t->count : i; i < t->count + t->hidden; i++)
        if (t->entries[i].loose) {
            *at = i;
            return &t->entries[i].tensor;
        }
    return NULL;
}

/* The next bytes of an entry, as they lie. */
static int raw_bytes(trace *t, const trace_copy *c, uint64_t first, void *bytes, size_t n, trace_error *error)
{
    if ((first == 0 && trace_select_stored(t, c->entry, error)) || trace_bytes(t, bytes, n, error))
        return -1;
    return first + n == c->units && t->type->finish ? t->type->finish(t, error) : 0;
}

int trace_copy_units(trace *t, const trace_copy *c, uint64_t first, void *units, size_t n, trace_error *error)
{
    const trace_entry *e = &t->entries[c->entry];
    size_t got;
    if (first > c->units || n > c->units - first)
        return trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%s' has no such elements", e->tensor.name);
    if (c->packed)
        return copy_packed(t, c, first, units, n, error);
    if (c->raw)
        return raw_bytes(t, c, first, units, n, error);
    if (trace_is_flat(t)
            ? trace_stored(t, e, first, units, n, error)
            : (first == 0 && trace_select_stored(t, c->entry, error)) || trace_read_codes(t, units, n, &got, error))
        return -1;
    trace_to_little_endian(units, c->width, n);
    return 0;
}
