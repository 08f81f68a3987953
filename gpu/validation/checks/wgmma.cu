/* wgmma.cu -- wgmma.mma_async (sm_90a only, nothing else is compiled from this file) against the
 * model of its row, or against mma.sync on the same inputs.
 *
 * A and B are in shared memory, K-major, without swizzle (PTX ISA, "Asynchronous Warpgroup Level
 * Matrix Shared Memory Layout"). The unit there is the core matrix: 8 rows of 16 bytes, 128 bytes in
 * one piece. Each of our shapes is two core matrices deep, because k elements are 32 bytes; A is
 * eight of them high, B one. Core matrix (m, n) of A, eight rows m and half n of the depth, is at
 * 256 m + 128 n. So the offset between the two along K is 128 bytes and that between eight rows and
 * the next eight is 256. In the descriptor ("Matrix Descriptor Format") the first is the leading
 * dimension byte offset ("Leading Dimension Byte Offset": K-major, no swizzle: from the first column
 * to the second, in units of 128 bits) and the second the stride dimension byte offset ("from the
 * first 8 rows to the next 8 rows"). Documents of other ages name them the other way round: the
 * layout check tries both, and `swap` says which one the device means.
 *
 * The order of events: writes to shared memory, fence.proxy.async (wgmma reads through the async
 * proxy), a barrier of the warpgroup, wgmma.fence (registers), the instruction, commit, wait. */
#include "mma.cuh"

enum { M = 64, CORE = 128, DEPTH_OFFSET = CORE, ROWS_OFFSET = 2 * CORE };

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/* "Matrix Descriptor Format": bits 0-13 address, 16-29 leading, 32-45 stride offset, each without its
 * low 4 bits; 62-63 no swizzle. */
static __device__ uint64_t descriptor(const void *at, int swap)
{
    const uint32_t address = (uint32_t)__cvta_generic_to_shared(at);
    const uint64_t leading = swap ? ROWS_OFFSET : DEPTH_OFFSET;
    const uint64_t stride = swap ? DEPTH_OFFSET : ROWS_OFFSET;
    return (address & 0x3ffff) >> 4 | leading >> 4 << 16 | stride >> 4 << 32;
}

/* Codes as core matrices: `lines` rows of A or columns of B. */
static __device__ void store(unsigned char *to, const uint32_t *codes, int lines, int k, int bits)
{
    const int bytes = 32 / k; /* of an element */
    for (int i = threadIdx.x; i < lines * k; i += GPU_THREADS) {
        const int line = i / k, at = i % k * bytes;
        unsigned char *p = to + line / 8 * ROWS_OFFSET + at / 16 * DEPTH_OFFSET + line % 8 * 16 + at % 16;
        const uint32_t code = bits == 19 ? codes[i] << 13 | codes[i] >> 19 : codes[i];
        for (int n = 0; n < bytes; n++)
            p[n] = (unsigned char)(code >> (8 * n));
    }
}

/* scale-d: whether D is read as addend. Then scales 1 and 1 for A and B; the types of 16 bits have
 * two flags more, not transposed. One piece of code from fence to wait, so that no register moves in
 * between. */
#define WGMMA(d, x, y, p, text, more)                                                 \
    "{ .reg .pred p; setp.ne.b32 p, " p ", 0;\n"                                      \
    "wgmma.fence.sync.aligned;\n"                                                     \
    "wgmma.mma_async.sync.aligned." text " {" d "}, " x ", " y ", p, 1, 1" more ";\n" \
    "wgmma.commit_group.sync.aligned;\n"                                              \
    "wgmma.wait_group.sync.aligned 0; }"
#define WGMMA_f32(text, more)                                       \
    asm volatile(WGMMA("%0,%1,%2,%3", "%4", "%5", "%6", text, more) \
                 : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])   \
                 : "l"(x), "l"(y), "r"(scale_d)                     \
                 : "memory")
#define WGMMA_f16(text, more)                                 \
    asm volatile(WGMMA("%0,%1", "%2", "%3", "%4", text, more) \
                 : "+r"(h[0]), "+r"(h[1])                     \
                 : "l"(x), "l"(y), "r"(scale_d)               \
                 : "memory")

/* The instruction on descriptors; d: addends of this thread and its elements of the result, in the
 * places of mma.cuh, rows from 16 (warp mod 4) on ("Register Fragments", accumulator D). */
static __device__ __forceinline__ void wgmma_tile(int instruction, uint64_t x, uint64_t y, int scale_d, int half_c,
                                                  uint32_t d[4])
{
    float f[4];
    uint32_t h[2] = {d[0] | d[1] << 16, d[2] | d[3] << 16};
    for (int i = 0; i < 4; i++)
        f[i] = __uint_as_float(d[i]);
    switch (instruction) {
#define TAIL ""
#define TAIL_HALF ", 0, 0"
#define WGMMA_CASE(ID, shape, k, a, b, d, tail, ...)  \
    case GPU_##ID:                                    \
        WGMMA_##d(#shape "." #d "." #a "." #b, tail); \
        break;
        GPU_WGMMA_INSTRUCTIONS(WGMMA_CASE)
    default:
        break;
    }
    for (int i = 0; i < 4; i++)
        d[i] = half_c ? h[i / 2] >> (16 * (i % 2)) & 0xffff : __float_as_uint(f[i]);
}
#endif

__global__ void __launch_bounds__(GPU_THREADS)
    wgmma_kernel(GPU_CONSTANT(gpu_dots) j, GPU_CONSTANT(gpu_span) span, gpu_tally *tally, int swap)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    __shared__ uint32_t a[M * GPU_DEPTH], b[GPU_COLUMNS * GPU_DEPTH], c[M * GPU_COLUMNS];
    __shared__ __align__(128) unsigned char core_a[M * 32];
    /* longer than B: with the offsets swapped its second core matrix would begin at 256 */
    __shared__ __align__(128) unsigned char core_b[GPU_COLUMNS * 32 + ROWS_OFFSET];
    const int half_c = j.sum.result.format.bits == 16;
    const int first_row = threadIdx.x / 32 * 16, lane = threadIdx.x % 32;
    const uint64_t outputs = M * GPU_COLUMNS;
    gpu_local local(tally);
    for (uint64_t tile = span.first / outputs + blockIdx.x; tile < span.end / outputs; tile += gridDim.x) {
        uint32_t d[4], other[4];
        dots_fill(j, tile, a, b, c, threadIdx.x, GPU_THREADS);
        __syncthreads();
        store(core_a, a, M, j.k, j.a.bits);
        store(core_b, b, GPU_COLUMNS, j.k, j.b.bits);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        for (int i = 0; i < 4; i++)
            d[i] = c[(first_row + lane / 4 + 8 * (i / 2)) * GPU_COLUMNS + 2 * (lane % 4) + i % 2];
        wgmma_tile(j.instruction, descriptor(core_a, swap), descriptor(core_b, swap), !gpu_without_addend(&j, tile),
                   half_c, d);
        if (j.same_as >= 0)
            mma_tile(j.same_as, j.k, j.a.bits, a + first_row * j.k, b, c + first_row * GPU_COLUMNS, half_c, other);
        for (int i = 0; i < 4; i++) {
            const int row = first_row + lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
            const uint64_t index = tile * outputs + (uint64_t)(row * GPU_COLUMNS + column);
            local.add(span, index, d[i], j.same_as >= 0 ? other[i] : dots_expected(j, a, b, c, row, column));
        }
        __syncthreads();
    }
    local.give();
#endif
}

cudaError_t gpu_wgmma_launch(const gpu_dots *j, const gpu_span *span, gpu_tally *tally, int swap)
{
    const uint64_t tiles = (span->end - span->first) / (M * GPU_COLUMNS);
    wgmma_kernel<<<(unsigned)(tiles < GPU_BLOCKS ? tiles : GPU_BLOCKS), GPU_THREADS>>>(*j, *span, tally, swap);
    return cudaGetLastError();
}

int gpu_wgmma_compiled(void)
{
    cudaFuncAttributes a;
    if (cudaFuncGetAttributes(&a, wgmma_kernel) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return 1;
}
