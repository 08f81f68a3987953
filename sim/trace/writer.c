/* writer.c -- safetensors and npy files. What the readers here accept is what is written. */
#include "impl.h"
#include "outfile.h"

#include "../array/array.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct trace_writer {
    outfile *out;
    uint64_t begin;        /* of the data in the file      */
    _Atomic uint64_t left; /* bytes of data still to come  */
};

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
print(array_bytes *t, const char *format, ...)
{
    char line[128];
    va_list ap;
    va_start(ap, format);
    const int n = vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof line)
        t->failed = 1;
    else
        array_put(t, line, (size_t)n);
}

/* A JSON string; -1 if s is not UTF-8. */
static int put_string(array_bytes *t, const char *s)
{
    size_t n = 1;
    uint32_t c;
    for (const char *p = s; *p && n; p += n)
        n = utf8_character(p, &c);
    if (!n)
        return -1;
    json_t *v = json_string(s);
    char *quoted = v ? json_dumps(v, JSON_ENCODE_ANY) : NULL;
    json_decref(v);
    if (quoted)
        array_put(t, quoted, strlen(quoted));
    else
        t->failed = 1;
    free(quoted);
    return 0;
}

static void put_shape(array_bytes *t, const trace_tensor *x, const char *separator)
{
    for (size_t i = 0; i < x->rank; i++)
        print(t, "%s%" PRIu64, i ? separator : "", x->shape[i]);
}

/* Size of a tensor's codes, of so many bits each; -1 and an error if there is none. */
static int tensor_bytes(const char *path, const trace_tensor *x, unsigned code_bits, uint64_t *bytes,
                        trace_error *error)
{
    uint64_t count;
    const trace_dtype *d = x->format || !x->dtype ? NULL : trace_dtype_find(x->dtype);
    const unsigned bits = d ? d->bits : x->format ? code_bits : 8;
    const int bad = x->rank > TRACE_RANK_MAX ? -1 : trace_shape_bytes(x->shape, x->rank, bits, &count, bytes);
    if (bad == -2)
        return trace_error_set(error, TRACE_EXIT_DATA, path, TRACE_NO_OFFSET,
                               "tensor '%s': %" PRIu64 " elements of %u bits do not end on a byte, as safetensors "
                               "demands: write npy, or wider numbers",
                               x->name, count, bits);
    if (bad)
        return trace_error_set(error, TRACE_EXIT_DATA, path, TRACE_NO_OFFSET,
                               "the shape of tensor '%s' is too large to write", x->name);
    return 0;
}

static int check_names(const char *path, const trace_tensor *tensors, size_t n, const char *const (*metadata)[2],
                       size_t n_metadata, trace_error *error)
{
    int failed = 0;
    const char *const *twice = NULL;
    for (size_t i = 0; i < n; i++)
        if (strcmp(tensors[i].name, "__metadata__") == 0)
            twice = &tensors[i].name;
    if (!twice && n)
        twice = trace_duplicate(&tensors[0].name, n, sizeof *tensors, &failed);
    if (!twice && !failed && n_metadata)
        twice = trace_duplicate(&metadata[0][0], n_metadata, sizeof *metadata, &failed);
    if (failed)
        return trace_error_memory(error, path);
    if (twice)
        return trace_error_set(error, TRACE_EXIT_DATA, path, TRACE_NO_OFFSET,
                               "the name '%s' cannot be written: it occurs twice or is reserved", *twice);
    return 0;
}

static int not_utf8(const char *path, const char *name, trace_error *error)
{
    return trace_error_set(error, TRACE_EXIT_DATA, path, TRACE_NO_OFFSET,
                           "the name or text '%s' is not UTF-8 and cannot be written as JSON", name);
}

static int put_tensor(array_bytes *t, const char *path, const trace_tensor *x, uint64_t *end, trace_error *error)
{
    uint64_t bytes;
    const char *plain = x->format ? trace_safetensors_dtype(x->format) : NULL;
    const char *dtype = plain                                    ? plain
                        : x->format                              ? trace_packed_dtype(x->format)
                        : x->dtype && trace_dtype_find(x->dtype) ? x->dtype
                                                                 : NULL;
    if (!dtype)
        return trace_error_set(error, TRACE_EXIT_DATA, path, TRACE_NO_OFFSET,
                               "tensor '%s': safetensors has no dtype for %s", x->name,
                               x->format  ? x->format->name
                               : x->dtype ? x->dtype
                                          : "it");
    if (tensor_bytes(path, x, x->format ? (unsigned)trace_code_bits(x->format) : 0, &bytes, error))
        return -1;
    if (bytes > UINT64_MAX / 2 - *end)
        return trace_error_set(error, TRACE_EXIT_DATA, path, TRACE_NO_OFFSET, "the tensors are too large for one file");
    if (put_string(t, x->name))
        return not_utf8(path, x->name, error);
    print(t, ":{\"dtype\":\"%s\",\"shape\":[", dtype);
    put_shape(t, x, ",");
    print(t, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", *end, *end + bytes);
    *end += bytes;
    return 0;
}

static int put_metadata(array_bytes *t, const char *path, const char *const (*metadata)[2], size_t n,
                        trace_error *error)
{
    print(t, "\"__metadata__\":{");
    for (size_t i = 0; i < n; i++) {
        array_put(t, ",", i != 0);
        if (put_string(t, metadata[i][0]))
            return not_utf8(path, metadata[i][0], error);
        array_put(t, ":", 1);
        if (put_string(t, metadata[i][1]))
            return not_utf8(path, metadata[i][1], error);
    }
    array_put(t, "}", 1);
    return 0;
}

/* Open the file and write its header; takes over the text. */
static trace_writer *begin(const char *path, array_bytes *header, uint64_t bytes, trace_error *error)
{
    trace_writer *w = NULL;
    if (header->failed || !(w = malloc(sizeof *w))) {
        trace_error_memory(error, path);
    } else {
        w->left = bytes;
        w->begin = header->n;
        w->out = trace_outfile_open(path, error);
        if (!w->out || trace_outfile_write(w->out, header->p, header->n, error) ||
            (trace_outfile_has_places(w->out) && trace_outfile_make_places(w->out, w->begin, error))) {
            trace_writer_abandon(w);
            w = NULL;
        }
    }
    free(header->p);
    return w;
}

trace_writer *trace_writer_safetensors(const char *path, const trace_tensor *tensors, size_t n,
                                       const char *const (*metadata)[2], size_t n_metadata, trace_error *error)
{
    array_bytes t = {0};
    uint64_t end = 0;
    if (check_names(path, tensors, n, metadata, n_metadata, error))
        return NULL;
    array_put(&t, "        {", 9); /* 8 bytes for the length */
    if (n_metadata && put_metadata(&t, path, metadata, n_metadata, error))
        goto fail;
    for (size_t i = 0; i < n; i++) {
        array_put(&t, ",", i || n_metadata);
        if (put_tensor(&t, path, &tensors[i], &end, error))
            goto fail;
    }
    array_put(&t, "}", 1);
    array_put(&t, "       ", (8 - t.n % 8) % 8);
    if (!t.failed) {
        const uint64_t length = t.n - 8;
        if (length > TRACE_HEADER_MAX) {
            trace_error_set(error, TRACE_EXIT_DATA, path, TRACE_NO_OFFSET,
                            "a header of %" PRIu64 " bytes is more than safetensors readers accept", length);
            goto fail;
        }
        for (unsigned i = 0; i < 8; i++)
            t.p[i] = (unsigned char)(length >> 8 * i & 0xff);
    }
    return begin(path, &t, end, error);
fail:
    free(t.p);
    return NULL;
}

trace_writer *trace_writer_npy(const char *path, const trace_tensor *x, trace_error *error)
{
    array_bytes t = {0};
    uint64_t bytes;
    const char *descr = x->format ? trace_npy_descr(x->format) : NULL;
    if (!descr) {
        trace_error_set(error, TRACE_EXIT_DATA, path, TRACE_NO_OFFSET, "npy has no dtype for %s",
                        x->format  ? x->format->name
                        : x->dtype ? x->dtype
                                   : "it");
        return NULL;
    }
    if (tensor_bytes(path, x, 8 * (unsigned)mpsim_format_code_bytes(x->format), &bytes, error))
        return NULL;
    array_put(&t, "\x93NUMPY\1\0\0\0", 10);
    print(&t, "{'descr': '%s', 'fortran_order': %s, 'shape': (", descr, x->fortran ? "True" : "False");
    put_shape(&t, x, ", ");
    print(&t, "%s), }", x->rank == 1 ? "," : "");
    if (descr[1] == 'V') /* bytes for numpy, which passes over a comment */
        print(&t, " # mpsim: %s", x->format->name);
    while (!t.failed && t.n % 64 != 63)
        array_put(&t, " ", 1);
    array_put(&t, "\n", 1);
    if (!t.failed) { /* at most 64 dimensions: two bytes are enough for the length */
        t.p[8] = (unsigned char)((t.n - 10) & 0xff);
        t.p[9] = (unsigned char)((t.n - 10) >> 8);
    }
    return begin(path, &t, bytes, error);
}

static int check_left(const trace_writer *w, size_t n, trace_error *error)
{
    const uint64_t left = w->left;
    return n > left ? trace_error_set(error, TRACE_EXIT_IO, trace_outfile_path(w->out), TRACE_NO_OFFSET,
                                      "internal error: %zu bytes of data, only %" PRIu64 " announced", n, left)
                    : 0;
}

int trace_writer_data(trace_writer *w, const void *bytes, size_t n, trace_error *error)
{
    if (check_left(w, n, error) || trace_outfile_write(w->out, bytes, n, error))
        return -1;
    w->left -= n;
    return 0;
}

int trace_writer_has_places(const trace_writer *w)
{
    return trace_outfile_has_places(w->out);
}

int trace_writer_make_places(trace_writer *w, trace_error *error)
{
    return trace_outfile_make_places(w->out, w->begin, error);
}

int trace_writer_data_at(trace_writer *w, uint64_t at, const void *bytes, size_t n, trace_error *error)
{
    if (check_left(w, n, error) || trace_outfile_write_at(w->out, w->begin + at, bytes, n, error))
        return -1;
    w->left -= n;
    return 0;
}

int trace_writer_finish(trace_writer *w, trace_error *error)
{
    int result;
    if (w->left) {
        result = trace_error_set(error, TRACE_EXIT_IO, trace_outfile_path(w->out), TRACE_NO_OFFSET,
                                 "internal error: %" PRIu64 " bytes of data are missing", (uint64_t)w->left);
        trace_writer_abandon(w);
        return result;
    }
    result = trace_outfile_close(w->out, error);
    free(w);
    return result;
}

void trace_writer_abandon(trace_writer *w)
{
    if (!w)
        return;
    trace_outfile_abandon(w->out);
    free(w);
}
