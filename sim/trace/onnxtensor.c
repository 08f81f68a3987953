/* onnxtensor.c -- a tensor of an ONNX model: TensorProto, whose fields are 1 sides, 2 type, 4 to 11 data and 8 the name, 13 and 14 for data
 * in another file.
 *
 * Elements are read where they lie if they lie there as they are: raw_data, and packed floats and doubles. What is written number by
 * number (as varints, or in several pieces) is decoded once, when the model is opened: a byte gives at most eight.
 * Sources: onnx/onnx.proto (ONNX 1.23), the encoding of protobuf. */
#include "onnx.h"

#include <inttypes.h>
#include <string.h>

/* The fields that are looked at: of TensorProto, StringStringEntryProto, SparseTensorProto. */
/* clang-format off */
enum { SIDES = 1, TYPE = 2, FLOATS = 4, INTS = 5, TEXTS = 6, LONGS = 7, NAME = 8, RAW = 9, DOUBLES = 10, UNSIGNED = 11, ELSEWHERE = 13, PLACE = 14 };
enum { KEY = 1, VALUE = 2, VALUES = 1, INDICES = 2 };
/* clang-format on */
enum { EXTERNAL = 1, FLOAT = 1, INT64 = 7 };

/* By data_type: the name, that of safetensors if it has one, bits of an element, and the field of numbers that are not raw. Elements of
 * less than a byte are packed, the first in the lowest bits. A number of INTS is a byte of them, or one element of six bits. */
typedef struct onnx_type {
    const char *name, *dtype;
    uint8_t bits, field;
} onnx_type;

/* clang-format off */
static const onnx_type types[] = {
    {"UNDEFINED", NULL, 8, 0},           {"FLOAT", "F32", 32, FLOATS},        {"UINT8", "U8", 8, INTS},
    {"INT8", "I8", 8, INTS},             {"UINT16", "U16", 16, INTS},         {"INT16", "I16", 16, INTS},
    {"INT32", "I32", 32, INTS},          {"INT64", "I64", 64, LONGS},         {"STRING", NULL, 0, TEXTS},
    {"BOOL", "BOOL", 8, INTS},           {"FLOAT16", "F16", 16, INTS},        {"DOUBLE", "F64", 64, DOUBLES},
    {"UINT32", "U32", 32, UNSIGNED},     {"UINT64", "U64", 64, UNSIGNED},     {"COMPLEX64", "C64", 64, FLOATS},
    {"COMPLEX128", NULL, 128, DOUBLES},  {"BFLOAT16", "BF16", 16, INTS},      {"FLOAT8E4M3FN", "F8_E4M3", 8, INTS},
    {"FLOAT8E4M3FNUZ", "F8_E4M3FNUZ", 8, INTS}, {"FLOAT8E5M2", "F8_E5M2", 8, INTS}, {"FLOAT8E5M2FNUZ", "F8_E5M2FNUZ", 8, INTS},
    {"UINT4", NULL, 4, INTS},            {"INT4", NULL, 4, INTS},             {"FLOAT4E2M1", "F4", 4, INTS},
    {"FLOAT8E8M0", "F8_E8M0", 8, INTS},  {"UINT2", NULL, 2, INTS},            {"INT2", NULL, 2, INTS},
    {"FLOAT6E2M3", "F6_E2M3", 6, INTS},  {"FLOAT6E3M2", "F6_E3M2", 6, INTS},
};
/* clang-format on */

typedef struct tensor {
    const char *name, *location;
    uint64_t sides[TRACE_RANK_MAX];
    size_t rank;
    uint64_t type;
    const onnx_type *is;                     /* NULL: of no type that is known */
    uint64_t at, begin, bytes;               /* data that lie as they are: trace_entry.at, and where */
    uint64_t pieces, raws;                   /* fields of numbers that are not empty; of raw data */
    uint64_t first, first_bytes, first_wire; /* the first of the numbers */
    int external, loose;                     /* loose: an element of few bits has a byte */
    uint64_t offset, length;
} tensor;

const char *trace_onnx_name(const onnx *x, const char *last)
{
    const size_t n = strlen(x->path), size = n + strlen(last) + 2;
    char *name = trace_alloc(x->t, size);
    if (name)
        snprintf(name, size, "%s%s%s", x->path, n && *last ? "/" : "", last);
    return name ? trace_utf8(x->t, name) : NULL;
}

static int copy_text(onnx *x, const proto_field *f, char *text, size_t size)
{
    if (f->value >= size)
        return 0;
    const size_t n = (size_t)f->value;
    if (trace_walk_take(&x->w, f->end, text, n))
        return -1;
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] ? text[i] : '?';
    text[n] = '\0';
    return 0;
}

int trace_onnx_text(onnx *x, uint64_t end, uint64_t number, char *text, size_t size)
{
    const uint64_t begin = x->w.at;
    proto_field f = {.number = 0};
    for (*text = '\0'; x->w.at < end; x->w.at = f.end) {
        if (trace_proto_next(&x->w, end, &f))
            return -1;
        if (f.number == number && f.wire == PROTO_BYTES && f.value)
            break;
    }
    const int bad = x->w.at < end && copy_text(x, &f, text, size);
    x->w.at = begin;
    return bad ? -1 : 0;
}

static int no_memory(const onnx *x)
{
    return trace_no_memory(x->t, x->w.error);
}

/* ---- the message ---- */

static int add_side(onnx *x, tensor *s, uint64_t side)
{
    if (s->rank == TRACE_RANK_MAX || side > INT64_MAX)
        return trace_fail(x->t, x->w.error, x->w.at, "a side of %" PRIu64 ", or more than %d of them", side,
                          TRACE_RANK_MAX);
    s->sides[s->rank++] = side;
    return 0;
}

static int take_sides(onnx *x, tensor *s, const proto_field *f)
{
    uint64_t side;
    if (f->wire == PROTO_VARINT)
        return add_side(x, s, f->value);
    while (x->w.at < f->end)
        if (trace_walk_varint(&x->w, f->end, &side) || add_side(x, s, side))
            return -1;
    return 0;
}

/* A number of external_data, in decimal. */
static int take_number(onnx *x, const char *text, uint64_t *u)
{
    *u = 0;
    for (const char *s = text; *s; s++) {
        if (*s < '0' || *s > '9' || *u > (INT64_MAX - 9) / 10)
            return trace_fail(x->t, x->w.error, x->w.at, "'%s' is not an offset or a length of external data", text);
        *u = *u * 10 + (uint64_t)(*s - '0');
    }
    return 0;
}

/* A pair of external_data: where the elements are in which file. */
static int take_pair(onnx *x, tensor *s, uint64_t end)
{
    char key[16], number[24];
    proto_field f;
    if (trace_onnx_text(x, end, KEY, key, sizeof key) || trace_onnx_text(x, end, VALUE, number, sizeof number))
        return -1;
    if (strcmp(key, "offset") == 0)
        return take_number(x, number, &s->offset);
    if (strcmp(key, "length") == 0)
        return take_number(x, number, &s->length);
    for (; x->w.at < end && !s->location && strcmp(key, "location") == 0; x->w.at = f.end)
        if (trace_proto_next(&x->w, end, &f) ||
            (f.number == VALUE && f.wire == PROTO_BYTES && !(s->location = trace_walk_text(&x->w, f.end, f.value))))
            return -1;
    return 0;
}

/* Its type may stand behind the data, so that only the places of data are remembered. */
static int take_data(onnx *x, tensor *s, const proto_field *f)
{
    const uint64_t bytes = f->wire == PROTO_VARINT ? 1 : f->value;
    if (!bytes)
        return 0;
    if (f->number == RAW && s->raws++)
        return trace_fail(x->t, x->w.error, x->w.at, "a tensor with raw data in two pieces");
    if (f->number == RAW) {
        s->begin = x->w.at;
        s->bytes = bytes;
    } else if (!s->pieces++) {
        s->first = f->number;
        s->first_wire = f->wire;
        s->begin = s->raws ? s->begin : x->w.at;
        s->first_bytes = bytes;
    }
    return 0;
}

static int is_data(uint64_t number)
{
    return number == FLOATS || number == INTS || number == LONGS || number == RAW || number == DOUBLES ||
           number == UNSIGNED || number == TEXTS;
}

static int take_field(onnx *x, tensor *s, const proto_field *f)
{
    if (f->number == TYPE && f->wire == PROTO_VARINT)
        s->type = f->value;
    if (f->number == PLACE && f->wire == PROTO_VARINT)
        s->external = f->value == EXTERNAL;
    if (f->number == NAME && f->wire == PROTO_BYTES && !s->name &&
        !(s->name = trace_walk_text(&x->w, f->end, f->value)))
        return -1;
    if (f->number == ELSEWHERE && f->wire == PROTO_BYTES)
        return take_pair(x, s, f->end);
    return f->number == SIDES ? take_sides(x, s, f) : is_data(f->number) ? take_data(x, s, f) : 0;
}

static int take_fields(onnx *x, uint64_t end, tensor *s)
{
    proto_field f;
    while (x->w.at < end) {
        if (trace_proto_next(&x->w, end, &f) || take_field(x, s, &f))
            return -1;
        x->w.at = f.end;
    }
    return 0;
}

/* ---- numbers that do not lie as they are ---- */

/* The lowest bytes of a number, little-endian. */
static int put_number(onnx *x, uint64_t u, size_t n)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(u >> 8 * i);
    return trace_onnx_decode(x, bytes, n);
}

/* The content of a packed field, of a fixed one or of a text, as it is. */
static int put_bytes(onnx *x, uint64_t n)
{
    unsigned char bytes[512];
    while (n) {
        const size_t m = n < sizeof bytes ? (size_t)n : sizeof bytes;
        if (trace_walk_take(&x->w, x->w.at + m, bytes, m) || trace_onnx_decode(x, bytes, m))
            return -1;
        n -= m;
    }
    return 0;
}

/* A field of numbers, `width` bytes each as they are decoded; 0: they have a fixed size, or are texts, behind their length. */
static int put_field(onnx *x, const proto_field *f, size_t width)
{
    uint64_t u;
    if (!width)
        return f->wire == PROTO_VARINT                            ? 0
               : f->number == TEXTS && put_number(x, f->value, 8) ? -1
                                                                  : put_bytes(x, f->value);
    if (f->wire == PROTO_VARINT)
        return put_number(x, f->value, width);
    while (f->wire == PROTO_BYTES && x->w.at < f->end)
        if (trace_walk_varint(&x->w, f->end, &u) || put_number(x, u, width))
            return -1;
    return 0;
}

/* All fields of that number of a message. */
static int decode(onnx *x, uint64_t begin, uint64_t end, uint64_t number, size_t width, tensor *s)
{
    proto_field f;
    s->at = ONNX_DECODED;
    s->begin = trace_onnx_decode_begin(x);
    for (x->w.at = begin; x->w.at < end; x->w.at = f.end)
        if (trace_proto_next(&x->w, end, &f) || (f.number == number && put_field(x, &f, width)))
            return -1;
    s->bytes = trace_onnx_decode_begin(x) - s->begin;
    return 0;
}

/* Where the data of a tensor lie, which may mean to decode them. */
static int find_data(onnx *x, uint64_t begin, uint64_t end, tensor *s)
{
    const int fixed = s->is && (s->is->field == FLOATS || s->is->field == DOUBLES || s->is->field == TEXTS);
    if (s->raws || !s->is || !s->pieces || s->external)
        return 0;
    if (fixed && s->is->field != TEXTS && s->pieces == 1 && s->first == s->is->field && s->first_wire != PROTO_VARINT) {
        s->bytes = s->first_bytes;
        return 0;
    }
    s->loose = s->is->bits == 6;
    return decode(x, begin, end, s->is->field, fixed ? 0 : (s->is->bits + 7u) / 8, s);
}

/* ---- the entry ---- */

static int set_shape(onnx *x, trace_entry *e, const tensor *s)
{
    uint64_t whole;
    const unsigned bits = s->is && !s->loose ? s->is->bits : 8;
    uint64_t *shape = trace_alloc(x->t, s->rank * sizeof *shape);
    if (!shape)
        return no_memory(x);
    if (s->rank)
        memcpy(shape, s->sides, s->rank * sizeof *shape);
    e->tensor.shape = shape;
    e->tensor.rank = s->rank;
    if (trace_shape_bytes(shape, s->rank, 8, &e->tensor.count, &whole) || whole > UINT64_MAX / 128)
        return trace_fail(x->t, x->w.error, x->w.at, "the shape of tensor '%s' is too large", e->tensor.name);
    e->bytes = (e->tensor.count * bits + 7) / 8;
    return 0;
}

static int set_format(onnx *x, trace_entry *e, const tensor *s)
{
    const trace_dtype *d = s->is->dtype ? trace_dtype_find(s->is->dtype) : NULL;
    const mpsim_format *f = d ? trace_dtype_format(d, x->options) : NULL;
    e->tensor.format = f;
    e->tensor.dtype = d ? d->name : e->tensor.dtype;
    e->packing = f && !s->loose ? trace_dtype_packing(d) : QUANT_BYTES;
    return f && d->bits >= 8 && mpsim_format_code_bytes(f) * 8 != d->bits
               ? trace_fail(x->t, x->w.error, s->begin, "elements of dtype %s cannot be codes of %s", d->name, f->name)
               : 0;
}

/* The tensor, once all of its fields are seen and its data found. */
static int add_tensor(onnx *x, const tensor *s)
{
    trace *t = x->t;
    trace_entry *e = trace_add(t, x->w.error);
    if (!e)
        return -1;
    e->at = s->at;
    e->tensor = (trace_tensor){.name = s->name, .dtype = s->is ? s->is->name : "unknown", .offset = s->begin};
    if (set_shape(x, e, s))
        return -1;
    if (!s->is || !s->is->field)
        return trace_onnx_unread(t, e, "its type is not known", x->w.error);
    if (s->is->field == TEXTS) { /* as they are decoded, for who compares them */
        e->bytes = s->bytes;
        e->nowhere = !s->bytes;
        return 0;
    }
    if (s->external && !s->location)
        return trace_fail(t, x->w.error, x->w.at, "tensor '%s' does not say which file its data are in", s->name);
    if (set_format(x, e, s))
        return -1;
    if (s->external)
        return trace_onnx_external(t, t->count - 1, s->location, s->offset, s->length, x->w.error);
    if (!s->raws && !s->pieces && e->bytes)
        return trace_onnx_unread(t, e, "the model does not hold its data", x->w.error);
    return s->bytes == e->bytes ? 0
                                : trace_fail(t, x->w.error, s->begin,
                                             "tensor '%s' has %" PRIu64 " bytes, and not the %" PRIu64 " of its shape",
                                             s->name, s->bytes, e->bytes);
}

int trace_onnx_tensor(onnx *x, uint64_t end, const char *name)
{
    tensor s = {.name = name, .length = UINT64_MAX};
    const uint64_t begin = x->w.at;
    if (take_fields(x, end, &s))
        return -1;
    s.is = s.type < sizeof types / sizeof types[0] ? &types[s.type] : NULL;
    if (!name && !(s.name = trace_onnx_name(x, s.name ? s.name : "")))
        return no_memory(x);
    return find_data(x, begin, end, &s) || add_tensor(x, &s) ? -1 : 0;
}

int trace_onnx_numbers(onnx *x, uint64_t end, uint64_t number, int is_float, size_t rank, const char *name)
{
    tensor s = {.name = name, .rank = rank, .pieces = 1, .is = &types[is_float ? FLOAT : INT64]};
    const uint64_t begin = x->w.at;
    if (decode(x, begin, end, number, is_float ? 0 : 8, &s))
        return -1;
    if (!rank && !s.bytes) { /* zero may be left out */
        s.bytes = is_float ? 4 : 8;
        if (put_number(x, 0, (size_t)s.bytes))
            return -1;
    }
    s.sides[0] = s.bytes / (is_float ? 4 : 8);
    return add_tensor(x, &s);
}

/* ---- sparse tensors ---- */

/* The name of a tensor is in its values. */
static int name_of(onnx *x, uint64_t end, const char **name)
{
    proto_field f, g;
    const uint64_t begin = x->w.at;
    const char *own = "";
    for (; x->w.at < end; x->w.at = f.end) {
        if (trace_proto_next(&x->w, end, &f))
            return -1;
        for (uint64_t at = x->w.at; f.number == VALUES && f.wire == PROTO_BYTES && at < f.end; at = g.end) {
            x->w.at = at;
            if (trace_proto_next(&x->w, f.end, &g) ||
                (g.number == NAME && g.wire == PROTO_BYTES && !(own = trace_walk_text(&x->w, g.end, g.value))))
                return -1;
        }
    }
    x->w.at = begin;
    *name = trace_onnx_name(x, own);
    return *name ? 0 : no_memory(x);
}

int trace_onnx_sparse(onnx *x, uint64_t end, const char *name)
{
    proto_field f;
    char indices[ONNX_PATH];
    if (!name && name_of(x, end, &name))
        return -1;
    snprintf(indices, sizeof indices, "%s/indices", name);
    for (; x->w.at < end; x->w.at = f.end) {
        if (trace_proto_next(&x->w, end, &f))
            return -1;
        if (f.wire != PROTO_BYTES || (f.number != VALUES && f.number != INDICES))
            continue;
        const char *own = f.number == VALUES ? name : trace_string(x->t, indices, strlen(indices));
        if (!own || trace_onnx_tensor(x, f.end, own))
            return own ? -1 : no_memory(x);
    }
    return 0;
}
