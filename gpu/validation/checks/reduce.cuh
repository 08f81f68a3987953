/* reduce.cuh -- the reductions of reductions.h, each on 16 bytes that a thread names. */
#pragma once

#include "reductions.h"
#include "tally.cuh"

enum { WORDS = 4 };

/* The number in memory and the number that is added, as words. */
struct reduction {
    uint32_t memory[WORDS], operand[WORDS];
    uint64_t global;
    uint32_t shared, cell; /* addresses in shared memory: of the place, of the operand of cp.reduce */
    int place;             /* of the element that is asked for */
    int is_16;
};

static __device__ uint32_t element(const uint32_t words[WORDS], int place, int is_16)
{
    return is_16 ? words[place / 2] >> 16 * (place % 2) & 0xffff : words[place];
}

static __device__ unsigned short half_of(const reduction &r, int i)
{
    return (unsigned short)element(r.operand, i, 1);
}

static __device__ float float_of(const reduction &r, int i)
{
    return __uint_as_float(r.operand[i]);
}

static __device__ void store_shared(uint32_t at, const uint32_t w[WORDS])
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
                 : "memory");
}

static __device__ void store_global(uint64_t at, const uint32_t w[WORDS])
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
                 : "memory");
}

static __device__ void load_shared(uint32_t w[WORDS], uint32_t at)
{
    for (int i = 0; i < WORDS; i++)
        asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(w[i]) : "r"(at + 4 * i) : "memory");
}

static __device__ void load_global(uint32_t w[WORDS], uint64_t at)
{
    for (int i = 0; i < WORDS; i++)
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(w[i]) : "l"(at + 4 * i) : "memory");
}

/* Where it happens, and how. */
#define GLOBAL "l"(r.global)
#define SHARED "r"(r.shared)
#define F1(head, tail, at) asm volatile(head tail " [%0], %1;" ::at, "f"(float_of(r, 0)) : "memory")
#define F2(head, tail, at) \
    asm volatile(head tail " [%0], {%1, %2};" ::at, "f"(float_of(r, 0)), "f"(float_of(r, 1)) : "memory")
#define F4(head, tail, at)                                                                            \
    asm volatile(head tail " [%0], {%1, %2, %3, %4};" ::at, "f"(float_of(r, 0)), "f"(float_of(r, 1)), \
                 "f"(float_of(r, 2)), "f"(float_of(r, 3))                                             \
                 : "memory")
#define H1(head, tail, at) asm volatile(head tail " [%0], %1;" ::at, "h"(half_of(r, 0)) : "memory")
#define H2(head, tail, at) \
    asm volatile(head tail " [%0], {%1, %2};" ::at, "h"(half_of(r, 0)), "h"(half_of(r, 1)) : "memory")
#define H4(head, tail, at)                                                                          \
    asm volatile(head tail " [%0], {%1, %2, %3, %4};" ::at, "h"(half_of(r, 0)), "h"(half_of(r, 1)), \
                 "h"(half_of(r, 2)), "h"(half_of(r, 3))                                             \
                 : "memory")
#define H8(head, tail, at)                                                                                           \
    asm volatile(head tail " [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::at, "h"(half_of(r, 0)), "h"(half_of(r, 1)),  \
                 "h"(half_of(r, 2)), "h"(half_of(r, 3)), "h"(half_of(r, 4)), "h"(half_of(r, 5)), "h"(half_of(r, 6)), \
                 "h"(half_of(r, 7))                                                                                  \
                 : "memory")
#define R1(head, tail, at) asm volatile(head tail " [%0], %1;" ::at, "r"(r.operand[0]) : "memory")
#define R4(head, tail, at)                                                                                           \
    asm volatile(head tail " [%0], {%1, %2, %3, %4};" ::at, "r"(r.operand[0]), "r"(r.operand[1]), "r"(r.operand[2]), \
                 "r"(r.operand[3])                                                                                   \
                 : "memory")
#define ATOM_F(head, tail, at)                                                               \
    asm volatile(head tail " %0, [%1], %2;" : "=f"(f) : at, "f"(float_of(r, 0)) : "memory"); \
    old = __float_as_uint(f)
#define ATOM_R(head, tail, at) asm volatile(head tail " %0, [%1], %2;" : "=r"(old) : at, "r"(r.operand[0]) : "memory")
#define ATOM_H(head, tail, at)                                                              \
    asm volatile(head tail " %0, [%1], %2;" : "=h"(h) : at, "h"(half_of(r, 0)) : "memory"); \
    old = (r.memory[0] & 0xffff0000u) | h
#define BULK(head, tail, at)                                                                       \
    asm volatile("fence.proxy.async;\n\t"                                                          \
                 "cp.reduce.async.bulk.global.shared::cta.bulk_group." tail " [%0], [%1], 16;\n\t" \
                 "cp.async.bulk.commit_group;" ::at,                                               \
                 "r"(r.cell)                                                                       \
                 : "memory")

/* What atom returns is what was in memory: if not, a bit above the result says so. */
static __device__ uint32_t reduce(const reduction &r, int instruction)
{
    uint32_t old = r.memory[0];
    float f = 0;
    unsigned short h = 0;
    switch (instruction) {
#if __CUDA_ARCH__ >= 900
#define CASE(ID, head, tail, form, space, format, op, elements, traits, log_count) \
    case GPU_REDUCE_##ID:                                                          \
        form(head, tail, space);                                                   \
        break;
        GPU_REDUCTIONS(CASE)
#undef CASE
#endif
    default:
        break;
    }
    (void)f;
    (void)h;
    return old == r.memory[0] ? 0 : 0x80000000u;
}

/* What cp.reduce has begun is done. */
static __device__ void wait_bulk()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
}
