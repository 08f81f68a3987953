/* cvt.cuh -- how the operands of conversions.h are passed to cvt, and its results taken. Of a pair the number that is asked
 * for is in one place, and another number in the other. */
#pragma once

#include "conversions.h"
#include "scalar.cuh"

/* Two numbers of `bits` bits: in[0] above if in[2], else below. */
static __device__ uint32_t as_pair(const uint32_t in[3], int bits)
{
    return in[2] ? in[0] << bits | in[1] : in[1] << bits | in[0];
}

static __device__ uint32_t of_pair(const uint32_t in[3], uint32_t pair, int bits)
{
    return (in[2] ? pair >> bits : pair) & ((1u << bits) - 1);
}

static __device__ double as_double(const uint32_t in[3])
{
    return __hiloint2double((int)in[1], (int)in[0]);
}

#define F_TO_H(ptx)                                              \
    asm(ptx " %0, %1;" : "=h"(h) : "f"(__uint_as_float(in[0]))); \
    return h;
#define F_TO_TF32(ptx)                                           \
    asm(ptx " %0, %1;" : "=r"(w) : "f"(__uint_as_float(in[0]))); \
    return w >> 13;
#define F_TO_UPPER_HALF(ptx)                                                                       \
    asm(ptx " %0, %1, %2;" : "=r"(w) : "f"(__uint_as_float(in[0])), "f"(__uint_as_float(~in[0]))); \
    return w >> 16;
#define F_TO_UPPER_BYTE(ptx)                                                                       \
    asm(ptx " %0, %1, %2;" : "=h"(h) : "f"(__uint_as_float(in[0])), "f"(__uint_as_float(~in[0]))); \
    return h >> 8;
#define HALVES_TO_BYTES(ptx)                              \
    asm(ptx " %0, %1;" : "=h"(h) : "r"(as_pair(in, 16))); \
    return of_pair(in, h, 8);
#define BYTES_TO_HALVES(ptx)                                             \
    asm(ptx " %0, %1;" : "=r"(w) : "h"((unsigned short)as_pair(in, 8))); \
    return of_pair(in, w, 16);
#define H_TO_F(ptx)                                             \
    asm(ptx " %0, %1;" : "=f"(f) : "h"((unsigned short)in[0])); \
    return __float_as_uint(f);
#define H_TO_H(ptx)                                             \
    asm(ptx " %0, %1;" : "=h"(h) : "h"((unsigned short)in[0])); \
    return h;
#define D_TO_F(ptx)                                     \
    asm(ptx " %0, %1;" : "=f"(f) : "d"(as_double(in))); \
    return __float_as_uint(f);
#define D_TO_H(ptx)                                     \
    asm(ptx " %0, %1;" : "=h"(h) : "d"(as_double(in))); \
    return h;

/* Blackwell's. ptxas has no operand of 8 bits for C++, and takes two of 4 as one. */
#define F_TO_UPPER_NIBBLE(ptx)                                          \
    asm("{ .reg .b8 pair; " ptx " pair, %1, %2; cvt.u16.u8 %0, pair; }" \
        : "=h"(h)                                                       \
        : "f"(__uint_as_float(in[0])), "f"(__uint_as_float(~in[0])));   \
    return h >> 4;
#define NIBBLES_TO_HALVES(ptx)                                                                                        \
    asm("{ .reg .b8 pair; cvt.u8.u16 pair, %1; " ptx " %0, pair; }" : "=r"(w) : "h"((unsigned short)as_pair(in, 4))); \
    return of_pair(in, w, 16);

#define GPU_CVT_CASE(ID, ptx, form, from, to, mode, traits) \
    case GPU_CONVERT_##ID:                                  \
        form(ptx)
