/* rows_amd.h -- rows of model.c: the matrix instructions (MFMA) of AMD. */
#define NONE_SEEN "no outputs of this hardware compared; "
#define NAN_BITS "; the bits of a NaN"

/* binary32 and binary64: chains of fused multiply-adds. */
#define CHAIN(arch, row_name, instructions, format)                                       \
    {                                                                                     \
        PLAIN(arch, row_name, FMA, SEQUENTIAL, 0, instructions, format, format, REPORTED, \
              NONE_SEEN "the bits of a NaN", "MMA")                                       \
    }

/* CDNA1: n products and the accumulator, exactly, rounded once. */
#define EXACT_SUM(row_name, instructions, operands, n)                                               \
    {                                                                                                \
        PLAIN("cdna1", row_name, EXACT, SEQUENTIAL, n, instructions, operands, "binary32", REPORTED, \
              NONE_SEEN "the sign of an exact zero (+0 here, as in MMA)" RANGE NAN_BITS, "MMA")      \
    }

/* CDNA2: products and sums of neighbours, each rounded, n products at a time; no subnormal numbers. */
#define FLUSHED(row_name, instructions, operands, n)                                                \
    {                                                                                               \
        PLAIN("cdna2", row_name, MULADD, PAIRWISE, n, instructions, operands, "binary32", REPORTED, \
              NONE_SEEN "the sign of a zero (as in MMA here)" NAN_BITS, "MMA"),                     \
            .traits = MPSIM_TRAIT_FLUSH_OPERANDS | MPSIM_TRAIT_FLUSH_SUMS | MPSIM_TRAIT_PLUS_ZERO   \
    }

/* CDNA3: in two stages. */
#define STAGED_SUM(row_name, instructions, operands, n, sums, drops, open)                            \
    {                                                                                                 \
        PLAIN("cdna3", row_name, STAGED, SEQUENTIAL, n, instructions, operands, "binary32", REPORTED, \
              NONE_SEEN "the sign of an exact zero (+0 here, as in MMA)" RANGE open, "MMA"),          \
            .fraction = 24, .ways = sums, .kept = 31, .drop = drops                                   \
    }

EXACT_SUM("fp16-fp32", "v_mfma_f32_*f16", "fp16", 4), EXACT_SUM("bf16-fp32", "v_mfma_f32_*bf16", "bf16", 2),
    CHAIN("cdna1", "fp32", "v_mfma_f32_*f32", "binary32"),

    FLUSHED("fp16-fp32", "v_mfma_f32_*f16", "fp16", 4), FLUSHED("bf16-fp32", "v_mfma_f32_*bf16_1k", "bf16", 4),
    FLUSHED("bf16-2-fp32", "v_mfma_f32_*bf16", "bf16", 2), CHAIN("cdna2", "fp32", "v_mfma_f32_*f32", "binary32"),
    CHAIN("cdna2", "fp64", "v_mfma_f64_*f64", "binary64"),

    STAGED_SUM("fp16-fp32", "v_mfma_f32_*_f16", "fp16", 8, 1, 0, ""),
    STAGED_SUM("bf16-fp32", "v_mfma_f32_*_bf16", "bf16", 8, 1, 0, ""),
    STAGED_SUM("xf32-fp32", "v_mfma_f32_*_xf32", "tf32", 4, 1, 0, ""),
    STAGED_SUM("fp8-fp32", "v_mfma_f32_*_fp8_fp8, bf8", "e4m3fnuz e5m2fnuz", 16, 2, 1,
               "; an addend that is not finite beside large products (kept here, left out by MMA)"),
    CHAIN("cdna3", "fp32", "v_mfma_f32_*_f32", "binary32"), CHAIN("cdna3", "fp64", "v_mfma_f64_*_f64", "binary64"),
#undef NONE_SEEN
#undef NAN_BITS
#undef CHAIN
#undef EXACT_SUM
#undef FLUSHED
#undef STAGED_SUM
