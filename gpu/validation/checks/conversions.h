/* conversions.h -- the conversions that came after those of convert.cu: one list for the table of checks
 * (conversions.c) and for the kernel (cvt.cu). X(name of an enumerator, PTX, how operands are passed, formats of the
 * operand and the result, rounding, traits). The names of checks are PTX's.
 *
 * What PTX's text (cvt) says: .satfinite makes what is beyond the largest number that number, of its sign; .relu makes
 * negative numbers 0 and NaNs canonical. It says neither which bits other NaNs have, nor which zero .relu makes of -0 and
 * of negative numbers that round to zero: those are questions. */
#pragma once

/* Traits. OPEN: NaNs are a question. Wide formats saturate with SATURATES alone, narrow ones but with NO_SATURATION. */
enum { GPU_CVT_RELU = 1, GPU_CVT_SATURATES = 2, GPU_CVT_OPEN = 4, GPU_CVT_NO_SATURATION = 8 };

/* clang-format off */
#define GPU_CVT_NARROW(X, ID, type, format) /* binary32 to fp16 and bf16 */                                             \
    X(RM_##ID, "cvt.rm." type ".f32", F_TO_H, "binary32", format, DOWN, GPU_CVT_OPEN)                                   \
    X(RP_##ID, "cvt.rp." type ".f32", F_TO_H, "binary32", format, UP, GPU_CVT_OPEN)                                     \
    X(RN_RELU_##ID, "cvt.rn.relu." type ".f32", F_TO_H, "binary32", format, NEAREST_EVEN, GPU_CVT_RELU)                 \
    X(RZ_RELU_##ID, "cvt.rz.relu." type ".f32", F_TO_H, "binary32", format, TOWARD_ZERO, GPU_CVT_RELU)                  \
    X(RN_SAT_##ID, "cvt.rn.satfinite." type ".f32", F_TO_H, "binary32", format, NEAREST_EVEN,                           \
      GPU_CVT_SATURATES | GPU_CVT_OPEN)                                                                                 \
    X(RZ_SAT_##ID, "cvt.rz.satfinite." type ".f32", F_TO_H, "binary32", format, TOWARD_ZERO,                            \
      GPU_CVT_SATURATES | GPU_CVT_OPEN)                                                                                 \
    X(RN_RELU_SAT_##ID, "cvt.rn.relu.satfinite." type ".f32", F_TO_H, "binary32", format, NEAREST_EVEN,                 \
      GPU_CVT_RELU | GPU_CVT_SATURATES)                                                                                 \
    X(RZ_RELU_SAT_##ID, "cvt.rz.relu.satfinite." type ".f32", F_TO_H, "binary32", format, TOWARD_ZERO,                  \
      GPU_CVT_RELU | GPU_CVT_SATURATES)                                                                                 \
    X(RN_##ID##X2, "cvt.rn." type "x2.f32", F_TO_UPPER_HALF, "binary32", format, NEAREST_EVEN, 0)                       \
    X(RZ_##ID##X2, "cvt.rz." type "x2.f32", F_TO_UPPER_HALF, "binary32", format, TOWARD_ZERO, 0)

#define GPU_CVT_FP8(X, ID, type, format) /* to FP8, and from it */                                                      \
    X(ID##_F32, "cvt.rn.satfinite." type "x2.f32", F_TO_UPPER_BYTE, "binary32", format, NEAREST_EVEN, 0)                \
    X(RELU_##ID##_F32, "cvt.rn.satfinite.relu." type "x2.f32", F_TO_UPPER_BYTE, "binary32", format, NEAREST_EVEN,       \
      GPU_CVT_RELU)                                                                                                     \
    X(ID##_F16, "cvt.rn.satfinite." type "x2.f16x2", HALVES_TO_BYTES, "fp16", format, NEAREST_EVEN, GPU_CVT_OPEN)       \
    X(RELU_##ID##_F16, "cvt.rn.satfinite.relu." type "x2.f16x2", HALVES_TO_BYTES, "fp16", format, NEAREST_EVEN,         \
      GPU_CVT_RELU)                                                                                                     \
    X(F16_##ID, "cvt.rn.f16x2." type "x2", BYTES_TO_HALVES, format, "fp16", NEAREST_EVEN, GPU_CVT_OPEN)                 \
    X(RELU_F16_##ID, "cvt.rn.relu.f16x2." type "x2", BYTES_TO_HALVES, format, "fp16", NEAREST_EVEN, GPU_CVT_RELU)

#define GPU_CVT_FOUR(X, ID, types, form, from, to) /* by all four roundings */                                          \
    X(RN_##ID, "cvt.rn." types, form, from, to, NEAREST_EVEN, GPU_CVT_OPEN)                                             \
    X(RZ_##ID, "cvt.rz." types, form, from, to, TOWARD_ZERO, GPU_CVT_OPEN)                                              \
    X(RM_##ID, "cvt.rm." types, form, from, to, DOWN, GPU_CVT_OPEN)                                                     \
    X(RP_##ID, "cvt.rp." types, form, from, to, UP, GPU_CVT_OPEN)

#define GPU_CONVERSIONS(X)                                                                                              \
    GPU_CVT_NARROW(X, F16, "f16", "fp16")                                                                               \
    GPU_CVT_NARROW(X, BF16, "bf16", "bf16")                                                                             \
    X(RNA_SAT_TF32, "cvt.rna.satfinite.tf32.f32", F_TO_TF32, "binary32", "tf32", NEAREST_AWAY,                          \
      GPU_CVT_SATURATES | GPU_CVT_OPEN)                                                                                 \
    X(RN_RELU_TF32, "cvt.rn.relu.tf32.f32", F_TO_TF32, "binary32", "tf32", NEAREST_EVEN, GPU_CVT_RELU)                  \
    X(RZ_RELU_TF32, "cvt.rz.relu.tf32.f32", F_TO_TF32, "binary32", "tf32", TOWARD_ZERO, GPU_CVT_RELU)                   \
    GPU_CVT_FP8(X, E4M3, "e4m3", "e4m3")                                                                                \
    GPU_CVT_FP8(X, E5M2, "e5m2", "e5m2")                                                                                \
    X(F32_F16, "cvt.f32.f16", H_TO_F, "fp16", "binary32", NEAREST_EVEN, GPU_CVT_OPEN)                                   \
    X(F32_BF16, "cvt.f32.bf16", H_TO_F, "bf16", "binary32", NEAREST_EVEN, GPU_CVT_OPEN)                                 \
    GPU_CVT_FOUR(X, BF16_F16, "bf16.f16", H_TO_H, "fp16", "bf16")                                                       \
    GPU_CVT_FOUR(X, F16_BF16, "f16.bf16", H_TO_H, "bf16", "fp16")                                                       \
    GPU_CVT_FOUR(X, F32_F64, "f32.f64", D_TO_F, "binary64", "binary32")                                                 \
    GPU_CVT_FOUR(X, F16_F64, "f16.f64", D_TO_H, "binary64", "fp16")                                                     \
    GPU_CVT_FOUR(X, BF16_F64, "bf16.f64", D_TO_H, "binary64", "bf16")
#define GPU_CVT_SMALL(X, ID, type, format, form, back) /* FP6 and FP4, which have no NaN, and from them */               \
    X(ID##_F32, "cvt.rn.satfinite." type "x2.f32", form, "binary32", format, NEAREST_EVEN, GPU_CVT_OPEN)                \
    X(RELU_##ID##_F32, "cvt.rn.satfinite.relu." type "x2.f32", form, "binary32", format, NEAREST_EVEN,                  \
      GPU_CVT_RELU | GPU_CVT_OPEN)                                                                                      \
    X(F16_##ID, "cvt.rn.f16x2." type "x2", back, format, "fp16", NEAREST_EVEN, 0)                                       \
    X(RELU_F16_##ID, "cvt.rn.relu.f16x2." type "x2", back, format, "fp16", NEAREST_EVEN, GPU_CVT_RELU)

/* Up and toward zero alone; the sign is ignored. */
#define GPU_CVT_SCALES(X, ID, type, form, from)                                                                         \
    X(RZ_E8M0_##ID, "cvt.rz.ue8m0x2." type, form, from, "e8m0", TOWARD_ZERO, GPU_CVT_NO_SATURATION | GPU_CVT_OPEN)      \
    X(RP_E8M0_##ID, "cvt.rp.ue8m0x2." type, form, from, "e8m0", UP, GPU_CVT_NO_SATURATION | GPU_CVT_OPEN)               \
    X(RZ_SAT_E8M0_##ID, "cvt.rz.satfinite.ue8m0x2." type, form, from, "e8m0", TOWARD_ZERO, GPU_CVT_OPEN)                \
    X(RP_SAT_E8M0_##ID, "cvt.rp.satfinite.ue8m0x2." type, form, from, "e8m0", UP, GPU_CVT_OPEN)

#define GPU_CONVERSIONS_NEXT(X) /* of Blackwell: sm_100a, sm_120a */                                                    \
    GPU_CVT_SMALL(X, E2M1, "e2m1", "e2m1", F_TO_UPPER_NIBBLE, NIBBLES_TO_HALVES)                                        \
    GPU_CVT_SMALL(X, E2M3, "e2m3", "e2m3", F_TO_UPPER_BYTE, BYTES_TO_HALVES)                                            \
    GPU_CVT_SMALL(X, E3M2, "e3m2", "e3m2", F_TO_UPPER_BYTE, BYTES_TO_HALVES)                                            \
    GPU_CVT_SCALES(X, F32, "f32", F_TO_UPPER_BYTE, "binary32")                                                          \
    GPU_CVT_SCALES(X, BF16, "bf16x2", HALVES_TO_BYTES, "bf16")                                                          \
    X(BF16_E8M0, "cvt.rn.bf16x2.ue8m0x2", BYTES_TO_HALVES, "e8m0", "bf16", NEAREST_EVEN, GPU_CVT_OPEN)                  \
    X(RN_SAT_TF32, "cvt.rn.satfinite.tf32.f32", F_TO_TF32, "binary32", "tf32", NEAREST_EVEN,                            \
      GPU_CVT_SATURATES | GPU_CVT_OPEN)                                                                                 \
    X(RZ_SAT_TF32, "cvt.rz.satfinite.tf32.f32", F_TO_TF32, "binary32", "tf32", TOWARD_ZERO,                             \
      GPU_CVT_SATURATES | GPU_CVT_OPEN)                                                                                 \
    X(RN_RELU_SAT_TF32, "cvt.rn.satfinite.relu.tf32.f32", F_TO_TF32, "binary32", "tf32", NEAREST_EVEN,                  \
      GPU_CVT_RELU | GPU_CVT_SATURATES)                                                                                 \
    X(RZ_RELU_SAT_TF32, "cvt.rz.satfinite.relu.tf32.f32", F_TO_TF32, "binary32", "tf32", TOWARD_ZERO,                   \
      GPU_CVT_RELU | GPU_CVT_SATURATES)
/* clang-format on */

#define GPU_CVT_ENUMERATOR(ID, ptx, form, from, to, mode, traits) GPU_CONVERT_##ID,
enum { GPU_CONVERSIONS(GPU_CVT_ENUMERATOR) GPU_CONVERSIONS_NEXT(GPU_CVT_ENUMERATOR) GPU_CONVERSION_ROWS };
enum { GPU_CONVERT_FIRST_NEXT = GPU_CONVERT_E2M1_F32 };
#undef GPU_CVT_ENUMERATOR
