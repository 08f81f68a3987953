/* safetensors.c -- length, JSON header, elements.
 *
 * The rules are those of the reference reader (safetensors/src/tensor.rs): offsets are
 * contiguous from the first byte after the header to the last one of the file, sizes equal
 * shape times dtype, no name occurs twice; leading and trailing JSON whitespace is allowed.
 * Here, too, a tensor has exactly the three keys.
 *
 * The outer object and the metadata are walked entry by entry, and only one key or value at
 * a time becomes a JSON tree: a header of many tiny entries costs little more than its own
 * size. A tree is built from a slice of limited length, which bounds its memory as well. */
#include "jsontext.h"

#include "../array/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    ENTRY_MAX = 64 << 10, /* bytes of one tensor's description, or of its name  */
    STRING_MAX = 16 << 20 /* bytes of one metadata string                       */
};

/* null is what the reference reader takes for none. */
static int is_null(json_cursor *c)
{
    static const char word[] = "null";
    const size_t n = sizeof word - 1;
    if (c->n - c->at < n || memcmp(c->text + c->at, word, n) != 0)
        return 0;
    c->at += n;
    return 1;
}

static int metadata(json_cursor *c)
{
    char ch;
    if (trace_cursor_more(c))
        return -1;
    if (is_null(c))
        return 0;
    if (c->text[c->at] != '{')
        return trace_fail(c->t, c->error, trace_cursor_offset(c), "%s is not valid: an object as __metadata__ expected",
                          c->what);
    c->at++;
    trace_cursor_skip_space(c);
    if (c->at < c->n && c->text[c->at] == '}') {
        c->at++;
        return 0;
    }
    do {
        const char *k = trace_cursor_string(c, STRING_MAX, "a string as key of __metadata__");
        if (!k || trace_cursor_expect(c, ":", NULL))
            return -1;
        const char *v = trace_cursor_string(c, STRING_MAX, "a string as value in __metadata__");
        if (!v || trace_add_metadata(c->t, k, v, c->error) || trace_cursor_expect(c, ",}", &ch))
            return -1;
    } while (ch == ',');
    return 0;
}

/* An array of integers that are not negative; -1 on failure. */
static int integers(const json_t *array, uint64_t *out, size_t max, size_t *n)
{
    if (!json_is_array(array) || json_array_size(array) > max)
        return -1;
    *n = json_array_size(array);
    for (size_t i = 0; i < *n; i++) {
        const json_t *v = json_array_get(array, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return -1;
        out[i] = (uint64_t)json_integer_value(v);
    }
    return 0;
}

/* The JSON object v as the description of the tensor e. */
static int read_tree(json_cursor *c, const json_t *v, const trace_entry *e, trace_description *d)
{
    trace *t = c->t;
    const char *name = e->tensor.name;
    const json_t *dtype = json_object_get(v, "dtype"), *shape = json_object_get(v, "shape"),
                 *offsets = json_object_get(v, "data_offsets");
    size_t n;
    if (!dtype || !shape || !offsets)
        return trace_fail(t, c->error, e->at, "tensor '%s' has no key \"%s\"", name,
                          !dtype   ? "dtype"
                          : !shape ? "shape"
                                   : "data_offsets");
    if (json_object_size(v) != 3)
        return trace_fail(t, c->error, e->at, "tensor '%s' has keys other than dtype, shape and data_offsets", name);
    if (!json_is_string(dtype))
        return trace_fail(t, c->error, e->at, "dtype of tensor '%s' is not a string", name);
    snprintf(d->dtype, sizeof d->dtype, "%s", json_string_value(dtype));
    if (!trace_dtype_find(d->dtype))
        return 0; /* that is told first */
    if (json_is_array(shape) && json_array_size(shape) > TRACE_RANK_MAX)
        return trace_fail(t, c->error, e->at, "shape of tensor '%s' has %zu dimensions, more than %d", name,
                          json_array_size(shape), TRACE_RANK_MAX);
    if (integers(shape, d->shape, TRACE_RANK_MAX, &d->rank))
        return trace_fail(t, c->error, e->at, "shape of tensor '%s' is not a list of natural numbers", name);
    if (integers(offsets, d->range, 2, &n) || n != 2)
        return trace_fail(t, c->error, e->at, "data_offsets of tensor '%s' are not two natural numbers", name);
    return 0;
}

/* Fill e from a description. Offsets are relative to the data here. */
static int describe(json_cursor *c, const trace_description *from, trace_entry *e)
{
    trace *t = c->t;
    trace_tensor *x = &e->tensor;
    const uint64_t *range = from->range;
    uint64_t bytes;
    const trace_dtype *d = trace_dtype_find(from->dtype);
    if (!d)
        return trace_fail(t, c->error, e->at, "dtype '%.80s' of tensor '%s' is not known", from->dtype, x->name);
    x->rank = from->rank;
    const int bad = trace_shape_bytes(from->shape, x->rank, d->bits, &x->count, &bytes);
    if (bad == -1)
        return trace_fail(t, c->error, e->at, "shape of tensor '%s' is too large", x->name);
    if (bad)
        return trace_fail(t, c->error, e->at, "tensor '%s' of dtype %s does not end on a byte", x->name, d->name);
    if (range[0] > range[1])
        return trace_fail(t, c->error, e->at, "tensor '%s' begins at %" PRIu64 ", after its end at %" PRIu64, x->name,
                          range[0], range[1]);
    if (range[1] > t->size - 8 - c->n)
        return trace_fail(t, c->error, e->at,
                          "tensor '%s' ends at %" PRIu64 ", but there are %" PRIu64 " bytes of data", x->name, range[1],
                          t->size - 8 - c->n);
    if (range[1] - range[0] != bytes)
        return trace_fail(t, c->error, e->at,
                          "tensor '%s' has %" PRIu64 " bytes of data, its shape and dtype need %" PRIu64, x->name,
                          range[1] - range[0], bytes);

    uint64_t *copy = trace_alloc(t, x->rank * sizeof *copy);
    if (!copy)
        return trace_no_memory(t, c->error);
    memcpy(copy, from->shape, x->rank * sizeof *copy);
    x->shape = copy;
    x->dtype = d->name;
    x->format = trace_dtype_format(d, c->options);
    e->packing = x->format ? trace_dtype_packing(d) : QUANT_BYTES;
    if (x->format && d->bits >= 8 && mpsim_format_code_bytes(x->format) * 8 != d->bits)
        return trace_fail(t, c->error, e->at, "elements of dtype %s cannot be codes of %s", d->name, x->format->name);
    x->offset = range[0];
    e->bytes = bytes;
    return 0;
}

static int tensor(json_cursor *c, const char *name, uint64_t at)
{
    trace_description d = {.rank = 0};
    json_t *v = NULL;
    if (trace_cursor_more(c))
        return -1;
    const size_t left = c->n - c->at;
    const size_t n = trace_plain_entry(&d, c->text + c->at, left < ENTRY_MAX ? left : ENTRY_MAX);
    if (n)
        c->at += n;
    else if (!(v = trace_cursor_value(c, '{', ENTRY_MAX, "an object that describes a tensor")))
        return -1;
    trace_entry *e = trace_add(c->t, c->error);
    int result = e ? 0 : -1;
    if (e) {
        e->at = at;
        e->tensor.name = name;
        result = (v && read_tree(c, v, e, &d)) || describe(c, &d, e) ? -1 : 0;
    }
    json_decref(v);
    return result;
}

static int header(json_cursor *c)
{
    char ch;
    int have_metadata = 0;
    if (trace_cursor_expect(c, "{", NULL))
        return -1;
    trace_cursor_skip_space(c);
    if (c->at < c->n && c->text[c->at] == '}')
        c->at++;
    else
        do {
            trace_cursor_skip_space(c);
            const uint64_t at = trace_cursor_offset(c);
            const char *name = trace_cursor_string(c, ENTRY_MAX, "the name of a tensor");
            if (!name || trace_cursor_expect(c, ":", NULL))
                return -1;
            if (strcmp(name, "__metadata__") != 0) {
                if (tensor(c, name, at))
                    return -1;
            } else if (have_metadata) {
                return trace_fail(c->t, c->error, at, "__metadata__ occurs twice");
            } else {
                have_metadata = 1;
                if (metadata(c))
                    return -1;
            }
            if (trace_cursor_expect(c, ",}", &ch))
                return -1;
        } while (ch == ',');
    trace_cursor_skip_space(c);
    if (c->at != c->n)
        return trace_fail(c->t, c->error, trace_cursor_offset(c), "%zu bytes after the JSON header", c->n - c->at);
    return 0;
}

/* No name twice; no gap, no overlap, nothing left over. */
static int check_all(trace *t, uint64_t data, trace_error *error)
{
    uint64_t end = 0;
    int failed = 0;
    const char *const *twice = NULL;
    if (t->count)
        twice = trace_duplicate(&t->entries[0].tensor.name, t->count, sizeof *t->entries, &failed);
    if (twice)
        return trace_fail(t, error, trace_entry_named(twice)->at, "two tensors have the name '%s'", *twice);
    if (!failed && t->n_metadata)
        twice = trace_duplicate(t->metadata, t->n_metadata, 2 * sizeof *t->metadata, &failed);
    if (failed)
        return trace_no_memory(t, error);
    if (twice)
        return trace_fail(t, error, 8 + (uint64_t)(*twice - t->text), "key '%s' occurs twice in __metadata__", *twice);

    if (trace_order(t))
        return trace_no_memory(t, error);
    for (size_t i = 0; i < t->count; i++) {
        trace_entry *e = &t->entries[i];
        if (e->tensor.offset != end)
            return trace_fail(t, error, e->at,
                              "tensor '%s' begins at %" PRIu64 " of the data, %s the previous one ends at %" PRIu64,
                              e->tensor.name, e->tensor.offset, e->tensor.offset < end ? "but" : "a gap:", end);
        end += e->bytes;
        e->tensor.offset += data;
    }
    if (end != t->size - data)
        return trace_fail(t, error, data + end, "%" PRIu64 " bytes after the last tensor", t->size - data - end);
    return 0;
}

static int open_safetensors(trace *t, const trace_options *options, trace_error *error)
{
    unsigned char prefix[8];
    uint64_t n = 0;
    if (trace_bytes(t, prefix, 8, error))
        return -1;
    for (int i = 8; i-- > 0;)
        n = n << 8 | prefix[i];
    if (n > t->max_header)
        return trace_fail(t, error, 0, "header length %" PRIu64 " is above the cap of %" PRIu64, n, t->max_header);
    if (n > t->size - 8)
        return trace_fail(t, error, 0, "header length %" PRIu64 ", but the file has %" PRIu64 " bytes", n, t->size);
    if (!(t->text = array_memory(n, 1)))
        return trace_no_memory(t, error);
    t->text_bytes = (size_t)n;
    json_cursor c = {
        .t = t, .options = options, .error = error, .what = "header", .before = 8, .text = t->text, .n = (size_t)n};
    if (trace_bytes(t, c.text, c.n, error) || header(&c))
        return -1;
    return check_all(t, 8 + n, error);
}

const trace_layout_type trace_layout_safetensors = {.name = "safetensors", .open = open_safetensors, .all_elements = 1};
