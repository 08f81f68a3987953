/* onnx.c -- the weights of an ONNX model: a protobuf message, of which as much is walked through as leads to them.
 *
 * Weights are initialisers of graphs, and tensors that are attributes of nodes: a Constant has its value so. Graphs are attributes, too
 * (of If, Loop, Scan), and functions have nodes. A weight of the main graph is called as there: an initialiser by its name, the value of
 * a Constant by its output. Others have what leads to them in front, joined by '/': nodes (by their first output), attributes.
 * Sources: onnx/onnx.proto (ONNX 1.18). */
#include "onnx.h"

#include "../text/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The fields that are looked at, by message. */
/* clang-format off */
enum { MODEL_VERSION = 1, MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_TRAINING = 20, MODEL_FUNCTIONS = 25, MODEL_LAST = 99 };
enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_SPARSE = 15, FUNCTION_NAME = 1, FUNCTION_NODE = 7 };
enum { NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum { VALUE_NAME = 1, VALUE_FLOAT = 2, VALUE_INT = 3, VALUE_TENSOR = 5, VALUE_GRAPH = 6, VALUE_FLOATS = 7, VALUE_INTS = 8,
       VALUE_TENSORS = 10, VALUE_GRAPHS = 11, VALUE_SPARSE = 22, VALUE_SPARSES = 23 };
/* clang-format on */
enum { DEPTH_MAX = 64 };

static const char core_ml[] = "a Core ML model, which is not read: save its weights as npz or safetensors";

static int take_graph(onnx *x, uint64_t end, int depth);

static int no_memory(const onnx *x)
{
    return trace_no_memory(x->t, x->w.error);
}

/* Behind the path a name. */
static int enter(onnx *x, const char *name)
{
    return text_add(x->path, sizeof x->path, "%s%s", *x->path ? "/" : "", name)
               ? trace_fail(x->t, x->w.error, x->w.at, "the path of a graph has more than %d bytes", ONNX_PATH)
               : 0;
}

/* The same of a field of the message that ends at `end`, which may stand anywhere in it: *found, and w->at is as it was. */
static int enter_text(onnx *x, uint64_t end, uint64_t number, int *found)
{
    char name[ONNX_PATH];
    if (trace_onnx_text(x, end, number, name, sizeof name))
        return -1;
    *found = *name != '\0';
    return *found ? enter(x, name) : 0;
}

/* ---- attributes ---- */

/* Fields of an attribute whose content has weights: what they are, and whether there may be many. */
static const struct {
    uint8_t field, many, graph, sparse;
} weights[] = {
    {VALUE_TENSOR, 0, 0, 0}, {VALUE_GRAPH, 0, 1, 0},  {VALUE_TENSORS, 1, 0, 0},
    {VALUE_GRAPHS, 1, 1, 0}, {VALUE_SPARSE, 0, 0, 1}, {VALUE_SPARSES, 1, 0, 1},
};

/* A field of an attribute, below its path; `number` is that of a repeated one. */
static int take_weight(onnx *x, const proto_field *f, uint64_t *number, size_t row, int depth)
{
    char digits[24];
    const size_t length = strlen(x->path);
    snprintf(digits, sizeof digits, "%" PRIu64, *number);
    if (weights[row].many && enter(x, digits))
        return -1;
    *number += weights[row].many;
    const char *name = weights[row].graph ? "" : trace_onnx_name(x, "");
    const int bad = !name                 ? no_memory(x)
                    : weights[row].graph  ? take_graph(x, f->end, depth + 1)
                    : weights[row].sparse ? trace_onnx_sparse(x, f->end, name)
                                          : trace_onnx_tensor(x, f->end, name);
    x->path[length] = '\0';
    return bad;
}

/* The numbers of a Constant that are no tensor. */
static int take_numbers(onnx *x, uint64_t end)
{
    static const struct {
        uint8_t field, is_float, rank;
        const char *attribute;
    } rows[] = {{VALUE_FLOAT, 1, 0, "value_float"},
                {VALUE_INT, 0, 0, "value_int"},
                {VALUE_FLOATS, 1, 1, "value_floats"},
                {VALUE_INTS, 0, 1, "value_ints"}};
    char own[16];
    if (trace_onnx_text(x, end, VALUE_NAME, own, sizeof own))
        return -1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint64_t begin = x->w.at;
        const int is = strcmp(own, rows[i].attribute) == 0;
        const char *name = is ? trace_onnx_name(x, "") : NULL;
        if (is && (!name || trace_onnx_numbers(x, end, rows[i].field, rows[i].is_float, rows[i].rank, name)))
            return name ? -1 : no_memory(x);
        x->w.at = begin;
    }
    return 0;
}

/* What is in an attribute is called as it, but for the value of a Constant, which is called as the node. */
static int take_attribute(onnx *x, uint64_t end, int constant, int depth)
{
    const size_t length = strlen(x->path);
    uint64_t number = 0;
    int found;
    proto_field f;
    if (constant ? take_numbers(x, end) : enter_text(x, end, VALUE_NAME, &found))
        return -1;
    for (; x->w.at < end; x->w.at = f.end) {
        if (trace_proto_next(&x->w, end, &f))
            return -1;
        for (size_t i = 0; i < sizeof weights / sizeof weights[0] && f.wire == PROTO_BYTES; i++)
            if (weights[i].field == f.number && take_weight(x, &f, &number, i, depth))
                return -1;
    }
    x->path[length] = '\0';
    return 0;
}

/* ---- nodes and graphs ---- */

/* A node is called by its first output, which is another one for each node of a graph; by its name where it has none. */
static int name_node(onnx *x, uint64_t end, int *constant)
{
    char op[16];
    int found;
    if (trace_onnx_text(x, end, NODE_OP, op, sizeof op) || enter_text(x, end, NODE_OUTPUT, &found) ||
        (!found && enter_text(x, end, NODE_NAME, &found)))
        return -1;
    *constant = strcmp(op, "Constant") == 0;
    return 0;
}

static int take_node(onnx *x, uint64_t end, int depth)
{
    const size_t length = strlen(x->path);
    const uint64_t begin = x->w.at;
    int constant = -1;
    proto_field f;
    for (; x->w.at < end; x->w.at = f.end) {
        if (trace_proto_next(&x->w, end, &f))
            return -1;
        if (f.number != NODE_ATTRIBUTE || f.wire != PROTO_BYTES)
            continue;
        const uint64_t at = x->w.at;
        x->w.at = begin;
        if (constant < 0 && name_node(x, end, &constant))
            return -1;
        x->w.at = at;
        if (take_attribute(x, f.end, constant, depth))
            return -1;
    }
    x->path[length] = '\0';
    return 0;
}

/* The nodes of a graph or of a function. */
static int take_content(onnx *x, uint64_t end, uint64_t nodes, int depth)
{
    proto_field f;
    for (; x->w.at < end; x->w.at = f.end) {
        if (trace_proto_next(&x->w, end, &f))
            return -1;
        const uint64_t number = f.wire == PROTO_BYTES ? f.number : 0;
        const int graph = nodes == GRAPH_NODE;
        if ((number == nodes && take_node(x, f.end, depth)) ||
            (graph && number == GRAPH_INITIALIZER && trace_onnx_tensor(x, f.end, NULL)) ||
            (graph && number == GRAPH_SPARSE && trace_onnx_sparse(x, f.end, NULL)))
            return -1;
    }
    return 0;
}

static int take_graph(onnx *x, uint64_t end, int depth)
{
    return depth > DEPTH_MAX ? trace_fail(x->t, x->w.error, x->w.at, "graphs are nested deeper than %d", DEPTH_MAX)
                             : take_content(x, end, GRAPH_NODE, depth);
}

static int take_function(onnx *x, uint64_t end)
{
    int found;
    const int bad = enter_text(x, end, FUNCTION_NAME, &found) || take_content(x, end, FUNCTION_NODE, 1);
    x->path[0] = '\0';
    return bad;
}

/* A training has graphs as its fields 1 and 2. */
static int take_training(onnx *x, uint64_t end)
{
    proto_field f;
    for (; x->w.at < end; x->w.at = f.end) {
        if (trace_proto_next(&x->w, end, &f))
            return -1;
        if ((f.number == 1 || f.number == 2) && f.wire == PROTO_BYTES &&
            (enter(x, f.number == 1 ? "initialization" : "algorithm") || take_graph(x, f.end, 1)))
            return -1;
        x->path[0] = '\0';
    }
    return 0;
}

static int take_model(onnx *x, const proto_field *f)
{
    if (f->number > MODEL_LAST)
        return trace_fail(x->t, x->w.error, TRACE_NO_OFFSET, "is %s", core_ml);
    const uint64_t number = f->wire == PROTO_BYTES ? f->number : 0;
    return number == MODEL_GRAPH       ? take_graph(x, f->end, 1)
           : number == MODEL_TRAINING  ? take_training(x, f->end)
           : number == MODEL_FUNCTIONS ? take_function(x, f->end)
                                       : 0;
}

/* All of the file. */
static int walk(onnx *x)
{
    trace *t = x->t;
    int failed = 0, ends = 0;
    proto_field f;
    for (; x->w.at < t->size; x->w.at = f.end) {
        if (trace_proto_next(&x->w, t->size, &f) || take_model(x, &f))
            return -1;
        ends |= f.number == MODEL_OPSET || (f.number == MODEL_VERSION && f.value < 3);
    }
    if (!ends)
        return trace_fail(t, x->w.error, t->size, "the model has no opset at its end: the file is cut off");
    const char *const *twice = t->count
                                   ? trace_duplicate(&t->entries[0].tensor.name, t->count, sizeof *t->entries, &failed)
                                   : NULL;
    if (twice)
        return trace_fail(t, x->w.error, TRACE_NO_OFFSET, "two tensors have the name '%s'", *twice);
    return failed ? no_memory(x) : trace_onnx_decoded(x) || trace_onnx_outside(t, x->options, x->w.error) ? -1 : 0;
}

static int open_onnx(trace *t, const trace_options *options, trace_error *error)
{
    onnx *x = trace_onnx_data_begin(t, error) ? NULL : calloc(1, sizeof *x);
    if (!x)
        return t->state ? trace_no_memory(t, error) : -1;
    x->t = x->w.t = t;
    x->w.error = error;
    x->options = options;
    const int bad = walk(x);
    free(x);
    return bad;
}

const trace_layout_type trace_layout_onnx = {.name = "onnx",
                                             .open = open_onnx,
                                             .codes = trace_onnx_codes,
                                             .close = trace_onnx_data_close,
                                             .file = trace_onnx_file};

/* ---- the first bytes ---- */

/* A field of type BYTES behind the version that begins a model: where its content is; 0: there is none. */
static size_t second_field(const unsigned char *head, size_t n)
{
    size_t at = 3;
    if (n < 5 || head[0] != 0x08 || head[1] == 0 || head[1] >= 0x80)
        return 0;
    while (at < n && head[at] & 0x80)
        at++;
    return at + 1 < n ? at + 1 : 0;
}

/* Its second field is the name of a program in ONNX, and a message in Core ML: inputs, or functions. */
const char *trace_core_ml(const unsigned char *head, size_t n)
{
    const size_t at = second_field(head, n);
    return at && head[2] == 0x12 && (head[at] == 0x0a || head[at] == 0xa2) ? core_ml : NULL;
}

/* ir_version (2 to 127; 1 was never released, and is how a SavedModel of TensorFlow begins), then one of the fields that
 * follow it: names and versions of who wrote it, the graph, opsets. */
int trace_onnx_begins(const unsigned char *head, size_t n)
{
    return n > 4 && head[0] == 0x08 && head[1] > 1 && head[1] < 0x80 && head[2] &&
           strchr("\x12\x1a\x22\x28\x32\x3a\x42", head[2]) && !trace_core_ml(head, n);
}
