/* mma_forms.h -- what else mma.sync can do, beside what the checks of mma.cu ask: products with a sparse A, and FP8 in
 * the depth of 16. */
#pragma once

#include "checks.h"
#include "instructions.h"

/* X(ID, text, results (F: binary32, H: two of fp16 a register), registers of A, of B, instruction with the
 * formats and the model, products of an output, every how many of the depth are one or two products (0: dense), selector)
 *
 * "Sparse": of four elements of a row of A two are there (16 and 8 bits), of two one (tf32). sm_90 has no sparse FP8 with
 * results in fp16. */
/* clang-format off */
#define GPU_SPARSE_FORMS(X)                                                                         \
    X(SP_F16, "m16n8k32.row.col.f32.f16.f16.f32", F, 4, 4, GPU_MMA_K16_F16, 16, 4, 0)                   \
    X(SP_F16_1, "m16n8k32.row.col.f32.f16.f16.f32", F, 4, 4, GPU_MMA_K16_F16, 16, 4, 1)                 \
    X(SP_F16_K16, "m16n8k16.row.col.f32.f16.f16.f32", F, 2, 2, GPU_MMA_K8_F16, 8, 4, 0)                 \
    X(SP_F16_K16_3, "m16n8k16.row.col.f32.f16.f16.f32", F, 2, 2, GPU_MMA_K8_F16, 8, 4, 3)               \
    X(SP_F16F16, "m16n8k32.row.col.f16.f16.f16.f16", H, 4, 4, GPU_MMA_K16_F16F16, 16, 4, 0)             \
    X(SP_BF16, "m16n8k32.row.col.f32.bf16.bf16.f32", F, 4, 4, GPU_MMA_K16_BF16, 16, 4, 0)               \
    X(SP_TF32, "m16n8k16.row.col.f32.tf32.tf32.f32", F, 4, 4, GPU_MMA_K8_TF32, 8, 2, 0)                 \
    X(SP_TF32_1, "m16n8k16.row.col.f32.tf32.tf32.f32", F, 4, 4, GPU_MMA_K8_TF32, 8, 2, 1)               \
    X(SP_TF32_K8, "m16n8k8.row.col.f32.tf32.tf32.f32", F, 2, 2, GPU_MMA_K4_TF32, 4, 2, 2)
/* From sm_89 on. */
#define GPU_SPARSE_FP8_FORMS(X)                                                                     \
    X(SP_E4M3, "m16n8k64.row.col.f32.e4m3.e4m3.f32", F, 4, 4, GPU_MMA_E4M3, 32, 4, 0)                   \
    X(SP_E4M3_E5M2, "m16n8k64.row.col.f32.e4m3.e5m2.f32", F, 4, 4, GPU_MMA_E4M3_E5M2, 32, 4, 0)         \
    X(SP_E5M2_E4M3, "m16n8k64.row.col.f32.e5m2.e4m3.f32", F, 4, 4, GPU_MMA_E5M2_E4M3, 32, 4, 0)         \
    X(SP_E5M2, "m16n8k64.row.col.f32.e5m2.e5m2.f32", F, 4, 4, GPU_MMA_E5M2, 32, 4, 0)
#define GPU_K16_FORMS(X)                                                                            \
    X(K16_E4M3, "m16n8k16.row.col.f32.e4m3.e4m3.f32", F, 2, 1, GPU_MMA_E4M3, 16, 0, 0)                  \
    X(K16_E4M3_E5M2, "m16n8k16.row.col.f32.e4m3.e5m2.f32", F, 2, 1, GPU_MMA_E4M3_E5M2, 16, 0, 0)        \
    X(K16_E5M2_E4M3, "m16n8k16.row.col.f32.e5m2.e4m3.f32", F, 2, 1, GPU_MMA_E5M2_E4M3, 16, 0, 0)        \
    X(K16_E5M2, "m16n8k16.row.col.f32.e5m2.e5m2.f32", F, 2, 1, GPU_MMA_E5M2, 16, 0, 0)                  \
    X(K16_E4M3F16, "m16n8k16.row.col.f16.e4m3.e4m3.f16", H, 2, 1, GPU_MMA_E4M3F16, 16, 0, 0)            \
    X(K16_E4M3_E5M2F16, "m16n8k16.row.col.f16.e4m3.e5m2.f16", H, 2, 1, GPU_MMA_E4M3_E5M2F16, 16, 0, 0)  \
    X(K16_E5M2_E4M3F16, "m16n8k16.row.col.f16.e5m2.e4m3.f16", H, 2, 1, GPU_MMA_E5M2_E4M3F16, 16, 0, 0)  \
    X(K16_E5M2F16, "m16n8k16.row.col.f16.e5m2.e5m2.f16", H, 2, 1, GPU_MMA_E5M2F16, 16, 0, 0)
#define GPU_FP8_FORMS(X) GPU_SPARSE_FP8_FORMS(X) GPU_K16_FORMS(X)
#define GPU_MMA_FORMS(X) GPU_SPARSE_FORMS(X) GPU_FP8_FORMS(X)
/* wgmma, N = 16: X(ID, text, results, what comes last: signs and, of 16 bits, K-major, row, products, sparse, selector);
 * each without swizzle and with those of 64 and 128 bytes. */
#define GPU_SPARSE_WGMMA_FORMS(X)                                                                   \
    X(WSP_F16, "m64n16k32.f32.f16.f16", F, SPARSE_TAIL_HALF, GPU_WGMMA_F16, 16, 4, 0)                   \
    X(WSP_F16_1, "m64n16k32.f32.f16.f16", F, SPARSE_TAIL_HALF, GPU_WGMMA_F16, 16, 4, 1)                 \
    X(WSP_F16F16, "m64n16k32.f16.f16.f16", H, SPARSE_TAIL_HALF, GPU_WGMMA_F16F16, 16, 4, 0)             \
    X(WSP_BF16, "m64n16k32.f32.bf16.bf16", F, SPARSE_TAIL_HALF, GPU_WGMMA_BF16, 16, 4, 0)               \
    X(WSP_TF32, "m64n16k16.f32.tf32.tf32", F, SPARSE_TAIL, GPU_WGMMA_TF32, 8, 2, 0)                     \
    X(WSP_E4M3, "m64n16k64.f32.e4m3.e4m3", F, SPARSE_TAIL, GPU_WGMMA_E4M3, 32, 4, 0)                    \
    X(WSP_E5M2, "m64n16k64.f32.e5m2.e5m2", F, SPARSE_TAIL, GPU_WGMMA_E5M2, 32, 4, 0)                    \
    X(WSP_E4M3F16, "m64n16k64.f16.e4m3.e4m3", H, SPARSE_TAIL, GPU_WGMMA_E4M3F16, 32, 4, 0)
/* clang-format on */

/* ---- metadata ---- */

#include "cases.h"

/* Four bits for each group of the depth: the places of its two elements, the first in the low bits; tf32: 1110 for the
 * second of two elements, 0100 for the first (PTX ISA, "Sparse matrix storage"). */
static inline MPSIM_HD uint32_t gpu_metadata_group(const gpu_dots *j, uint64_t tile, int row, int group)
{
    const int each = j->variant.sparse;
    if (each == 2)
        return gpu_chosen(j, tile, row, group) % 2 ? 14 : 4;
    return (uint32_t)(gpu_chosen(j, tile, row, 2 * group) % 4 | gpu_chosen(j, tile, row, 2 * group + 1) % 4 << 2);
}

static inline MPSIM_HD uint32_t gpu_metadata_groups(const gpu_dots *j, uint64_t tile, int row, int first, int n)
{
    uint32_t bits = 0;
    for (int i = 0; i < n; i++)
        bits |= gpu_metadata_group(j, tile, row, first + i) << (4 * i);
    return bits;
}

/* What a lane of a warp gives, whose 16 rows begin at first_row (PTX ISA, "Matrix fragments for sparse mma"; CUTLASS, ELayout_64x64, 64x32 and 64x16). With g = lane / 4
 * and t = lane mod 4: 8 bits, row g + 8 (t mod 2), 8 groups from 8 (t / 2) on. Else rows g and g + 8, four groups each: of
 * 8 groups lanes 2 selector and the next give one half each, of 4 lane t = selector gives all. Others are not asked. */
static inline MPSIM_HD uint32_t gpu_metadata(const gpu_dots *j, uint64_t tile, int first_row, int lane)
{
    const int g = first_row + lane / 4, t = lane % 4, groups = 2 * j->k / j->variant.sparse;
    if (j->a.bits == 8)
        return gpu_metadata_groups(j, tile, g + 8 * (t % 2), 8 * (t / 2), 8);
    const int lanes = groups / 4, first = t - lanes * j->variant.selector;
    if (first < 0 || first >= lanes)
        return 0xeeeeeeeeu;
    return gpu_metadata_groups(j, tile, g, 4 * first, 4) | gpu_metadata_groups(j, tile, g + 8, 4 * first, 4) << 16;
}
