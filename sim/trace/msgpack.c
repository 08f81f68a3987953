/* msgpack.c -- checkpoints of Flax: one MessagePack map of maps, whose leaves are arrays.
 *
 * An array is an extension of type 1: a packed triple of shape, name of the dtype, bytes in C order; of type 3: the same, a
 * scalar. Lists are maps with "0", "1", ... for keys. An array above 1 GiB is a map of its pieces (chunks.h), which are joined. Names
 * are the paths of keys, joined by '/'; numbers and texts on the way are metadata.
 * Sources: the specification of MessagePack; flax/serialization.py (flax 0.10). */
#include "bytewalk.h"
#include "chunks.h"

#include "../text/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 64, PATH_MAX_BYTES = 4096, ARRAY = 1, SCALAR = 3 };

typedef struct flax {
    bytewalk w;
    trace *t;
    const trace_options *options;
    uint64_t end;
    char path[PATH_MAX_BYTES];
    uint64_t other; /* extensions that are no arrays */
} flax;

/* What begins at a byte: of variable ones the length follows, in so many bytes. */
typedef enum token_kind { NIL, BOOLEAN, UNSIGNED, SIGNED, REAL, TEXT, BINARY, LIST, MAP, EXTENSION, NEVER } token_kind;

typedef struct token {
    token_kind kind;
    uint64_t n; /* a number; or the length of what follows */
    double real;
    uint8_t type; /* of an extension */
} token;

/* Rows from 0xc0: kind, bytes of the number or the length, a fixed length. */
static const struct {
    uint8_t kind, bytes, fixed;
} rows[] = {
    {NIL, 0, 0},        {NEVER, 0, 0},     {BOOLEAN, 0, 0},   {BOOLEAN, 0, 0},   {BINARY, 1, 0},    {BINARY, 2, 0},
    {BINARY, 4, 0},     {EXTENSION, 1, 0}, {EXTENSION, 2, 0}, {EXTENSION, 4, 0}, {REAL, 4, 0},      {REAL, 8, 0},
    {UNSIGNED, 1, 0},   {UNSIGNED, 2, 0},  {UNSIGNED, 4, 0},  {UNSIGNED, 8, 0},  {SIGNED, 1, 0},    {SIGNED, 2, 0},
    {SIGNED, 4, 0},     {SIGNED, 8, 0},    {EXTENSION, 0, 1}, {EXTENSION, 0, 2}, {EXTENSION, 0, 4}, {EXTENSION, 0, 8},
    {EXTENSION, 0, 16}, {TEXT, 1, 0},      {TEXT, 2, 0},      {TEXT, 4, 0},      {LIST, 2, 0},      {LIST, 4, 0},
    {MAP, 2, 0},        {MAP, 4, 0},
};

static void set_real(token *k, unsigned bytes)
{
    const uint32_t narrow = (uint32_t)k->n;
    float f;
    memcpy(&f, &narrow, sizeof f);
    memcpy(&k->real, &k->n, sizeof k->real);
    k->real = bytes == 4 ? (double)f : k->real;
}

static int next(flax *x, uint64_t end, token *k)
{
    unsigned char c;
    uint64_t type = 0;
    if (trace_walk_take(&x->w, end, &c, 1))
        return -1;
    *k = (token){.kind = c < 0x80 ? UNSIGNED : c < 0x90 ? MAP : c < 0xa0 ? LIST : TEXT, .n = c};
    if (c < 0x80)
        return 0;
    k->n = c < 0xa0 ? c & 15 : c & 31;
    if (c < 0xc0)
        return 0;
    if (c >= 0xe0) {
        *k = (token){.kind = SIGNED, .n = (uint64_t)(int64_t)(int8_t)c};
        return 0;
    }
    const unsigned row = c - 0xc0u, bytes = rows[row].bytes;
    k->kind = (token_kind)rows[row].kind;
    k->n = rows[row].fixed;
    if (bytes && trace_walk_number(&x->w, end, bytes, &k->n))
        return -1;
    if (k->kind == BOOLEAN)
        k->n = c & 1;
    if (k->kind == SIGNED)
        k->n = (uint64_t)((int64_t)(k->n << (64 - 8 * bytes)) >> (64 - 8 * bytes));
    if (k->kind == REAL)
        set_real(k, bytes);
    if (k->kind == EXTENSION && trace_walk_number(&x->w, end, 1, &type))
        return -1;
    k->type = (uint8_t)type;
    return k->kind == NEVER ? trace_fail(x->t, x->w.error, x->w.at - 1, "byte 0x%02x begins no value of MessagePack", c)
                            : 0;
}

/* ---- arrays ---- */

/* NumPy's descr of a dtype that is named, for trace_npy_dtype: names of floating-point ones are formats there. */
static const char *descr_of(const char *name)
{
    static const char *const names[][2] = {{"float64", "<f8"}, {"float32", "<f4"}, {"float16", "<f2"},
                                           {"int64", "<i8"},   {"int32", "<i4"},   {"int16", "<i2"},
                                           {"int8", "|i1"},    {"uint64", "<u8"},  {"uint32", "<u4"},
                                           {"uint16", "<u2"},  {"uint8", "|u1"},   {"bool", "|b1"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i][0], name) == 0)
            return names[i][1];
    return name;
}

static int expect(flax *x, uint64_t end, token_kind kind, token *k, const char *what)
{
    const uint64_t at = x->w.at;
    if (next(x, end, k))
        return -1;
    return k->kind == kind
               ? 0
               : trace_fail(x->t, x->w.error, at, "array '%s' has no %s where one is expected", x->path, what);
}

static int take_shape(flax *x, uint64_t end, trace_entry *e)
{
    token k;
    if (expect(x, end, LIST, &k, "shape"))
        return -1;
    if (k.n > TRACE_RANK_MAX)
        return trace_fail(x->t, x->w.error, x->w.at, "array '%s' has %" PRIu64 " dimensions", x->path, k.n);
    uint64_t *shape = trace_alloc(x->t, (size_t)k.n * sizeof *shape);
    if (!shape)
        return trace_no_memory(x->t, x->w.error);
    e->tensor.rank = (size_t)k.n;
    e->tensor.shape = shape;
    for (size_t i = 0; i < e->tensor.rank; i++) {
        if (expect(x, end, UNSIGNED, &k, "side"))
            return -1;
        shape[i] = k.n;
    }
    return 0;
}

/* The triple of shape, dtype and bytes, which ends at `end`. */
static int take_array(flax *x, uint64_t end)
{
    token k;
    unsigned bits = 0;
    trace_entry *e = trace_add(x->t, x->w.error);
    if (!e || !(e->tensor.name = trace_string(x->t, x->path, strlen(x->path))))
        return e ? trace_no_memory(x->t, x->w.error) : -1;
    if (expect(x, end, LIST, &k, "triple") || take_shape(x, end, e) || expect(x, end, TEXT, &k, "dtype"))
        return -1;
    const uint64_t at = x->w.at;
    const char *dtype = trace_walk_text(&x->w, end, k.n);
    if (!dtype || trace_npy_dtype(x->t, descr_of(dtype), at, x->options, &e->tensor, &bits, x->w.error))
        return -1;
    e->tensor.dtype = dtype;
    if (expect(x, end, BINARY, &k, "bytes"))
        return -1;
    e->tensor.offset = x->w.at;
    if (trace_shape_bytes(e->tensor.shape, e->tensor.rank, bits, &e->tensor.count, &e->bytes) || e->bytes != k.n)
        return trace_fail(x->t, x->w.error, x->w.at, "array '%s' of %s has %" PRIu64 " bytes, unlike its shape",
                          x->path, dtype, k.n);
    return trace_walk_skip(&x->w, end, k.n);
}

/* ---- the tree ---- */

/* A leaf that is no array. */
static int take_leaf(flax *x, const token *k)
{
    char number[64];
    const char *value = number;
    if (k->kind == TEXT && !(value = trace_walk_text(&x->w, x->end, k->n)))
        return -1;
    if (k->kind == REAL)
        snprintf(number, sizeof number, "%.17g", k->real);
    else if (k->kind == BOOLEAN)
        snprintf(number, sizeof number, "%s", k->n ? "true" : "false");
    else if (k->kind == SIGNED)
        snprintf(number, sizeof number, "%" PRId64, (int64_t)k->n);
    else if (k->kind == UNSIGNED)
        snprintf(number, sizeof number, "%" PRIu64, k->n);
    const char *key = trace_string(x->t, x->path, strlen(x->path));
    value = value == number ? trace_string(x->t, number, strlen(number)) : value;
    return key && value ? trace_add_metadata(x->t, key, value, x->w.error) : trace_no_memory(x->t, x->w.error);
}

static int take_extension(flax *x, const token *k)
{
    const uint64_t end = x->w.at + k->n;
    if (k->n > x->end - x->w.at)
        return trace_fail(x->t, x->w.error, x->w.at, "an extension of %" PRIu64 " bytes ends past the file", k->n);
    if (k->type == ARRAY || k->type == SCALAR) {
        if (take_array(x, end))
            return -1;
        return x->w.at == end
                   ? 0
                   : trace_fail(x->t, x->w.error, x->w.at, "%" PRIu64 " bytes behind an array", end - x->w.at);
    }
    x->other++;
    return trace_walk_skip(&x->w, x->end, k->n);
}

/* Behind the path a name, or if there is none a number. */
static int enter(flax *x, uint64_t at, const char *name, uint64_t number)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, number);
    if (text_add(x->path, sizeof x->path, "%s%s", *x->path ? "/" : "", name ? name : digits))
        return trace_fail(x->t, x->w.error, at, "the path of a key has more than %d bytes", PATH_MAX_BYTES);
    return 0;
}

/* The key of a member, behind the path. */
static int take_key(flax *x)
{
    token k;
    if (next(x, x->end, &k))
        return -1;
    const uint64_t at = x->w.at;
    const char *key = k.kind == TEXT ? trace_walk_text(&x->w, x->end, k.n) : NULL;
    if (k.kind != TEXT && k.kind != UNSIGNED)
        return trace_fail(x->t, x->w.error, at, "a key below '%s' is neither text nor a number", x->path);
    if (k.kind == TEXT && !key)
        return -1;
    return enter(x, at, key, k.n);
}

static int take_value(flax *x, int depth)
{
    token k;
    const size_t length = strlen(x->path), entries = x->t->count, pairs = x->t->n_metadata;
    int chunked = 0;
    if (depth > DEPTH_MAX)
        return trace_fail(x->t, x->w.error, x->w.at, "maps are nested deeper than %d", DEPTH_MAX);
    if (next(x, x->end, &k))
        return -1;
    if (k.kind == EXTENSION)
        return take_extension(x, &k);
    if (k.kind == BINARY)
        return trace_walk_skip(&x->w, x->end, k.n);
    if (k.kind != MAP && k.kind != LIST)
        return k.kind == NIL ? 0 : take_leaf(x, &k);
    for (uint64_t i = 0; i < k.n; i++) {
        if (k.kind == MAP ? take_key(x) : enter(x, x->w.at, NULL, i))
            return -1;
        chunked |= strcmp(x->path + length + (length != 0), CHUNKS_KEY) == 0;
        if (take_value(x, depth + 1))
            return -1;
        x->path[length] = '\0';
    }
    return chunked ? trace_chunks_join(x->t, x->path, entries, pairs, x->w.error) : 0;
}

static int open_msgpack(trace *t, const trace_options *options, trace_error *error)
{
    flax x = {.t = t, .options = options, .end = t->size, .w = {.t = t, .error = error}};
    int failed = 0;
    if (take_value(&x, 0))
        return -1;
    if (x.w.at != t->size)
        return trace_fail(t, error, x.w.at, "%" PRIu64 " bytes behind the map", t->size - x.w.at);
    const char *const *twice = t->count
                                   ? trace_duplicate(&t->entries[0].tensor.name, t->count, sizeof *t->entries, &failed)
                                   : NULL;
    if (twice)
        return trace_fail(t, error, TRACE_NO_OFFSET, "two arrays have the name '%s'", *twice);
    return failed || trace_order(t) ? trace_no_memory(t, error) : 0;
}

const trace_layout_type trace_layout_msgpack = {
    .name = "msgpack", .open = open_msgpack, .codes = trace_chunks_codes, .close = trace_chunks_close};

/* A map whose first key is text. */
int trace_msgpack_begins(const unsigned char *head, size_t n)
{
    const size_t at = n && head[0] > 0x80 && head[0] <= 0x8f ? 1
                      : n && head[0] == 0xde                 ? 3
                      : n && head[0] == 0xdf                 ? 5
                                                             : 0;
    return at && n > at + 1 && ((head[at] > 0xa0 && head[at] <= 0xbf) || (head[at] >= 0xd9 && head[at] <= 0xdb));
}
