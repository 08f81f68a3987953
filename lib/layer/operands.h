/* operands.h -- what attention forward and back ask of its operands, and parts of them. */
#pragma once

#include <mpsim/dot.h>

#include "shared.h"

#include <stdlib.h>

/* Numbers of a format, as codes and as binary32. */
typedef struct mpsim_numbers {
    const mpsim_format *format;
    size_t bytes;
    int plain; /* codes are binary32 numbers */
} mpsim_numbers;

static inline mpsim_numbers mpsim_numbers_of(const mpsim_format *f)
{
    return (mpsim_numbers){f, mpsim_format_code_bytes(f), mpsim_format_same(f, mpsim_format_find("binary32"))};
}

/* Row `i` and on of a matrix. */
static inline mpsim_matrix mpsim_from_row(const mpsim_matrix *m, size_t i, int transposed)
{
    mpsim_matrix part = *m;
    const size_t step = m->transposed ? 1 : m->stride;
    part.codes = (const unsigned char *)m->codes + i * step * mpsim_format_code_bytes(m->format);
    part.transposed = transposed ? !m->transposed : m->transposed;
    return part;
}

/* Whether f has numbers of binary32 only, and 0. */
static inline mpsim_status mpsim_check_zero(const mpsim_format *f)
{
    mpsim_math unused;
    mpsim_rounding r;
    const mpsim_status s = mpsim_math_init(&unused, f);
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (s != MPSIM_OK)
        return s;
    return mpsim_decode(f, mpsim_encode_f32(f, &r, 0, 0, NULL)) == 0 ? MPSIM_OK : MPSIM_ERANGE;
}

/* A rounding of numbers that are computed: valid, not stochastic, of scale 1. */
static inline int mpsim_is_plain_rounding(const mpsim_rounded *r)
{
    return mpsim_rounding_check(&r->rounding) == MPSIM_OK && mpsim_format_check(&r->format) == MPSIM_OK &&
           r->rounding.mode < MPSIM_ROUND_STOCHASTIC_A && r->rounding.scale == 1;
}

/* n * m elements of zeros; NULL where there is no memory. */
static inline void *mpsim_zeros(size_t n, size_t m, size_t bytes)
{
    const size_t all = n * m;
    if ((m && n > SIZE_MAX / m) || all > SIZE_MAX / bytes)
        return NULL;
    return calloc(all ? all : 1, bytes);
}
