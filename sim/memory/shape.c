/* shape.c -- see shape.h. */
#include "shape.h"

#include "../array/need.h"
#include "../input/names.h"
#include "../trace/weights.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MOST = 16 };
static const uint64_t most = 1000000000000000; /* 10^15 */

/* ---- a number of parameters ---- */

/* The exponent of what follows the digits: "e9", "B"; -1: neither. */
static int unit_exponent(const char *s)
{
    static const struct {
        const char *unit;
        int exponent;
    } units[] = {{"", 0}, {"k", 3}, {"K", 3}, {"M", 6}, {"B", 9}, {"G", 9}, {"T", 12}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(s, units[i].unit) == 0)
            return units[i].exponent;
    if (*s != 'e' && *s != 'E')
        return -1;
    s += 1 + (s[1] == '+');
    const size_t n = strspn(s, "0123456789");
    return n >= 1 && n <= 2 && s[n] == '\0' ? atoi(s) : -1;
}

int memory_shape_parse_count(uint64_t *n, const char *text)
{
    uint64_t v = 0;
    int digits = 0, behind = 0, point = 0;
    const char *s = text;
    for (; (*s >= '0' && *s <= '9') || (*s == '.' && !point); s++) {
        if (*s == '.') {
            point = 1;
            continue;
        }
        v = 10 * v + (uint64_t)(*s - '0');
        digits += v != 0;
        behind += point;
        if (digits > DIGITS_MOST || behind > DIGITS_MOST)
            return -1;
    }
    const int exponent = s == text ? -1 : unit_exponent(s);
    if (exponent < 0)
        return parse_count(n, text) == 0 && *n > 0 && *n <= most ? 0 : -1;
    int scale = exponent - behind;
    for (; scale > 0 && v <= most; scale--)
        v *= 10;
    for (; scale < 0; scale++) {
        if (v % 10 != 0)
            return -1; /* not a whole number */
        v /= 10;
    }
    *n = v;
    return v > 0 && v <= most ? 0 : -1;
}

/* ---- a transformer ---- */

typedef void visitor(const shape_tensor *t, void *context);

static uint64_t part(uint64_t n, uint64_t ranks)
{
    return n / ranks + (n % ranks != 0);
}

static void visit_matrix(const char *layer, const char *of, uint64_t rows, uint64_t cols, visitor *visit, void *context)
{
    const shape_tensor t = {.layer = layer,
                            .weight_rank = 2,
                            .rank = 2,
                            .n = rows * cols,
                            .rows = rows,
                            .cols = cols,
                            .inner = rows,
                            .of = of};
    visit(&t, context);
}

static void visit_vector(const char *layer, int weight_rank, uint64_t n, visitor *visit, void *context)
{
    const shape_tensor t = {
        .layer = layer, .weight_rank = weight_rank, .rank = 1, .n = n, .rows = 1, .cols = n, .inner = 1};
    visit(&t, context);
}

/* RMSNorm has no bias at all, and LayerNorm none where there are none. */
static void visit_norm(const char *layer, const shape_transformer *t, visitor *visit, void *context)
{
    visit_vector(layer, 1, t->hidden, visit, context);
    if (!t->rmsnorm && !t->no_biases)
        visit_vector(layer, 1, t->hidden, visit, context);
}

/* Columns of the first matrix of a pair are cut, and rows of the second, as Megatron-LM cuts them: the
 * biases of the second are whole. */
static void visit_layer(const shape *s, uint64_t i, visitor *visit, void *context)
{
    const shape_transformer *t = s->transformer;
    const uint64_t h = t->hidden, cut = s->tensor_parallel, head = h / t->heads;
    const uint64_t qkv = part(h + 2 * head * t->kv_heads, cut), f = part(t->ffn, cut), in = t->swiglu ? 2 * f : f;
    char name[64];
    const struct {
        const char *name;
        uint64_t rows, cols, bias;
    } pair[] = {
        {"attn.qkv", qkv, h, qkv}, {"attn.proj", h, part(h, cut), h}, {"mlp.fc", in, h, in}, {"mlp.proj", h, f, h}};
    for (int k = 0; k < 4; k++) {
        if (k % 2 == 0) {
            snprintf(name, sizeof name, "h%llu.ln%d", (unsigned long long)i, k / 2 + 1);
            visit_norm(name, t, visit, context);
        }
        snprintf(name, sizeof name, "h%llu.%s", (unsigned long long)i, pair[k].name);
        visit_matrix(name, NULL, pair[k].rows, pair[k].cols, visit, context);
        if (!t->no_biases)
            visit_vector(name, 2, pair[k].bias, visit, context);
    }
}

static void visit_transformer(const shape *s, visitor *visit, void *context)
{
    const shape_transformer *t = s->transformer;
    const uint64_t vocab = part(t->vocab, s->tensor_parallel);
    visit_matrix("wte", NULL, vocab, t->hidden, visit, context);
    if (t->positions)
        visit_matrix("wpe", NULL, t->positions, t->hidden, visit, context);
    for (uint64_t i = 0; i < t->layers; i++)
        visit_layer(s, i, visit, context);
    visit_norm("lnf", t, visit, context);
    visit_matrix("head", t->untied ? NULL : "wte", vocab, t->hidden, visit, context);
}

static void add_elements(const shape_tensor *t, void *context)
{
    *(uint64_t *)context += t->of ? 0 : t->n;
}

int memory_shape_of_transformer(shape *s, const shape_transformer *t, uint64_t tensor_parallel)
{
    *s = (shape){.transformer = t, .tensor_parallel = 1};
    memory_shape_each(s, add_elements, &s->parameters);
    s->tensor_parallel = tensor_parallel;
    return 0;
}

/* ---- files ---- */

typedef struct reading {
    shape *s;
    nameindex seen;
    int only_weights;
    size_t pass;
} reading;

/* Where no tensor has a kind. */
static int is_buffer(const trace_tensor *t)
{
    const weights_name w = {t->name,           strlen(t->name), t->rank, t->rank && t->shape[0] == 1,
                            t->format != NULL, t->dtype};
    return !t->kind && trace_weights_buffer(&w);
}

static void add_tensor(reading *r, const trace_tensor *t, const char *name)
{
    shape *s = r->s;
    need_room(&s->tensors, s->count, sizeof *s->tensors);
    need_room(&s->names, s->count, sizeof *s->names);
    const char *dot = strrchr(name, '.');
    s->names[s->count] = need_text(name);
    nameindex_add(&r->seen, s->names[s->count], s->count);
    const uint64_t cols = t->rank ? t->shape[t->rank - 1] : 1;
    s->tensors[s->count++] =
        (shape_tensor){.weight_rank = dot && strcmp(dot, ".weight") == 0 ? (int)(t->rank < 9 ? t->rank : 9) : -1,
                       .rank = t->rank ? (int)(t->rank < 9 ? t->rank : 9) : 1,
                       .n = t->count,
                       .rows = cols ? t->count / cols : 0,
                       .cols = cols,
                       .inner = t->rank >= 2 ? t->shape[t->rank - 2] : 1};
    s->parameters += t->count;
}

/* What is no parameter; codes of packed weights are, but their elements are no numbers of parameters. */
static void leave_out(shape *s, const trace_tensor *t)
{
    s->buffers++;
    s->left_out += t->count;
    s->packed += t->kind != NULL && !t->format;
}

static int visit_file(input *in, trace *t, void *context)
{
    reading *r = context;
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *tensor = trace_at(t, i);
        const char *kind = tensor->kind, *name = tensor->fqn;
        const int weight = kind && strcmp(kind, "weight") == 0;
        if (!input_selects(in, tensor))
            continue;
        if (r->pass == 0) {
            r->only_weights |= weight;
            continue;
        }
        if (r->only_weights && !kind)
            leave_out(r->s, tensor);
        if (r->only_weights ? !weight : kind != NULL)
            continue;
        if (!tensor->format || is_buffer(tensor))
            leave_out(r->s, tensor);
        else if (nameindex_find(&r->seen, name) < 0)
            add_tensor(r, tensor, name);
    }
    return 0;
}

/* "fc1.bias" is of the layer "fc1", whose weight tells what it is. Names are cut where nobody looks
 * them up any more. */
static void name_layers(reading *r)
{
    shape *s = r->s;
    char weight[1024];
    for (size_t i = 0; i < s->count; i++) {
        const char *dot = strrchr(s->names[i], '.');
        const int length = dot ? (int)(dot - s->names[i]) : 0;
        if (s->tensors[i].weight_rank >= 0 || !dot || length > 1000)
            continue;
        snprintf(weight, sizeof weight, "%.*s.weight", length, s->names[i]);
        const ptrdiff_t k = nameindex_find(&r->seen, weight);
        s->tensors[i].weight_rank = k >= 0 ? s->tensors[k].weight_rank : -1;
    }
    nameindex_clear(&r->seen);
    for (size_t i = 0; i < s->count; i++) {
        char *dot = strrchr(s->names[i], '.');
        if (s->tensors[i].weight_rank < 0)
            s->tensors[i].weight_rank = s->tensors[i].rank;
        if (dot)
            *dot = '\0';
        s->tensors[i].layer = s->names[i];
    }
}

int memory_shape_of_files(shape *s, const input_options *o, char **files, int n)
{
    input in = {0};
    reading r = {.s = s};
    *s = (shape){.tensor_parallel = 1};
    int code = input_open(&in, "memory", o, files, n);
    for (; !code && r.pass < 2; r.pass++) {
        in.lists_unread = r.pass == 0;
        code = input_each(&in, visit_file, &r);
    }
    if (!code && s->parameters == 0)
        code = fail(EXIT_DATA, "memory: no parameters are selected%s",
                    s->packed ? ": weights are packed in integers; give the model before it was quantised" : "");
    if (!code && s->parameters > most)
        code = fail(EXIT_DATA, "memory: more than 10^15 parameters");
    if (!code)
        name_layers(&r);
    s->unread = in.unread;
    in.unread = (unread_list){.count = 0};
    nameindex_clear(&r.seen);
    input_close(&in);
    return code;
}

void memory_shape_clear(shape *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->names[i]);
    free(s->names);
    free(s->tensors);
    unread_clear(&s->unread);
    *s = (shape){0};
}

/* ---- all of them ---- */

void memory_shape_each(const shape *s, void (*visit)(const shape_tensor *t, void *context), void *context)
{
    if (s->transformer) {
        visit_transformer(s, visit, context);
    } else if (s->counted_only) {
        const shape_tensor t = {.layer = "model", .weight_rank = 2, .n = s->parameters};
        visit(&t, context);
    } else {
        for (size_t i = 0; i < s->count; i++)
            visit(&s->tensors[i], context);
    }
}

/* ---- names ---- */

typedef struct looking {
    const char *glob;
    int found;
} looking;

static void look_for(const shape_tensor *t, void *context)
{
    looking *l = context;
    l->found |= !l->found && fnmatch(l->glob, t->layer, 0) == 0;
}

/* As `train` names them. */
static int has_layer_without_parameters(const shape_transformer *t, const char *glob)
{
    static const char *const names[] = {"attn.heads", "attn.scores", "attn.softmax", "attn.context",
                                        "add1",       "add2",        "mlp.act"};
    char layer[64];
    int found = fnmatch(glob, "loss", 0) == 0;
    for (uint64_t i = 0; i < t->layers && !found; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names && !found; k++) {
            snprintf(layer, sizeof layer, "h%llu.%s", (unsigned long long)i, names[k]);
            found = fnmatch(glob, layer, 0) == 0;
        }
    return found;
}

int memory_shape_has_layer(const shape *s, const char *glob)
{
    looking l = {.glob = glob};
    memory_shape_each(s, look_for, &l);
    return l.found || (s->transformer && has_layer_without_parameters(s->transformer, glob));
}
