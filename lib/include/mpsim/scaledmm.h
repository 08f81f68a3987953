/* mpsim/scaledmm.h -- torch._scaled_mm with tensor scales, and so cuBLASLt's products of fp8, whole: how K is cut, how
 * chains of tensor-core additions are added, and what becomes of the sum.
 *
 *   1. K is cut into S parts (split-K), by `order`:
 *        contiguous            tiles of 128, part s has the tiles s q to (s + 1) q - 1, q = ceil(tiles / S)
 *        serial, pairwise      tiles of 64, part s has the tiles s, s + S, s + 2 S, ...
 *   2. With fast accumulation a part is one chain of additions of the model from +0; without, chains over 128 products
 *      of the part, which are added from +0 in binary32 to nearest even.
 *   3. The sums p[s] of the parts are added in binary32: in their order, p[0] + p[1] + ...; pairwise: with h = ceil(S / 2),
 *      q[i] = p[i] + p[i + h] where i + h < S - 1, else p[i]; p[S - 1] + q[0] + q[1] + ... + q[h - 1].
 *   4. alpha = scale_a scale_b, y = sum alpha, each rounded to binary32; an exact zero is +0. Then y is rounded again,
 *      to nearest even: to bf16 or fp16; for e4m3 and e5m2 it is multiplied by scale_result, if there is one, rounded
 *      to binary32, cut to the largest number, also an infinity, and rounded.
 *   NaN is 7fffffff, 7fff or 7f.
 *
 * Source: mmaemu 0.1.0 (Ding, from PyPI), which its author compared with recorded outputs of an H100 PCIe and an
 * RTX 4060 under cuBLASLt 12.8.3.14; data/vectors/mmaemu. What S is depends on GPU, library version, workspace, shape
 * and formats: a caller must know it (without a workspace cuBLASLt does not split: S = 1). */
#ifndef MPSIM_SCALEDMM_H
#define MPSIM_SCALEDMM_H

#include <mpsim/dot.h>

MPSIM_BEGIN

typedef enum mpsim_split_order {
    MPSIM_SPLIT_CONTIGUOUS, /* kernels of Hopper */
    MPSIM_SPLIT_SERIAL,     /* of Ada, customOption 0 and 2 */
    MPSIM_SPLIT_PAIRWISE    /* of Ada, customOption 1 */
} mpsim_split_order;

typedef struct mpsim_scaled_mm {
    char name[96];     /* canonical; see mpsim_scaled_mm_parse                   */
    mpsim_model model; /* of a chain: a row of fp8 with a binary32 result        */
    uint8_t fast;      /* 1: fast accumulation; 0: chains of 128                 */
    uint8_t order;     /* mpsim_split_order                                      */
    uint32_t parts;    /* S, at most 2^20; 0: not known                          */
    mpsim_format out;  /* binary32, bf16, fp16, e4m3 or e5m2                     */
} mpsim_scaled_mm;

/* mpsim_scaled_mm_parse -- "torch-scaled-mm[:WORD]...", any letter case: hopper (the default) or ada; fast or slow (the
 * default, as in torch); S=N; contiguous, serial or pairwise (the default is the first of the architecture); out=FORMAT
 * (bf16). MPSIM_ENOTFOUND for another name, MPSIM_EINVAL for a word that is none, comes twice or does not fit; *p is
 * untouched then. */
MPSIM_API mpsim_status mpsim_scaled_mm_parse(mpsim_scaled_mm *p, const char *name);

/* mpsim_scaled_mm_run -- d = a b, rows x columns codes of p->out, row-major without gaps.
 *
 *   a, b          as in mpsim_gemm, of formats that the model takes
 *   scale_result  for e4m3 and e5m2, or NULL
 *
 * MPSIM_EINVAL for what is inconsistent and for parts = 0, MPSIM_ERANGE for formats that the model does not take,
 * MPSIM_ENOMEM. d is untouched then. */
MPSIM_API mpsim_status mpsim_scaled_mm_run(const mpsim_scaled_mm *p, size_t rows, size_t columns, size_t depth,
                                           const mpsim_matrix *a, const mpsim_matrix *b, float scale_a, float scale_b,
                                           const float *scale_result, void *d, const mpsim_pool *pool);

MPSIM_END

#endif
