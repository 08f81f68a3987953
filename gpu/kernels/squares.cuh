/* squares.cuh -- exact sums of squares in integers.
 *
 * A square of a binary32 number is an integer of at most 48 bits times 2^e, e >= -298: its bits go
 * to limbs of 32 bits, each kept in 64, so that 2^31 squares need no carry. The exact sum, in any
 * order. */
#pragma once

#include "codes.cuh"

#include <mpsim/stats.h>

enum {
    GPU_SQUARES_LOWEST = -320, /* exponent of bit 0 of limb 0 */
    GPU_SQUARES_LIMBS = 20     /* to 2^320 */
};

struct gpu_squares {
    gpu_word limb[GPU_SQUARES_LIMBS];
    unsigned found; /* 1: a NaN, 2: an infinity */
};

struct gpu_square_run { /* what a thread adds to three neighbouring limbs before it gives it away */
    int at;
    gpu_word low, middle, high;
};

static __device__ __forceinline__ void gpu_squares_give(gpu_word *limb, const gpu_square_run &r)
{
    if (r.low)
        atomicAdd(limb + r.at, r.low);
    if (r.middle)
        atomicAdd(limb + r.at + 1, r.middle);
    if (r.high)
        atomicAdd(limb + r.at + 2, r.high);
}

/* x among those of a thread of a block. */
static __device__ __forceinline__ void gpu_squares_add(gpu_word *limb, gpu_square_run *run, unsigned *found, float x)
{
    const uint32_t a = __float_as_uint(x) & 0x7fffffffu, e = a >> 23;
    if (e == 255) {
        *found |= a > 0x7f800000u ? 1u : 2u;
        return;
    }
    const uint32_t significand = e ? (a & 0x7fffffu) | 0x800000u : a;
    const gpu_word square = (gpu_word)significand * significand; /* times 2^exp */
    const int exp = 2 * ((int)(e ? e : 1) - 150) - GPU_SQUARES_LOWEST, shift = exp & 31;
    if (exp >> 5 != run->at) {
        gpu_squares_give(limb, *run);
        run->at = exp >> 5;
        run->low = run->middle = run->high = 0;
    }
    const gpu_word low = square << shift;
    run->low += low & 0xffffffffu;
    run->middle += low >> 32;
    run->high += shift ? square >> (64 - shift) : 0;
}

/* The norm, as mpsim_norm rounds it: the sum to binary64, its root to binary64, then to f. */
static inline float gpu_squares_norm(const gpu_squares *q, const mpsim_format *f)
{
    mpsim_sum s;
    uint64_t carry = 0;
    mpsim_sum_init(&s);
    if (q->found & 1)
        return NAN;
    if (q->found)
        return INFINITY;
    s.first = (GPU_SQUARES_LOWEST + 2176) / 32;
    s.end = (uint16_t)(s.first + GPU_SQUARES_LIMBS + 1);
    for (int i = 0; i < GPU_SQUARES_LIMBS; i++) {
        const uint64_t low = (q->limb[i] & 0xffffffffu) + (carry & 0xffffffffu);
        s.limb[s.first + i] = (int64_t)(low & 0xffffffffu);
        carry = (q->limb[i] >> 32) + (carry >> 32) + (low >> 32);
    }
    s.limb[s.end - 1] = (int64_t)carry;
    double root = sqrt(mpsim_sum_value(&s));
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (f)
        mpsim_round_array_f64(f, &r, NULL, &root, &root, 1, NULL);
    return (float)root;
}
