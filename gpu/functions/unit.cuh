/* unit.cuh -- the instructions under test, each as one line of PTX; on a CPU a unit that tests/gpu plays.
 *
 * On sm_90 ptxas makes one MUFU of those with .ftz, of tanh and of 16 bits (two of packed ones), behind a product with 1 / (2 pi)
 * for sin and cos, and scales the others by powers of two (README.md). */
#pragma once

#include "../kernels/cuda.cuh"
#include "functions.h"

#if GPU_ON_HOST
#include "../../tests/gpu/host_unit.h"
#else

#define GPU_ASM_UNARY(instruction)                                       \
    {                                                                    \
        float y;                                                         \
        asm(instruction " %0, %1;" : "=f"(y) : "f"(__uint_as_float(a))); \
        return __float_as_uint(y);                                       \
    }
#define GPU_ASM_HALF(instruction)                                       \
    {                                                                   \
        unsigned short y;                                               \
        asm(instruction " %0, %1;" : "=h"(y) : "h"((unsigned short)a)); \
        return y;                                                       \
    }
#define GPU_ASM_PACKED(instruction)                     \
    {                                                   \
        uint32_t y;                                     \
        asm(instruction " %0, %1;" : "=r"(y) : "r"(a)); \
        return y;                                       \
    }
#define GPU_ASM_BINARY(instruction)                                                                   \
    {                                                                                                 \
        float y;                                                                                      \
        asm(instruction " %0, %1, %2;" : "=f"(y) : "f"(__uint_as_float(a)), "f"(__uint_as_float(b))); \
        return __float_as_uint(y);                                                                    \
    }

/* Operation number of operations[] in plan.c; b: the divisor of a quotient. */
template <int operation>
static __device__ __forceinline__ uint32_t gpu_unit(uint32_t a, [[maybe_unused]] uint32_t b)
{
    static_assert(operation >= 0 && operation < GPU_OPERATIONS, "an instruction");
    if constexpr (operation == 0)
        GPU_ASM_UNARY("ex2.approx.ftz.f32")
    else if constexpr (operation == 1)
        GPU_ASM_UNARY("rcp.approx.ftz.f32")
    else if constexpr (operation == 2)
        GPU_ASM_UNARY("rsqrt.approx.ftz.f32")
    else if constexpr (operation == 3)
        GPU_ASM_UNARY("lg2.approx.ftz.f32")
    else if constexpr (operation == 4)
        GPU_ASM_UNARY("tanh.approx.f32")
    else if constexpr (operation == 5)
        GPU_ASM_UNARY("sin.approx.ftz.f32")
    else if constexpr (operation == 6)
        GPU_ASM_UNARY("cos.approx.ftz.f32")
    else if constexpr (operation == 7)
        GPU_ASM_UNARY("sqrt.approx.ftz.f32")
    else if constexpr (operation == 8)
        GPU_ASM_UNARY("ex2.approx.f32")
    else if constexpr (operation == 9)
        GPU_ASM_UNARY("rcp.approx.f32")
    else if constexpr (operation == 10)
        GPU_ASM_UNARY("rsqrt.approx.f32")
    else if constexpr (operation == 11)
        GPU_ASM_UNARY("lg2.approx.f32")
    else if constexpr (operation == 12)
        GPU_ASM_UNARY("sin.approx.f32")
    else if constexpr (operation == 13)
        GPU_ASM_UNARY("cos.approx.f32")
    else if constexpr (operation == 14)
        GPU_ASM_UNARY("sqrt.approx.f32")
    else if constexpr (operation == 15)
        GPU_ASM_HALF("ex2.approx.f16")
    else if constexpr (operation == 16)
        GPU_ASM_HALF("tanh.approx.f16")
    else if constexpr (operation == 17)
        GPU_ASM_HALF("ex2.approx.ftz.bf16")
    else if constexpr (operation == 18)
        GPU_ASM_HALF("tanh.approx.bf16")
    else if constexpr (operation == 19)
        GPU_ASM_PACKED("ex2.approx.f16x2")
    else if constexpr (operation == 20)
        GPU_ASM_PACKED("tanh.approx.f16x2")
    else if constexpr (operation == 21)
        GPU_ASM_PACKED("ex2.approx.ftz.bf16x2")
    else if constexpr (operation == 22)
        GPU_ASM_PACKED("tanh.approx.bf16x2")
    else if constexpr (operation == 23)
        GPU_ASM_BINARY("div.approx.ftz.f32")
    else if constexpr (operation == 24)
        GPU_ASM_BINARY("div.approx.f32")
    else if constexpr (operation == 25)
        GPU_ASM_BINARY("div.full.ftz.f32")
    else
        GPU_ASM_BINARY("div.full.f32")
}

#endif
