/* digests.cuh -- both digests of mpsim/digest.h; their definitions are in lib/digest/scalar.h.
 *
 * The second: a warp takes a block of 2 KiB, 16 words of it a thread, by loads of 16 bytes that are all on their way before the
 * first is used. A thread's places in a block never change, so its keys stay in registers. Instructions a word (sm_90, from
 * SASS): 16.6, namely 6 for NaNs, 4 for the product and its sum, 1.9 for the sum of the warp, 4.5 for the mix; an H200 at 1.7 GHz
 * issues 34 while it reads a word at 0.8 of the speed of a copy (4.2 TB/s), so the memory is the bound. The first digest has about 90 a
 * code. */
#pragma once

#include "codes.cuh"

#include "../../lib/digest/scalar.h"

enum { GPU_THREADS_DIGEST = 256 };

/* ones: all bits of a code set, which stand for every NaN; a format whose only NaN is the code of
 * -0 has a number there. */
GPU_KERNEL void __launch_bounds__(GPU_THREADS_DIGEST)
    digest_kernel(GPU_CONSTANT(gpu_format) f, const void *x, size_t n, uint32_t ones, gpu_word *sum)
{
    gpu_word own = 0;
    const int has_nans = f.kind != GPU_REFERENCE || f.math.format.nan == MPSIM_NAN_TOP;
    GPU_FOR(i, n)
    {
        const uint32_t code = gpu_load(f, x, i);
        own += mpsim_mix(i, has_nans && gpu_is_nan(f, code) ? ones : code);
    }
    for (int h = 16; h > 0; h /= 2)
        own += __shfl_xor_sync(0xffffffffu, own, h);
    if (threadIdx.x % 32 == 0)
        atomicAdd(sum, own);
}

/* ---- the second ---- */

enum { DIGEST_VECTORS = MPSIM_DIGEST_BLOCK / (32 * 16) };

struct gpu_digest_job {
    mpsim_digest_format format;
    const unsigned char *codes;
    size_t bytes; /* of all codes */
    int width;    /* of a code, bytes */
    int aligned;  /* to 16 bytes */
};

static __device__ __forceinline__ gpu_word digest_vector(const mpsim_digest_format &f, const uint4 &v,
                                                         const gpu_word *keys)
{
    return mpsim_digest_word(&f, v.x) * keys[0] + mpsim_digest_word(&f, v.y) * keys[1] +
           mpsim_digest_word(&f, v.z) * keys[2] + mpsim_digest_word(&f, v.w) * keys[3];
}

/* The thread's part of a block that has an end, or an address, between words. */
static __device__ GPU_NOINLINE gpu_word digest_bytes(const gpu_digest_job &j, size_t from)
{
    gpu_word sum = 0;
    for (uint32_t word = threadIdx.x % 32; word < MPSIM_DIGEST_WORDS; word += 32) {
        uint32_t w = 0;
        const size_t at = from + 4 * word;
        for (uint32_t b = 0; b < 4 && at + b < j.bytes; b++)
            w |= (uint32_t)j.codes[at + b] << 8 * b;
        sum += mpsim_digest_word(&j.format, w) * mpsim_digest_key(word);
    }
    return sum;
}

/* The keys of the thread's words in a block. Nothing may compute them again: a compiler would, in the loop, to spare
 * registers. */
static __device__ __forceinline__ void digest_keys(gpu_word *keys)
{
    GPU_UNROLL for (uint32_t k = 0; k < 4 * DIGEST_VECTORS; k++)
    {
        keys[k] = mpsim_digest_key(4 * (32 * (k / 4) + threadIdx.x % 32) + k % 4);
#ifdef __CUDACC__
        asm volatile("" : "+l"(keys[k]));
#endif
    }
}

GPU_KERNEL void __launch_bounds__(GPU_THREADS_DIGEST, 3)
    digest_blocks_kernel(GPU_CONSTANT(gpu_digest_job) j, gpu_word *to)
{
    const uint32_t lane = threadIdx.x % 32;
    const size_t warps = (size_t)gridDim.x * (GPU_THREADS_DIGEST / 32);
    const gpu_word of_count = mpsim_digest_key(MPSIM_DIGEST_WORDS);
    gpu_word keys[4 * DIGEST_VECTORS], own = 0;
    digest_keys(keys);
    for (size_t block = (size_t)blockIdx.x * (GPU_THREADS_DIGEST / 32) + threadIdx.x / 32;
         block * MPSIM_DIGEST_BLOCK < j.bytes; block += warps) {
        const size_t from = block * MPSIM_DIGEST_BLOCK, left = j.bytes - from;
        gpu_word sum = 0;
        if (j.aligned && left >= MPSIM_DIGEST_BLOCK) {
            const uint4 *const p = reinterpret_cast<const uint4 *>(j.codes + from) + lane;
            uint4 v[DIGEST_VECTORS];
            GPU_UNROLL for (int k = 0; k < DIGEST_VECTORS; k++) v[k] = __ldcs(p + 32 * k);
            GPU_UNROLL for (int k = 0; k < DIGEST_VECTORS; k++) sum += digest_vector(j.format, v[k], keys + 4 * k);
        } else {
            sum = digest_bytes(j, from);
        }
        GPU_UNROLL for (int h = 16; h > 0; h /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, h);
        const size_t codes = (left < MPSIM_DIGEST_BLOCK ? left : +MPSIM_DIGEST_BLOCK) / (unsigned)j.width;
        own += mpsim_mix(block, codes * of_count + sum); /* the same in all threads of a warp */
    }
    if (lane == 0 && own)
        atomicAdd(to, own);
}
