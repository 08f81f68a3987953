/* reference.h -- what a check expects, from the integer reference; C17 and CUDA. */
#pragma once

#include "cases.h"
#include "../../../lib/dot/scalar.h"

/* The code of operand k: two words of binary64. */
static inline MPSIM_HD uint64_t gpu_scalar_operand(const gpu_scalar *s, const uint32_t in[3], int k)
{
    return s->o.operand[k].bits == 64 ? (uint64_t)in[1] << 32 | in[0] : in[k];
}

static inline MPSIM_HD int gpu_scalar_chooses(const gpu_scalar *s)
{
    return s->expected == GPU_LESSER || s->expected == GPU_GREATER;
}

/* The lesser or the greater operand, as PTX's min and max have it: of a number and a NaN the number, a canonical NaN of
 * two; -0 is less than +0. */
static inline MPSIM_HD uint64_t gpu_scalar_choice(const gpu_scalar *s, const uint32_t in[3])
{
    const mpsim_format *f = &s->o.result;
    const mpsim_number x = mpsim_scalar_unpack(f, in[0]), y = mpsim_scalar_unpack(f, in[1]);
    int order = mpsim_number_compare(x, y);
    if (x.kind == MPSIM_NUMBER_NAN && y.kind == MPSIM_NUMBER_NAN)
        return mpsim_scalar_nan(f, &s->o.rounding, 0, 0);
    if (order == MPSIM_UNORDERED)
        return x.kind == MPSIM_NUMBER_NAN ? in[1] : in[0];
    if (order == MPSIM_EQUAL)
        order = y.sign - x.sign;
    return (order <= 0) == (s->expected == GPU_LESSER) ? in[0] : in[1];
}

/* The result that is expected without arithmetic: 1, and *code. */
static inline MPSIM_HD int gpu_scalar_given(const gpu_scalar *s, const uint32_t in[3], uint64_t *code)
{
    *code = gpu_scalar_chooses(s) ? gpu_scalar_choice(s, in) : 0;
    return s->expected != GPU_ROUNDED;
}

/* Whether no text settles the lesser and the greater of two operands. */
static inline MPSIM_HD int gpu_choice_is_open(mpsim_number x, mpsim_number y)
{
    return y.kind == MPSIM_NUMBER_NAN || (mpsim_number_is_zero(x) && mpsim_number_is_zero(y) && x.sign != y.sign);
}

/* Whether no text settles the result, whose code is `code`. */
static inline MPSIM_HD int gpu_scalar_is_open(const gpu_scalar *s, const uint32_t in[3], uint64_t code)
{
    const mpsim_number x = mpsim_scalar_unpack(&s->o.operand[0], gpu_scalar_operand(s, in, 0));
    const int least = gpu_least_exponent(&s->o.result);
    if (x.kind == MPSIM_NUMBER_NAN || mpsim_scalar_classify(&s->o.result, code) == MPSIM_CLASS_NAN)
        return s->open & GPU_OPEN_NANS;
    if (gpu_scalar_chooses(s))
        return gpu_choice_is_open(x, mpsim_scalar_unpack(&s->o.operand[1], in[1]));
    return s->open & GPU_OPEN_SMALL && x.kind == MPSIM_NUMBER_FINITE && x.sign &&
           (x.hi == 0 || x.exp < least || (x.exp == least && x.hi == (uint64_t)1 << 63));
}

static inline MPSIM_HD int gpu_scalar_is_asked(const gpu_scalar *s, const uint32_t in[3], uint64_t code)
{
    return !s->open || (gpu_scalar_is_open(s, in, code) != 0) == (s->asked == GPU_ASKED_OPEN);
}

/* What is left out has no reference: GPU_NOT_ASKED. */
#define GPU_NOT_ASKED (~(uint64_t)0)
static inline MPSIM_HD uint64_t gpu_scalar_expected(const gpu_scalar *s, const uint32_t in[3])
{
    unsigned flags;
    uint64_t code;
    if (!gpu_scalar_given(s, in, &code))
        code = mpsim_scalar_arith(&s->o, gpu_scalar_operand(s, in, 0), in[1], in[2], 0, &flags);
    return gpu_scalar_is_asked(s, in, code) ? code : GPU_NOT_ASKED;
}

/* The same as an output: 0 for what is left out. */
static inline MPSIM_HD uint64_t gpu_scalar_reference(const gpu_scalar *s, const uint32_t in[3])
{
    const uint64_t code = gpu_scalar_expected(s, in);
    return code == GPU_NOT_ASKED ? 0 : code;
}

/* The codes of a row or a column, of 1, 2 or 4 bytes. */
typedef struct gpu_line {
    const void *codes;
    int bytes;
} gpu_line;

static inline MPSIM_HD uint32_t gpu_line_code(gpu_line x, int k)
{
    return x.bytes == 1   ? ((const uint8_t *)x.codes)[k]
           : x.bytes == 2 ? ((const uint16_t *)x.codes)[k]
                          : ((const uint32_t *)x.codes)[k];
}

/* c + the sum of a[k] b[k] by a model with fused additions, of operands that fill it; at most one chunk, if it has
 * chunks. */
static inline MPSIM_HD uint32_t gpu_dot_of_lines(const gpu_dots *j, gpu_line a, gpu_line b, uint32_t c)
{
    const gpu_sum_model *m = &j->sum;
    const uint32_t minus_a = j->variant.negate_a ? (uint32_t)mpsim_sign_bit(&j->a, 1) : 0;
    const uint32_t minus_b = j->variant.negate_b ? (uint32_t)mpsim_sign_bit(&j->b, 1) : 0;
    mpsim_fused p;
    mpsim_term x[GPU_DEPTH], y[GPU_DEPTH];
    unsigned flags = 0;
    p.alignment = m->alignment;
    p.normalised = m->normalised;
    p.fraction = m->fraction;
    p.floor = m->floor;
    p.bits = j->a.mbits + j->b.mbits;
    const mpsim_number addend = mpsim_scalar_unpack(&m->result.format, c);
    mpsim_number s = m->chunk ? mpsim_number_make(0, 0, 0) : addend;
    int emin = mpsim_emin(m->chunk ? &m->accumulator.format : &m->result.format);
    for (int i = 0; i < j->k; i += m->length) {
        const int n = j->k - i < m->length ? j->k - i : m->length;
        for (int t = 0; t < n; t++) {
            const int k = m->quads ? (int)mpsim_fused_quads((size_t)(i + t), (size_t)m->chunk) : i + t;
            x[t] = mpsim_scalar_term(&j->a, m->operand_emin, gpu_line_code(a, k) ^ minus_a);
            y[t] = mpsim_scalar_term(&j->b, m->operand_emin, gpu_line_code(b, k) ^ minus_b);
        }
        const mpsim_number sum = mpsim_fused_sum(&p, x, y, n, s, emin, &flags);
        s = mpsim_scalar_unpack(&m->accumulator.format, mpsim_fused_round(&m->accumulator, sum, 0));
        emin = mpsim_emin(&m->accumulator.format);
    }
    if (m->chunk) {
        const mpsim_rounded *outer = &m->outer;
        const mpsim_number sum = mpsim_number_add(addend, s, 0, &flags);
        s = mpsim_scalar_unpack(&outer->format, mpsim_scalar_encode(&outer->format, &outer->rounding,
                                                                    outer->rounding.mode, sum, 0, &flags));
    }
    return (uint32_t)mpsim_scalar_encode(&m->result.format, &m->result.rounding, m->result.rounding.mode, s, 0, &flags);
}

static inline MPSIM_HD uint32_t gpu_dot_reference(const gpu_dots *j, const uint32_t *a, const uint32_t *b, uint32_t c)
{
    const gpu_line row = {a, 4}, column = {b, 4};
    return gpu_dot_of_lines(j, row, column, c);
}
