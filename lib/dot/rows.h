/* rows.h -- kinds of rows of model.c: operations that round each result, and NVIDIA's block-scaled instructions. */
#pragma once

/* Operations that round to the format of the result, to nearest even. */
#define PLAIN(arch, row_name, kind, how, n, instructions, formats, to_result, known, open, from)           \
    .name = arch "-" row_name, .addition = MPSIM_ADDITION_##kind, .order = MPSIM_ORDER_##how, .length = n, \
    .floor = NONE, .operand_emin = OWN, .product = {to_result, RN}, .accumulator = {to_result, RN},        \
    .outer = {to_result, RN}, .result = to_result, .architecture = arch, .instruction = instructions,      \
    .operands = formats, .evidence = MPSIM_EVIDENCE_##known, .unconfirmed = open, .source = from,          \
    .nan = MPSIM_NANS_ONES

/* binary64 on NVIDIA: a chain of fused multiply-adds. */
#define DOUBLE(arch, instructions, known, open, from)                                                    \
    {                                                                                                    \
        PLAIN(arch, "fp64", FMA, SEQUENTIAL, 0, instructions, "binary64", "binary64", known, open, from) \
    }
#define NO_DOUBLES "no outputs of this hardware compared; the bits of a NaN"

/* Without scales these compute as if all were 1. PTX calls e4m3 scales ue4m3: the sign is not used. */
#define SCALES "no public outputs of this hardware; " CORNERS FLOOR "; scales that are subnormal, zero or NaN"

/* Products with the exponents of their scales, in an addition of 32. */
#define MX8(arch, row_name, instructions)                                                                             \
    {                                                                                                                 \
        .name = arch "-" row_name, .addition = MPSIM_ADDITION_FUSED, .length = 32, .fraction = 25, .floor = -133,     \
        .operand_emin = OWN, .product = {"binary32", RN}, .accumulator = {"binary32", RZ}, .outer = {"binary32", RN}, \
        .result = "binary32", .architecture = arch, .instruction = instructions, .operands = F86, .block = 32,        \
        .scales = "e8m0", .evidence = MPSIM_EVIDENCE_REPORTED, .unconfirmed = SCALES, .source = "MMA",                \
        .nan = MPSIM_NANS_ONES                                                                                        \
    }

/* Sums of 16 products, scaled, 4 in an addition. */
#define MX4(arch, row_name, instructions, elements, formats)                                                      \
    {                                                                                                             \
        .name = arch "-" row_name, .addition = MPSIM_ADDITION_GROUPED, .length = 64, .group = 16, .fraction = 35, \
        .floor = -139, .operand_emin = OWN, .product = {"binary32", RN}, .accumulator = {"binary32", RZ},         \
        .outer = {"binary32", RN}, .result = "binary32", .architecture = arch, .instruction = instructions,       \
        .operands = "e2m1", .block = elements, .scales = formats, .evidence = MPSIM_EVIDENCE_REPORTED,            \
        .unconfirmed = SCALES, .source = "MMA", .nan = MPSIM_NANS_ONES                                            \
    }
