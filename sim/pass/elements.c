/* elements.c -- see elements.h. */
#include "elements.h"

#include "../array/array.h"
#include "../cli/options.h"
#include "../trace/unnamed.h"
#include "../trace/whole.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes: read at once; kept in memory; loaded there; of rows that are put together. */
enum { BLOCK = 256 << 10, SMALL = 4 << 20, LOADED_MOST = 8 << 20, BAND = 64 << 20 };

/* ---- a copy ---- */

static int failed_temporary(const elements *e, trace_error *error)
{
    return trace_error_io(error, trace_path(e->t), UINT64_MAX, "a temporary file in %s", trace_unnamed_place());
}

/* A file for all elements, if there is room for it. */
static int begin_file(elements *e, trace_error *error)
{
    const uint64_t bytes = trace_at(e->t, e->i)->count * e->width;
    if ((e->file = trace_unnamed_file()) < 0)
        return failed_temporary(e, error);
    const uint64_t room = trace_unnamed_room(e->file);
    return bytes <= room ? 0
                         : trace_error_set(error, EXIT_IO, trace_path(e->t), UINT64_MAX,
                                           "a copy of tensor '%.200s' takes %" PRIu64 " bytes, more than the %" PRIu64
                                           " that a temporary file in %s has room for: set "
                                           "TMPDIR",
                                           trace_at(e->t, e->i)->name, bytes, room, trace_unnamed_place());
}

static int write_all(const elements *e, const void *p, size_t n, trace_error *error)
{
    return trace_whole_write(e->file, p, n) ? failed_temporary(e, error) : 0;
}

/* Small ones in memory; the others through a block to a file. To the end, where a member's CRC is compared. */
static int copy_stored(elements *e, const atomic_int *asked, trace_error *error)
{
    const uint64_t count = trace_at(e->t, e->i)->count;
    const int small = count < SMALL / e->width;
    const size_t room = small ? (size_t)count : BLOCK / e->width;
    unsigned char *block = malloc(room * e->width + 1);
    int code = block ? 0 : trace_no_memory(e->t, error);
    if (!code && !small)
        code = begin_file(e, error);
    for (size_t at = 0, got = 1; !code && got && !(asked && *asked); at += small ? got : 0) {
        code = trace_read_codes(e->t, block + at * e->width, room - at, &got, error);
        if (!code && !small)
            code = write_all(e, block, got * e->width, error);
    }
    if (small)
        e->memory = block;
    else
        free(block);
    return code;
}

/* As they are stored. */
static int open_stored(elements *e, const atomic_int *asked, trace_error *error)
{
    if (trace_is_flat(e->t))
        return 0;
    e->copied = 1;
    return trace_select(e->t, e->i, error) ? -1 : copy_stored(e, asked, error);
}

/* ---- reading ---- */

static int read_copy(const elements *e, uint64_t at, unsigned char *to, size_t n, trace_error *error)
{
    errno = 0;
    if (e->memory)
        memcpy(to, e->memory + at, n);
    else if (trace_whole_read_at(e->file, to, n, at) != (ssize_t)n)
        return failed_temporary(e, error);
    return 0;
}

int pass_elements_codes(const elements *e, uint64_t first, void *codes, size_t n, trace_error *error)
{
    return e->copied ? read_copy(e, first * e->width, codes, n * e->width, error)
                     : trace_codes(e->t, e->i, first, codes, n, error);
}

/* ---- a copy by rows of what is stored by columns: the first axis varies fastest there ---- */

int pass_elements_by_columns(const trace_tensor *x)
{
    int long_axes = 0;
    for (size_t k = 0; k < x->rank; k++)
        long_axes += x->shape[k] > 1;
    return x->fortran && long_axes > 1 && x->count;
}

/* The place in a row of what stands at `column` in the file: the other axes, the last one fastest here. */
static uint64_t place_in_row(const trace_tensor *x, uint64_t column)
{
    uint64_t step = x->count / x->shape[0], place = 0;
    for (size_t k = 1; k < x->rank; k++) {
        step /= x->shape[k];
        place += column % x->shape[k] * step;
        column /= x->shape[k];
    }
    return place;
}

static void put_column(unsigned char *to, size_t stride, const unsigned char *from, size_t n, size_t width)
{
    switch (width) {
    case 2:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * stride, from + 2 * i, 2);
        break;
    case 4:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * stride, from + 4 * i, 4);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * stride, from + i * width, width);
    }
}

void pass_elements_in_rows(void *to, const void *codes, const trace_tensor *x, size_t width)
{
    const size_t length = (size_t)(x->count / x->shape[0]), n = (size_t)x->shape[0];
    for (size_t column = 0; column < length; column++)
        put_column((unsigned char *)to + place_in_row(x, column) * width, length * width,
                   (const unsigned char *)codes + column * n * width, n, width);
}

/* n rows from `row` on, through `room` of `bytes`, which has place for a column of them: all rows as many columns at once
 * as fit. */
static int read_rows(const elements *stored, uint64_t row, size_t n, unsigned char *to, unsigned char *room,
                     size_t bytes, trace_error *error)
{
    const trace_tensor *x = trace_at(stored->t, stored->i);
    const uint64_t length = x->count / x->shape[0];
    const size_t width = stored->width, column_bytes = n * width, fit = n == x->shape[0] ? bytes / column_bytes : 1;
    for (uint64_t column = 0, m; column < length; column += m) {
        m = length - column < fit ? length - column : fit;
        if (pass_elements_codes(stored, column * x->shape[0] + row, room, (size_t)m * n, error))
            return -1;
        for (size_t k = 0; k < m; k++)
            put_column(to + place_in_row(x, column + k) * width, (size_t)length * width, room + k * column_bytes, n,
                       width);
    }
    return 0;
}

/* Bands of rows, one after the other; the only one stays in memory. */
static int copy_rows(elements *e, const elements *stored, const atomic_int *asked, trace_error *error)
{
    const trace_tensor *x = trace_at(e->t, e->i);
    const uint64_t bytes = x->count / x->shape[0] * e->width, fit = bytes < BAND ? BAND / bytes : 1;
    const size_t most = (size_t)(fit < x->shape[0] ? fit : x->shape[0]);
    const size_t room_bytes = most * e->width > BLOCK ? most * e->width : BLOCK;
    unsigned char *band = array_memory(most, bytes), *room = malloc(room_bytes);
    int code = band && room ? 0 : trace_no_memory(e->t, error);
    if (!code && most < x->shape[0])
        code = begin_file(e, error);
    for (uint64_t row = 0, n; row < x->shape[0] && !code && !(asked && *asked); row += n) {
        n = x->shape[0] - row < most ? x->shape[0] - row : most;
        code = read_rows(stored, row, (size_t)n, band, room, room_bytes, error);
        if (!code && e->file >= 0)
            code = write_all(e, band, (size_t)(n * bytes), error);
    }
    free(room);
    if (e->file >= 0 || code)
        free(band);
    else
        e->memory = band;
    return code;
}

static int open_rows(elements *e, const atomic_int *asked, trace_error *error)
{
    elements stored = *e;
    int code = open_stored(&stored, asked, error);
    e->copied = 1;
    if (!code)
        code = copy_rows(e, &stored, asked, error);
    pass_elements_close(&stored);
    return code;
}

int pass_elements_open(elements *e, trace *t, size_t i, elements_order order, const atomic_int *asked,
                       trace_error *error)
{
    const trace_tensor *x = trace_at(t, i);
    *e = (elements){.t = t, .i = i, .format = x->format, .width = mpsim_format_code_bytes(x->format), .file = -1};
    return order == ELEMENTS_ROWS && pass_elements_by_columns(x) ? open_rows(e, asked, error)
                                                                 : open_stored(e, asked, error);
}

void pass_elements_close(elements *e)
{
    free(e->memory);
    if (e->copied && e->file >= 0)
        close(e->file);
    memset(e, 0, sizeof *e);
}

int pass_elements_load(elements *e, trace_error *error)
{
    const uint64_t count = trace_at(e->t, e->i)->count;
    if (count > LOADED_MOST / e->width)
        return 0;
    if (e->memory)
        return 1;
    unsigned char *memory = array_memory(count, e->width);
    if (!memory)
        return trace_no_memory(e->t, error);
    if (pass_elements_codes(e, 0, memory, (size_t)count, error)) {
        free(memory);
        return -1;
    }
    e->memory = memory;
    e->copied = 1;
    return 1;
}

/* ---- numbers ---- */

/* bf16 is the upper half of binary32; a NaN comes out quiet, as from any arithmetic. */
static void widen_halves(float *to, const unsigned char *codes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t code;
        memcpy(&code, codes + 2 * i, sizeof code);
        const uint32_t bits = (uint32_t)code << 16 | ((code & 0x7fff) > 0x7f80 ? 0x400000u : 0);
        memcpy(&to[i], &bits, sizeof bits);
    }
}

void pass_elements_begin(elements_beyond *b)
{
    mpsim_sum_init(&b->squares);
    b->infinite = b->zeros = 0;
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

int pass_elements_values(const elements *e, uint64_t first, double *to, size_t n, trace_error *error)
{
    enum { AT_ONCE = 4096 };
    unsigned char codes[AT_ONCE * sizeof *to];
    int bad = 0;
    for (size_t at = 0, m; at < n && !bad; at += m) {
        m = n - at < AT_ONCE ? n - at : AT_ONCE;
        if (!(bad = pass_elements_codes(e, first + at, codes, m, error)))
            mpsim_decode_array(e->format, to + at, codes, m);
    }
    return bad;
}

int pass_elements_read(double *to, trace *t, size_t i, size_t n, trace_error *error)
{
    elements e = {0};
    int bad = pass_elements_open(&e, t, i, ELEMENTS_ROWS, NULL, error);
    if (!bad)
        bad = pass_elements_values(&e, 0, to, n, error);
    pass_elements_close(&e);
    return bad;
}

void pass_elements_floats(const elements *e, float *to, size_t at, const void *codes, size_t n, elements_beyond *beyond)
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
            if (beyond)
                note_beyond(beyond, at + i + k, wide[k], to[at + i + k]);
        }
    }
}
