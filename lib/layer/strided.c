/* strided.c -- see strided.h. Columns that lie side by side are turned in squares; other elements that lie apart are gathered and scattered in
 * short runs. */
#include "strided.h"

#include "../base/turn.h"

#include <string.h>

enum { RUN = 256, SQUARE = 16 };

int mpsim_strided_plain(const mpsim_strided *a)
{
    return !a->format || mpsim_format_same(a->format, mpsim_format_find("binary32"));
}

int mpsim_strided_dense(const mpsim_strided *a, const mpsim_layer_shape *s)
{
    size_t step = 1;
    for (size_t d = s->dims; d-- > 0; step *= s->shape[d])
        if (s->shape[d] > 1 && a->stride[d] != (ptrdiff_t)step)
            return 0;
    return 1;
}

ptrdiff_t mpsim_strided_at(const mpsim_strided *a, const mpsim_layer_shape *s, size_t row)
{
    ptrdiff_t at = 0;
    for (size_t d = s->dims - 1; d-- > 0; row /= s->shape[d])
        at += (ptrdiff_t)(row % s->shape[d]) * a->stride[d];
    return at;
}

size_t mpsim_strided_run(const mpsim_strided *a, const mpsim_layer_shape *s, size_t row)
{
    size_t run = 1;
    for (size_t d = s->dims - 1; d-- > 0; run *= s->shape[d])
        if (d + 2 < s->dims && a->stride[d] != (ptrdiff_t)run * a->stride[s->dims - 2])
            break;
    return run - row % run;
}

static size_t bytes_of(const mpsim_strided *a)
{
    return a->format ? mpsim_format_code_bytes(a->format) : sizeof(float);
}

#define GATHER(type)                             \
    for (size_t i = 0; i < n; i++, from += step) \
    memcpy((type *)to + i, from, sizeof(type))
#define SCATTER(type)                          \
    for (size_t i = 0; i < n; i++, to += step) \
    memcpy(to, (const type *)from + i, sizeof(type))

static void gather(void *to, const unsigned char *from, ptrdiff_t step, size_t bytes, size_t n)
{
    if (bytes == 1)
        GATHER(uint8_t);
    else if (bytes == 2)
        GATHER(uint16_t);
    else
        GATHER(uint32_t);
}

static void scatter(unsigned char *to, const void *from, ptrdiff_t step, size_t bytes, size_t n)
{
    if (bytes == 1)
        SCATTER(uint8_t);
    else if (bytes == 2)
        SCATTER(uint16_t);
    else
        SCATTER(uint32_t);
}

static void decode(const mpsim_strided *a, float *x, const void *codes, size_t n)
{
    if (a->format)
        mpsim_decode_array_f32(a->format, x, codes, n);
    else
        memcpy(x, codes, n * sizeof *x);
}

static void encode(const mpsim_strided *a, void *codes, const float *x, size_t n)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (a->format)
        mpsim_encode_array_f32(a->format, &r, NULL, codes, x, n, NULL);
    else
        memcpy(codes, x, n * sizeof *x);
}

/* ---- a line ---- */

static void take_line(const mpsim_strided *a, ptrdiff_t at, ptrdiff_t stride, size_t n, float *x)
{
    const ptrdiff_t bytes = (ptrdiff_t)bytes_of(a);
    const unsigned char *from = (const unsigned char *)a->data + at * bytes;
    uint32_t room[RUN];
    if (stride == 1) {
        decode(a, x, from, n);
        return;
    }
    for (size_t i = 0, some; i < n; i += some) {
        some = n - i < RUN ? n - i : RUN;
        gather(room, from + (ptrdiff_t)i * stride * bytes, stride * bytes, (size_t)bytes, some);
        decode(a, x + i, room, some);
    }
}

static void give_line(const mpsim_strided *a, ptrdiff_t at, ptrdiff_t stride, size_t n, const float *x)
{
    const ptrdiff_t bytes = (ptrdiff_t)bytes_of(a);
    unsigned char *const to = (unsigned char *)a->data + at * bytes;
    uint32_t room[RUN];
    if (stride == 1) {
        encode(a, to, x, n);
        return;
    }
    for (size_t i = 0, some; i < n; i += some) {
        some = n - i < RUN ? n - i : RUN;
        encode(a, room, x + i, some);
        scatter(to + (ptrdiff_t)i * stride * bytes, room, stride * bytes, (size_t)bytes, some);
    }
}

/* ---- rows ---- */

/* Whether all codes are brought together before they are decoded, or encoded before they are brought apart. */
static int together(const mpsim_strided_rows *m)
{
    return m->rows > 1 && m->room && (m->col == 1 ? m->cols < RUN : m->row == 1);
}

void mpsim_strided_take(const mpsim_strided *a, const mpsim_strided_rows *m, float *x)
{
    const int plain = mpsim_strided_plain(a), all = together(m);
    if (all)
        mpsim_turn_codes(plain ? x : m->room, (int64_t)m->cols, a->data, bytes_of(a), m->at, m->row, m->col, m->rows,
                         m->cols);
    if (all && !plain)
        decode(a, x, m->room, m->rows * m->cols);
    for (size_t i = 0; !all && i < m->rows; i++)
        take_line(a, m->at + (ptrdiff_t)i * m->row, m->col, m->cols, x + i * m->cols);
}

/* Codes, row after row, to where they belong; columns side by side are written some at a time, what is in a cache line at once. */
static void bring_apart(const mpsim_strided *a, const mpsim_strided_rows *m, const void *codes)
{
    const size_t bytes = bytes_of(a), cols = m->cols;
    unsigned char *const to = (unsigned char *)a->data + m->at * (ptrdiff_t)bytes;
    if (m->col == 1)
        mpsim_turn_codes(to, m->row, codes, bytes, 0, (int64_t)cols, 1, m->rows, cols);
    else
        for (size_t c = 0; c < cols; c += SQUARE)
            mpsim_turn_codes(to + (ptrdiff_t)c * m->col * (ptrdiff_t)bytes, m->col, codes, bytes, (int64_t)c, 1,
                             (int64_t)cols, cols - c < SQUARE ? cols - c : SQUARE, m->rows);
}

void mpsim_strided_give(const mpsim_strided *a, const mpsim_strided_rows *m, float *x)
{
    const int plain = mpsim_strided_plain(a), all = together(m);
    if (all && !plain)
        encode(a, m->room, x, m->rows * m->cols);
    if (all)
        bring_apart(a, m, plain ? x : m->room);
    for (size_t i = 0; !all && i < m->rows; i++)
        give_line(a, m->at + (ptrdiff_t)i * m->row, m->col, m->cols, x + i * m->cols);
}

void mpsim_strided_bytes(const mpsim_strided *a, const mpsim_strided_rows *m, uint8_t *x)
{
    mpsim_turn_codes(x, (int64_t)m->cols, a->data, 1, m->at, m->row, m->col, m->rows, m->cols);
}
