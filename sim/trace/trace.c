/* trace.c -- opening and closing a trace, and what it says of itself. */
#include "impl.h"
#include "owndigests.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The caller's formats may be gone before the trace is: rows of the table live for ever,
 * others are copied. */
static int own_format(trace *t, const mpsim_format **f, trace_error *error)
{
    if (!*f || mpsim_format_find((*f)->name) == *f)
        return 0;
    mpsim_format *copy = trace_alloc(t, sizeof *copy);
    if (!copy)
        return trace_no_memory(t, error);
    *copy = **f;
    *f = copy;
    return 0;
}

static int own_formats(trace *t, trace_options *o, trace_error *error)
{
    return own_format(t, &o->raw_format, error) || own_format(t, &o->assume_v1, error) ||
           own_format(t, &o->assume_v2, error) || own_format(t, &o->as_int16, error) ||
           own_format(t, &o->as_int8, error);
}

static int open_layout(trace *t, const trace_options *options, trace_error *error)
{
    unsigned char head[TRACE_HEAD];
    if (options->raw_format) {
        t->type = &trace_layout_raw;
    } else {
        const ssize_t n = trace_file_pread(t, head, t->size < sizeof head ? (size_t)t->size : sizeof head, 0);
        if (n < 0)
            return trace_error_io(error, t->path, 0, "cannot read");
        t->type = trace_layout_of(head, (size_t)n);
        if (!t->type)
            return trace_layout_unknown(t, head, (size_t)n, error);
    }
    if (t->type->has_parts && !t->others)
        return trace_fail(t, error, TRACE_NO_OFFSET, "a part of a trace cannot have parts itself");
    return t->type->open(t, options, error);
}

static trace *open_part(const char *path, uint64_t at, uint64_t bytes, const trace_options *options,
                        trace_error *error);

/* A folder is of the layout that its names say, and has no file of its own. */
static int open_whole(trace *t, const trace_options *options, trace_error *error)
{
    static const trace_others others = {open_part, trace_close};
    t->others = &others;
    errno = 0;
    t->type = options->raw_format ? NULL : trace_folder(t->path);
    if (!t->type && errno == ENOMEM)
        return trace_no_memory(t, error);
    if (t->type)
        return t->type->open(t, options, error);
    return trace_source_open(t, options, error) || open_layout(t, options, error);
}

/* A file, or a section of it, that is a part of another trace. */
static int open_section(trace *t, uint64_t at, uint64_t bytes, const trace_options *options, trace_error *error)
{
    if (trace_source_open(t, options, error))
        return -1;
    if (bytes) {
        if (at > t->size || bytes > t->size - at)
            return trace_fail(t, error, TRACE_NO_OFFSET,
                              "%" PRIu64 " bytes from %" PRIu64 " on should be a tensor, but the file has %" PRIu64,
                              bytes, at, t->size);
        t->base = at;
        t->size = bytes;
        t->is_section = 1;
    }
    return open_layout(t, options, error);
}

trace *trace_new(const char *path, const trace_options *options, trace_error *error)
{
    trace *t = calloc(1, sizeof *t);
    if (!t || !(t->path = strdup(path))) {
        free(t);
        trace_error_memory(error, path);
        return NULL;
    }
    t->fd = -1;
    t->max_header = options->max_header ? options->max_header : TRACE_HEADER_DEFAULT;
    if (t->max_header > TRACE_HEADER_MAX)
        t->max_header = TRACE_HEADER_MAX;
    return t;
}

trace *trace_finish(trace *t, const trace_options *options, int failed, trace_error *error)
{
    t->member = NULL;
    if (failed || trace_find_quantised(t, options, error) || trace_find_kinds(t, options, error) ||
        (!t->is_section && trace_own_digests_check(t, error))) {
        trace_close(t);
        return NULL;
    }
    trace_find_unread(t);
    t->step = trace_find_step(t);
    snprintf(t->label, sizeof t->label, "%s (%s)", t->type->name, t->packing ? t->packing : "");
    return t;
}

/* What the caller knows, as if the file said it. */
static int add_loss_scale(trace *t, const char *scale, trace_error *error)
{
    const char *said = trace_metadata(t, "mpsim.grads_scaled");
    if (said)
        return trace_error_set(error, TRACE_EXIT_USAGE, t->path, TRACE_NO_OFFSET,
                               "--loss-scale is for files that do not say it: here mpsim.grads_scaled is '%s'", said);
    char *copy = trace_string(t, scale, strlen(scale));
    if (!copy)
        return trace_no_memory(t, error);
    for (size_t i = 0; i < t->n_metadata; i++)
        if (strcmp(t->metadata[2 * i], "mpsim.loss_scale") == 0)
            t->metadata[2 * i] = "";
    return trace_add_metadata(t, "mpsim.grads_scaled", "true", error) ||
                   trace_add_metadata(t, "mpsim.loss_scale", copy, error)
               ? -1
               : 0;
}

trace *trace_open(const char *path, const trace_options *options, trace_error *error)
{
    trace_options o = {0};
    if (options)
        o = *options;
    trace *t = trace_new(path, &o, error);
    return t ? trace_finish(t, &o,
                            own_formats(t, &o, error) || open_whole(t, &o, error) ||
                                (o.loss_scale && add_loss_scale(t, o.loss_scale, error)),
                            error)
             : NULL;
}

static trace *open_part(const char *path, uint64_t at, uint64_t bytes, const trace_options *options, trace_error *error)
{
    trace *t = trace_new(path, options, error);
    return t ? trace_finish(t, options, open_section(t, at, bytes, options, error), error) : NULL;
}

void trace_close(trace *t)
{
    if (!t)
        return;
    if (t->type && t->type->close)
        t->type->close(t);
    if (t->fd >= 0)
        close(t->fd);
    trace_memory_clear(t);
    free(t->path);
    free(t);
}

const char *trace_path(const trace *t)
{
    return t->path;
}

const char *trace_file_of(const trace *t, size_t i)
{
    return t->type->file ? t->type->file(t, &t->entries[i]) : t->path;
}

int trace_has_index(const trace *t)
{
    return t->type == &trace_layout_shards;
}

const char *trace_layout(const trace *t)
{
    return t->packing ? t->label : t->type->name;
}

uint64_t trace_size(const trace *t)
{
    return t->size;
}

int64_t trace_step(const trace *t)
{
    return t->step;
}

const char *trace_convention(const trace *t)
{
    return t->convention;
}

const char *trace_clash(const trace *t)
{
    return t->clash[0] ? t->clash : NULL;
}

const char *trace_quantised_note(const trace *t)
{
    return t->lone[0] ? t->lone : NULL;
}

const char *trace_zeros_note(const trace *t)
{
    return t->zeros[0] ? t->zeros : NULL;
}

const char *trace_unread_note(const trace *t)
{
    return t->unread[0] ? t->unread : NULL;
}

size_t trace_count(const trace *t)
{
    return t->count;
}

const trace_tensor *trace_at(const trace *t, size_t i)
{
    return i < t->count ? &t->entries[i].tensor : NULL;
}
