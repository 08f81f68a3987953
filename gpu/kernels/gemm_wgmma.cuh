/* gemm_wgmma.cuh -- matrix products by wgmma (sm_90a): fp16, bf16, FP8, any shape.
 *
 * 128 x N elements a block, 128 bytes of depth a stage; two warpgroups of 64 x N. Both operands are
 * K-major with the swizzle of 128 bytes (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory
 * Layout"): a line has 128 bytes, 8 lines are an atom of 1024, and piece p (16 bytes) of line l is at
 * p ^ (l mod 8). Along the depth the address in the descriptor advances by 32 bytes inside the atom.
 *
 * The multiplications of a stage are one group, and one group stays under way from one turn of the
 * loop to the next: a turn asks for its own and then waits for the one before. So behind the
 * barrier of turn s both warpgroups have done with stage s - 2, into whose place stage
 * s - 2 + wg_stages is copied. The sums of a thread are accumulated in order of depth, group by
 * group. Sums that are promoted after each stage have two stages a turn, in registers of their own:
 * those of the first leave while the second is multiplied.
 *
 * ptxas serialises the multiplications of a kernel in which it cannot see which registers they have
 * (C7510 to C7519): so whether sums begin with what is in d is decided when compiling, and promoted sums
 * are set to zero by what it cannot move (wg_hold). gpu/ptxas.sh searches what it says. */
#pragma once

#include "gemm_finish.cuh"
#include "wgmma.cuh"

enum { WG_LINES = 128, WG_THREADS = 256 };
enum { WG_STEPS = WG_BYTES / 32 };

static __host__ __device__ constexpr int wg_operand_bytes(int n)
{
    return (WG_LINES + n) * WG_BYTES;
}

/* Behind the operands of a stage the factors of their lines, if there are any: an atom with tiles of 128. */
static __host__ __device__ constexpr int wg_stage_bytes(int n, int sums)
{
    return wg_operand_bytes(n) + (sums == GPU_SUMS_FACTORED ? (WG_LINES + n) * 4 : 0);
}

/* As many as fit: 192 KiB, and 6 of factors, of the 227 that a block may have. */
static __host__ __device__ constexpr int wg_stages(int n)
{
    return n == 128 ? 6 : 4;
}

static __host__ __device__ constexpr int wg_shared_bytes(int n, int sums)
{
    return wg_stages(n) * wg_stage_bytes(n, sums);
}

/* ---- stages ---- */

/* What of an operand goes into shared memory, stage by stage: LINES lines from `first` on. AT_ONCE: words that
 * a thread reads at once, where it reads words; each takes registers. */
template <int TYPES, int LINES, int AT_ONCE>
struct wg_operand {
    static constexpr int SHIFT = gpu_types_shift(TYPES);
    static constexpr int APART = WG_THREADS / 8, COPIES = LINES / APART; /* a thread's lines */

    const gpu_lines &x;
    const unsigned char *const matrix;
    const size_t first;
    const int by_pieces;       /* contiguous and aligned: pieces of 16 bytes by cp.async */
    const unsigned char *from; /* by pieces: this thread's in its first line of the next stage */
    const size_t next_line;    /* bytes from a line of this thread to its next */
    const int to;              /* where its first piece is in a stage */
    const int lines_left;      /* counted from its first line */

    __device__ __forceinline__ wg_operand(const gpu_lines &of, const unsigned char *at, size_t first_line)
        : x(of), matrix(at), first(first_line), by_pieces(of.along && of.aligned),
          next_line((APART * of.stride) << SHIFT), to(own_line() * WG_BYTES + (piece() ^ own_line() % 8) * 16),
          lines_left(static_cast<int>(of.lines - first_line < LINES ? of.lines - first_line : size_t(LINES)) -
                     own_line())
    {
        from = at + (((first_line + own_line()) * of.stride) << SHIFT) + piece() * 16;
    }
    static __device__ __forceinline__ int own_line()
    {
        return static_cast<int>(threadIdx.x) / 8;
    }
    static __device__ __forceinline__ int piece()
    {
        return threadIdx.x % 8;
    }

    /* The next stage, bytes `at` to `end` of the depth; zeros behind it. Every piece but those of
     * the last stage is whole, and needs an address and its copy. */
    __device__ __forceinline__ void ask(unsigned char *stage, int at, int end)
    {
        if (!by_pieces) {
            by_words(stage, at, end);
        } else if (end - at >= WG_BYTES) {
#pragma unroll
            for (int n = 0; n < COPIES; n++)
                gpu_copy_if(stage + to + n * (APART * WG_BYTES), from + n * next_line, n * APART < lines_left);
        } else {
            const int left = end - at - piece() * 16, bytes = left < 0 ? 0 : left < 16 ? left : 16;
#pragma unroll 1
            for (int n = 0; n < COPIES; n++)
                gpu_copy(stage + to + n * (APART * WG_BYTES), from + n * next_line, n * APART < lines_left ? bytes : 0);
        }
        from += WG_BYTES;
    }

    /* Transposed, or not aligned: words of 32 bits. */
    __device__ __forceinline__ void by_words(unsigned char *stage, int at, int end) const
    {
        constexpr int PER = 4 >> SHIFT;
        const size_t k = static_cast<size_t>(at >> SHIFT), depth = static_cast<size_t>(end >> SHIFT);
#pragma unroll AT_ONCE
        for (int i = static_cast<int>(threadIdx.x); i < LINES * 32; i += WG_THREADS) {
            const int line = x.along ? i / 32 : i % LINES, word = x.along ? i % 32 : i / LINES;
            *reinterpret_cast<uint32_t *>(stage + line * WG_BYTES + ((word / 4) ^ line % 8) * 16 + word % 4 * 4) =
                gpu_packed<TYPES>(x, matrix, first + line, k + PER * word, depth);
        }
    }
};

/* The factors of a stage, which is a block of the depth: each thread copies that of its line, of a for the
 * first half of the threads, of b for the second. Other sums have none. */
template <int SUMS>
struct wg_factors {
    __device__ __forceinline__ wg_factors(const gpu_job &, size_t, size_t)
    {
    }
    __device__ __forceinline__ void ask(unsigned char *, bool)
    {
    }
};

template <>
struct wg_factors<GPU_SUMS_FACTORED> {
    static_assert(int(WG_BYTES) == int(GPU_GEMM_BLOCK) && WG_THREADS == 2 * WG_LINES, "a block is a stage");
    const float *from; /* that of the next stage */
    const bool is_there;

    __device__ __forceinline__ wg_factors(const gpu_job &j, size_t row, size_t column)
        : wg_factors(is_of_a() ? j.a_factors : j.b_factors,
                     is_of_a() ? row + threadIdx.x : column + threadIdx.x - WG_LINES,
                     is_of_a() ? j.out.rows : j.out.columns)
    {
    }
    __device__ __forceinline__ wg_factors(const gpu_factors &f, size_t line, size_t lines)
        : from(line < lines ? f.at + line / f.lines * f.stride : f.at), is_there(line < lines)
    {
    }
    static __device__ __forceinline__ bool is_of_a()
    {
        return threadIdx.x < WG_LINES;
    }

    __device__ __forceinline__ void ask(unsigned char *to, bool in_depth)
    {
        gpu_copy_word(to + 4 * threadIdx.x, from, is_there && in_depth);
        from++;
    }
};

/* ---- the kernel ---- */

/* The first of the two rows of the tile of which this thread has sums, eight apart. */
static __device__ __forceinline__ int wg_row()
{
    return static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
}

/* The stages of a block on their way from memory to the tensor cores. */
template <int TYPES, int N, int SUMS>
struct wg_pipeline {
    static constexpr int STAGE = wg_stage_bytes(N, SUMS), ALL = wg_shared_bytes(N, SUMS);
    static constexpr int EACH = SUMS == GPU_SUMS_KEPT ? 1 : 2; /* stages a turn */
    static constexpr int AHEAD = wg_stages(N) - 2;             /* stages asked for when a turn begins */
    static constexpr int AT_ONCE = SUMS == GPU_SUMS_KEPT ? 4 : 2;

    wg_operand<TYPES, WG_LINES, AT_ONCE> a;
    wg_operand<TYPES, N, AT_ONCE> b;
    wg_factors<SUMS> factors;
    unsigned char *const shared;
    const uint64_t descriptor_a, descriptor_b; /* in the first place */
    const int end;                             /* bytes of depth */
    int asked, read, write;                    /* of the depth; places of stages */

    __device__ __forceinline__ wg_pipeline(const gpu_job &j, unsigned char *room, int group, size_t row, size_t column)
        : a(j.a, gpu_a(j), row), b(j.b, gpu_b(j), column), factors(j, row, column), shared(room),
          descriptor_a(wg_descriptor(room + group * 64 * WG_BYTES)),
          descriptor_b(wg_descriptor(room + WG_LINES * WG_BYTES)),
          end(static_cast<int>(j.depth << gpu_types_shift(TYPES))), asked(0), read(0), write(0)
    {
        for (int s = 0; s < AHEAD; s++)
            ask();
    }
    __device__ __forceinline__ int is_done() const
    {
        return asked - AHEAD * WG_BYTES >= end;
    }

    static __device__ __forceinline__ int place_after(int place)
    {
        return place + STAGE < ALL ? place + STAGE : 0;
    }
    /* A turn's stages are all there: zeros, where the depth has ended. */
    __device__ __forceinline__ void ask()
    {
        if (asked < end + (EACH - 1) * WG_BYTES) {
            a.ask(shared + write, asked, end);
            b.ask(shared + write + WG_LINES * WG_BYTES, asked, end);
            factors.ask(shared + write + wg_operand_bytes(N), asked < end);
        }
        gpu_copy_commit();
        asked += WG_BYTES;
        write = place_after(write);
    }

    /* The stages of a turn have arrived, for all threads; LEFT are on their way. */
    template <int LEFT>
    __device__ __forceinline__ void arrive()
    {
        gpu_copy_wait<LEFT>();
        wg_publish();
        __syncthreads();
        wg_begin();
    }
    /* A group: d += the next stage. */
    __device__ __forceinline__ void multiply(float (&d)[N / 2])
    {
#pragma unroll
        for (int s = 0; s < WG_STEPS; s++)
            wg_multiply<TYPES, N>(d, descriptor_a + (read >> 4) + 2 * s, descriptor_b + (read >> 4) + 2 * s);
        wg_commit();
        read = place_after(read);
    }

    __device__ __forceinline__ void turn(float (&d)[N / 2])
    {
        arrive<AHEAD - 1>();
        multiply(d);
        ask();
        wg_wait<1>();
    }
    /* Behind an odd number of stages comes one of zeros: its sums change nothing. (Without factors a sum is
     * never -0 but before the first stage.) */
    __device__ __forceinline__ void turn_promoted(float (&sum)[N / 2])
    {
        float d[N / 2] = {}, e[N / 2] = {};
        wg_hold<N>(d);
        wg_hold<N>(e);
        const bool two = asked - (AHEAD - 1) * WG_BYTES < end;
        arrive<AHEAD - 2>();
        const int of_d = read;
        multiply(d);
        const int of_e = read;
        multiply(e);
        ask();
        ask();
        wg_wait<1>();
        promote(sum, d, of_d, true);
        wg_wait<0>();
        promote(sum, e, of_e, two);
    }
    /* d: the sums of the stage at `place`, which is of the depth or is zeros behind it. */
    __device__ __forceinline__ void promote(float (&sum)[N / 2], float (&d)[N / 2], int place, bool in_depth) const
    {
        wg_hold<N>(d);
        if constexpr (SUMS == GPU_SUMS_PROMOTED) {
#pragma unroll
            for (int i = 0; i < N / 2; i++)
                sum[i] = __fadd_rn(sum[i], d[i]);
        } else {
            const float *const of_a = reinterpret_cast<const float *>(shared + place + wg_operand_bytes(N));
            const float *const of_b = of_a + WG_LINES + 2 * (threadIdx.x % 4);
            const int row = wg_row();
            /* -0 * +0, the factor of zeros, leaves -0 as it is */
            const float high = in_depth ? of_a[row] : -0.0f, low = in_depth ? of_a[row + 8] : -0.0f;
#pragma unroll
            for (int i = 0; i < N / 2; i++)
                sum[i] = __fmaf_rn(__fmul_rn(i / 2 % 2 ? low : high, of_b[8 * (i / 4) + i % 2]), d[i], sum[i]);
        }
    }
};

template <int TYPES, int N, int SUMS, int START>
__global__ void __launch_bounds__(WG_THREADS, 1) gemm_wgmma_kernel(GPU_CONSTANT(gpu_formats) f, GPU_CONSTANT(gpu_job) j)
{
    GPU_DYNAMIC_SHARED(unsigned char, shared);
    const int group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0);
    float d[N / 2] = {};
    unsigned m, n;
    gpu_tile(j, &m, &n);
    const size_t first_row = static_cast<size_t>(m) * WG_LINES;
    const size_t first_column = static_cast<size_t>(n) * N;
    const int row = wg_row(), lane = threadIdx.x % 32;
    if constexpr (START) {
#pragma unroll
        for (int i = 0; i < N / 2; i++)
            d[i] = gpu_begin(j, first_row + row + 8 * (i / 2 % 2), first_column + 8 * (i / 4) + 2 * (lane % 4) + i % 2);
    }

    wg_pipeline<TYPES, N, SUMS> p(j, shared, group, first_row, first_column);
    if constexpr (SUMS != GPU_SUMS_KEPT) {
#pragma unroll 1
        while (!p.is_done())
            p.turn_promoted(d);
    } else {
#pragma unroll 1
        while (!p.is_done())
            p.turn(d);
        wg_wait<0>();
        wg_hold<N>(d);
    }
    gpu_copy_wait<0>();
    __syncthreads();

    float *const sums = reinterpret_cast<float *>(shared);
#pragma unroll
    for (int i = 0; i < N / 4; i++)
        gpu_sums_put(sums, N, row + 8 * (i % 2), 8 * (i / 2) + 2 * (lane % 4), d + 2 * i);
    gpu_finish_tile<WG_LINES, N, WG_THREADS>(f, f.out[0], j, sums, first_row, first_column);
}
