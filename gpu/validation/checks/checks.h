/* checks.h -- the table of checks: what each computes, on which inputs, by which model. Plain C and
 * plain data, the same for the device, for the program and for the test that replays a record. */
#pragma once

#include "../../gpu.h"

#include <mpsim/arith.h>
#include <mpsim/dot.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- operations on scalars ---- */

typedef enum gpu_inputs {
    GPU_INPUTS_EVERY,   /* all codes of a format of 32 bits, or all pairs of codes of 16 bits      */
    GPU_INPUTS_TRIPLES, /* random and structured operands, see cases.h                             */
    GPU_INPUTS_CODES,   /* all codes of a format of 8 or 16 bits, in both places of a pair         */
    GPU_INPUTS_WIDE,    /* random and structured numbers of binary64                               */
    GPU_INPUTS_OPEN     /* binary32: NaNs, and negative numbers that the result has nothing for    */
} gpu_inputs;

/* Inputs whose results no text settles: they are left out of a check, and asked by a check of their own, whose
 * mismatches answer a question. */
enum {
    GPU_OPEN_NANS = 1, /* a result that is NaN: its bits; min and max of a NaN, and of -0 and +0  */
    GPU_OPEN_SMALL = 2 /* relu of -0, and of negative numbers that may round to -0: which zero    */
};
typedef enum gpu_asked { GPU_ASKED_SETTLED, GPU_ASKED_OPEN } gpu_asked;

/* The kernels of operations on scalars. */
typedef enum gpu_unit { GPU_UNIT_CONVERT, GPU_UNIT_ARITH, GPU_UNIT_CVT, GPU_UNIT_REDUCE, GPU_UNIT_CVT_NEXT } gpu_unit;

/* The hardware's instructions; the names of PTX. */
enum {
    GPU_CVT_RN_F16,
    GPU_CVT_RZ_F16,
    GPU_CVT_RN_BF16,
    GPU_CVT_RZ_BF16,
    GPU_CVT_RNA_TF32,
    GPU_CVT_RN_TF32,
    GPU_CVT_RZ_TF32,
    GPU_CVT_RNA_TF32_REST, /* the 13 bits of the register below the tf32 */
    GPU_CVT_RN_TF32_REST,
    GPU_CVT_RZ_TF32_REST,
    GPU_CVT_RN_E4M3,
    GPU_CVT_RN_E5M2,
    GPU_ARITH_F16,
    GPU_ARITH_BF16,
    GPU_ARITH_F32
};

typedef enum gpu_expected {
    GPU_ROUNDED, /* what the library gives  */
    GPU_ZERO,    /* 0                       */
    GPU_LESSER,  /* one of the two operands */
    GPU_GREATER
} gpu_expected;

typedef struct gpu_scalar {
    int instruction;         /* GPU_CVT_*, GPU_ARITH_* */
    int inputs;              /* gpu_inputs */
    int expected;            /* gpu_expected */
    int unit;                /* gpu_unit */
    int open, asked;         /* GPU_OPEN_*, gpu_asked: output 0 marks what is left out */
    int elements, is_shared; /* GPU_UNIT_REDUCE: what an instruction changes, and where */
    uint64_t stream;         /* of random inputs */
    mpsim_arith o;           /* the reference: MPSIM_OP_CONVERT from binary32 for conversions */
} gpu_scalar;

/* ---- dot products ---- */

/* What the operands look like, see cases.h. */
typedef enum gpu_distribution {
    GPU_RANDOM, /* every bit pattern: NaN, infinities and subnormals too                          */
    GPU_NORMAL, /* a bell of width 1, rounded to the format                                       */
    GPU_RELU,   /* the same with its negative half cut off to zero, times a narrow bell           */
    GPU_WIDE,   /* finite numbers of all exponents                                                */
    GPU_CANCEL, /* pairs of products that nearly cancel                                           */
    GPU_TINY,   /* products near the bottom of the result's range, subnormal operands             */
    GPU_DIRTY,  /* tf32 only: NORMAL, with the 13 bits below the format set at random             */
    GPU_DISTRIBUTIONS,
    GPU_LAYOUT, /* small integers that name row and column                                        */
    GPU_PROBE,  /* one given dot product, everywhere                                              */
    GPU_MIXED,  /* variants: one of the first, by tile                                            */
    GPU_NAMES   /* variants: digits that name row, column or depth, see cases.h                   */
} gpu_distribution;

enum { GPU_COLUMNS = 8, GPU_ROWS = 64, GPU_DEPTH = 32 }; /* n of tiles but of variants; most rows, products */
enum { GPU_MOST_COLUMNS = 256, GPU_MOST_DEPTH = 512 };   /* of variants */

/* The fields of a model with fused additions that a device needs. */
typedef struct gpu_sum_model {
    int alignment, normalised, fraction, floor, operand_emin;
    int length, quads, chunk;
    mpsim_rounded accumulator, outer, result;
} gpu_sum_model;

/* What an instruction is given beside its operands, see variants.h and mma_forms.h; chain 0: not a variant. */
typedef enum gpu_variant_unit { GPU_UNIT_WGMMA, GPU_UNIT_MMA, GPU_UNIT_DMMA, GPU_UNIT_SPARSE } gpu_variant_unit;
typedef struct gpu_variant {
    int unit;       /* gpu_variant_unit */
    int form;       /* which instruction of its unit */
    int chain;      /* instructions that add to the same sums, one after the other */
    int swizzle;    /* bytes: 0, 32, 64, 128 */
    int registers;  /* A is in registers */
    int mn_a, mn_b; /* not K-major but M-, N-major ("transposed") */
    int negate_a, negate_b;
    int sparse;   /* A: 4: two of four elements are there, 2: one of two, 0: all */
    int selector; /* which lanes say which */
} gpu_variant;

typedef struct gpu_dots {
    int instruction;    /* index of gpu_instruction_at */
    int same_as;        /* another instruction that must give the same bits, or -1: the model */
    int rows, k;        /* of a tile */
    int columns, depth; /* of a tile; places of a line among the inputs, at least k */
    uint64_t slots;     /* of a tile */
    int words;          /* outputs that are one result: 1, or 2 of binary64 */
    gpu_variant variant;
    int distribution;
    uint64_t stream;
    mpsim_format a, b;
    mpsim_rounding nearest;                                   /* for inputs */
    gpu_sum_model sum;                                        /* formats of c and d: sum.result.format */
    uint32_t probe_a[GPU_DEPTH], probe_b[GPU_DEPTH], probe_c; /* GPU_PROBE */
} gpu_dots;

typedef enum gpu_family { GPU_MMA, GPU_WGMMA, GPU_DMMA } gpu_family; /* DMMA: of variants alone */

typedef struct gpu_instruction {
    const char *name; /* "mma.m16n8k16" */
    const char *a, *b, *d;
    int family, rows, k;
    int since;              /* least compute capability; WGMMA: 90 only */
    const char *rows_of[2]; /* names of model rows after the architecture's, the first that exists */
} gpu_instruction;

/* NULL past the end. */
const gpu_instruction *gpu_instruction_at(int i);

/* gpu_instruction_name -- "mma.k16 bf16-fp32": what its checks are called by. */
void gpu_instruction_name(const gpu_instruction *in, char *to, size_t size);

/* gpu_architecture -- the name in the table of models, as "hopper", or NULL. */
const char *gpu_architecture(int sm);

/* gpu_model -- the model row of an instruction on a device of compute capability sm: 0, or -1. */
int gpu_model(mpsim_model *m, int sm, const gpu_instruction *in);

/* gpu_dots_fill -- everything but the inputs of a probe: 0, or -1 if there is no row that the device
 * code can run. */
int gpu_dots_fill(gpu_dots *j, int sm, int instruction, int distribution);

/* ---- checks ---- */

typedef struct gpu_check {
    char name[64];
    int is_dots;
    int since;                        /* least compute capability */
    int question;                     /* 1: a mismatch answers a question, it is no failure */
    uint64_t count;                   /* outputs; of tiles of rows * 8, whole ones */
    uint64_t sample_step, large_step; /* the sample: indices below count that are multiples */
    gpu_scalar scalar;
    gpu_dots dots;
} gpu_check;

/* gpu_cvt_fill -- conversion i of conversions.h as a check, but for its sample: 1, or 0 past the end. log_count: of the
 * inputs of a whole run. */
int gpu_cvt_fill(gpu_check *c, size_t i, int *log_count);
size_t gpu_cvt_count(void);
/* gpu_reduction_fill -- the same of reductions.h. */
int gpu_reduction_fill(gpu_check *c, size_t i, int *log_count);
size_t gpu_reduction_count(void);

/* gpu_check_at -- check i for a device: 1; 0 past the end; -1 if the device has no such instruction
 * or there is no model of it (name and since are filled, sm = 0 always says so for dot products). */
int gpu_check_at(gpu_check *c, size_t i, int sm, int quick);

/* gpu_check_group -- the instruction that check i asks: of dot products its name, else that of the check. */
void gpu_check_group(size_t i, char *to, size_t size);

/* gpu_check_reference -- output `index` by the public functions of the library. */
uint64_t gpu_check_reference(const gpu_check *c, uint64_t index);

/* gpu_check_describe -- one line: the inputs of `index`, the hardware's output, the reference's. */
void gpu_check_describe(const gpu_check *c, uint64_t index, uint64_t hardware, char *text, size_t size);

/* gpu_probe_fill -- probe i without an answer; which instruction it is for. 1, or 0 past the end. */
int gpu_probe_fill(size_t i, gpu_probe *p, int *instruction);

/* gpu_probe_reference -- the answer of the model row: 0, or -1 if there is none. */
int gpu_probe_reference(const gpu_probe *p, int instruction, int sm, uint32_t *d);

#ifdef __cplusplus
}
#endif
