/* contract.cuh -- sums of tensor operations whose contraction is told at run time (lib/optim/numbers.h). */
#pragma once

#include "optimizer_ops.cuh"

/* y + s (x - y), from the nearer end. */
static __device__ __forceinline__ float gpu_lerp(mpsim_contraction how, float y, float x, float s)
{
    return how == MPSIM_CONTRACT_CUDA  ? ops_lerp<GPU_OPS_CUDA>(y, x, s)
           : how == MPSIM_CONTRACT_CPU ? ops_lerp<GPU_OPS_CPU>(y, x, s)
                                       : ops_lerp<GPU_OPS_PLAIN>(y, x, s);
}

/* y + s x in binary32. */
static __device__ __forceinline__ float gpu_add_scaled(mpsim_contraction how, float y, float x, float s)
{
    return how == MPSIM_CONTRACT_NONE ? __fadd_rn(y, __fmul_rn(s, x)) : __fmaf_rn(s, x, y);
}
