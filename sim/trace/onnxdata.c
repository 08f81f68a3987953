/* onnxdata.c -- where the elements of an ONNX model lie: in the model as they are; decoded, in a file without a name; in files beside it.
 *
 * A file beside the model is named by a path below the model's folder. It is opened once at the start, which makes an input of it
 * (inputs.h), and again for each read: there may be one for every tensor. It has to stay the same file.
 * Sources: onnx/onnx.proto (external_data), docs/ExternalData.md of ONNX 1.18.
 *
 * Device and inode show that it is the same file. */
#include "onnx.h"

#include "../array/array.h"
#include "../text/filekind.h"
#include "inputs.h"
#include "parts.h"
#include "unnamed.h"
#include "whole.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct outside {
    const char *path;
    dev_t device;
    ino_t inode;
} outside;

/* A tensor whose file is not looked at yet. */
typedef struct reference {
    size_t entry;
    const char *location;
    uint64_t offset, length;
} reference;

struct onnx_data {
    int decoded; /* a file without a name, or -1 */
    uint64_t decoded_bytes, room;
    outside *files;
    reference *references;
    size_t n_files, n_references;
};

int trace_onnx_data_begin(trace *t, trace_error *error)
{
    onnx_data *d = calloc(1, sizeof *d);
    if (!d)
        return trace_no_memory(t, error);
    d->decoded = -1;
    t->state = d;
    return 0;
}

void trace_onnx_data_close(trace *t)
{
    onnx_data *d = t->state;
    if (!d)
        return;
    if (d->decoded >= 0)
        close(d->decoded);
    free(d->files);
    free(d->references);
    free(d);
    t->state = NULL;
}

int trace_onnx_unread(trace *t, trace_entry *e, const char *why, trace_error *error)
{
    e->bytes = 0;
    e->nowhere = 1;
    e->tensor.format = NULL;
    if (!*t->unread)
        snprintf(t->unread, sizeof t->unread, "'%.250s' of %s, and what is like it: %s", e->tensor.name,
                 e->tensor.dtype, why);
    e->tensor.unread = trace_string(t, why, strlen(why));
    return e->tensor.unread ? 0 : trace_no_memory(t, error);
}

/* The same of n tensors whose data are elsewhere. */
static int unread_all(trace *t, const reference *r, size_t n, const char *why, trace_error *error)
{
    int bad = 0;
    for (size_t i = 0; i < n && !bad; i++)
        bad = trace_onnx_unread(t, &t->entries[r[i].entry], why, error);
    return bad;
}

/* ---- what is decoded ---- */

uint64_t trace_onnx_decode_begin(const onnx *x)
{
    const onnx_data *d = x->t->state;
    return d->decoded_bytes + x->fill;
}

/* The buffer goes to the file. */
static int flush(onnx *x)
{
    onnx_data *d = x->t->state;
    if (d->decoded < 0 && (d->decoded = trace_unnamed_file()) < 0)
        return trace_error_io(x->w.error, x->t->path, TRACE_NO_OFFSET, "cannot create a temporary file in %s",
                              trace_unnamed_place());
    if (d->decoded_bytes == 0)
        d->room = trace_unnamed_room(d->decoded);
    if (x->fill > d->room - d->decoded_bytes)
        return trace_error_set(x->w.error, TRACE_EXIT_IO, x->t->path, TRACE_NO_OFFSET,
                               "its numbers need more than the %" PRIu64
                               " bytes that a temporary file in %s has room for: set TMPDIR",
                               d->room, trace_unnamed_place());
    if (trace_whole_write_at(d->decoded, x->buffer, x->fill, d->decoded_bytes))
        return trace_error_io(x->w.error, x->t->path, TRACE_NO_OFFSET, "cannot write a temporary file in %s",
                              trace_unnamed_place());
    d->decoded_bytes += x->fill;
    x->fill = 0;
    return 0;
}

int trace_onnx_decode(onnx *x, const void *bytes, size_t n)
{
    if (n > sizeof x->buffer - x->fill && flush(x))
        return -1;
    memcpy(x->buffer + x->fill, bytes, n);
    x->fill += n;
    return 0;
}

int trace_onnx_decoded(onnx *x)
{
    return x->fill ? flush(x) : 0;
}

/* ---- files beside the model ---- */

int trace_onnx_external(trace *t, size_t i, const char *location, uint64_t offset, uint64_t length, trace_error *error)
{
    onnx_data *d = t->state;
    if (array_room(&d->references, d->n_references, sizeof *d->references))
        return trace_no_memory(t, error);
    d->references[d->n_references++] =
        (reference){.entry = i, .location = location, .offset = offset, .length = length};
    return 0;
}

static int compare_references(const void *pa, const void *pb)
{
    const reference *a = pa, *b = pb;
    const int order = strcmp(a->location, b->location);
    return order ? order : (a->entry > b->entry) - (a->entry < b->entry);
}

/* Whether a path stays below the folder that it begins in. */
static int is_below(const char *path)
{
    if (!*path || *path == '/')
        return 0;
    for (const char *s = path; s; s = strchr(s, '/') ? strchr(s, '/') + 1 : NULL)
        if (strncmp(s, "..", 2) == 0 && (s[2] == '/' || !s[2]))
            return 0;
    return 1;
}

static int open_outside(const char *path, struct stat *st)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, st)) {
        const int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

/* The entry is where a reference says, in a file of so many bytes. */
static int place(trace *t, const reference *r, size_t file, uint64_t size, trace_error *error)
{
    trace_entry *e = &t->entries[r->entry];
    if (r->length != UINT64_MAX && r->length != e->bytes)
        return trace_fail(t, error, TRACE_NO_OFFSET,
                          "tensor '%s' has %" PRIu64 " bytes in '%.200s', and not the %" PRIu64 " of its shape",
                          e->tensor.name, r->length, r->location, e->bytes);
    if (r->offset > size || e->bytes > size - r->offset)
        return trace_fail(t, error, TRACE_NO_OFFSET,
                          "tensor '%s' needs %" PRIu64 " bytes from %" PRIu64 " on of '%.200s', which has %" PRIu64,
                          e->tensor.name, e->bytes, r->offset, r->location, size);
    e->tensor.offset = r->offset;
    e->at = ONNX_OUTSIDE + file;
    return 0;
}

/* The file of the first of n references, all to it; and these. */
static int take_file(trace *t, const reference *r, size_t n, trace_error *error)
{
    onnx_data *d = t->state;
    struct stat st;
    char why[400];
    const char *path = trace_parts_beside(t, r->location);
    if (!path || array_room(&d->files, d->n_files, sizeof *d->files))
        return trace_no_memory(t, error);
    const int fd = open_outside(path, &st);
    if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
        return trace_error_io(error, path, TRACE_NO_OFFSET, "cannot open");
    snprintf(why, sizeof why, "its data are in '%.200s', which is not there", r->location);
    if (fd < 0)
        return unread_all(t, r, n, why, error);
    trace_inputs_add(fd);
    close(fd);
    if (!S_ISREG(st.st_mode))
        return trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%s': its data are in '%.200s', which %s",
                          t->entries[r->entry].tensor.name, r->location, file_kind(st.st_mode));
    t->beside += (uint64_t)st.st_size;
    d->files[d->n_files] = (outside){path, st.st_dev, st.st_ino};
    for (size_t i = 0; i < n; i++)
        if (place(t, &r[i], d->n_files, (uint64_t)st.st_size, error))
            return -1;
    d->n_files++;
    return 0;
}

/* Many tensors may be the same bytes. */
static int check_shown(trace *t, const trace_options *options, trace_error *error)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->entries[i].at >= ONNX_OUTSIDE && trace_shows(t, options, t->entries[i].bytes))
            return trace_fail(t, error, TRACE_NO_OFFSET,
                              "tensor '%.200s' and those before it show more than %" PRIu64
                              " times the bytes of the files: if that is right, raise --max-ratio",
                              t->entries[i].tensor.name, trace_ratio(options));
    return 0;
}

int trace_onnx_outside(trace *t, const trace_options *options, trace_error *error)
{
    onnx_data *d = t->state;
    const int piped = strcmp(t->path, "-") == 0;
    if (d->n_references)
        qsort(d->references, d->n_references, sizeof *d->references, compare_references);
    for (size_t i = 0, n; i < d->n_references; i += n) {
        const reference *r = &d->references[i];
        for (n = 1; i + n < d->n_references && strcmp(r[n].location, r->location) == 0;)
            n++;
        if (!is_below(r->location))
            return trace_fail(t, error, TRACE_NO_OFFSET,
                              "tensor '%s': its data are in '%.200s', which is not below the folder of the model",
                              t->entries[r->entry].tensor.name, r->location);
        if (piped ? unread_all(t, r, n, "its data are in a file beside the model, which has no folder here", error)
                  : take_file(t, r, n, error))
            return -1;
    }
    free(d->references);
    d->references = NULL;
    return check_shown(t, options, error);
}

/* ---- elements ---- */

static int outside_bytes(const onnx_data *d, size_t file, void *to, size_t n, uint64_t at, trace_error *error)
{
    const outside *f = &d->files[file];
    struct stat st;
    const int fd = open_outside(f->path, &st);
    if (fd < 0)
        return trace_error_io(error, f->path, TRACE_NO_OFFSET, "cannot open");
    const int same = st.st_dev == f->device && st.st_ino == f->inode;
    const ssize_t got = same ? trace_pread(fd, to, n, at) : 0;
    const int bad = got < 0                    ? trace_error_io(error, f->path, at, "cannot read")
                    : !same || (size_t)got < n ? trace_error_set(error, TRACE_EXIT_DATA, f->path, TRACE_NO_OFFSET,
                                                                 "has changed since the model was opened")
                                               : 0;
    close(fd);
    return bad;
}

int trace_onnx_codes(const trace *t, const trace_entry *e, uint64_t first, void *codes, size_t n, trace_error *error)
{
    const onnx_data *d = t->state;
    const size_t bytes = n * trace_width(e);
    const uint64_t at = e->tensor.offset + first * trace_width(e);
    if (e->nowhere)
        return trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%s' has no elements that are read", e->tensor.name);
    if (e->at >= ONNX_OUTSIDE)
        return outside_bytes(d, (size_t)e->at - ONNX_OUTSIDE, codes, bytes, at, error);
    const ssize_t got = e->at == ONNX_DECODED ? trace_pread(d->decoded, codes, bytes, at)
                                              : trace_file_pread(t, codes, bytes, at);
    return trace_was_read(t, got, bytes, at, error);
}

const char *trace_onnx_file(const trace *t, const trace_entry *e)
{
    const onnx_data *d = t->state;
    return e->at >= ONNX_OUTSIDE ? d->files[e->at - ONNX_OUTSIDE].path : t->path;
}
