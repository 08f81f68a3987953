/* wgmma_forms.cuh -- the instructions of variants.h as types: form::multiply is one wgmma on its sums. On a CPU
 * tests/gpu/host_wgmma.h plays them. */
#pragma once

#include "../../kernels/cuda.cuh"
#include "variants.h"

/* What each pair of types is called, its depth, its results (F: binary32, H: two of fp16 a register), and what comes
 * last: signs of A and B, and of 16 bits whether they are MN-major, of A only if it is in shared memory. */
#define FORM_OF_F16(X, ...) X("k16.f32.f16.f16", F, 16, TAIL_HALF, __VA_ARGS__)
#define FORM_OF_F16F16(X, ...) X("k16.f16.f16.f16", H, 16, TAIL_HALF, __VA_ARGS__)
#define FORM_OF_BF16(X, ...) X("k16.f32.bf16.bf16", F, 16, TAIL_HALF, __VA_ARGS__)
#define FORM_OF_TF32(X, ...) X("k8.f32.tf32.tf32", F, 8, TAIL, __VA_ARGS__)
#define FORM_OF_E4M3(X, ...) X("k32.f32.e4m3.e4m3", F, 32, TAIL, __VA_ARGS__)
#define FORM_OF_E4M3_E5M2(X, ...) X("k32.f32.e4m3.e5m2", F, 32, TAIL, __VA_ARGS__)
#define FORM_OF_E5M2_E4M3(X, ...) X("k32.f32.e5m2.e4m3", F, 32, TAIL, __VA_ARGS__)
#define FORM_OF_E5M2(X, ...) X("k32.f32.e5m2.e5m2", F, 32, TAIL, __VA_ARGS__)
#define FORM_OF_E4M3F16(X, ...) X("k32.f16.e4m3.e4m3", H, 32, TAIL, __VA_ARGS__)
#define FORM_OF_E4M3_E5M2F16(X, ...) X("k32.f16.e4m3.e5m2", H, 32, TAIL, __VA_ARGS__)
#define FORM_OF_E5M2_E4M3F16(X, ...) X("k32.f16.e5m2.e4m3", H, 32, TAIL, __VA_ARGS__)
#define FORM_OF_E5M2F16(X, ...) X("k32.f16.e5m2.e5m2", H, 32, TAIL, __VA_ARGS__)

#define FORM_NAME(types, n, ar, ta, tb, na, nb) form_##types##_##n##_##ar##ta##tb##na##nb

#define FORM_CONSTANTS(result, k, n, ar, ta, tb, na, nb)                                                               \
    static constexpr int N = n, K = k, IN_REGISTERS = ar, IS_HALF = #result[0] == 'H', TRANSPOSED = !ar && (ta || tb), \
                         NEGATED = !ar && (na || nb);                                                                  \
    using sums = uint32_t[N / (IS_HALF ? 4 : 2)];

#if GPU_ON_HOST

#define FORM_TYPE(text, result, k, tail, types, n, ar, ta, tb, na, nb)                                      \
    struct FORM_NAME(types, n, ar, ta, tb, na, nb) {                                                        \
        FORM_CONSTANTS(result, k, n, ar, ta, tb, na, nb)                                                    \
        static void multiply(uint32_t (&x)[4], uint64_t a, uint64_t b, uint32_t scale_d, sums &d)           \
        {                                                                                                   \
            gpu_host_variant(gpu_host_form{GPU_WGMMA_##types, n, ar, ta, tb, na, nb}, x, a, b, scale_d, d); \
        }                                                                                                   \
    };

#else

/* Names of the registers of the sums, from %7 on. */
#define FORM_TEN(t) ",%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9"
#define FORM_D4 "%7,%8,%9,%10"
#define FORM_D8 FORM_D4 ",%11,%12,%13,%14"
#define FORM_D12 FORM_D8 ",%15,%16,%17,%18"
#define FORM_D16 FORM_D12 ",%19,%20,%21,%22"
#define FORM_D32 "%7,%8,%9" FORM_TEN(1) FORM_TEN(2) ",%30,%31,%32,%33,%34,%35,%36,%37,%38"
#define FORM_D64 "%7,%8,%9" FORM_TEN(1) FORM_TEN(2) FORM_TEN(3) FORM_TEN(4) FORM_TEN(5) FORM_TEN(6) ",%70"
#define FORM_D128                                                                                              \
    "%7,%8,%9" FORM_TEN(1) FORM_TEN(2) FORM_TEN(3) FORM_TEN(4) FORM_TEN(5) FORM_TEN(6) FORM_TEN(7) FORM_TEN(8) \
        FORM_TEN(9) FORM_TEN(10) FORM_TEN(11) FORM_TEN(12) ",%130,%131,%132,%133,%134"
#define FORM_O4(c, i) c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3])
#define FORM_O8(c, i) FORM_O4(c, i), FORM_O4(c, i + 4)
#define FORM_O12(c, i) FORM_O8(c, i), FORM_O4(c, i + 8)
#define FORM_O16(c, i) FORM_O8(c, i), FORM_O8(c, i + 8)
#define FORM_O32(c, i) FORM_O16(c, i), FORM_O16(c, i + 16)
#define FORM_O64(c, i) FORM_O32(c, i), FORM_O32(c, i + 32)
#define FORM_O128(c, i) FORM_O64(c, i), FORM_O64(c, i + 64)
/* Registers that a thread has for n columns. */
#define FORM_F_16(X) X(8)
#define FORM_F_24(X) X(12)
#define FORM_F_32(X) X(16)
#define FORM_F_64(X) X(32)
#define FORM_F_128(X) X(64)
#define FORM_F_256(X) X(128)
#define FORM_H_16(X) X(4)
#define FORM_H_64(X) X(16)
#define FORM_H_256(X) X(64)
#define FORM_LIST(n) FORM_D##n
#define FORM_OPERANDS(n) FORM_O##n("+r", 0)

#define FORM_A_0 "%4"
#define FORM_A_1 "{%0,%1,%2,%3}"
#define FORM_SIGN_0 "1"
#define FORM_SIGN_1 "-1"
#define TAIL(ar, ta, tb, na, nb) FORM_SIGN_##na ", " FORM_SIGN_##nb
#define TAIL_HALF(ar, ta, tb, na, nb) TAIL(ar, ta, tb, na, nb) FORM_MN_##ar(ta, tb)
#define FORM_MN_0(ta, tb) ", " #ta ", " #tb
#define FORM_MN_1(ta, tb) ", " #tb

/* The text of an instruction: the order of operands is that of the PTX ISA but that inputs come first, so that they have
 * the same numbers whatever n is. */
#define FORM_TYPE(text, result, k, tail, types, n, ar, ta, tb, na, nb)                                              \
    struct FORM_NAME(types, n, ar, ta, tb, na, nb) {                                                                \
        FORM_CONSTANTS(result, k, n, ar, ta, tb, na, nb)                                                            \
        static __device__ __forceinline__ void multiply(uint32_t (&x)[4], uint64_t a, uint64_t b, uint32_t scale_d, \
                                                        sums &d)                                                    \
        {                                                                                                           \
            asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"                                                  \
                         "wgmma.mma_async.sync.aligned.m64n" #n text                                                \
                         " {" FORM_##result##_##n(FORM_LIST) "}, " FORM_A_##ar                                      \
                         ", %5, p, " tail(ar, ta, tb, na, nb) "; }"                                                 \
                         : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3]), "+l"(a), "+l"(b), "+r"(scale_d),         \
                           FORM_##result##_##n(FORM_OPERANDS));                                                     \
        }                                                                                                           \
    };

#endif

#define FORM_DEFINE(types, n, ar, ta, tb, na, nb) FORM_OF_##types(FORM_TYPE, types, n, ar, ta, tb, na, nb)
GPU_FORMS(FORM_DEFINE)
