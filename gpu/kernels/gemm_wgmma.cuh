/* gemm_wgmma.cuh -- matrix products by wgmma (sm_90a): fp16, bf16, FP8, any shape.
 *
 * 128 x N elements a block, 128 bytes of depth a stage, 4 stages; two warpgroups of 64 x N. Both
 * operands are K-major with the swizzle of 128 bytes (PTX ISA, "Asynchronous Warpgroup Level Matrix
 * Shared Memory Layout"): a line has 128 bytes, 8 lines are an atom of 1024, and piece p (16 bytes)
 * of line l is at p ^ (l mod 8). Along the depth the address in the descriptor advances by 32 bytes
 * inside the atom.
 *
 * While a stage is multiplied, the one three further on is copied into the place of the one before,
 * which both warpgroups have done with when they pass the barrier. No wgmma is under way from one
 * turn of the loop to the next: ptxas would serialise them. */
#ifndef MPSIM_GPU_GEMM_WGMMA_CUH
#define MPSIM_GPU_GEMM_WGMMA_CUH

#include "gemm_finish.cuh"

enum { WG_LINES = 128, WG_BYTES = 128, WG_STAGES = 4, WG_THREADS = 256, WG_ATOM = 8 * WG_BYTES };
enum { WG_STEPS = WG_BYTES / 32 };

static __host__ __device__ constexpr int wg_stage_bytes(int n)
{
    return (WG_LINES + n) * WG_BYTES;
}

/* ---- instructions ---- */

#if GPU_ON_HOST

static inline uint32_t wg_address(const unsigned char *p)
{
    return static_cast<uint32_t>(p - gpu_host.shared);
}
static inline void wg_publish() {}
template <int N>
static inline void wg_hold(float (&)[N / 2])
{
}
static inline void wg_begin() {}
static inline void wg_commit() { gpu_host_queue_now()->product_group++; }

template <int STEP, int N>
static inline void wg_multiply(float *d, uint64_t a, uint64_t b)
{
    gpu_host_queue *q = gpu_host_queue_now();
    q->products.push_back(gpu_host_async{STEP, N, d, a, b, q->product_group});
}
template <int LEFT>
static inline void wg_wait()
{
    gpu_host_queue *q = gpu_host_queue_now();
    std::vector<gpu_host_async> left;
    for (const gpu_host_async &p : q->products)
        if (p.group + LEFT < q->product_group)
            gpu_host_wgmma(&p);
        else
            left.push_back(p);
    q->products.swap(left);
}

#else

static __device__ __forceinline__ uint32_t wg_address(const unsigned char *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}
/* What this thread wrote to shared memory is for the async proxy, which wgmma reads through. */
static __device__ __forceinline__ void wg_publish()
{
    asm volatile("fence.proxy.async;" ::: "memory");
}
static __device__ __forceinline__ void wg_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
static __device__ __forceinline__ void wg_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int LEFT>
static __device__ __forceinline__ void wg_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

/* The sums are there from here on: without it a compiler might read them before the wait. */
template <int N>
static __device__ __forceinline__ void wg_hold(float (&d)[N / 2])
{
#pragma unroll
    for (int i = 0; i < N / 2; i++)
        asm volatile("" : "+f"(d[i])::"memory");
}

/* Names and operands of registers, ten or eight at a time. */
#define WG_TEN(t)                                                                                  \
    "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9,"
#define WG_R64 WG_TEN() WG_TEN(1) WG_TEN(2) WG_TEN(3) WG_TEN(4) WG_TEN(5) "%60,%61,%62,%63"
#define WG_R128                                                                               \
    WG_TEN() WG_TEN(1) WG_TEN(2) WG_TEN(3) WG_TEN(4) WG_TEN(5) WG_TEN(6) WG_TEN(7) WG_TEN(8)  \
        WG_TEN(9) WG_TEN(10) WG_TEN(11) "%120,%121,%122,%123,%124,%125,%126,%127"
#define WG_D8(i)                                                                              \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]),               \
        "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define WG_D64(i)                                                                             \
    WG_D8(i), WG_D8(i + 8), WG_D8(i + 16), WG_D8(i + 24), WG_D8(i + 32), WG_D8(i + 40),       \
        WG_D8(i + 48), WG_D8(i + 56)

/* scale-d is true: sums begin as the zeros in the registers. Then scales 1 of A and B; 16 bits:
 * both K-major. */
#define WG_ASM_128(type, more)                                                                     \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0;\n"                                          \
                 "wgmma.mma_async.sync.aligned.m64n128" type " {" WG_R64                           \
                 "}, %64, %65, p, 1, 1" more "; }"                                                 \
                 : WG_D64(0)                                                                       \
                 : "l"(a), "l"(b))
#define WG_ASM_256(type, more)                                                                \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0;\n"                                     \
                 "wgmma.mma_async.sync.aligned.m64n256" type " {" WG_R128                     \
                 "}, %128, %129, p, 1, 1" more "; }"                                          \
                 : WG_D64(0), WG_D64(64)                                                      \
                 : "l"(a), "l"(b))
#define WG_CASE(step, type, more)                                                             \
    if constexpr (STEP == step && N == 128)                                                   \
        WG_ASM_128(type, more);                                                               \
    if constexpr (STEP == step && N == 256)                                                   \
        WG_ASM_256(type, more);

template <int STEP, int N>
static __device__ __forceinline__ void wg_multiply(float (&d)[N / 2], uint64_t a, uint64_t b)
{
    WG_CASE(GPU_STEP_F16, "k16.f32.f16.f16", ", 0, 0")
    WG_CASE(GPU_STEP_BF16, "k16.f32.bf16.bf16", ", 0, 0")
    WG_CASE(GPU_STEP_E4M3_E4M3, "k32.f32.e4m3.e4m3", "")
    WG_CASE(GPU_STEP_E4M3_E5M2, "k32.f32.e4m3.e5m2", "")
    WG_CASE(GPU_STEP_E5M2_E4M3, "k32.f32.e5m2.e4m3", "")
    WG_CASE(GPU_STEP_E5M2_E5M2, "k32.f32.e5m2.e5m2", "")
}

#endif

/* "Matrix Descriptor Format": bits 0-13 address, 16-29 leading dimension (unused with this swizzle:
 * 1), 32-45 from 8 lines to the next 8, each without its low 4 bits; 62-63: 1 is the swizzle of 128
 * bytes. */
static __device__ __forceinline__ uint64_t wg_descriptor(const unsigned char *p)
{
    return (uint64_t)((wg_address(p) & 0x3ffff) >> 4) | (uint64_t)1 << 16 |
           (uint64_t)(WG_ATOM >> 4) << 32 | (uint64_t)1 << 62;
}

/* ---- stages ---- */

/* `count` lines of an operand from `first` on, 128 bytes of depth from element k on. Contiguous and
 * aligned ones by cp.async, others (transposed ones, too) word by word. */
template <int STEP>
static __device__ __forceinline__ void wg_fill(unsigned char *to, const gpu_lines &x, int count,
                                               size_t first, size_t k, size_t depth)
{
    constexpr int SHIFT = gpu_step_shift(STEP), PER = 4 >> SHIFT;
    if (x.along && x.aligned) {
#pragma unroll 4
        for (int i = static_cast<int>(threadIdx.x); i < count * 8; i += WG_THREADS) {
            const int line = i / 8, piece = i % 8;
            const size_t at = k + (piece * 16 >> SHIFT);
            const int bytes = first + line < x.lines ? gpu_bytes_left(at, depth, SHIFT) : 0;
            const unsigned char *from =
                bytes ? x.at + (((first + line) * x.stride + at) << SHIFT) : x.at;
            gpu_copy(to + line * WG_BYTES + (piece ^ line % 8) * 16, from, bytes);
        }
        return;
    }
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < count * 32; i += WG_THREADS) {
        const int line = x.along ? i / 32 : i % count, word = x.along ? i % 32 : i / count;
        *reinterpret_cast<uint32_t *>(to + line * WG_BYTES + ((word / 4) ^ line % 8) * 16 +
                                      word % 4 * 4) =
            gpu_packed<STEP>(x, first + line, k + PER * word, depth);
    }
}

template <int STEP, int N>
static __device__ __forceinline__ void wg_stage(unsigned char *shared, const gpu_job &j,
                                                size_t stage, size_t row, size_t column)
{
    const size_t k = stage * (WG_BYTES >> gpu_step_shift(STEP));
    unsigned char *to = shared + stage % WG_STAGES * wg_stage_bytes(N);
    if (k < j.depth) {
        wg_fill<STEP>(to, j.a, WG_LINES, row, k, j.depth);
        wg_fill<STEP>(to + WG_LINES * WG_BYTES, j.b, N, column, k, j.depth);
    }
    gpu_copy_commit();
}

/* ---- the kernel ---- */

template <int STEP, int N, int PROMOTE>
__global__ void __launch_bounds__(WG_THREADS, 1)
    gemm_wgmma_kernel(const __grid_constant__ gpu_job j)
{
    GPU_DYNAMIC_SHARED(unsigned char, shared);
    constexpr int DEEP = WG_BYTES >> gpu_step_shift(STEP);
    const int group = static_cast<int>(threadIdx.x) / 128;
    float d[N / 2] = {}, sum[PROMOTE ? N / 2 : 1] = {};
    unsigned m, n;
    gpu_tile(j, &m, &n);
    const size_t first_row = static_cast<size_t>(m) * WG_LINES;
    const size_t first_column = static_cast<size_t>(n) * N;

    for (size_t stage = 0; stage < WG_STAGES - 1; stage++)
        wg_stage<STEP, N>(shared, j, stage, first_row, first_column);
#pragma unroll 1
    for (size_t stage = 0; stage * DEEP < j.depth; stage++) {
        const unsigned char *at = shared + stage % WG_STAGES * wg_stage_bytes(N);
        const uint64_t a = wg_descriptor(at + group * 64 * WG_BYTES);
        const uint64_t b = wg_descriptor(at + WG_LINES * WG_BYTES);
        gpu_copy_wait<WG_STAGES - 2>();
        wg_publish();
        __syncthreads();
        wg_begin();
#pragma unroll
        for (int s = 0; s < WG_STEPS; s++)
            wg_multiply<STEP, N>(d, a + 2 * s, b + 2 * s);
        wg_commit();
        wg_stage<STEP, N>(shared, j, stage + WG_STAGES - 1, first_row, first_column);
        wg_wait<0>();
        wg_hold<N>(d);
        if constexpr (PROMOTE) {
#pragma unroll
            for (int i = 0; i < N / 2; i++) {
                sum[i] = __fadd_rn(sum[i], d[i]);
                d[i] = 0;
            }
        }
    }
    gpu_copy_wait<0>();

    __syncthreads();

    const int warp = static_cast<int>(threadIdx.x) / 32 % 4, lane = threadIdx.x % 32;
    const int row = 64 * group + 16 * warp + lane / 4;
    float *const sums = reinterpret_cast<float *>(shared);
#pragma unroll
    for (int i = 0; i < N / 4; i++)
        gpu_sums_put(sums, N, row + 8 * (i % 2), 8 * (i / 2) + 2 * (lane % 4),
                     (PROMOTE ? sum : d) + 2 * i);
    gpu_finish_tile<WG_LINES, N>(j.out, sums, first_row, first_column);
}

#endif
