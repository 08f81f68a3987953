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

/* A sum to the nearest number of binary64, within its normal numbers. */
static __device__ double gpu_nearest_f64(const mpsim_number &x)
{
    const uint64_t hi = x.hi | (x.lo != 0), rest = hi & 0x7ff, mantissa = hi >> 11;
    const uint64_t rounded = mantissa + (rest > 0x400 || (rest == 0x400 && (mantissa & 1)) ? 1 : 0);
    if (x.kind != MPSIM_NUMBER_FINITE || !x.hi)
        return mpsim_number_to_f64(x);
    const double size = __dmul_rn((double)rounded, __longlong_as_double((long long)(x.exp - 52 + 1023) << 52));
    return x.sign ? -size : size;
}

/* The root of the sum in binary64, as mpsim_norm has it before it rounds to a format. */
[[maybe_unused]] static __device__ double gpu_squares_root(const gpu_word *limb, unsigned found)
{
    uint32_t digit[GPU_SQUARES_LIMBS + 2];
    mpsim_number x = {MPSIM_NUMBER_FINITE, 0, 0, 0, 0};
    gpu_word carry = 0;
    int top = -1;
    for (int i = 0; i < GPU_SQUARES_LIMBS + 2; i++) {
        const gpu_word own = i < GPU_SQUARES_LIMBS ? limb[i] : 0, low = (own & 0xffffffffu) + (carry & 0xffffffffu);
        digit[i] = (uint32_t)low;
        carry = (own >> 32) + (carry >> 32) + (low >> 32);
        top = digit[i] ? i : top;
    }
    if (found)
        return found & 1 ? NAN : INFINITY;
    if (top < 0)
        return 0;
    for (int i = 0; i <= top; i++) /* 64 bits from the highest one on, and a sticky one */
        if (top - i >= 3)
            x.lo |= digit[i];
    const uint64_t above = (uint64_t)digit[top] << 32 | (top > 0 ? digit[top - 1] : 0);
    const uint64_t below = top > 1 ? digit[top - 2] : 0;
    const int shift = mpsim_clz64(above);
    x.hi = above << shift | below << 32 >> (32 - shift) >> 32;
    x.lo |= below & (0xffffffffu >> shift);
    x.exp = 32 * top + 31 - shift + GPU_SQUARES_LOWEST;
    return __dsqrt_rn(gpu_nearest_f64(x));
}

/* A number of binary64 rounded once to f, as a value. */
[[maybe_unused]] static __device__ float gpu_hold_wide(const gpu_format &f, double x)
{
    mpsim_rounding r;
    unsigned flags;
    if (f.kind == GPU_BINARY32)
        return (float)x;
    memset(&r, 0, sizeof r);
    r.scale = 1;
    r.sr_bits = 32;
    r.mode = MPSIM_ROUND_NEAREST_EVEN;
    return gpu_decode(f, (uint32_t)mpsim_scalar_encode(&f.math.format, &r, r.mode, mpsim_number_f64(x), 0, &flags));
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
