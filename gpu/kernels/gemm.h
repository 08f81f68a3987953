/* gemm.h -- matrix products on a device, for training: as plain C for what launches them.
 *
 * Every element of the result is one chain, whatever tile, warp or kernel computes it:
 *
 *   s = +0, or the number in d
 *   s = one tensor-core instruction (s, a[k0 .. k0 + S), b[k0 .. k0 + S)), for k0 = 0, S, 2 S, ...
 *   s = s * factor, unless factor is 1;  s = s + bias[column];  d = RN(format, s), or d = d + s
 *
 * or, with factors, the first two lines from +0 over each block of 128 of the depth, whose result is p:
 *
 *   s = fma(f32(factor of the row's * factor of the column's), p, s), from s = +0
 *
 * with the depth filled up with products 0 * 0, which change nothing: the first instruction has made a
 * number of d one of its own, and -0 to +0. There is no split of the
 * depth. So the bits depend on the instruction only, and that is a row of the table of models. */
#pragma once

#include <mpsim/dot.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GPU_GEMM_BLOCK = 128, GPU_GEMM_AT_ONCE = 12 }; /* BLOCK: of the depth, with factors */

/* Binary32 numbers by which the sums of blocks are multiplied: line l of an operand has `at[l / lines *
 * stride + block]`. */
typedef struct gpu_factors {
    const float *at;
    size_t lines, stride;
} gpu_factors;

/* Pointers are the device's. a: rows x depth, b: depth x columns, after transposition (see
 * mpsim_matrix: codes of mpsim_format_code_bytes each). d is row-major, d_stride codes a row. */
typedef struct gpu_product {
    const mpsim_model *model; /* gpu_gemm_takes it */
    size_t rows, columns, depth;
    size_t depth_limit; /* 0, or only the first products */
    mpsim_matrix a, b;
    float factor; /* 1: left out */
    const mpsim_format *bias_format;
    const void *bias; /* `columns` codes, or NULL */
    const mpsim_format *format;
    void *d;
    size_t d_stride;
    unsigned long long *counts; /* the four of train_counts, added to, or NULL */
    /* A stack: so many products of this shape, 0: one, by one launch. Matrix s of a begins a_apart codes
     * after the one before, as d's; that of b is number s / shared (0: 1). */
    size_t stacks, shared, a_apart, b_apart, d_apart;
    gpu_factors a_factors, b_factors; /* at: NULL in both, or in none; then no stack, no sums that go on */
    int start;    /* train_start: what is in d begins the chain, or is added to; d is binary32 then */
    void *stream; /* a cudaStream_t; NULL: the default stream */
} gpu_product;

/* Kernels. They differ in speed only. */
typedef enum gpu_gemm_path {
    GPU_GEMM_AUTO,
    GPU_GEMM_FMA,   /* binary32 in order: models "fma" and "sequential"; any shape */
    GPU_GEMM_MMA,   /* mma.sync, any shape */
    GPU_GEMM_FAST,  /* mma.sync of fp16 and bf16, by cp.async and ldmatrix: strides in eights, from +0 */
    GPU_GEMM_WGMMA, /* wgmma of sm_90a, any shape, tiles of 128 x 128 */
    GPU_GEMM_WIDE,  /* the same with tiles of 128 x 256, from +0 */
    GPU_GEMM_TMA,   /* wgmma whose operands come by TMA: strides in 16 bytes, FP8 along the depth, from +0 */
    GPU_GEMM_SQUARE /* as FAST, by warps of 64 x 64 */
} gpu_gemm_path;

/* gpu_gemm -- launch the product on a device of compute capability sm (90), on its stream.
 * AUTO takes what is fastest for shape and operands by a table in gemm.cu. 0, or -1 with one line in `why`: no kernel for this model on this device, operands
 * that the model or the path does not take, or a launch that failed. */
int gpu_gemm(const gpu_product *p, int sm, gpu_gemm_path path, char *why, size_t size);

/* gpu_gemm_list -- products, GPU_GEMM_AT_ONCE at most, none of which reads or writes what another writes: as
 * gpu_gemm with AUTO. Small ones that are alike are one launch. */
int gpu_gemm_list(const gpu_product *p, size_t n, int sm, char *why, size_t size);

/* gpu_gemm_takes -- whether there is a kernel that gives the bits of the model on a device of compute capability sm: its
 * parameters are those of an instruction of that device, whatever device its row is of. gpu_gemm_core -- whether that is an
 * instruction of tensor cores, which takes these operands. gpu_gemm_has -- takes, by name. */
int gpu_gemm_takes(const mpsim_model *m, int sm);
int gpu_gemm_core(const mpsim_model *m, const mpsim_format *a, const mpsim_format *b, int sm);
int gpu_gemm_has(const char *model, int sm);
/* gpu_gemm_own -- whether the row of that name is of a device of compute capability sm. */
int gpu_gemm_own(const char *model, int sm);

/* gpu_gemm_has_factors, gpu_gemm_core_factors -- the same for products with factors. */
int gpu_gemm_has_factors(const char *model, int sm);
int gpu_gemm_core_factors(const mpsim_model *m, int sm);

#ifdef __cplusplus
}
#endif
