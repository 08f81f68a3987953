/* gguf.c -- GGUF, versions 2 and 3, of either byte order: key-values, descriptions of tensors, padding, elements.
 *
 * Sources: the description of the format in ggml (docs/gguf.md), the package gguf 0.19.0, whose tables of types and of
 * the sizes of blocks these are; what llama.cpp's reader refuses (ggml/src/gguf.cpp) is refused here: arrays in arrays,
 * more than 4 dimensions, an alignment that is no power of two, names and keys twice, tensors that overlap or leave
 * gaps. The magic does not tell the byte order; that the version is below 65,536 does.
 *
 * Tensors of quantised types that sim/quant/ggml.c has a row for are read as the numbers that their blocks stand for; the
 * others are listed and their sizes checked. */
#include "gguf.h"

#include "../quant/ggml.h"
#include "../text/words.h"
#include "quantised.h"

#include <inttypes.h>
#include <string.h>

enum { DIMENSIONS = 4, ALIGNMENT = 32, INFO_MIN = 8 + 4 + 4 + 8, PAIR_MIN = 8 + 4 + 1, NEWEST = 3 };

typedef struct ggml_type {
    uint32_t code;
    const char *name;
    uint16_t block, bytes; /* elements and bytes of a block */
} ggml_type;

/* clang-format off */
static const ggml_type types[] = {
    { 0, "F32",       1,   4}, { 1, "F16",       1,   2}, { 2, "Q4_0",     32,  18}, { 3, "Q4_1",     32,  20},
    { 6, "Q5_0",     32,  22}, { 7, "Q5_1",     32,  24}, { 8, "Q8_0",     32,  34}, { 9, "Q8_1",     32,  40},
    {10, "Q2_K",    256,  84}, {11, "Q3_K",    256, 110}, {12, "Q4_K",    256, 144}, {13, "Q5_K",    256, 176},
    {14, "Q6_K",    256, 210}, {15, "Q8_K",    256, 292}, {16, "IQ2_XXS", 256,  66}, {17, "IQ2_XS",  256,  74},
    {18, "IQ3_XXS", 256,  98}, {19, "IQ1_S",   256,  50}, {20, "IQ4_NL",   32,  18}, {21, "IQ3_S",   256, 110},
    {22, "IQ2_S",   256,  82}, {23, "IQ4_XS",  256, 136}, {24, "I8",        1,   1}, {25, "I16",       1,   2},
    {26, "I32",       1,   4}, {27, "I64",       1,   8}, {28, "F64",       1,   8}, {29, "IQ1_M",   256,  56},
    {30, "BF16",      1,   2}, {34, "TQ1_0",   256,  54}, {35, "TQ2_0",   256,  66}, {39, "MXFP4",    32,  17},
    {40, "NVFP4",    64,  36}, {41, "Q1_0",    128,  18},
};
/* clang-format on */

static const ggml_type *type_of(uint64_t code)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].code == code)
            return &types[i];
    return NULL;
}

/* n elements from `first` on, whole blocks at a time. The file's byte order is that of its version. */
static int read_blocks(const trace *t, const trace_entry *e, uint64_t first, void *to, size_t n, trace_error *error)
{
    enum { ELEMENTS = 1 << 13, BYTES = 10 << 10 };
    _Alignas(16) unsigned char bytes[BYTES];
    float values[ELEMENTS], *out = to;
    const ggml_form *f = quant_ggml_form_find(e->tensor.dtype);
    const size_t most = ELEMENTS / f->block;
    while (n) {
        const uint64_t block = first / f->block;
        const size_t skip = (size_t)(first % f->block), need = (skip + n + f->block - 1) / f->block;
        const size_t blocks = need < most ? need : most;
        const size_t have = blocks * f->block - skip, m = n < have ? n : have;
        const ssize_t got = trace_file_pread(t, bytes, blocks * f->bytes, e->tensor.offset + block * f->bytes);
        if (got < 0 || (size_t)got < blocks * f->bytes)
            return trace_fail(t, error, e->tensor.offset + block * f->bytes, "the blocks of '%s' cannot be read",
                              e->tensor.name);
        quant_ggml_read(f, values, bytes, blocks, ((const quantised *)(const void *)e->tensor.quantised)->swizzled);
        memcpy(out, values + skip, m * sizeof *out);
        out += m;
        first += m;
        n -= m;
    }
    return 0;
}

/* The first, and the types of all. */
static void say_unread(trace *t, const trace_tensor *x)
{
    if (!*t->unread)
        snprintf(t->unread, sizeof t->unread, "'%.250s', and what is like it: blocks of %s", x->name, x->dtype);
    else if (!strstr(strstr(t->unread, "blocks of"), x->dtype))
        text_add(t->unread, sizeof t->unread, ", %s", x->dtype);
}

/* A tensor of blocks as the numbers that they stand for. */
static int take_blocks(gguf *g, trace_entry *e)
{
    trace_tensor *x = &e->tensor;
    const ggml_form *f = quant_ggml_form_find(x->dtype);
    quantised *q = f ? trace_alloc(g->t, sizeof *q) : NULL;
    if (!f && e->bytes != x->count && strchr(x->dtype, 'Q')) {
        say_unread(g->t, x);
        x->unread = "blocks that are not decoded";
    }
    if (!f || !q)
        return f ? trace_no_memory(g->t, g->error) : 0;
    *q = (quantised){.said = {.layout = "gguf",
                              .type = f->type,
                              .codes = f->element,
                              .scales = f->scale,
                              .block_rows = 1,
                              .block_cols = f->group,
                              .order = "plain",
                              .evidence = "type",
                              .bytes = e->bytes},
                     .swizzled = g->big};
    for (size_t i = 0; i < QUANTISED_PARTS; i++)
        q->parts[i] = QUANTISED_ABSENT;
    x->format = mpsim_format_find("binary32");
    x->big_endian = 0; /* read_blocks gives them as the host has them */
    x->quantised = &q->said;
    g->t->quantised = read_blocks;
    return 0;
}

/* Elements and bytes of a description whose shape is known. */
static int measure(gguf *g, trace_entry *e, const ggml_type *type)
{
    trace_tensor *x = &e->tensor;
    uint64_t bytes;
    if (trace_shape_bytes(x->shape, x->rank, 8, &x->count, &bytes))
        return trace_fail(g->t, g->error, e->at, "shape of tensor '%s' is too large", x->name);
    const uint64_t row = x->rank ? x->shape[x->rank - 1] : 1;
    if (row % type->block)
        return trace_fail(g->t, g->error, e->at,
                          "tensor '%s' has rows of %" PRIu64 " elements, which are not whole blocks of %s", x->name,
                          row, type->name);
    e->bytes = x->count / type->block * type->bytes;
    x->dtype = type->name;
    x->big_endian = g->big != 0;
    const trace_dtype *plain = trace_dtype_find(type->name);
    x->format = plain ? trace_dtype_format(plain, g->options) : NULL;
    if (x->format && mpsim_format_code_bytes(x->format) != type->bytes)
        return trace_fail(g->t, g->error, e->at, "elements of dtype %s cannot be codes of %s", type->name,
                          x->format->name);
    return x->format || (g->options->quantised && strcmp(g->options->quantised, "parts") == 0) ? 0 : take_blocks(g, e);
}

/* The description of a tensor; its offset is relative to the data for now. */
static int describe(gguf *g)
{
    uint64_t rank, code, n[DIMENSIONS];
    trace *t = g->t;
    trace_entry *e = trace_add(t, g->error);
    if (!e)
        return -1;
    e->at = g->at;
    e->tensor.name = trace_gguf_string(g, "the name of a tensor");
    if (!e->tensor.name || trace_gguf_number(g, 4, &rank))
        return -1;
    if (rank > DIMENSIONS)
        return trace_fail(t, g->error, e->at, "tensor '%s' has %" PRIu64 " dimensions, more than %d", e->tensor.name,
                          rank, DIMENSIONS);
    for (size_t i = 0; i < rank; i++)
        if (trace_gguf_number(g, 8, &n[i]))
            return -1;
    if (trace_gguf_number(g, 4, &code) || trace_gguf_number(g, 8, &e->tensor.offset))
        return -1;
    const ggml_type *type = type_of(code);
    if (!type)
        return trace_fail(t, g->error, e->at, "type %" PRIu64 " of tensor '%s' is not known", code, e->tensor.name);
    uint64_t *shape = trace_alloc(t, (size_t)rank * sizeof *shape);
    if (!shape)
        return trace_no_memory(t, g->error);
    for (size_t i = 0; i < rank; i++) /* the file begins with the dimension that runs fastest */
        shape[i] = n[rank - 1 - i];
    e->tensor.shape = shape;
    e->tensor.rank = (size_t)rank;
    return measure(g, e, type);
}

static uint64_t aligned(uint64_t at, uint64_t alignment)
{
    return (at + alignment - 1) & ~(alignment - 1);
}

/* Names, and places: every tensor begins where the one before it, padded, ends. */
static int check_places(gguf *g)
{
    trace *t = g->t;
    const uint64_t data = aligned(g->at, g->alignment);
    uint64_t end = data, next = data;
    int failed = 0;
    const char *const *twice = NULL;
    if (t->count)
        twice = trace_duplicate(&t->entries[0].tensor.name, t->count, sizeof *t->entries, &failed);
    if (twice)
        return trace_fail(t, g->error, trace_entry_named(twice)->at, "two tensors have the name '%s'", *twice);
    if (!failed && t->n_metadata)
        twice = trace_duplicate(t->metadata, t->n_metadata, 2 * sizeof *t->metadata, &failed);
    if (!failed && twice)
        return trace_fail(t, g->error, TRACE_NO_OFFSET, "key '%s' occurs twice", *twice);
    for (size_t i = 0; i < t->count; i++) {
        trace_entry *e = &t->entries[i];
        if (data > t->size || e->tensor.offset > t->size - data || e->bytes > t->size - data - e->tensor.offset)
            return trace_fail(t, g->error, e->at,
                              "tensor '%s' of %" PRIu64 " bytes at %" PRIu64 " of the data ends "
                              "past the file's %" PRIu64 " bytes",
                              e->tensor.name, e->bytes, e->tensor.offset, t->size);
        e->tensor.offset += data;
    }
    if (failed || trace_order(t))
        return trace_no_memory(t, g->error);
    for (size_t i = 0; i < t->count; i++) {
        const trace_entry *e = &t->entries[i];
        if (e->tensor.offset != next)
            return trace_fail(t, g->error, e->at,
                              "tensor '%s' begins at %" PRIu64 " of the data, not at %" PRIu64
                              ", where the previous one, padded to %" PRIu64 " bytes, ends",
                              e->tensor.name, e->tensor.offset - data, next - data, g->alignment);
        end = e->tensor.offset + e->bytes;
        next = aligned(end, g->alignment);
    }
    if (next < t->size)
        return trace_fail(t, g->error, end, "%" PRIu64 " bytes after the last tensor", t->size - end);
    return 0;
}

static int check_version(gguf *g)
{
    uint64_t version, said;
    if (trace_gguf_skip(g, 4) || trace_gguf_number(g, 4, &said))
        return -1;
    version = said;
    if ((version & 0xffff) == 0) {
        version = (version >> 24 & 0xff) | (version >> 8 & 0xff00); /* what the two low bytes are then */
        g->big = version <= NEWEST;
        version = g->big ? version : said;
    }
    if (version == 2 || version == 3)
        return 0;
    return trace_fail(g->t, g->error, 4, "GGUF version %" PRIu64 " is not known%s", version,
                      version == 1 ? ": convert the file anew" : "");
}

static int open_gguf(trace *t, const trace_options *options, trace_error *error)
{
    gguf g = {.t = t, .options = options, .error = error, .alignment = ALIGNMENT, .room = t->max_header};
    uint64_t tensors, pairs;
    if (check_version(&g) || trace_gguf_number(&g, 8, &tensors) || trace_gguf_number(&g, 8, &pairs))
        return -1;
    if (tensors > (t->size - g.at) / INFO_MIN)
        return trace_fail(t, error, 8, "%" PRIu64 " tensors, but the file has %" PRIu64 " bytes", tensors, t->size);
    if (pairs > (t->size - g.at) / PAIR_MIN)
        return trace_fail(t, error, 16, "%" PRIu64 " keys, but the file has %" PRIu64 " bytes", pairs, t->size);
    for (uint64_t i = 0; i < pairs; i++)
        if (trace_gguf_pair(&g))
            return -1;
    for (uint64_t i = 0; i < tensors; i++)
        if (describe(&g))
            return -1;
    return check_places(&g);
}

const trace_layout_type trace_layout_gguf = {.name = "gguf", .open = open_gguf};
