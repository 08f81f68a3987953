/* elements.c -- see elements.h. */
#include "elements.h"

#include "../cli/options.h"
#include "../trace/temporary.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 256 << 10, SMALL = 4 << 20 }; /* bytes: read at once; kept in memory */

/* ---- a copy ---- */

static int failed(const elements *e, const char *what, trace_error *error)
{
    return trace_error_set(error, EXIT_IO, trace_path(e->t), UINT64_MAX, "%s", what);
}

static int failed_temporary(const elements *e, trace_error *error)
{
    return trace_error_set(error, EXIT_IO, trace_path(e->t), UINT64_MAX, "a temporary file in %s: %s",
                           temporary_place(), strerror(errno ? errno : EIO));
}

static int write_all(const elements *e, const unsigned char *p, size_t n, trace_error *error)
{
    while (n > 0) {
        errno = 0;
        const ssize_t done = write(e->file, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return failed_temporary(e, error);
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

static int copy_to_memory(elements *e, uint64_t count, trace_error *error)
{
    size_t got;
    e->memory = malloc((size_t)count * e->width + 1);
    if (!e->memory)
        return failed(e, "out of memory", error);
    for (uint64_t at = 0;; at += got) /* to the end, where a member's CRC is compared */
        if (trace_read_codes(e->t, e->memory + at * e->width, (size_t)(count - at), &got, error))
            return -1;
        else if (got == 0)
            return 0;
}

static int copy_to_file(elements *e, const volatile sig_atomic_t *asked, trace_error *error)
{
    size_t got = 1;
    unsigned char *block = malloc(BLOCK);
    int code = block ? 0 : failed(e, "out of memory", error);
    if (!code && (e->file = temporary_unnamed()) < 0)
        code = failed_temporary(e, error);
    while (!code && got && !(asked && *asked)) {
        code = trace_read_codes(e->t, block, BLOCK / e->width, &got, error);
        if (!code)
            code = write_all(e, block, got * e->width, error);
    }
    free(block);
    return code;
}

int elements_open(elements *e, trace *t, size_t i, const volatile sig_atomic_t *asked, trace_error *error)
{
    const trace_tensor *x = trace_at(t, i);
    *e = (elements){.t = t, .i = i, .format = x->format, .width = mpsim_format_code_bytes(x->format), .file = -1};
    if (trace_is_flat(t))
        return 0;
    e->copied = 1;
    if (trace_select(t, i, error))
        return -1;
    return x->count < SMALL / e->width ? copy_to_memory(e, x->count, error) : copy_to_file(e, asked, error);
}

void elements_close(elements *e)
{
    free(e->memory);
    if (e->copied && e->file >= 0)
        close(e->file);
    memset(e, 0, sizeof *e);
}

/* ---- reading ---- */

static int read_copy(const elements *e, uint64_t at, unsigned char *to, size_t n, trace_error *error)
{
    if (e->memory)
        memcpy(to, e->memory + at, n);
    while (!e->memory && n > 0) {
        errno = 0;
        const ssize_t got = pread(e->file, to, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return failed_temporary(e, error);
        to += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return 0;
}

int elements_codes(const elements *e, uint64_t first, void *codes, size_t n, trace_error *error)
{
    return e->copied ? read_copy(e, first * e->width, codes, n * e->width, error)
                     : trace_codes(e->t, e->i, first, codes, n, error);
}

/* bf16 is the upper half of binary32. */
static void widen_halves(float *to, const unsigned char *codes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t code;
        memcpy(&code, codes + 2 * i, sizeof code);
        const uint32_t bits = (uint32_t)code << 16;
        memcpy(&to[i], &bits, sizeof bits);
    }
}

static void note_beyond(elements_beyond *b, size_t at, double x, float rounded)
{
    if (rounded == 0 && x != 0)
        b->zero[b->zeros++] = (struct elements_zero){at, x};
    if (isinf(rounded) && !isinf(x)) {
        b->infinite++;
        mpsim_sum_add_square(&b->squares, x);
    }
}

void elements_floats(const elements *e, float *to, size_t at, const void *codes, size_t n, elements_beyond *beyond)
{
    enum { AT_ONCE = 1024 };
    double wide[AT_ONCE];
    const unsigned char *p = codes;
    if (strcmp(e->format->name, "binary32") == 0) {
        memcpy(to + at, p, n * sizeof *to);
        return;
    }
    if (strcmp(e->format->name, "bf16") == 0) {
        widen_halves(to + at, p, n);
        return;
    }
    for (size_t i = 0, m; i < n; i += m) {
        m = n - i < AT_ONCE ? n - i : AT_ONCE;
        mpsim_decode_array(e->format, wide, p + i * e->width, m);
        for (size_t k = 0; k < m; k++) {
            to[at + i + k] = (float)wide[k];
            note_beyond(beyond, at + i + k, wide[k], to[at + i + k]);
        }
    }
}
