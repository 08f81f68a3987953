/* gemm_mma.cuh -- matrix products by mma.sync: one kernel for every shape and type, and a fast one
 * for fp16 and bf16. See gemm.h for what they compute. */
#pragma once

#include "gemm_finish.cuh"

/* ---- any shape ----
 *
 * 64 x 64 elements a block, 16 words of depth at a time, 4 warps of 32 x 32. Lines in shared memory
 * have 16 words of 20: the 32 words of a fragment's register are in different banks (20 g + t). The
 * next words are read from memory while the present ones are multiplied. */
enum { MMA_LINES = 64, MMA_WORDS = 16, MMA_PITCH = 20, MMA_THREADS = 128 };
enum { MMA_EACH = MMA_LINES * MMA_WORDS / MMA_THREADS };

static __device__ __forceinline__ int mma_line(int along, int i)
{
    return along ? i / MMA_WORDS : i % MMA_LINES;
}
static __device__ __forceinline__ int mma_word(int along, int i)
{
    return along ? i % MMA_WORDS : i / MMA_LINES;
}

template <int TYPES>
static __device__ __forceinline__ void mma_fetch(uint32_t r[MMA_EACH], const gpu_lines &x, const unsigned char *from,
                                                 size_t line, size_t k, size_t depth)
{
    constexpr int PER = 4 >> gpu_types_shift(TYPES);
#pragma unroll
    for (int n = 0; n < MMA_EACH; n++) {
        const int i = n * MMA_THREADS + static_cast<int>(threadIdx.x);
        r[n] = gpu_packed<TYPES>(x, from, line + mma_line(x.along, i), k + PER * mma_word(x.along, i), depth);
    }
}

static __device__ __forceinline__ void mma_store(uint32_t (*to)[MMA_PITCH], const uint32_t r[MMA_EACH], int along)
{
#pragma unroll
    for (int n = 0; n < MMA_EACH; n++) {
        const int i = n * MMA_THREADS + static_cast<int>(threadIdx.x);
        to[mma_line(along, i)][mma_word(along, i)] = r[n];
    }
}

enum { MMA_ROOM = gpu_sums_bytes(MMA_LINES, MMA_LINES) };

/* A block's part of a product; sums: MMA_ROOM bytes of shared memory. */
template <int TYPES>
static __device__ __forceinline__ void mma_product(const gpu_formats &f, const gpu_format &to, const gpu_job &j,
                                                   float *sums)
{
    constexpr int DEEP = MMA_WORDS * (4 >> gpu_types_shift(TYPES));
    uint32_t(*const a)[MMA_PITCH] = reinterpret_cast<uint32_t(*)[MMA_PITCH]>(sums);
    uint32_t(*const b)[MMA_PITCH] = a + MMA_LINES;
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int row = static_cast<int>(threadIdx.x) / 64 * 32;
    const int column = static_cast<int>(threadIdx.x) / 32 % 2 * 32;
    uint32_t next_a[MMA_EACH], next_b[MMA_EACH];
    float d[2][4][4] = {};
    unsigned m, n;
    gpu_tile(j, &m, &n);
    const unsigned char *const from_a = gpu_a(j), *const from_b = gpu_b(j);
    const size_t first_row = static_cast<size_t>(m) * MMA_LINES;
    const size_t first_column = static_cast<size_t>(n) * MMA_LINES;
    if (j.out.start == TRAIN_FROM_SUM) {
#pragma unroll
        for (int i = 0; i < 32; i++)
            d[i / 16][i / 4 % 4][i % 4] = gpu_begin(j, first_row + row + 16 * (i / 16) + g + 8 * (i / 2 % 2),
                                                    first_column + column + 8 * (i / 4 % 4) + 2 * t + i % 2);
    }

    mma_fetch<TYPES>(next_a, j.a, from_a, first_row, 0, j.depth);
    mma_fetch<TYPES>(next_b, j.b, from_b, first_column, 0, j.depth);
    for (size_t k = 0; k < j.depth; k += DEEP) {
        mma_store(a, next_a, j.a.along);
        mma_store(b, next_b, j.b.along);
        __syncthreads();
        if (k + DEEP < j.depth) {
            mma_fetch<TYPES>(next_a, j.a, from_a, first_row, k + DEEP, j.depth);
            mma_fetch<TYPES>(next_b, j.b, from_b, first_column, k + DEEP, j.depth);
        }
#pragma unroll
        for (int w = 0; w < MMA_WORDS; w += 8) {
            uint32_t x[2][4], y[4][2];
#pragma unroll
            for (int r = 0; r < 8; r++)
                x[r / 4][r % 4] = a[row + 16 * (r / 4) + g + 8 * (r % 2)][w + t + 4 * (r / 2 % 2)];
#pragma unroll
            for (int r = 0; r < 8; r++)
                y[r / 2][r % 2] = b[column + 8 * (r / 2) + g][w + t + 4 * (r % 2)];
#pragma unroll
            for (int i = 0; i < 8; i++)
                gpu_mma<TYPES>(d[i / 4][i % 4], x[i / 4], y[i % 4]);
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < 16; i++)
        gpu_sums_put(sums, MMA_LINES, row + 16 * (i / 8) + g + 8 * (i % 2), column + 8 * (i / 2 % 4) + 2 * t,
                     d[i / 8][i / 2 % 4] + 2 * (i % 2));
    gpu_finish_tile<MMA_LINES, MMA_LINES, MMA_THREADS>(f, to, j, sums, first_row, first_column);
}

template <int TYPES>
struct gemm_mma {
    enum { THREADS = MMA_THREADS, BLOCKS = 2, ROOM = MMA_ROOM };
    static __device__ __forceinline__ void run(const gpu_formats &f, const gpu_format &to, const gpu_job &j,
                                               float *sums)
    {
        mma_product<TYPES>(f, to, j, sums);
    }
};

/* ---- fast ----
 *
 * 128 x 128 elements a block, 32 of depth a stage, 4 stages by cp.async, of which 3 are on their
 * way; 8 warps of 64 x 32, or 4 of 64 x 64 (WIDTH), fragments by ldmatrix. Two blocks fit on a multiprocessor (128
 * registers; 255). Of shared memory 8 warps read 12 KiB for 16 of depth, 4 read 8. Where the depth is contiguous a stage holds lines of 64 bytes, else 32 lines of 128
 * elements (256 bytes), which ldmatrix transposes. Pieces of 16 bytes are exchanged so that any 8
 * that are read or written at once are in different banks: piece p of line l is at p ^ (l / 2 mod
 * 4), or at p ^ (k mod 8). */
enum { FAST_LINES = 128, FAST_DEEP = 32, FAST_STAGES = 4 };
enum { FAST_OPERAND = FAST_LINES * FAST_DEEP * 2, FAST_STAGE = 2 * FAST_OPERAND };
enum { FAST_SHARED = gpu_sums_bytes(FAST_LINES, FAST_LINES) }; /* more than the stages take */
static_assert(FAST_STAGES * FAST_STAGE <= FAST_SHARED, "the sums need more room than the stages");

static __host__ __device__ constexpr int fast_threads(int width)
{
    return 32 * (FAST_LINES / 64) * (FAST_LINES / width);
}

/* Where elements (line, k), k .. k + 7 of a line or 8 lines of a k, are in a stage. */
template <int ALONG>
static __device__ __forceinline__ int fast_at(int line, int k)
{
    return ALONG ? line * 64 + ((k / 8) ^ (line / 2 % 4)) * 16 : k * 256 + ((line / 8) ^ (k % 8)) * 16;
}

/* What this thread of so many copies of an operand: COPIES pieces of a stage, whole groups of lines (or
 * of the depth) apart. Depth and lines that are left count in 32 bits, for the sake of registers.
 */
template <int ALONG, int THREADS>
struct fast_source {
    const unsigned char *from; /* the first piece of the next stage */
    size_t apart, advance;     /* bytes to the next piece, to the next stage */
    int line, k;               /* of the first piece */
    int lines_left;

    static constexpr int COPIES = FAST_OPERAND / 16 / THREADS;
    static constexpr int NEXT_LINE = ALONG ? THREADS / 4 : 0;
    static constexpr int NEXT_K = ALONG ? 0 : THREADS / 16;

    __device__ __forceinline__ fast_source(const gpu_lines &x, const unsigned char *at, size_t first)
        : line(static_cast<int>(ALONG ? threadIdx.x / 4 : threadIdx.x % 16 * 8)),
          k(static_cast<int>(ALONG ? threadIdx.x % 4 * 8 : threadIdx.x / 16))
    {
        const size_t left = x.lines - first;
        lines_left = left < FAST_LINES ? static_cast<int>(left) : int(FAST_LINES);
        apart = 2 * x.stride * (ALONG ? NEXT_LINE : NEXT_K);
        advance = 2 * FAST_DEEP * (ALONG ? 1 : x.stride);
        from = at + 2 * (ALONG ? (first + line) * x.stride + k : k * x.stride + first + line);
    }
    /* The next stage, of which `left` of depth is there. */
    __device__ __forceinline__ void copy(unsigned char *to, int left)
    {
#pragma unroll
        for (int n = 0; n < COPIES; n++) {
            const int l = line + n * NEXT_LINE, deep = k + n * NEXT_K;
            int bytes = 2 * (ALONG ? left - deep : lines_left - l);
            if (ALONG ? l >= lines_left : deep >= left)
                bytes = 0;
            bytes = bytes < 0 ? 0 : bytes > 16 ? 16 : bytes;
            gpu_copy(to + fast_at<ALONG>(l, deep), from + n * apart, bytes);
        }
        from += advance;
    }
};

/* Two by two 8 x 8 matrices from (line, k) on: register by register as the lane's parts say. */
template <int ALONG>
static __device__ __forceinline__ void fast_fragment(uint32_t r[4], const unsigned char *stage, int line, int k,
                                                     int next_line, int next_k)
{
    const int lane = threadIdx.x % 8;
    gpu_ldmatrix<!ALONG>(
        r, stage + fast_at<ALONG>(line + 8 * next_line + (ALONG ? lane : 0), k + 8 * next_k + (ALONG ? 0 : lane)));
}

template <int WIDTH>
struct fast_fragments {
    uint32_t a[4][4], b[WIDTH / 16][4];
};

/* The fragments of a warp for depth k to k + 15 of a stage. */
template <int ALONG_A, int ALONG_B, int WIDTH>
static __device__ __forceinline__ void fast_load(fast_fragments<WIDTH> *f, const unsigned char *stage, int row,
                                                 int column, int k)
{
    const int low = threadIdx.x / 8 % 2, high = threadIdx.x / 16 % 2;
#pragma unroll
    for (int i = 0; i < 4; i++)
        fast_fragment<ALONG_A>(f->a[i], stage, row + 16 * i, k, low, high);
#pragma unroll
    for (int i = 0; i < WIDTH / 16; i++)
        fast_fragment<ALONG_B>(f->b[i], stage + FAST_OPERAND, column + 16 * i, k, high, low);
}

template <int TYPES, int WIDTH>
static __device__ __forceinline__ void fast_multiply(float d[4][WIDTH / 8][4], const fast_fragments<WIDTH> &f)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int n = 0; n < WIDTH / 8; n++)
            gpu_mma<TYPES>(d[i][n], f.a[i], f.b[n / 2] + 2 * (n % 2));
}

template <int TYPES, int ALONG_A, int ALONG_B, int WIDTH>
__global__ void __launch_bounds__(fast_threads(WIDTH), 2)
    gemm_fast_kernel(GPU_CONSTANT(gpu_formats) formats, GPU_CONSTANT(gpu_job) j)
{
    GPU_DYNAMIC_SHARED(unsigned char, shared);
    const int lane = threadIdx.x % 32, warp = static_cast<int>(threadIdx.x) / 32;
    constexpr int THREADS = fast_threads(WIDTH), ACROSS = FAST_LINES / WIDTH;
    const int row = warp / ACROSS * 64, column = warp % ACROSS * WIDTH;
    unsigned m, n;
    gpu_tile(j, &m, &n);
    const size_t first_row = static_cast<size_t>(m) * FAST_LINES;
    const size_t first_column = static_cast<size_t>(n) * FAST_LINES;
    fast_source<ALONG_A, THREADS> a(j.a, gpu_a(j), first_row);
    fast_source<ALONG_B, THREADS> b(j.b, gpu_b(j), first_column);
    float d[4][WIDTH / 8][4] = {};

    const int depth = static_cast<int>(j.depth);
    int asked = 0; /* depth that has been copied or is on its way */
    for (int s = 0; s < FAST_STAGES - 1; s++, asked += FAST_DEEP) {
        if (asked < depth) {
            a.copy(shared + s * FAST_STAGE, depth - asked);
            b.copy(shared + s * FAST_STAGE + FAST_OPERAND, depth - asked);
        }
        gpu_copy_commit();
    }
    int read = 0, write = (FAST_STAGES - 1) * FAST_STAGE;
#pragma unroll 1
    for (; asked - (FAST_STAGES - 1) * FAST_DEEP < depth; asked += FAST_DEEP) {
        gpu_copy_wait<FAST_STAGES - 2>();
        __syncthreads(); /* the stage has arrived, and all have read the one before */
        if (asked < depth) {
            a.copy(shared + write, depth - asked);
            b.copy(shared + write + FAST_OPERAND, depth - asked);
        }
        gpu_copy_commit();
#pragma unroll
        for (int k = 0; k < FAST_DEEP; k += 16) {
            fast_fragments<WIDTH> f;
            fast_load<ALONG_A, ALONG_B, WIDTH>(&f, shared + read, row, column, k);
            fast_multiply<TYPES, WIDTH>(d, f);
        }
        write = read;
        read = read + FAST_STAGE < FAST_STAGES * FAST_STAGE ? read + FAST_STAGE : 0;
    }
    gpu_copy_wait<0>();
    __syncthreads();
    float *const sums = reinterpret_cast<float *>(shared);
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const int down = i / (WIDTH / 4), across = i / 2 % (WIDTH / 8);
        gpu_sums_put(sums, FAST_LINES, row + 16 * down + lane / 4 + 8 * (i % 2), column + 8 * across + 2 * (lane % 4),
                     d[down][across] + 2 * (i % 2));
    }
    gpu_finish_tile<FAST_LINES, FAST_LINES, THREADS>(formats, formats.out[0], j, sums, first_row, first_column);
}
