/* arrays.c -- arrays in memory as a trace: tensors as those of a safetensors file, whose elements are gathered where they lie.
 *
 * They are named as tensors of a safetensors file called "-" would be, so that the report of arrays is the report
 * of that file. */
#include "impl.h"

#include <mpsim/report.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- what they are ---- */

/* As a safetensors file spells it, where that has one element after the other; else the format's name. */
static const char *dtype_of(const mpsim_format *f)
{
    const char *name = trace_safetensors_dtype(f);
    return name ? name : f->name;
}

static int check_names(const trace *t, const trace_array *arrays, size_t n, trace_error *error)
{
    int no_memory;
    for (size_t i = 0; i < n; i++) {
        if (!arrays[i].name || !trace_is_utf8(arrays[i].name))
            return trace_error_say(error, TRACE_EXIT_USAGE, "the name of array %zu is not a text of UTF-8", i);
        if (!arrays[i].format)
            return trace_error_say(error, TRACE_EXIT_USAGE, "array '%s' has no format", arrays[i].name);
    }
    const char *const *again = n ? trace_duplicate(&arrays->name, n, sizeof *arrays, &no_memory) : NULL;
    if (n && no_memory)
        return trace_no_memory(t, error);
    return again ? trace_error_say(error, TRACE_EXIT_USAGE, "array '%s' is given twice", *again) : 0;
}

static int bad_array(const trace_array *a, trace_error *error, const char *what)
{
    return trace_error_say(error, TRACE_EXIT_USAGE, "array '%s' %s", a->name, what);
}

/* A format of the table, or a copy. */
static const mpsim_format *own_format(trace *t, const mpsim_format *f)
{
    const mpsim_format *row = mpsim_format_find(f->name);
    mpsim_format *copy = row == f ? NULL : trace_alloc(t, sizeof *copy);
    if (copy)
        *copy = *f;
    return row == f ? row : copy;
}

/* Whether all strides together stay within what memory can hold, either way from the first element. */
static int strides_fit(const trace_array *a)
{
    uint64_t left = (uint64_t)PTRDIFF_MAX - mpsim_format_code_bytes(a->format);
    for (size_t k = 0; a->strides && k < a->dimensions; k++) {
        const uint64_t stride = a->strides[k] < 0 ? 0 - (uint64_t)a->strides[k] : (uint64_t)a->strides[k];
        const uint64_t steps = a->shape[k] - 1;
        if (steps && stride > left / steps)
            return 0;
        left -= stride * steps;
    }
    return 1;
}

static int add_array(trace *t, const trace_array *a, uint64_t *offset, trace_error *error)
{
    trace_entry *e = trace_add(t, error);
    if (!e)
        return -1;
    trace_tensor *x = &e->tensor;
    const unsigned bits = 8 * (unsigned)mpsim_format_code_bytes(a->format);
    if (a->dimensions > TRACE_RANK_MAX)
        return bad_array(a, error, "has more dimensions than 64");
    if (trace_shape_bytes(a->shape, a->dimensions, bits, &x->count, &e->bytes) || e->bytes > PTRDIFF_MAX ||
        (x->count && !strides_fit(a)))
        return bad_array(a, error, "is larger than memory can be");
    if (x->count && !a->data)
        return bad_array(a, error, "has no elements, and a shape that has some");
    const char *dtype = dtype_of(a->format);
    uint64_t *shape = trace_alloc(t, a->dimensions * sizeof *shape);
    x->name = trace_string(t, a->name, strlen(a->name));
    x->dtype = trace_string(t, dtype, strlen(dtype));
    x->format = own_format(t, a->format);
    if (!shape || !x->name || !x->dtype || !x->format)
        return trace_no_memory(t, error);
    if (a->dimensions)
        memcpy(shape, a->shape, a->dimensions * sizeof *shape);
    static const uint16_t one = 1;
    x->big_endian = *(const unsigned char *)&one == 0;
    x->shape = shape;
    x->rank = a->dimensions;
    x->offset = *offset;
    *offset += e->bytes;
    return 0;
}

/* ---- their elements ---- */

static const trace_array *array_of(const trace *t, const trace_entry *e)
{
    const trace_array *arrays = t->state;
    return &arrays[e->at];
}

static int is_dense(const trace_array *a, size_t width)
{
    int64_t step = (int64_t)width;
    for (size_t k = a->dimensions; a->strides && k-- > 0; step *= (int64_t)a->shape[k])
        if (a->shape[k] > 1 && a->strides[k] != step)
            return 0;
    return 1;
}

static void put_run(unsigned char *to, const unsigned char *from, int64_t stride, size_t n, size_t width)
{
    if (stride == (int64_t)width) {
        memcpy(to, from, n * width);
        return;
    }
    switch (width) {
    case 2:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * 2, from + (int64_t)i * stride, 2);
        break;
    case 4:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * 4, from + (int64_t)i * stride, 4);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * width, from + (int64_t)i * stride, width);
    }
}

/* The place of element `first`: in each dimension, and its bytes from the first. */
static uint64_t find_place(const trace_array *a, uint64_t first, uint64_t place[TRACE_RANK_MAX])
{
    uint64_t at = 0; /* modulo 2^64: strides of dimensions of 1 may be anything */
    for (size_t k = a->dimensions; k-- > 0; first /= a->shape[k]) {
        place[k] = first % a->shape[k];
        at += place[k] * (uint64_t)a->strides[k];
    }
    return at;
}

/* On by n along the last dimension, at whose end the others go on. */
static uint64_t step_on(const trace_array *a, uint64_t place[TRACE_RANK_MAX], uint64_t at, size_t n)
{
    size_t k = a->dimensions - 1;
    place[k] += n;
    at += n * (uint64_t)a->strides[k];
    for (; k > 0 && place[k] == a->shape[k]; k--) {
        at += (uint64_t)a->strides[k - 1] - a->shape[k] * (uint64_t)a->strides[k];
        place[k] = 0;
        place[k - 1]++;
    }
    return at;
}

static int array_codes(const trace *t, const trace_entry *e, uint64_t first, void *codes, size_t n, trace_error *error)
{
    const trace_array *a = array_of(t, e);
    const size_t width = trace_width(e), last = a->dimensions - 1;
    uint64_t place[TRACE_RANK_MAX];
    unsigned char *to = codes;
    (void)error;
    if (n == 0)
        return 0;
    if (a->dimensions == 0 || is_dense(a, width)) {
        memcpy(to, (const unsigned char *)a->data + first * width, n * width);
        return 0;
    }
    uint64_t at = find_place(a, first, place);
    for (size_t m; n; n -= m, to += m * width) {
        m = a->shape[last] - place[last] < n ? (size_t)(a->shape[last] - place[last]) : n;
        put_run(to, (const unsigned char *)a->data + (int64_t)at, a->strides[last], m, width);
        at = step_on(a, place, at, m);
    }
    return 0;
}

size_t trace_array_number(const trace *t, size_t i)
{
    return (size_t)t->entries[i].at;
}

static const trace_layout_type layout_arrays = {.name = "arrays", .codes = array_codes};

trace *trace_of_arrays(const char *path, const trace_array *arrays, size_t n, const trace_options *options,
                       trace_error *error)
{
    const trace_options none = {0};
    uint64_t offset = 0;
    trace *t = trace_new(path, options ? options : &none, error);
    if (!t)
        return NULL;
    t->type = &layout_arrays;
    t->state = (void *)(uintptr_t)arrays;
    t->max_header = TRACE_HEADER_MAX;
    int failed = check_names(t, arrays, n, error);
    for (size_t i = 0; i < n && !failed; i++) {
        failed = add_array(t, &arrays[i], &offset, error);
        if (!failed)
            t->entries[i].at = i;
    }
    return trace_finish(t, options ? options : &none, failed, error);
}
