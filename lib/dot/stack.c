/* stack.c -- see stack.h. */
#include "stack.h"

#include "../base/codes.h"
#include "../base/extent.h"

/* ---- what is asked of one ---- */

static int is_empty(const mpsim_stack *x)
{
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->shape[i] == 0)
            return 1;
    return 0;
}

/* Without elements strides say nothing. */
static int fits(const mpsim_stack *x, int writable)
{
    if (is_empty(x))
        return 1;
    for (uint32_t i = 0; i < x->rank; i++)
        if (writable && x->shape[i] > 1 && x->strides[i] == 0)
            return 0;
    return x->codes && mpsim_strides_fit(x->rank, x->shape, x->strides, mpsim_format_code_bytes(x->format));
}

int mpsim_is_stack(const mpsim_stack *x, int writable)
{
    return x && mpsim_format_check(x->format) == MPSIM_OK && x->rank >= 2 && x->rank <= MPSIM_STACK_RANK &&
           fits(x, writable);
}

/* ---- its matrices ---- */

mpsim_outer mpsim_outer_of(const mpsim_stack *x)
{
    mpsim_outer o = {.rank = x->rank - 2};
    for (uint32_t i = 0; i < o.rank; i++)
        o.shape[i] = x->shape[i];
    return o;
}

size_t mpsim_outer_count(const mpsim_outer *o)
{
    size_t n = 1;
    for (uint32_t i = 0; i < o->rank; i++)
        n *= o->shape[i];
    return n;
}

int mpsim_steps_in(mpsim_steps *s, const mpsim_stack *x, const mpsim_outer *o)
{
    const uint32_t has = x->rank - 2, more = has > o->rank ? has - o->rank : 0;
    *s = (mpsim_steps){.row = x->strides[x->rank - 2], .col = x->strides[x->rank - 1]};
    for (uint32_t i = 0; i < more; i++)
        if (x->shape[i] != 1)
            return 0;
    for (uint32_t i = more; i < has; i++) {
        const uint32_t to = i + o->rank - has;
        if (x->shape[i] != 1 && x->shape[i] != o->shape[to])
            return 0;
        s->outer[to] = x->shape[i] == 1 ? 0 : x->strides[i];
    }
    return 1;
}

int mpsim_steps_across(mpsim_steps *s, const mpsim_stack *x, const mpsim_outer *o, size_t rows, size_t cols)
{
    if (!mpsim_steps_in(s, x, o) || (mpsim_stack_rows(x) != 1 && mpsim_stack_rows(x) != rows) ||
        (mpsim_stack_cols(x) != 1 && mpsim_stack_cols(x) != cols))
        return 0;
    s->row = mpsim_stack_rows(x) == 1 ? 0 : s->row;
    s->col = mpsim_stack_cols(x) == 1 ? 0 : s->col;
    return 1;
}

int64_t mpsim_matrix_at(const mpsim_outer *o, const mpsim_steps *s, size_t i)
{
    int64_t at = 0;
    for (uint32_t k = o->rank; k-- > 0; i /= o->shape[k])
        at += (int64_t)(i % o->shape[k]) * s->outer[k];
    return at;
}

/* ---- its numbers ---- */

/* Codes `from` and `to` apart; `bytes` is a constant where this is inlined. */
static inline void copy_codes(const size_t bytes, unsigned char *to, int64_t to_step, const unsigned char *from,
                              int64_t from_step, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy(to + (int64_t)i * to_step * (int64_t)bytes, from + (int64_t)i * from_step * (int64_t)bytes, bytes);
}

static void copy(size_t bytes, void *to, int64_t to_step, const void *from, int64_t from_step, size_t n)
{
    if (n && from_step == 1 && to_step == 1)
        memcpy(to, from, n * bytes);
    else if (bytes == 1)
        copy_codes(1, to, to_step, from, from_step, n);
    else if (bytes == 2)
        copy_codes(2, to, to_step, from, from_step, n);
    else if (bytes == 4)
        copy_codes(4, to, to_step, from, from_step, n);
    else
        copy_codes(8, to, to_step, from, from_step, n);
}

void mpsim_read_codes(void *to, const void *codes, size_t bytes, int64_t first, int64_t step, size_t n)
{
    if (n)
        copy(bytes, to, 1, (const unsigned char *)codes + first * (int64_t)bytes, step, n);
}

void mpsim_write_codes(void *codes, size_t bytes, int64_t first, int64_t step, size_t n, const void *from)
{
    if (n)
        copy(bytes, (unsigned char *)codes + first * (int64_t)bytes, step, from, 1, n);
}

enum { SOME = 256 };

void mpsim_read_f32(float *to, const mpsim_format *f, const void *codes, int64_t first, int64_t step, size_t n)
{
    const size_t bytes = mpsim_format_code_bytes(f);
    unsigned char some[8 * SOME];
    if (mpsim_is_f32(f)) {
        mpsim_read_codes(to, codes, bytes, first, step, n);
        return;
    }
    const unsigned char *from = (const unsigned char *)codes + first * (int64_t)bytes;
    if (step == 1 && (uintptr_t)from % bytes == 0) {
        mpsim_decode_array_f32(f, to, from, n);
        return;
    }
    for (size_t i = 0; i < n; i += SOME) {
        const size_t here = n - i < SOME ? n - i : SOME;
        mpsim_read_codes(some, codes, bytes, first + (int64_t)i * step, step, here);
        mpsim_decode_array_f32(f, to + i, some, here);
    }
}

void mpsim_read_f64(double *to, const mpsim_format *f, const void *codes, int64_t first, int64_t step, size_t n)
{
    const size_t bytes = mpsim_format_code_bytes(f);
    unsigned char some[8 * SOME];
    for (size_t i = 0; i < n; i += SOME) {
        const size_t here = n - i < SOME ? n - i : SOME;
        mpsim_read_codes(some, codes, bytes, first + (int64_t)i * step, step, here);
        mpsim_decode_array(f, to + i, some, here);
    }
}
