/* doubles.h -- mma.sync of binary64 (DMMA): inputs and what is expected, a chain of fused multiply-adds in the order of
 * the depth. C17 and CUDA. A result is two outputs of 32 bits, the low one first. */
#pragma once

#include "cases.h"
#include "../../../lib/arith/scalar.h"

/* What a tile has: four tiles each, then the next. */
enum {
    GPU_DOUBLES_PLAIN,
    GPU_DOUBLES_WIDE,
    GPU_DOUBLES_TINY,
    GPU_DOUBLES_LARGE,
    GPU_DOUBLES_SHORT,
    GPU_DOUBLES_CANCEL
};

static inline MPSIM_HD uint64_t gpu_double(const uint32_t w[4], int sign, int field)
{
    const uint64_t significand = ((uint64_t)w[1] << 32 | w[0]) & (((uint64_t)1 << 52) - 1);
    return (uint64_t)sign << 63 | (uint64_t)field << 52 | significand;
}

static inline MPSIM_HD uint64_t gpu_double_of(const gpu_dots *j, uint32_t v)
{
    unsigned flags;
    return mpsim_scalar_encode(&j->a, &j->nearest, MPSIM_ROUND_NEAREST_EVEN, mpsim_number_make(0, v, 0), 0, &flags);
}

/* Of every eight numbers one is NaN or an infinity. */
static inline MPSIM_HD uint64_t gpu_double_special(const uint32_t w[4])
{
    const uint64_t code = gpu_double(w, (int)(w[3] & 1), w[2] % 8 ? 1021 + (int)(w[2] >> 3 & 3) : 2047);
    return w[2] % 8 == 0 && (w[2] >> 3 & 1) ? code & (uint64_t)0xfff << 52 : code;
}

/* A factor: products are near 1, anywhere, near the smallest normal number, near the largest one (none is negative), of
 * few bits, or each the opposite of the one before or next to it. */
static inline MPSIM_HD uint64_t gpu_double_factor(const gpu_dots *j, uint64_t tile, int is_b, int line, int k)
{
    const int kind = (int)(tile >> 2) % 6, pair = kind == GPU_DOUBLES_CANCEL ? k & ~1 : k;
    uint32_t w[4], own[4];
    gpu_words(j, tile, (is_b ? gpu_slot_b(j) : 0) + line * j->depth + pair, w);
    gpu_words(j, tile, (is_b ? gpu_slot_b(j) : 0) + line * j->depth + k, own);
    const int sign = (int)(w[3] & 1), is_zero = (w[2] >> 8 & 15) == 0;
    if (j->distribution == GPU_RANDOM)
        return gpu_double_special(own);
    switch (kind) {
    case GPU_DOUBLES_WIDE:
        return is_zero ? (uint64_t)sign << 63 : gpu_double(w, sign, 963 + (int)(w[2] % 121));
    case GPU_DOUBLES_TINY:
        return gpu_double(w, sign, is_zero ? 0 : 503 + (int)(w[2] % 20));
    case GPU_DOUBLES_LARGE:
        return gpu_double(w, 0, 1528 + (int)(w[2] % 8));
    case GPU_DOUBLES_SHORT:
        return gpu_double(w, sign, 1021 + (int)(w[2] & 3)) & ~(uint64_t)0x7ffffff;
    case GPU_DOUBLES_CANCEL: {
        const uint64_t code = gpu_double(w, sign, 1021 + (int)(w[2] & 3));
        const uint64_t other = (own[2] & 7) == 0;
        return k == pair ? code : is_b ? code : (code ^ other) ^ (uint64_t)1 << 63;
    }
    default:
        return gpu_double(w, sign, 1021 + (int)(w[2] & 3));
    }
}

static inline MPSIM_HD uint64_t gpu_double_operand(const gpu_dots *j, uint64_t tile, int is_b, int line, int k)
{
    if (j->distribution == GPU_NAMES)
        return gpu_double_of(j, gpu_name_value(j, tile, is_b, line, k));
    return gpu_double_factor(j, tile, is_b, line, k);
}

static inline MPSIM_HD uint64_t gpu_double_addend(const gpu_dots *j, uint64_t tile, int row, int column)
{
    static const int fields[][2] = {{1015, 16}, {963, 121}, {0, 40}, {2030, 17}, {1021, 4}, {960, 64}};
    const int kind = (int)(tile >> 2) % 6, name = (int)(tile % GPU_NAME_KINDS);
    uint32_t w[4];
    if (j->distribution == GPU_NAMES)
        return name < GPU_NAME_ADDENDS ? 0 : gpu_double_of(j, (uint32_t)(name == GPU_NAME_ADDENDS ? row : column));
    gpu_words(j, tile, gpu_slot_c(j) + row * j->columns + column, w);
    const int sign = kind != GPU_DOUBLES_LARGE && (w[3] & 1);
    if (j->distribution == GPU_RANDOM)
        return gpu_double_special(w);
    if ((tile & 3) == 3)
        return (uint64_t)sign << 63;
    return gpu_double(w, sign, fields[kind][0] + (int)(w[2] % (uint32_t)fields[kind][1]));
}

/* c + a[0] b[0] + a[1] b[1] ..., rounded after each. */
static inline MPSIM_HD uint64_t gpu_double_expected(const gpu_dots *j, uint64_t tile, int row, int column)
{
    mpsim_arith o;
    uint64_t d = gpu_double_addend(j, tile, row, column);
    unsigned flags = 0;
    o.op = MPSIM_OP_FMA;
    o.result = o.operand[0] = o.operand[1] = o.operand[2] = j->a;
    o.rounding = j->sum.result.rounding;
    for (int k = 0; k < j->k; k++)
        d = mpsim_scalar_arith(&o, gpu_double_operand(j, tile, 0, row, k), gpu_double_operand(j, tile, 1, column, k), d,
                               0, &flags);
    return d;
}

static inline MPSIM_HD uint32_t gpu_double_word(uint64_t code, int high)
{
    return (uint32_t)(high ? code >> 32 : code);
}
