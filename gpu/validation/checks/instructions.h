/* instructions.h -- the table of instructions of tensor cores that the checks of dot products ask, a row each: of it follow their numbers,
 * the rows of instructions.c and the switches of mma.cuh and wgmma.cu.
 *
 * X(ID, shape, depth, types of A, B and D as PTX spells them, size, names of model rows after the architecture's, the first that
 *   exists) -- size of mma: FULL, or HALF of the registers of A and B; of wgmma: TAIL_HALF where the types have two flags of order more */
#pragma once

/* clang-format off */
#define GPU_MMA_INSTRUCTIONS(X)                                                               \
    X(MMA_K8_F16, m16n8k8, 8, f16, f16, f32, HALF, "fp16-fp32", NULL)                         \
    X(MMA_K16_F16, m16n8k16, 16, f16, f16, f32, FULL, "fp16-fp32", NULL)                      \
    X(MMA_K8_F16F16, m16n8k8, 8, f16, f16, f16, HALF, "fp16-fp16", NULL)                      \
    X(MMA_K16_F16F16, m16n8k16, 16, f16, f16, f16, FULL, "fp16-fp16", NULL)                   \
    X(MMA_K8_BF16, m16n8k8, 8, bf16, bf16, f32, HALF, "bf16-fp32", NULL)                      \
    X(MMA_K16_BF16, m16n8k16, 16, bf16, bf16, f32, FULL, "bf16-fp32", NULL)                   \
    X(MMA_K4_TF32, m16n8k4, 4, tf32, tf32, f32, HALF, "k4-tf32-fp32", "tf32-fp32")            \
    X(MMA_K8_TF32, m16n8k8, 8, tf32, tf32, f32, FULL, "tf32-fp32", NULL)
/* From sm_89 on. */
#define GPU_MMA_FP8_INSTRUCTIONS(X)                                                           \
    X(MMA_E4M3, m16n8k32, 32, e4m3, e4m3, f32, FULL, "mma-fp8-fp32", "fp8-fp32")              \
    X(MMA_E4M3_E5M2, m16n8k32, 32, e4m3, e5m2, f32, FULL, "mma-fp8-fp32", "fp8-fp32")         \
    X(MMA_E5M2_E4M3, m16n8k32, 32, e5m2, e4m3, f32, FULL, "mma-fp8-fp32", "fp8-fp32")         \
    X(MMA_E5M2, m16n8k32, 32, e5m2, e5m2, f32, FULL, "mma-fp8-fp32", "fp8-fp32")              \
    X(MMA_E4M3F16, m16n8k32, 32, e4m3, e4m3, f16, FULL, "mma-fp8-fp16", "fp8-fp16")           \
    X(MMA_E4M3_E5M2F16, m16n8k32, 32, e4m3, e5m2, f16, FULL, "mma-fp8-fp16", "fp8-fp16")      \
    X(MMA_E5M2_E4M3F16, m16n8k32, 32, e5m2, e4m3, f16, FULL, "mma-fp8-fp16", "fp8-fp16")      \
    X(MMA_E5M2F16, m16n8k32, 32, e5m2, e5m2, f16, FULL, "mma-fp8-fp16", "fp8-fp16")
/* Of sm_90a alone; N is 8 here, variants.h has others of the same types. */
#define GPU_WGMMA_INSTRUCTIONS(X)                                                             \
    X(WGMMA_F16, m64n8k16, 16, f16, f16, f32, TAIL_HALF, "fp16-fp32", NULL)                   \
    X(WGMMA_F16F16, m64n8k16, 16, f16, f16, f16, TAIL_HALF, "fp16-fp16", NULL)                \
    X(WGMMA_BF16, m64n8k16, 16, bf16, bf16, f32, TAIL_HALF, "bf16-fp32", NULL)                \
    X(WGMMA_TF32, m64n8k8, 8, tf32, tf32, f32, TAIL, "tf32-fp32", NULL)                       \
    X(WGMMA_E4M3, m64n8k32, 32, e4m3, e4m3, f32, TAIL, "wgmma-fp8-fp32", NULL)                \
    X(WGMMA_E4M3_E5M2, m64n8k32, 32, e4m3, e5m2, f32, TAIL, "wgmma-fp8-fp32", NULL)           \
    X(WGMMA_E5M2_E4M3, m64n8k32, 32, e5m2, e4m3, f32, TAIL, "wgmma-fp8-fp32", NULL)           \
    X(WGMMA_E5M2, m64n8k32, 32, e5m2, e5m2, f32, TAIL, "wgmma-fp8-fp32", NULL)                \
    X(WGMMA_E4M3F16, m64n8k32, 32, e4m3, e4m3, f16, TAIL, "wgmma-fp8-fp16", NULL)             \
    X(WGMMA_E4M3_E5M2F16, m64n8k32, 32, e4m3, e5m2, f16, TAIL, "wgmma-fp8-fp16", NULL)        \
    X(WGMMA_E5M2_E4M3F16, m64n8k32, 32, e5m2, e4m3, f16, TAIL, "wgmma-fp8-fp16", NULL)        \
    X(WGMMA_E5M2F16, m64n8k32, 32, e5m2, e5m2, f16, TAIL, "wgmma-fp8-fp16", NULL)
/* clang-format on */

typedef enum gpu_instruction_id {
#define GPU_INSTRUCTION_ID(ID, ...) GPU_##ID,
    GPU_MMA_INSTRUCTIONS(GPU_INSTRUCTION_ID) GPU_MMA_FP8_INSTRUCTIONS(GPU_INSTRUCTION_ID)
        GPU_WGMMA_INSTRUCTIONS(GPU_INSTRUCTION_ID) GPU_DMMA_FIRST /* dmma: only variants.c asks these instructions */
#undef GPU_INSTRUCTION_ID
} gpu_instruction_id;
