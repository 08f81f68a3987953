/* reductions.h -- sums, minima and maxima that the memory computes: red, atom, cp.reduce.async.bulk. One list for the
 * table of checks (reductions.c) and for the kernel (reduce.cu). X(name of an enumerator, head and tail of PTX's name, how
 * operands are passed, space, format, operation, elements that one instruction changes, traits, log2 of the inputs).
 *
 * What PTX's text says (red, atom, cp.reduce.async.bulk): sums are rounded to nearest, ties to even; add.f32 in global
 * memory flushes subnormal operands and results to zeros of their sign, in shared memory it does not, nor does .noftz.
 * It says nothing about the bits of NaNs, nor, of min and max, about NaNs and zeros of both signs: those are questions. */
#pragma once

enum { GPU_REDUCTION_FLUSHES = 1 };

/* clang-format off */
#define GPU_REDUCTION_SUMS(X, ID, type, format) /* fp16 and bf16 */                                                     \
    X(RED_##ID##X2, "red.global.", "add.noftz." type "x2", R1, GLOBAL, format, ADD, 2, 0, 32)                           \
    X(ATOM_##ID##X2, "atom.global.", "add.noftz." type "x2", ATOM_R, GLOBAL, format, ADD, 2, 0, 28)                     \
    X(RED_##ID, "red.global.", "add.noftz." type, H1, GLOBAL, format, ADD, 1, 0, 28)                                    \
    X(ATOM_##ID, "atom.global.", "add.noftz." type, ATOM_H, GLOBAL, format, ADD, 1, 0, 28)                              \
    X(RED_V2_##ID, "red.global.", "add.noftz.v2." type, H2, GLOBAL, format, ADD, 2, 0, 28)                              \
    X(RED_V4_##ID, "red.global.", "add.noftz.v4." type, H4, GLOBAL, format, ADD, 4, 0, 28)                              \
    X(RED_V8_##ID, "red.global.", "add.noftz.v8." type, H8, GLOBAL, format, ADD, 8, 0, 28)                              \
    X(RED_V4_##ID##X2, "red.global.", "add.noftz.v4." type "x2", R4, GLOBAL, format, ADD, 8, 0, 28)                     \
    X(SHARED_##ID##X2, "red.shared.", "add.noftz." type "x2", R1, SHARED, format, ADD, 2, 0, 28)                        \
    X(SHARED_##ID, "red.shared.", "add.noftz." type, H1, SHARED, format, ADD, 1, 0, 28)                                 \
    X(BULK_##ID, "cp.reduce.async.bulk.", "add.noftz." type, BULK, GLOBAL, format, ADD, 8, 0, 26)                       \
    X(MIN_V8_##ID, "red.global.", "min.noftz.v8." type, H8, GLOBAL, format, MIN, 8, 0, 28)                              \
    X(MAX_V8_##ID, "red.global.", "max.noftz.v8." type, H8, GLOBAL, format, MAX, 8, 0, 28)                              \
    X(MIN_BULK_##ID, "cp.reduce.async.bulk.", "min." type, BULK, GLOBAL, format, MIN, 8, 0, 26)                         \
    X(MAX_BULK_##ID, "cp.reduce.async.bulk.", "max." type, BULK, GLOBAL, format, MAX, 8, 0, 26)

#define GPU_REDUCTIONS(X)                                                                                               \
    GPU_REDUCTION_SUMS(X, F16, "f16", "fp16")                                                                           \
    GPU_REDUCTION_SUMS(X, BF16, "bf16", "bf16")                                                                         \
    X(RED_F32, "red.global.", "add.f32", F1, GLOBAL, "binary32", ADD, 1, GPU_REDUCTION_FLUSHES, 30)                     \
    X(ATOM_F32, "atom.global.", "add.f32", ATOM_F, GLOBAL, "binary32", ADD, 1, GPU_REDUCTION_FLUSHES, 28)               \
    X(RED_V2_F32, "red.global.", "add.v2.f32", F2, GLOBAL, "binary32", ADD, 2, GPU_REDUCTION_FLUSHES, 28)               \
    X(RED_V4_F32, "red.global.", "add.v4.f32", F4, GLOBAL, "binary32", ADD, 4, GPU_REDUCTION_FLUSHES, 28)               \
    X(BULK_F32, "cp.reduce.async.bulk.", "add.f32", BULK, GLOBAL, "binary32", ADD, 4, GPU_REDUCTION_FLUSHES, 26)        \
    X(SHARED_F32, "red.shared.", "add.f32", F1, SHARED, "binary32", ADD, 1, 0, 28)                                      \
    X(ATOM_SHARED_F32, "atom.shared.", "add.f32", ATOM_F, SHARED, "binary32", ADD, 1, 0, 28)
/* clang-format on */

#define GPU_REDUCTION_ENUMERATOR(ID, head, tail, form, space, format, op, elements, traits, log_count) GPU_REDUCE_##ID,
enum { GPU_REDUCTIONS(GPU_REDUCTION_ENUMERATOR) GPU_REDUCTION_ROWS };
#undef GPU_REDUCTION_ENUMERATOR
