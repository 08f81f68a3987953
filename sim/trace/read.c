/* read.c -- bytes of an open file, and the elements of a tensor: their codes as they are stored, or exact
 * binary64 values. */
#include "impl.h"
#include "whole.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 256 << 10 }; /* a multiple of every code width */

static void (*_Atomic watcher)(size_t bytes);

void trace_watch_reads(void (*read)(size_t bytes))
{
    atomic_store(&watcher, read);
}

ssize_t trace_pread(int fd, void *p, size_t n, uint64_t offset)
{
    const ssize_t got = trace_whole_read_at(fd, p, n, offset);
    void (*told)(size_t bytes) = atomic_load(&watcher);
    if (told && got >= 0)
        told((size_t)got);
    return got;
}

ssize_t trace_file_pread(const trace *t, void *p, size_t n, uint64_t at)
{
    return trace_pread(t->fd, p, n, t->base + at);
}

int trace_was_read(const trace *t, ssize_t r, size_t n, uint64_t at, trace_error *error)
{
    if (r < 0)
        return trace_error_io(error, t->path, at, "cannot read");
    if ((size_t)r < n)
        return trace_fail(t, error, at + (size_t)r,
                          "the file ends here: it has become shorter than its %" PRIu64 " bytes", t->size);
    return 0;
}

static int file_bytes(const trace *t, void *p, size_t n, uint64_t at, trace_error *error)
{
    return trace_was_read(t, trace_file_pread(t, p, n, at), n, at, error);
}

int trace_bytes(trace *t, void *p, size_t n, trace_error *error)
{
    if (t->type->bytes && t->member ? t->type->bytes(t, p, n, error) : file_bytes(t, p, n, t->at, error))
        return -1;
    t->at += n;
    return 0;
}

size_t trace_width(const trace_entry *e)
{
    const trace_tensor *x = &e->tensor;
    const uint64_t width = x->format ? mpsim_format_code_bytes(x->format) : x->count ? e->bytes / x->count : 1;
    return width == 0 ? 1 : width < SIZE_MAX ? (size_t)width : SIZE_MAX;
}

/* n units of an entry, as they lie in the file: elements, or bytes that several elements share. */
static int entry_units(const trace *t, const trace_entry *e, uint64_t first, void *units, size_t n, trace_error *error)
{
    const size_t width = trace_width(e);
    if (t->type->codes)
        return t->type->codes(t, e, first, units, n, error);
    return file_bytes(t, units, n * width, e->tensor.offset + first * width, error);
}

/* n codes of an entry that are packed: groups of four are whole bytes, and the first may begin within one. */
static int packed_codes(const trace *t, const trace_entry *e, uint64_t first, unsigned char *codes, size_t n,
                        trace_error *error)
{
    enum { GROUP = 4, CODES = 32 << 10 };
    unsigned char bytes[CODES], group[GROUP];
    while (n) {
        const size_t skip = first % GROUP, most = skip ? GROUP - skip : CODES, m = n < most ? n : most;
        const uint64_t begin = quant_packed(e->packing, first - skip), end = quant_packed(e->packing, first + m);
        if (entry_units(t, e, begin, bytes, (size_t)(end - begin), error))
            return -1;
        quant_unpack(e->packing, skip ? group : codes, bytes, skip + m);
        if (skip)
            memcpy(codes, group + skip, m);
        first += m;
        codes += m;
        n -= m;
    }
    return 0;
}

/* n elements of an entry from element `first`, which are to be there, in the byte order of the entry. */
static int entry_codes(const trace *t, const trace_entry *e, uint64_t first, void *codes, size_t n, trace_error *error)
{
    if (e->tensor.quantised)
        return t->quantised(t, e, first, codes, n, error);
    return e->packing ? packed_codes(t, e, first, codes, n, error) : entry_units(t, e, first, codes, n, error);
}

/* The same of the next elements of the selected tensor. */
static int next_codes(trace *t, void *codes, size_t n, trace_error *error)
{
    if (t->type->codes || t->current->tensor.quantised || t->current->packing)
        return entry_codes(t, t->current, t->done, codes, n, error);
    return trace_bytes(t, codes, n * trace_width(t->current), error);
}

static const trace_entry *entry_with_numbers(const trace *t, size_t i, trace_error *error)
{
    const trace_entry *e = i < t->count ? &t->entries[i] : NULL;
    if (!e)
        trace_fail(t, error, TRACE_NO_OFFSET, "there is no tensor %zu", i);
    else if (!e->tensor.format)
        trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%s' of dtype %s does not hold floating-point numbers",
                   e->tensor.name, e->tensor.dtype);
    return e && e->tensor.format ? e : NULL;
}

int trace_select_stored(trace *t, size_t entry, trace_error *error)
{
    const trace_entry *e = &t->entries[entry];
    t->current = NULL;
    t->member = NULL;
    t->at = e->tensor.offset;
    if (!e->tensor.quantised && t->type->start && t->type->start(t, e, error))
        return -1;
    t->current = e;
    t->done = 0;
    t->finished = 0;
    return 0;
}

int trace_select(trace *t, size_t i, trace_error *error)
{
    t->current = NULL;
    t->member = NULL;
    return entry_with_numbers(t, i, error) ? trace_select_stored(t, i, error) : -1;
}

static void swap_bytes(unsigned char *p, size_t width, size_t n)
{
    for (; n; n--, p += width)
        for (size_t i = 0; i < width / 2; i++) {
            const unsigned char c = p[i];
            p[i] = p[width - 1 - i];
            p[width - 1 - i] = c;
        }
}

/* n elements of e, as they lie in the file, into the byte order of the host: computed ones and those of other traces have
 * it. */
static void to_host(const trace *t, const trace_entry *e, void *codes, size_t n)
{
    static const uint16_t one = 1;
    const int host_is_big = *(const unsigned char *)&one == 0;
    if (!e->tensor.quantised && !t->type->has_parts && e->tensor.big_endian != host_is_big)
        swap_bytes(codes, trace_width(e), n);
}

/* Of n codes of an entry from element `first` on those that are round-off (roundoff.c) become zeros. */
static void zero_roundoff(const trace_entry *e, uint64_t first, void *codes, size_t n)
{
    const trace_rounded *r = e->tensor.roundoff;
    const size_t width = r ? trace_width(e) : 0;
    for (size_t k = 0; r && k < n; k++)
        if (r->marks[first + k])
            memset((char *)codes + k * width, 0, width);
}

int trace_stored(const trace *t, const trace_entry *e, uint64_t first, void *codes, size_t n, trace_error *error)
{
    const uint64_t count = e->tensor.format ? e->tensor.count : e->bytes / trace_width(e);
    if (!trace_is_flat(t) || first > count || n > count - first)
        return trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%s' has no such elements", e->tensor.name);
    if (entry_codes(t, e, first, codes, n, error))
        return -1;
    to_host(t, e, codes, n);
    return 0;
}

int trace_read_codes(trace *t, void *codes, size_t n, size_t *got, trace_error *error)
{
    *got = 0;
    if (!t->current)
        return trace_fail(t, error, TRACE_NO_OFFSET, "no tensor is selected");
    const trace_tensor *x = &t->current->tensor;
    const size_t m = x->count - t->done < n ? (size_t)(x->count - t->done) : n;
    if (next_codes(t, codes, m, error))
        goto fail;
    to_host(t, t->current, codes, m);
    zero_roundoff(t->current, t->done, codes, m);
    t->done += m;
    if (t->done == x->count && !t->finished) {
        t->finished = 1;
        if (t->type->finish && t->type->finish(t, error))
            goto fail;
    }
    *got = m;
    return 0;
fail:
    t->current = NULL; /* an error does not go away by reading on */
    return -1;
}

int trace_read(trace *t, double *values, size_t n, size_t *got, trace_error *error)
{
    size_t m = 1;
    *got = 0;
    if (!t->buffer && !(t->buffer = malloc(BUFFER)))
        return trace_no_memory(t, error);
    for (size_t at = 0; m; at += m) {
        const mpsim_format *f = t->current ? t->current->tensor.format : NULL;
        const size_t chunk = f ? BUFFER / mpsim_format_code_bytes(f) : 0;
        *got = 0;
        if (trace_read_codes(t, t->buffer, n - at < chunk ? n - at : chunk, &m, error))
            return -1;
        if (mpsim_decode_array(f, values + at, t->buffer, m) != MPSIM_OK) {
            t->current = NULL;
            return trace_fail(t, error, TRACE_NO_OFFSET, "format %s cannot be decoded", f->name);
        }
        *got = at + m;
    }
    return 0;
}

int trace_is_flat(const trace *t)
{
    return t->type->bytes == NULL;
}

int trace_codes(const trace *t, size_t i, uint64_t first, void *codes, size_t n, trace_error *error)
{
    const trace_entry *e = entry_with_numbers(t, i, error);
    if (!e)
        return -1;
    const trace_tensor *x = &e->tensor;
    if (!trace_is_flat(t) || first > x->count || n > x->count - first)
        return trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%s' has no such elements", x->name);
    if (entry_codes(t, e, first, codes, n, error))
        return -1;
    to_host(t, e, codes, n);
    zero_roundoff(e, first, codes, n);
    return 0;
}

int trace_read_bytes(trace *t, void *bytes, size_t n, trace_error *error)
{
    if (!t->current)
        return trace_fail(t, error, TRACE_NO_OFFSET, "no tensor is selected");
    const size_t width = mpsim_format_code_bytes(t->current->tensor.format);
    const uint64_t left = (t->current->tensor.count - t->done) * width;
    if (n % width || n > left)
        return trace_fail(t, error, TRACE_NO_OFFSET, "only %llu bytes are left of the tensor",
                          (unsigned long long)left);
    if (next_codes(t, bytes, n / width, error)) {
        t->current = NULL;
        return -1;
    }
    t->done += n / width;
    return 0;
}
