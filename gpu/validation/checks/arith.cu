/* arith.cu -- arithmetic of fp16, bf16 and binary32 by the intrinsics that round once, against
 * mpsim_scalar_arith. The _rn forms are never contracted; __hfma and __fmaf_rn are the fused
 * multiply-add under test. __hdiv is a sequence of its own with an approximate reciprocal: correctly
 * rounded for all pairs of CUDA 13.0 on an H200 (data/gpu). */
#include "scalar.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

static __device__ uint32_t hardware16(const gpu_scalar &s, const uint32_t in[3])
{
    const __half x = __ushort_as_half((unsigned short)in[0]);
    const __half y = __ushort_as_half((unsigned short)in[1]);
    switch (s.o.op) {
    case MPSIM_OP_ADD:
        return __half_as_ushort(__hadd_rn(x, y));
    case MPSIM_OP_SUB:
        return __half_as_ushort(__hsub_rn(x, y));
    case MPSIM_OP_MUL:
        return __half_as_ushort(__hmul_rn(x, y));
    case MPSIM_OP_DIV:
        return __half_as_ushort(__hdiv(x, y));
    case MPSIM_OP_FMA:
        return __half_as_ushort(__hfma(x, y, __ushort_as_half((unsigned short)in[2])));
    default:
        return 0;
    }
}

static __device__ uint32_t hardware_bf16(const gpu_scalar &s, const uint32_t in[3])
{
    const __nv_bfloat16 x = __ushort_as_bfloat16((unsigned short)in[0]);
    const __nv_bfloat16 y = __ushort_as_bfloat16((unsigned short)in[1]);
    switch (s.o.op) {
    case MPSIM_OP_ADD:
        return __bfloat16_as_ushort(__hadd_rn(x, y));
    case MPSIM_OP_SUB:
        return __bfloat16_as_ushort(__hsub_rn(x, y));
    case MPSIM_OP_MUL:
        return __bfloat16_as_ushort(__hmul_rn(x, y));
    case MPSIM_OP_DIV:
        return __bfloat16_as_ushort(__hdiv(x, y));
    case MPSIM_OP_FMA:
        return __bfloat16_as_ushort(__hfma(x, y, __ushort_as_bfloat16((unsigned short)in[2])));
    default:
        return 0;
    }
}

static __device__ uint32_t hardware32(const gpu_scalar &s, const uint32_t in[3])
{
    const float x = __uint_as_float(in[0]), y = __uint_as_float(in[1]);
    switch (s.o.op) {
    case MPSIM_OP_ADD:
        return __float_as_uint(__fadd_rn(x, y));
    case MPSIM_OP_SUB:
        return __float_as_uint(__fsub_rn(x, y));
    case MPSIM_OP_MUL:
        return __float_as_uint(__fmul_rn(x, y));
    case MPSIM_OP_DIV:
        return __float_as_uint(__fdiv_rn(x, y));
    case MPSIM_OP_SQRT:
        return __float_as_uint(__fsqrt_rn(x));
    case MPSIM_OP_FMA:
        return __float_as_uint(__fmaf_rn(x, y, __uint_as_float(in[2])));
    default:
        return 0;
    }
}

cudaError_t gpu_arith_launch(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally)
{
    switch (s->instruction) {
    case GPU_ARITH_F16:
        return scalar_launch<hardware16>(s, span, tally);
    case GPU_ARITH_BF16:
        return scalar_launch<hardware_bf16>(s, span, tally);
    default:
        return scalar_launch<hardware32>(s, span, tally);
    }
}
