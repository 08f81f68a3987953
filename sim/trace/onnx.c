/* onnx.c -- the initialisers of an ONNX model: a protobuf message, of which as much is walked through as leads to them.
 *
 * ModelProto 7: GraphProto 5: TensorProto, whose fields are 1 sides, 2 type, 4 float_data, 8 name, 9 raw_data, 10
 * double_data, 13 and 14 for data in another file. Numbers are read where they lie as they are: raw_data, and packed floats and
 * doubles of their own type. Numbers as varints (int32_data), of other files and of less than a byte are listed.
 * Sources: onnx/onnx.proto (ONNX 1.18), the encoding of protobuf. */
#include "bytewalk.h"

#include <inttypes.h>
#include <string.h>

/* The fields that are looked at. */
/* clang-format off */
enum { VERSION = 1, GRAPH = 7, OPSET = 8, INITIALIZER = 5, SIDES = 1, TYPE = 2, FLOATS = 4, INT32S = 5, TEXTS = 6, INT64S = 7, NAME = 8, RAW = 9, DOUBLES = 10, UINT64S = 11, PLACE = 14 };
/* clang-format on */
enum { FLOAT = 1, DOUBLE = 11, EXTERNAL = 1 };
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

/* By data_type: the name, and that of safetensors for what is read. */
static const struct {
    const char *name, *dtype;
} types[] = {
    {"UNDEFINED", NULL},
    {"FLOAT", "F32"},
    {"UINT8", "U8"},
    {"INT8", "I8"},
    {"UINT16", "U16"},
    {"INT16", "I16"},
    {"INT32", "I32"},
    {"INT64", "I64"},
    {"STRING", NULL},
    {"BOOL", "BOOL"},
    {"FLOAT16", "F16"},
    {"DOUBLE", "F64"},
    {"UINT32", "U32"},
    {"UINT64", "U64"},
    {"COMPLEX64", "C64"},
    {"COMPLEX128", NULL},
    {"BFLOAT16", "BF16"},
    {"FLOAT8E4M3FN", "F8_E4M3"},
    {"FLOAT8E4M3FNUZ", "F8_E4M3FNUZ"},
    {"FLOAT8E5M2", "F8_E5M2"},
    {"FLOAT8E5M2FNUZ", "F8_E5M2FNUZ"},
    {"UINT4", NULL},
    {"INT4", NULL},
    {"FLOAT4E2M1", NULL},
    {"FLOAT8E8M0", "F8_E8M0"},
};

typedef struct field {
    uint64_t number, value; /* value: of a varint; or the bytes of what follows */
    unsigned wire;
    uint64_t end; /* of it */
} field;

typedef struct tensor {
    uint64_t sides[TRACE_RANK_MAX];
    size_t rank;
    uint64_t type, begin, bytes; /* of the data, where they lie as they are */
    uint64_t coded, end;         /* what holds them in another way          */
    int has_data, external;
} tensor;

/* The next field before `end`, whose content is not read yet, but that of a varint. */
static int next(bytewalk *w, uint64_t end, field *f)
{
    uint64_t key;
    if (walk_varint(w, end, &key))
        return -1;
    f->number = key >> 3;
    f->wire = key & 7;
    f->value = f->wire == FIXED64 ? 8 : f->wire == FIXED32 ? 4 : 0;
    if (f->wire != FIXED64 && f->wire != FIXED32 && f->wire != VARINT && f->wire != BYTES)
        return trace_fail(w->t, w->error, w->at, "field %" PRIu64 " has wire type %u, which ONNX does not use",
                          f->number, f->wire);
    if ((f->wire == VARINT || f->wire == BYTES) && walk_varint(w, end, &f->value))
        return -1;
    const uint64_t n = f->wire == VARINT ? 0 : f->value;
    if (n > end - w->at)
        return trace_fail(w->t, w->error, w->at, "field %" PRIu64 " of %" PRIu64 " bytes ends past its message",
                          f->number, n);
    f->end = w->at + n;
    return 0;
}

static int add_side(bytewalk *w, tensor *x, uint64_t side)
{
    if (x->rank == TRACE_RANK_MAX || side > INT64_MAX)
        return trace_fail(w->t, w->error, w->at, "a side of %" PRIu64 ", or more than %d of them", side,
                          TRACE_RANK_MAX);
    x->sides[x->rank++] = side;
    return 0;
}

static int take_sides(bytewalk *w, tensor *x, const field *f)
{
    uint64_t side;
    if (f->wire == VARINT)
        return add_side(w, x, f->value);
    while (w->at < f->end)
        if (walk_varint(w, f->end, &side) || add_side(w, x, side))
            return -1;
    return 0;
}

/* Data that lie as they are; pieces of a repeated field are not put together. The field begins at `before`. */
static int take_data(bytewalk *w, tensor *x, const field *f, uint64_t before)
{
    const int lies = f->wire == BYTES && (f->number == RAW || (f->number == FLOATS && x->type == FLOAT) ||
                                          (f->number == DOUBLES && x->type == DOUBLE));
    if (lies && f->value && !x->has_data) {
        x->has_data = 1;
        x->begin = w->at;
        x->bytes = f->value;
    } else if (lies && f->value) {
        return trace_fail(w->t, w->error, w->at, "a tensor with data in two pieces");
    } else if (f->number == FLOATS || f->number == INT32S || f->number == TEXTS || f->number == INT64S ||
               f->number == DOUBLES || f->number == UINT64S) {
        x->coded = x->end ? x->coded : before;
        x->end = f->end;
    }
    return 0;
}

/* Data that are not read: their bytes can be compared where they are in this file. */
static int unread(trace_entry *e, const tensor *x)
{
    e->tensor.unread = x->external ? "its data are in a file beside the model" : "its data are varints, or packed";
    e->nowhere = x->external || !(x->has_data || x->end);
    e->coded = 1;
    e->at = x->has_data ? x->begin : x->coded;
    e->bytes = x->external ? 0 : x->has_data ? x->bytes : x->end - x->coded;
    return 0;
}

/* The tensor, once all of its fields are seen. */
static int add_tensor(bytewalk *w, const trace_options *options, const tensor *x, const char *name)
{
    trace *t = w->t;
    uint64_t bytes;
    const size_t n = sizeof types / sizeof types[0];
    const char *dtype = x->type < n ? types[x->type].dtype : NULL;
    const trace_dtype *d = dtype && (x->has_data || !x->external) ? trace_dtype_find(dtype) : NULL;
    trace_entry *e = trace_add(t, w->error);
    uint64_t *shape = trace_alloc(t, x->rank * sizeof *shape);
    if (!e || !shape)
        return e ? trace_no_memory(t, w->error) : -1;
    memcpy(shape, x->sides, x->rank * sizeof *shape);
    e->tensor = (trace_tensor){.name = name,
                               .dtype = x->type < n ? types[x->type].name : "unknown",
                               .shape = shape,
                               .rank = x->rank,
                               .offset = x->begin};
    if (trace_shape_bytes(shape, x->rank, d ? d->bits : 8, &e->tensor.count, &bytes))
        return trace_fail(t, w->error, w->at, "the shape of tensor '%s' is too large", name);
    if (!d || (!x->has_data && bytes)) {
        snprintf(t->unread, sizeof t->unread, "'%.250s' of %s, and what is like it: its data %s", name, e->tensor.dtype,
                 x->external ? "are in a file beside the model" : "are varints, or packed");
        return unread(e, x);
    }
    if (bytes != x->bytes)
        return trace_fail(t, w->error, x->begin,
                          "tensor '%s' has %" PRIu64 " bytes, and not the %" PRIu64 " of its shape", name, x->bytes,
                          bytes);
    e->bytes = bytes;
    e->tensor.dtype = d->name;
    e->tensor.format = trace_dtype_format(d, options);
    return e->tensor.format && mpsim_format_code_bytes(e->tensor.format) * 8 != d->bits
               ? trace_fail(t, w->error, x->begin, "elements of dtype %s cannot be codes of %s", d->name,
                            e->tensor.format->name)
               : 0;
}

/* Its type is asked for twice, since it may stand behind the data. */
static int find_type(bytewalk *w, uint64_t end, tensor *x)
{
    const uint64_t begin = w->at;
    field f;
    while (w->at < end) {
        if (next(w, end, &f))
            return -1;
        if (f.number == TYPE && f.wire == VARINT)
            x->type = f.value;
        if (f.number == PLACE && f.wire == VARINT)
            x->external = f.value == EXTERNAL;
        w->at = f.end;
    }
    w->at = begin;
    return 0;
}

static int take_tensor(bytewalk *w, const trace_options *options, uint64_t end)
{
    tensor x = {.rank = 0};
    const char *name = "";
    field f;
    if (find_type(w, end, &x))
        return -1;
    while (w->at < end) {
        const uint64_t before = w->at;
        if (next(w, end, &f) || (f.number == SIDES && take_sides(w, &x, &f)) || take_data(w, &x, &f, before))
            return -1;
        if (f.number == NAME && f.wire == BYTES && !(name = walk_text(w, f.end, f.value)))
            return -1;
        w->at = f.end;
    }
    return add_tensor(w, options, &x, name);
}

/* All initialisers of a graph. */
static int take_graph(bytewalk *w, const trace_options *options, uint64_t end)
{
    field f;
    while (w->at < end) {
        if (next(w, end, &f) || (f.number == INITIALIZER && f.wire == BYTES && take_tensor(w, options, f.end)))
            return -1;
        w->at = f.end;
    }
    return 0;
}

static int open_onnx(trace *t, const trace_options *options, trace_error *error)
{
    bytewalk w = {.t = t, .error = error};
    int failed = 0, ends = 0;
    field f;
    while (w.at < t->size) {
        if (next(&w, t->size, &f) || (f.number == GRAPH && f.wire == BYTES && take_graph(&w, options, f.end)))
            return -1;
        ends |= f.number == OPSET || (f.number == VERSION && f.value < 3);
        w.at = f.end;
    }
    if (!ends)
        return trace_fail(t, error, t->size, "the model has no opset, which stands at its end: the file is cut off");
    const char *const *twice = t->count
                                   ? trace_duplicate(&t->entries[0].tensor.name, t->count, sizeof *t->entries, &failed)
                                   : NULL;
    if (twice)
        return trace_fail(t, error, TRACE_NO_OFFSET, "two initialisers have the name '%s'", *twice);
    return failed || trace_order(t) ? trace_no_memory(t, error) : 0;
}

/* Data in another form stand elsewhere than at the offset of their tensor. */
static int start_onnx(trace *t, const trace_entry *entry, trace_error *error)
{
    (void)error;
    t->at = entry->coded ? entry->at : entry->tensor.offset;
    return 0;
}

const trace_layout_type trace_layout_onnx = {.name = "onnx", .open = open_onnx, .start = start_onnx};

/* ir_version (2 to 127; 1 was never released, and is how a SavedModel of TensorFlow begins), then one of the fields that
 * follow it: names and versions of who wrote it, the graph, opsets. */
int trace_onnx_begins(const unsigned char *head, size_t n)
{
    return n > 4 && head[0] == 0x08 && head[1] > 1 && head[1] < 0x80 && head[2] &&
           strchr("\x12\x1a\x22\x28\x32\x3a\x42", head[2]);
}
