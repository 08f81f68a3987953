/* convtensor.c -- see convtensor.h. */
#include "support/convtensor.h"

#include "sim/verify/kinds.h"
#include "support/dotcases.h"
#include "support/support.h"

#include <mpsim/format.h>
#include <stdlib.h>
#include <string.h>

size_t convtensor_numbers(const convtensor *t)
{
    return t->size[0] * t->size[1] * t->size[2] * t->size[3] * t->size[4];
}

convtensor convtensor_new(const mpsim_format *memory, size_t dims, size_t first, size_t second, const size_t *extent,
                          uint64_t *seed)
{
    convtensor t = {
        .s = {.format = memory, .rank = (uint32_t)(2 + dims)}, .dims = dims, .size = {first, second, 1, 1, 1}};
    size_t turn[CONV_AXES] = {0, 1, 2, 3, 4}, n = 1, at = 0;
    const uint64_t u = test_random(seed);
    for (size_t d = 0; d < dims; d++)
        t.size[2 + d] = extent[d];
    for (size_t i = 2 + dims; i > 1; i--) {
        const size_t j = (size_t)(test_random(seed) % i), x = turn[i - 1];
        turn[i - 1] = turn[j];
        turn[j] = u % 3 ? x : turn[j];
        turn[i - 1] = u % 3 ? turn[i - 1] : x;
    }
    for (size_t i = 2 + dims; i-- > 0;) {
        t.s.strides[turn[i]] = (int64_t)n;
        n *= (t.size[turn[i]] ? t.size[turn[i]] : 1) + (u >> (8 + i) & 1);
    }
    t.room = (n + 2) * 8;
    t.memory = malloc(t.room);
    ck_assert(t.memory);
    memset(t.memory, 0x5a, t.room);
    for (size_t i = 0; i < 2 + dims; i++)
        if (u >> (16 + i) & 1 && t.size[i]) {
            at += (t.size[i] - 1) * (size_t)t.s.strides[i];
            t.s.strides[i] = -t.s.strides[i];
        }
    t.s.codes = t.memory + 1 + at * mpsim_format_code_bytes(memory);
    memcpy(t.s.shape, t.size, t.s.rank * sizeof t.size[0]);
    mpsim_operand_init(&t.o, &t.s, NULL, MPSIM_ROUND_NEAREST_EVEN);
    return t;
}

void *convtensor_place(const convtensor *t, const size_t *i)
{
    int64_t at = 0;
    for (size_t d = 0; d < 2 + t->dims; d++)
        at += (int64_t)i[d] * t->s.strides[d];
    return (unsigned char *)t->s.codes + at * (int64_t)mpsim_format_code_bytes(t->s.format);
}

uint64_t convtensor_load(const convtensor *t, const size_t *i)
{
    return code_load(convtensor_place(t, i), mpsim_format_code_bytes(t->s.format));
}

uint64_t convtensor_operand(const convtensor *t, const size_t *i)
{
    const uint64_t code = convtensor_load(t, i);
    mpsim_rounding r;
    if (mpsim_format_same(t->o.format, t->s.format))
        return code;
    mpsim_rounding_init(&r, (mpsim_round_mode)t->o.mode);
    return mpsim_encode_f64(t->o.format, &r, mpsim_decode(t->s.format, code), 0, NULL);
}

void convtensor_unravel(const convtensor *t, size_t n, size_t *i)
{
    for (size_t d = CONV_AXES; d-- > 0; n /= t->size[d])
        i[d] = n % t->size[d];
}

void convtensor_fill(convtensor *t, int kind, uint64_t *seed)
{
    const size_t n = convtensor_numbers(t);
    uint64_t *x = calloc(2 * n + 2, sizeof *x);
    ck_assert(x);
    verify_kinds_fill(t->s.format, x, t->s.format, x + n + 1, n, mpsim_format_find("binary32"), kind, seed);
    for (size_t k = 0; k < n; k++) {
        size_t i[CONV_AXES];
        convtensor_unravel(t, k, i);
        code_store(convtensor_place(t, i), mpsim_format_code_bytes(t->s.format), x[k]);
    }
    free(x);
}

void convtensor_put(const convtensor *t, const float *values)
{
    for (size_t n = 0; n < convtensor_numbers(t); n++) {
        size_t i[CONV_AXES];
        convtensor_unravel(t, n, i);
        code_store(convtensor_place(t, i), 4, bits_of_f32(values[n]));
    }
}

float convtensor_number(const convtensor *t, size_t n)
{
    size_t i[CONV_AXES];
    convtensor_unravel(t, n, i);
    return f32_of_bits((uint32_t)convtensor_load(t, i));
}
