/* reader.c -- see mpsim/trace.h.
 *
 * The library has no process of its own. Whatever prints, ends, sandboxes or handles signals is in sim/process and
 * sim/cli and not linked here; tests/ck-house.sh checks what the library asks the system for. Options are words of
 * the command line, resolved in one place (sim/trace/wanted.h). Every allocation that fails is an error:
 * tests/trace/t-reader.c lets each one fail. JSON goes through sim/text/json.c, since jansson reports a failed
 * allocation as a syntax error. At most 64 files are open; a file that is opened again must still have the tensor.
 * An error says in fields of its own whether memory or the system failed (trace_error_memory, trace_error_io). */
#include "files.h"
#include "surroundings.h"

#include "../array/array.h"

#include <mpsim/trace.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 256 << 10 }; /* bytes of codes on their way to values, a multiple of every code width */

/* Where a tensor is, and how the elements of one that has no format are read. */
typedef struct place {
    size_t file, entry;
} place;

struct mpsim_reader {
    locale_t locale;
    reader_files files;
    void **memory; /* what lives as long as it */
    size_t n_memory;
    mpsim_tensor *tensors;
    place *places;
    size_t count;
    size_t current; /* the tensor in order that is being read, and its next element; SIZE_MAX: none */
    uint64_t next;
    unsigned char *buffer;
    double *values; /* BUFFER of each */
};

/* ---- errors ---- */

static mpsim_status status_of(const trace_error *e)
{
    switch (e->exit) {
    case FILES_NONE:
        return MPSIM_ENOTFOUND;
    case FILES_USAGE:
        return MPSIM_EINVAL;
    case FILES_DATA:
        return MPSIM_EDATA;
    default:
        return e->memory ? MPSIM_ENOMEM : MPSIM_EIO;
    }
}

/* The line for the caller, cut between characters. */
static mpsim_status say(const trace_error *e, char *error, size_t size)
{
    if (error && size) {
        size_t n = strlen(e->text);
        if (n >= size)
            for (n = size - 1; n && ((unsigned char)e->text[n] & 0xc0) == 0x80;)
                n--;
        memcpy(error, e->text, n);
        error[n] = '\0';
    }
    return status_of(e);
}

/* ---- what the reader keeps ---- */

static void *keep(mpsim_reader *r, const void *from, size_t n)
{
    void *own = malloc(n ? n : 1);
    if (!own || array_room(&r->memory, r->n_memory, sizeof *r->memory)) {
        free(own);
        return NULL;
    }
    if (n)
        memcpy(own, from, n);
    r->memory[r->n_memory++] = own;
    return own;
}

static const char *keep_text(mpsim_reader *r, const char *s)
{
    return keep(r, s, strlen(s) + 1);
}

/* Rows of the table live for ever. */
static const mpsim_format *keep_format(mpsim_reader *r, const mpsim_format *f)
{
    const mpsim_format *row = mpsim_format_find(f->name);
    return row == f ? row : keep(r, f, sizeof *f);
}

/* ---- what a tensor is ---- */

/* How a tensor that is not floating-point numbers is read: 1, or 0 where it is not. */
static int as_stored(const trace *t, size_t i, trace_copy *c)
{
    trace_copy copies[TRACE_COPIES];
    const size_t n = trace_at(t, i)->quantised ? 0 : trace_copies(t, i, copies);
    *c = copies[0];
    return n == 1 && c->units == trace_at(t, i)->count && c->width <= 8;
}

static const char *element_of(const trace_copy *c)
{
    static const char *const names[][2] = {
        {"I8", "int8"},    {"I16", "int16"},  {"I32", "int32"},  {"I64", "int64"}, {"U8", "uint8"},
        {"U16", "uint16"}, {"U32", "uint32"}, {"U64", "uint64"}, {"BOOL", "bool"}, {"C64", "complex64"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(c->tensor.dtype, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

static const char *quantised_text(mpsim_reader *r, const trace_quantised *q)
{
    char text[256];
    snprintf(text, sizeof text, "%s %s: codes %s, scales %s of %" PRIu64 "x%" PRIu64 "%s", q->layout, q->type, q->codes,
             q->scales, q->block_rows, q->block_cols, q->transform ? ", behind a Hadamard transform" : "");
    return keep_text(r, text);
}

static int64_t rank_of(const trace *t)
{
    uint64_t rank;
    const char *text = trace_metadata(t, "mpsim.rank");
    return text && parse_count(&rank, text) == 0 && rank <= INT32_MAX ? (int64_t)rank : -1;
}

static void set_element(mpsim_tensor *to, const trace *t, size_t i)
{
    trace_copy c;
    if (to->format) {
        to->element = to->format->name;
        to->code_bytes = mpsim_format_code_bytes(to->format);
    } else if (as_stored(t, i, &c) && (to->element = element_of(&c))) {
        to->code_bytes = c.width;
    }
}

/* 0, or -1 without memory. */
static int describe(mpsim_reader *r, const trace *t, size_t i, mpsim_tensor *to)
{
    const trace_tensor *x = trace_at(t, i);
    *to = (mpsim_tensor){.name = keep_text(r, x->name),
                         .kind = x->kind,
                         .fqn = keep_text(r, x->fqn),
                         .dtype = keep_text(r, x->dtype),
                         .format = x->format ? keep_format(r, x->format) : NULL,
                         .shape = keep(r, x->shape, x->rank * sizeof *x->shape),
                         .dimensions = x->rank,
                         .count = x->count,
                         .column_major = x->fortran,
                         .step = trace_step(t),
                         .rank = rank_of(t),
                         .file = keep_text(r, trace_file_of(t, i)),
                         .offset = x->offset,
                         .layout = keep_text(r, trace_layout(t)),
                         .quantised = x->quantised ? quantised_text(r, x->quantised) : NULL,
                         .in_order = !trace_is_flat(t)};
    set_element(to, t, i);
    return to->name && to->fqn && to->dtype && to->shape && to->file && to->layout && (to->format || !x->format) &&
                   (to->quantised || !x->quantised)
               ? 0
               : -1;
}

static int add_tensor(mpsim_reader *r, const trace *t, size_t file, size_t entry)
{
    if (array_room(&r->tensors, r->count, sizeof *r->tensors) || array_room(&r->places, r->count, sizeof *r->places) ||
        describe(r, t, entry, &r->tensors[r->count]))
        return -1;
    r->places[r->count++] = (place){file, entry};
    return 0;
}

/* ---- opening ---- */

static int note_of(mpsim_reader *r, const trace *t, const char *what)
{
    trace_error line;
    if (!what)
        return 0;
    trace_error_set(&line, FILES_DATA, trace_path(t), UINT64_MAX, "%s", what);
    return tracelib_files_note(&r->files, line.text);
}

static int notes_of(mpsim_reader *r, const trace *t)
{
    return note_of(r, t, trace_clash(t)) || note_of(r, t, trace_quantised_note(t)) ||
           note_of(r, t, trace_unread_note(t)) || note_of(r, t, trace_metadata(t, TRACE_NOT_READ));
}

static int list_file(mpsim_reader *r, size_t i, trace_error *error)
{
    const trace *t = tracelib_files_trace(&r->files, i, error);
    if (!t || (r->files.wanted.kinds.count && trace_wanted_clash(t, error)))
        return tracelib_files_passes(&r->files, error)
                   ? tracelib_files_note(&r->files, error->text) ? trace_error_memory(error, NULL) : 0
                   : -1;
    if (notes_of(r, t))
        return trace_error_memory(error, NULL);
    for (size_t k = 0; k < trace_count(t); k++)
        if (trace_wanted_selects(&r->files.wanted, trace_at(t, k)) && add_tensor(r, t, i, k))
            return trace_error_memory(error, NULL);
    return 0;
}

static int put_options(mpsim_reader *r, const mpsim_option *options, size_t n, trace_error *error)
{
    for (size_t i = 0; i < n; i++) {
        const char *value = keep_text(r, options[i].value);
        if (!value)
            return trace_error_memory(error, NULL);
        if (tracelib_files_put(&r->files, options[i].name, value, error))
            return -1;
    }
    return 0;
}

static int list_all(mpsim_reader *r, const char *const *paths, size_t n, const mpsim_option *options, size_t n_options,
                    trace_error *error)
{
    if (put_options(r, options, n_options, error) || tracelib_files_find(&r->files, paths, n, error))
        return -1;
    for (size_t i = 0; i < r->files.tree.count; i++)
        if (list_file(r, i, error))
            return -1;
    return 0;
}

static int are_given(const char *const *paths, size_t n, const mpsim_option *options, size_t n_options)
{
    int all = paths && n && n <= PTRDIFF_MAX / sizeof *paths && (options || !n_options) &&
              n_options <= PTRDIFF_MAX / sizeof *options;
    for (size_t i = 0; i < n && all; i++)
        all = paths[i] != NULL;
    for (size_t i = 0; i < n_options && all; i++)
        all = options[i].name && options[i].value;
    return all;
}

static mpsim_reader *new_reader(void)
{
    mpsim_reader *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->current = SIZE_MAX;
    r->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (r->locale)
        return r;
    free(r);
    return NULL;
}

mpsim_status mpsim_reader_open(mpsim_reader **to, const char *const *paths, size_t n_paths, const mpsim_option *options,
                               size_t n_options, char *error, size_t size)
{
    trace_error e;
    surroundings own;
    if (!to)
        return MPSIM_EINVAL;
    *to = NULL;
    if (!are_given(paths, n_paths, options, n_options)) {
        trace_error_say(&e, FILES_USAGE, "no path given, or a text that is NULL");
        return say(&e, error, size);
    }
    mpsim_reader *r = new_reader();
    if (!r) {
        trace_error_memory(&e, NULL);
        return say(&e, error, size);
    }
    tracelib_surroundings_enter(&own, r->locale);
    const int bad = list_all(r, paths, n_paths, options, n_options, &e);
    tracelib_surroundings_leave(&own);
    if (!bad) {
        *to = r;
        return MPSIM_OK;
    }
    mpsim_reader_close(r);
    return say(&e, error, size);
}

void mpsim_reader_close(mpsim_reader *r)
{
    if (!r)
        return;
    tracelib_files_clear(&r->files);
    for (size_t i = 0; i < r->n_memory; i++)
        free(r->memory[i]);
    free(r->memory);
    free(r->tensors);
    free(r->places);
    free(r->buffer);
    free(r->values);
    freelocale(r->locale);
    free(r);
}

size_t mpsim_reader_count(const mpsim_reader *r)
{
    return r->count;
}

const mpsim_tensor *mpsim_reader_tensor(const mpsim_reader *r, size_t i)
{
    return i < r->count ? &r->tensors[i] : NULL;
}

const char *mpsim_reader_note(const mpsim_reader *r, size_t i)
{
    return i < r->files.n_notes ? r->files.notes[i] : NULL;
}

/* ---- elements ---- */

/* Whether a file that is open anew still has the tensor. */
static int is_same(const trace *t, size_t entry, const mpsim_tensor *x)
{
    const trace_tensor *now = trace_at(t, entry);
    return now && strcmp(now->name, x->name) == 0 && strcmp(now->dtype, x->dtype) == 0 && now->rank == x->dimensions &&
           !now->format == !x->format &&
           (x->dimensions == 0 || memcmp(now->shape, x->shape, x->dimensions * sizeof *x->shape) == 0);
}

static trace *trace_of(mpsim_reader *r, size_t i, trace_error *error)
{
    const place *p = &r->places[i];
    const int was_open = r->files.files[p->file].t != NULL;
    trace *t = tracelib_files_trace(&r->files, p->file, error);
    if (!was_open)
        r->current = SIZE_MAX;
    if (!t || is_same(t, p->entry, &r->tensors[i]))
        return t;
    trace_error_set(error, FILES_DATA, trace_path(t), UINT64_MAX,
                    "has changed since it was opened: tensor '%s' is another one", r->tensors[i].name);
    return NULL;
}

/* Elements of one that is not floating-point numbers: little-endian from copy.c, and back. */
static int read_stored(trace *t, size_t entry, uint64_t first, void *codes, size_t n, trace_error *error)
{
    trace_copy c;
    if (!as_stored(t, entry, &c))
        return trace_error_set(error, FILES_DATA, trace_path(t), UINT64_MAX, "has changed since it was opened");
    if (trace_copy_units(t, &c, first, codes, n, error))
        return -1;
    trace_to_little_endian(codes, c.width, n);
    return 0;
}

/* The next elements of what is read in order. */
static int read_on(trace *t, const mpsim_tensor *x, size_t entry, uint64_t at, void *codes, size_t n,
                   trace_error *error)
{
    size_t got;
    if (!x->format)
        return read_stored(t, entry, at, codes, n, error);
    return (at == 0 && trace_select(t, entry, error)) || trace_read_codes(t, codes, n, &got, error) ? -1 : 0;
}

static int read_in_order(mpsim_reader *r, trace *t, size_t i, uint64_t first, unsigned char *codes, size_t n,
                         trace_error *error)
{
    const mpsim_tensor *x = &r->tensors[i];
    const size_t width = x->code_bytes, most = BUFFER / width;
    uint64_t at = r->current == i && r->next <= first ? r->next : 0;
    int bad = 0;
    r->current = SIZE_MAX;
    for (; at < first && !bad; at += first - at < most ? first - at : most)
        bad = read_on(t, x, r->places[i].entry, at, r->buffer, first - at < most ? (size_t)(first - at) : most, error);
    if (!bad)
        bad = read_on(t, x, r->places[i].entry, first, codes, n, error);
    if (bad)
        return -1;
    r->current = i;
    r->next = first + n;
    return 0;
}

static int read_codes(mpsim_reader *r, size_t i, uint64_t first, void *codes, size_t n, trace_error *error)
{
    trace *t = n ? trace_of(r, i, error) : NULL;
    if (!t)
        return n ? -1 : 0;
    if (!trace_is_flat(t))
        return read_in_order(r, t, i, first, codes, n, error);
    return r->tensors[i].format ? trace_codes(t, r->places[i].entry, first, codes, n, error)
                                : read_stored(t, r->places[i].entry, first, codes, n, error);
}

typedef enum target { TO_CODES, TO_F32, TO_F64 } target;

static int is_copy(const mpsim_format *f, target to)
{
    return to == TO_CODES || strcmp(f->name, to == TO_F32 ? "binary32" : "binary64") == 0;
}

static int read_values(mpsim_reader *r, size_t i, uint64_t first, size_t n, target to, void *out, trace_error *error)
{
    const mpsim_format *f = r->tensors[i].format;
    const size_t most = BUFFER / sizeof(double);
    for (size_t at = 0; at < n; at += most) {
        const size_t m = n - at < most ? n - at : most;
        double *values = to == TO_F64 ? (double *)out + at : r->values;
        if (read_codes(r, i, first + at, r->buffer, m, error))
            return -1;
        if (mpsim_decode_array(f, values, r->buffer, m) != MPSIM_OK)
            return trace_error_say(error, FILES_DATA, "format %s cannot be decoded", f->name);
        for (size_t k = 0; k < m && to == TO_F32; k++)
            ((float *)out)[at + k] = (float)values[k];
    }
    return 0;
}

static int check(const mpsim_reader *r, size_t i, uint64_t first, size_t n, target to, const void *out,
                 trace_error *error)
{
    const mpsim_tensor *x = mpsim_reader_tensor(r, i);
    if (!x)
        return trace_error_say(error, FILES_USAGE, "there is no tensor %zu: there are %zu", i, r->count);
    if (to != TO_CODES && !x->format)
        return trace_error_set(error, FILES_USAGE, x->file, UINT64_MAX,
                               "tensor '%s' of dtype %s does not hold floating-point numbers", x->name, x->dtype);
    if (!x->element)
        return trace_error_set(error, FILES_USAGE, x->file, UINT64_MAX,
                               "elements of dtype %s, of tensor '%s', are not read", x->dtype, x->name);
    if (first > x->count || n > x->count - first || (n && !out))
        return trace_error_set(error, FILES_USAGE, x->file, UINT64_MAX,
                               "tensor '%s' has %" PRIu64 " elements, not %zu from %" PRIu64 " on", x->name, x->count,
                               n, first);
    return 0;
}

static int make_room(mpsim_reader *r, trace_error *error)
{
    if (!r->buffer)
        r->buffer = malloc(BUFFER);
    if (!r->values)
        r->values = malloc(BUFFER);
    return r->buffer && r->values ? 0 : trace_error_memory(error, NULL);
}

static mpsim_status read_as(mpsim_reader *r, size_t i, uint64_t first, size_t n, target to, void *out, char *error,
                            size_t size)
{
    trace_error e;
    surroundings own;
    if (!r)
        return MPSIM_EINVAL;
    tracelib_surroundings_enter(&own, r->locale);
    const int bad = check(r, i, first, n, to, out, &e) || make_room(r, &e) ||
                    (is_copy(r->tensors[i].format, to) ? read_codes(r, i, first, out, n, &e)
                                                       : read_values(r, i, first, n, to, out, &e));
    tracelib_surroundings_leave(&own);
    return bad ? say(&e, error, size) : MPSIM_OK;
}

mpsim_status mpsim_reader_f64(mpsim_reader *r, size_t i, uint64_t first, size_t n, double *values, char *error,
                              size_t size)
{
    return read_as(r, i, first, n, TO_F64, values, error, size);
}

mpsim_status mpsim_reader_f32(mpsim_reader *r, size_t i, uint64_t first, size_t n, float *values, char *error,
                              size_t size)
{
    return read_as(r, i, first, n, TO_F32, values, error, size);
}

mpsim_status mpsim_reader_codes(mpsim_reader *r, size_t i, uint64_t first, size_t n, void *codes, char *error,
                                size_t size)
{
    return read_as(r, i, first, n, TO_CODES, codes, error, size);
}
