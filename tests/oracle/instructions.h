/* instructions.h -- what instructions of CPUs give, written from their manuals with GMP, step by step.
 *
 * Sums are integers in units of 2^-300, in which every product of the operands is one. Shares nothing with
 * lib/dot, and knows no table of models. Results are bits of binary32. Where the manual does not say which NaN a
 * result is, it is 0x7fc00000. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Operands as binary64 numbers, so that one function does for every format; `tiny`: numbers below it are
 * subnormal in their format. */
typedef struct instruction_operands {
    size_t n;
    double a[64], b[64];
    uint32_t bits_a[64], bits_b[64]; /* of the same numbers as binary32: for NaNs */
} instruction_operands;

/* x86: SDM, VDPBF16PS. Two products. */
uint32_t instruction_vdpbf16ps(uint32_t c, const instruction_operands *x);

/* x86: SDM, TDPBF16PS and TDPFP16PS: an element of a tile; n products, even. */
uint32_t instruction_tdpbf16ps(uint32_t c, const instruction_operands *x);
uint32_t instruction_tdpfp16ps(uint32_t c, const instruction_operands *x);

/* x86: AMX-FP8: an element of a tile, n products. */
uint32_t instruction_tdpfp8ps(uint32_t c, const instruction_operands *x);

/* Arm: BFDotAdd with FPCR.EBF = 0 and 1, two products; FPMulAdd, one. */
uint32_t instruction_bfdot(uint32_t c, const instruction_operands *x);
uint32_t instruction_bfdot_ebf(uint32_t c, const instruction_operands *x);
uint32_t instruction_fmlal(uint32_t c, const instruction_operands *x);
