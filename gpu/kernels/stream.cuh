/* stream.cuh -- optimizer steps over binary32 masters with a copy in bf16, four elements a thread at a
 * time; the elements are those of optimizer.cuh. And a copy, for comparison. */
#ifndef MPSIM_GPU_KERNELS_STREAM_CUH
#define MPSIM_GPU_KERNELS_STREAM_CUH

#include "optimizer.cuh"
#include "pairs.cuh"

struct stream_tensors { /* aligned to 16 bytes */
    float4 *param, *m, *v; /* v: Adam only; m: unless plain SGD */
    const float4 *grad;
    uint2 *copy; /* of the parameters, in bf16, or NULL */
    gpu_format bf16;
    size_t fours; /* elements / 4 */
};

template <int TORCH>
__global__ void __launch_bounds__(256) stream_optim_kernel(const __grid_constant__ gpu_optim o,
                                                           const __grid_constant__ stream_tensors t)
{
    GPU_FOR(i, t.fours) {
        const float4 p4 = t.param[i], g4 = __ldcs(t.grad + i), none = {};
        const float4 m4 = t.m ? t.m[i] : none, v4 = t.v ? t.v[i] : none;
        float p[4] = {p4.x, p4.y, p4.z, p4.w}, m[4] = {m4.x, m4.y, m4.z, m4.w};
        float v[4] = {v4.x, v4.y, v4.z, v4.w};
        const float g[4] = {g4.x, g4.y, g4.z, g4.w};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            gpu_parameter x = {p[k], g[k], m[k], v[k], 0};
            if (TORCH)
                torch_step(o, &x);
            else
                ieee_step(o, &x);
            p[k] = x.p;
            m[k] = x.m;
            v[k] = x.v;
        }
        t.param[i] = make_float4(p[0], p[1], p[2], p[3]);
        if (t.m)
            t.m[i] = make_float4(m[0], m[1], m[2], m[3]);
        if (t.v)
            t.v[i] = make_float4(v[0], v[1], v[2], v[3]);
        if (t.copy)
            t.copy[i] = uint2{gpu_pair_bf16(t.bf16, p[0], p[1]), gpu_pair_bf16(t.bf16, p[2], p[3])};
    }
}

/* Four loads of 16 bytes of a thread are under way. */
__global__ void __launch_bounds__(256) stream_copy_kernel(uint4 *to, const uint4 *from, size_t n)
{
    enum { AHEAD = 4 };
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + (AHEAD - 1) * stride < n; i += AHEAD * stride) {
        uint4 v[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            v[k] = __ldcs(from + i + k * stride);
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            to[i + k * stride] = v[k];
    }
    for (; i < n; i += stride)
        to[i] = __ldcs(from + i);
}

#endif
