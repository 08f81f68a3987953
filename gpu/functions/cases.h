/* cases.h -- the operands that are not counted through: pairs for quotients, the second half of packed words; and codes in the
 * order of their values. Integers, the same on CPU and device. */
#pragma once

#include "../../lib/digest/scalar.h"

/* Pair i: any bits (kind 0), or both between 2^-8 and 2^8 (kind 1); the last `shift` bits of b are zeros. */
static inline MPSIM_HD void gpu_function_pair(int kind, int shift, uint64_t i, uint32_t *a, uint32_t *b)
{
    const uint64_t w = mpsim_mix(i, (uint64_t)kind);
    *a = (uint32_t)w;
    *b = (uint32_t)(w >> 32) >> shift << shift;
    if (kind) {
        *a = (*a & 0x807fffff) | (119 + (*a >> 27 & 15)) << 23;
        *b = (*b & 0x807fffff) | (119 + (*b >> 27 & 15)) << 23;
    }
}

/* The upper half beside the lower one: each code once. */
static inline MPSIM_HD uint32_t gpu_function_partner(uint32_t low)
{
    return (low * 40503 + 12345) & 0xffff;
}

/* Codes of 16 or 32 bits as integers in the order of their values: -0 is one below +0. */
static inline MPSIM_HD uint32_t gpu_ordered(uint32_t code, int bits)
{
    const uint32_t sign = (uint32_t)1 << (bits - 1);
    return code & sign ? ~(code & (sign - 1)) : code;
}

static inline MPSIM_HD uint64_t gpu_codes_apart(uint32_t a, uint32_t b, int bits)
{
    const int64_t d = (int64_t)(int32_t)gpu_ordered(a, bits) - (int32_t)gpu_ordered(b, bits);
    return (uint64_t)(d < 0 ? -d : d);
}
