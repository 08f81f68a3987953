/* variants.h -- what else wgmma can do, beside what the checks of wgmma.cu ask: wide tiles, chains, swizzled and
 * MN-major operands, A in registers, negated operands. Each form is a kernel; a row is a form with a swizzle and the
 * length of a chain, and a check of its own. */
#pragma once

#include "checks.h"

/* X(types, n, A in registers, A MN-major, B MN-major, A negated, B negated); types as in GPU_WGMMA_* of instructions.h. */
/* clang-format off */
#define GPU_ALL_TYPES(X)                                                                            \
    X(F16, 16, 0, 0, 0, 0, 0) X(F16F16, 16, 0, 0, 0, 0, 0) X(BF16, 16, 0, 0, 0, 0, 0)               \
    X(TF32, 16, 0, 0, 0, 0, 0) X(E4M3, 16, 0, 0, 0, 0, 0) X(E4M3_E5M2, 16, 0, 0, 0, 0, 0)           \
    X(E5M2_E4M3, 16, 0, 0, 0, 0, 0) X(E5M2, 16, 0, 0, 0, 0, 0) X(E4M3F16, 16, 0, 0, 0, 0, 0)        \
    X(E4M3_E5M2F16, 16, 0, 0, 0, 0, 0) X(E5M2_E4M3F16, 16, 0, 0, 0, 0, 0) X(E5M2F16, 16, 0, 0, 0, 0, 0)
/* One of each width of operands and results. */
#define GPU_SIX_TYPES(X, ...)                                                                       \
    X(F16, __VA_ARGS__) X(F16F16, __VA_ARGS__) X(BF16, __VA_ARGS__) X(TF32, __VA_ARGS__)            \
    X(E4M3, __VA_ARGS__) X(E4M3F16, __VA_ARGS__)
#define GPU_WIDE_FORMS(X)                                                                           \
    GPU_SIX_TYPES(X, 64, 0, 0, 0, 0, 0)                                                             \
    X(F16, 256, 0, 0, 0, 0, 0) X(F16F16, 256, 0, 0, 0, 0, 0) X(E4M3, 256, 0, 0, 0, 0, 0)            \
    X(F16, 24, 0, 0, 0, 0, 0) X(F16, 32, 0, 0, 0, 0, 0) X(F16, 128, 0, 0, 0, 0, 0)                  \
    X(E4M3, 24, 0, 0, 0, 0, 0) X(E4M3, 128, 0, 0, 0, 0, 0)
#define GPU_REGISTER_FORMS(X) GPU_SIX_TYPES(X, 64, 1, 0, 0, 0, 0)
#define GPU_MN_FORMS(X)                                                                             \
    X(F16, 64, 0, 1, 0, 0, 0) X(F16, 64, 0, 0, 1, 0, 0) X(F16, 64, 0, 1, 1, 0, 0)                   \
    X(F16F16, 64, 0, 1, 1, 0, 0) X(BF16, 64, 0, 1, 1, 0, 0) X(F16, 256, 0, 0, 1, 0, 0)              \
    X(F16, 64, 1, 0, 1, 0, 0)
#define GPU_NEGATED_FORMS(X)                                                                        \
    GPU_SIX_TYPES(X, 16, 0, 0, 0, 1, 0)                                                             \
    X(F16, 16, 0, 0, 0, 0, 1) X(E4M3, 16, 0, 0, 0, 0, 1)                                            \
    X(F16, 16, 0, 0, 0, 1, 1) X(E4M3, 16, 0, 0, 0, 1, 1) X(F16, 64, 1, 0, 0, 1, 0)
#define GPU_FORMS(X)                                                                                \
    GPU_ALL_TYPES(X) GPU_WIDE_FORMS(X) GPU_REGISTER_FORMS(X) GPU_MN_FORMS(X) GPU_NEGATED_FORMS(X)
/* clang-format on */

#ifdef __cplusplus
extern "C" {
#endif

/* gpu_variant_check -- check i of variants, as gpu_check_at, but for its sample. */
int gpu_variant_check(gpu_check *c, size_t i, int sm, int quick);

#ifdef __cplusplus
}
#endif
