/* gemm_tma.cuh -- matrix products by wgmma whose operands come by the tensor memory accelerator (sm_90a): fp16 and bf16 in any
 * layout, FP8 along the depth; addresses, strides and distances in 16 bytes.
 *
 * A cluster of two blocks computes 256 rows, 128 each; both take the same columns of b, of which each copies one half to
 * both. A block has three warpgroups: the first copies, the others multiply. Clusters stay on their multiprocessors and
 * take tile after tile, so that stages of the next tile arrive while sums of this one are stored.
 *
 * A ring is places for stages in shared memory. A stage has 128 bytes of the depth: an operand is lines of 128 bytes with
 * the swizzle of 128 bytes, or, where the lines are contiguous, 64 depths of 64 lines after each other. Barrier `full` of a place
 * waits for the bytes, `empty` for the warps of both blocks that read them.
 *
 * Sums that are kept: one ring, tiles of 256 columns, 64 rows for a warpgroup; the second begins some stages behind the first
 * (`lag`), so that one stores while the other multiplies. Sums that are promoted: a ring for each of the two warpgroups, and
 * tiles of their own of 128 columns, 128 rows in two halves; one multiplies while the other promotes, and they are half a
 * tile apart, so that one stores while the other multiplies, too. */
#pragma once

#include "gemm_finish.cuh"
#include "tma.cuh"
#include "usual.cuh"
#include "wgmma.cuh"

enum { TMA_LINES = 128, TMA_THREADS = 384, TMA_CLUSTER = 2, TMA_WARPS = 4, TMA_LAG = 1 };
enum { TMA_FEW_REGISTERS = 40, TMA_MANY_REGISTERS = 232 }; /* 40 + 2 * 232 are three times 168 */
/* Sums on their way out: 64 lines of 32 binary32 numbers for each warpgroup, and a line of the bias. */
enum { TMA_OUT_COLUMNS = 32, TMA_OUT = 65 * TMA_OUT_COLUMNS, TMA_CHUNKS = 8 };

template <int SUMS>
struct tma_shape {
    static constexpr int PROMOTES = SUMS != GPU_SUMS_KEPT;
    static constexpr int RINGS = PROMOTES ? 2 : 1, GROUPS = 2 / RINGS; /* warpgroups that read a ring */
    static constexpr int COLUMNS = PROMOTES ? 128 : 256, STAGES = PROMOTES ? 3 : 4;
    static constexpr int A = TMA_LINES * WG_BYTES, B = COLUMNS * WG_BYTES;
    static constexpr int FACTORS = SUMS == GPU_SUMS_FACTORED ? (TMA_LINES + COLUMNS) * 4 : 0;
    static constexpr int STAGE = A + B + FACTORS, OUT_AT = RINGS * STAGES * STAGE;
    static constexpr int BARS_AT = OUT_AT + 2 * TMA_OUT * 4;
    static constexpr int ALL = BARS_AT + (2 * RINGS * STAGES + 1) * 8;
    static_assert(ALL <= 232448, "the shared memory of a block");
    static_assert(TMA_LAG < STAGES || PROMOTES, "what the first warpgroup reads alone");
};

/* ---- tiles ---- */

struct tma_tile {
    unsigned stack;
    size_t row, column;
};

/* Tile t of the cluster's: j.tiles_m counts pairs of 128 rows. Tiles go in groups of eight pairs, column by column, for the sake
 * of the L2 cache. */
static __device__ __forceinline__ tma_tile tma_tile_of(const gpu_job &j, unsigned t, int columns)
{
    const unsigned each = j.tiles_m * j.tiles_n, tile = t % each, group = 8 * j.tiles_n, first = tile / group * 8;
    const unsigned rows = j.tiles_m - first < 8 ? j.tiles_m - first : 8;
    const size_t pair = first + tile % group % rows;
    return tma_tile{t / each, (2 * pair + gpu_cluster_rank()) * TMA_LINES, size_t(tile % group / rows) * columns};
}

/* The first tile of a ring, and how far the next one is. */
template <int SUMS>
static __device__ __forceinline__ unsigned tma_first(int ring)
{
    return blockIdx.x / TMA_CLUSTER + ring * (gridDim.x / TMA_CLUSTER);
}
template <int SUMS>
static __device__ __forceinline__ unsigned tma_step()
{
    return tma_shape<SUMS>::RINGS * (gridDim.x / TMA_CLUSTER);
}

template <int TYPES>
static __device__ __forceinline__ int tma_stages(const gpu_job &j)
{
    constexpr int DEEP = WG_BYTES >> gpu_types_shift(TYPES);
    return static_cast<int>((j.depth + DEEP - 1) / DEEP);
}

/* ---- rings ---- */

template <int SUMS>
struct tma_ring {
    typedef tma_shape<SUMS> shape;
    unsigned char *const places;
    uint64_t *const full, *const empty;
    int at;          /* the next stage's place */
    unsigned parity; /* of its phase */

    __device__ __forceinline__ tma_ring(unsigned char *shared, int ring)
        : places(shared + ring * (shape::STAGES * shape::STAGE)),
          full(reinterpret_cast<uint64_t *>(shared + shape::BARS_AT) + 2 * shape::STAGES * ring),
          empty(full + shape::STAGES), at(0), parity(0)
    {
    }
    __device__ __forceinline__ unsigned char *place() const
    {
        return places + at * shape::STAGE;
    }
    __device__ __forceinline__ void next()
    {
        at = at + 1 < shape::STAGES ? at + 1 : 0;
        parity ^= at == 0;
    }
    /* One thread of each block of the cluster. */
    __device__ __forceinline__ void init() const
    {
        for (int i = 0; i < shape::STAGES; i++) {
            gpu_bar_init(full + i, SUMS == GPU_SUMS_FACTORED ? 33 : 1); /* bytes of tiles; factors of 32 lanes */
            gpu_bar_init(empty + i, TMA_CLUSTER * shape::GROUPS * TMA_WARPS);
        }
    }
    /* A warp has read the place of that number: both blocks may copy to it, since half of b comes from the other one. */
    __device__ __forceinline__ void release(int number) const
    {
        __syncwarp();
        if (threadIdx.x % 32 < TMA_CLUSTER)
            gpu_bar_arrive_at(empty + number, threadIdx.x % 32);
    }
};

/* ---- the copying warps: one for each ring ---- */

/* Factors of the lines of a tile, 4 of a and 4 of b for each lane; other sums have none. */
template <int SUMS>
struct tma_factors {
    __device__ __forceinline__ tma_factors(const gpu_job &, const tma_tile &)
    {
    }
    __device__ __forceinline__ void ask(unsigned char *, uint64_t *)
    {
    }
};

template <>
struct tma_factors<GPU_SUMS_FACTORED> {
    const float *from[8]; /* those of the next stage */
    unsigned are_there;

    __device__ __forceinline__ tma_factors(const gpu_job &j, const tma_tile &tile) : are_there(0)
    {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const gpu_factors &f = i < 4 ? j.a_factors : j.b_factors;
            const size_t line = (i < 4 ? tile.row : tile.column) + threadIdx.x % 32 + i % 4 * 32;
            const bool is_there = line < (i < 4 ? j.out.rows : j.out.columns);
            from[i] = is_there ? f.at + line / f.lines * f.stride : f.at;
            are_there |= static_cast<unsigned>(is_there) << i;
        }
    }
    __device__ __forceinline__ void ask(unsigned char *to, uint64_t *full)
    {
#pragma unroll
        for (int i = 0; i < 8; i++)
            gpu_copy_word(to + 4 * (threadIdx.x % 32 + 32 * i), from[i]++, are_there >> i & 1);
        gpu_bar_copies(full);
    }
};

/* Stage k of a tile: this block's lines of a, and its half of the columns of b for both blocks. x, y: where an operand's box is. */
template <int TYPES, int ALONG_A, int ALONG_B, int SUMS>
static __device__ __forceinline__ void tma_ask(const tma_ring<SUMS> &r, const gpu_job &j, const gpu_tensor &a,
                                               const gpu_tensor &b, const tma_tile &tile, int k)
{
    typedef tma_shape<SUMS> shape;
    constexpr int HALF = shape::COLUMNS / TMA_CLUSTER;
    const unsigned rank = gpu_cluster_rank(), deep = k * (WG_BYTES >> gpu_types_shift(TYPES));
    const unsigned row = static_cast<unsigned>(tile.row), column = static_cast<unsigned>(tile.column) + rank * HALF;
    const unsigned of_a = j.a.apart ? tile.stack : 0, of_b = j.b.apart ? tile.stack / j.shared : 0;
    unsigned char *const to = r.place(), *const to_b = to + shape::A + rank * (HALF * WG_BYTES);
    uint64_t *const full = r.full + r.at;
    constexpr unsigned BOTH = (1 << TMA_CLUSTER) - 1;
    gpu_bar_expect(full, shape::A + shape::B);
    if constexpr (ALONG_A) {
        gpu_tile(a, to, full, deep, row, of_a, 0);
    } else {
#pragma unroll
        for (int i = 0; i < TMA_LINES / 64; i++)
            gpu_tile(a, to + i * (64 * WG_BYTES), full, row + 64 * i, deep, of_a, 0);
    }
    if constexpr (ALONG_B) {
        gpu_tile(b, to_b, full, deep, column, of_b, BOTH);
    } else {
#pragma unroll
        for (int i = 0; i < HALF / 64; i++)
            gpu_tile(b, to_b + i * (64 * WG_BYTES), full, column + 64 * i, deep, of_b, BOTH);
    }
}

template <int TYPES, int ALONG_A, int ALONG_B, int SUMS>
static __device__ __forceinline__ void tma_copy(const gpu_job &j, const gpu_tensor &a, const gpu_tensor &b,
                                                unsigned char *shared, int ring)
{
    typedef tma_shape<SUMS> shape;
    tma_ring<SUMS> r(shared, ring);
    const int stages = tma_stages<TYPES>(j);
    for (unsigned t = tma_first<SUMS>(ring); t < j.blocks; t += tma_step<SUMS>()) {
        const tma_tile tile = tma_tile_of(j, t, shape::COLUMNS);
        tma_factors<SUMS> factors(j, tile);
#pragma unroll 1
        for (int k = 0; k < stages; k++) {
            gpu_bar_wait(r.empty + r.at, r.parity ^ 1);
            if (threadIdx.x % 32 == 0)
                tma_ask<TYPES, ALONG_A, ALONG_B, SUMS>(r, j, a, b, tile, k);
            factors.ask(r.place() + shape::A + shape::B, r.full + r.at);
            r.next();
        }
    }
}

/* ---- the multiplying warpgroups ---- */

/* A group of instructions: d (+)= 64 lines of a stage. begins: with zeros, not what is in d. */
template <int TYPES, int ALONG_A, int ALONG_B, int N>
static __device__ __forceinline__ void tma_multiply(float (&d)[N / 2], uint64_t a, uint64_t b, int adds)
{
    constexpr int NEXT_A = ALONG_A ? 2 : 2 * WG_ATOM >> 4, NEXT_B = ALONG_B ? 2 : 2 * WG_ATOM >> 4;
    wg_begin();
#pragma unroll
    for (int s = 0; s < WG_BYTES / 32; s++)
        wg_multiply<TYPES, N, !ALONG_A, !ALONG_B>(d, a + s * NEXT_A, b + s * NEXT_B, s ? 1 : adds);
    wg_commit();
}

static __device__ __forceinline__ int tma_thread()
{
    return static_cast<int>(threadIdx.x) % 128;
}

/* Sums of one tile that stay in the tensor cores. The group before the last stays under way. */
template <int TYPES, int ALONG_A, int ALONG_B>
static __device__ __forceinline__ void tma_sums_kept(float (&d)[128], tma_ring<GPU_SUMS_KEPT> &r, int stages, int group,
                                                     uint64_t *lag)
{
    typedef tma_shape<GPU_SUMS_KEPT> shape;
    const uint64_t a = wg_descriptor(r.places + group * (64 * WG_BYTES), ALONG_A ? 16 : 64 * WG_BYTES);
    const uint64_t b = wg_descriptor(r.places + shape::A, ALONG_B ? 16 : 64 * WG_BYTES);
    const int last_lag = stages - 1 < TMA_LAG ? stages - 1 : int(TMA_LAG);
    int before = 0;
#pragma unroll 1
    for (int k = 0; k < stages; k++) {
        const int at = r.at * (shape::STAGE >> 4);
        gpu_bar_wait(r.full + r.at, r.parity);
        tma_multiply<TYPES, ALONG_A, ALONG_B, 256>(d, a + at, b + at, k > 0);
        if (k > 0) {
            wg_wait<1>();
            r.release(before);
        }
        if (lag && k == last_lag && tma_thread() == 0)
            gpu_bar_arrive(lag);
        before = r.at;
        r.next();
    }
    wg_wait<0>();
    wg_hold<256>(d);
    r.release(before);
}

/* The factors of a stage for two rows of this thread: taken before the wait for their sums. `one`: b has one for the tile. */
template <int SUMS>
struct tma_scales {
    const float *of_b;
    float high, low;
    const bool one;

    __device__ __forceinline__ tma_scales(const unsigned char *factors, int line, bool has_one) : one(has_one)
    {
        if constexpr (SUMS == GPU_SUMS_FACTORED) {
            const float *const of_a = reinterpret_cast<const float *>(factors) + line + tma_thread() / 32 * 16 +
                                      tma_thread() % 32 / 4;
            of_b = reinterpret_cast<const float *>(factors) + TMA_LINES + 2 * (tma_thread() % 4);
            high = one ? __fmul_rn(of_a[0], of_b[0]) : of_a[0];
            low = one ? __fmul_rn(of_a[8], of_b[0]) : of_a[8];
        }
    }
    /* d: the sums of a stage. */
    __device__ __forceinline__ void promote(float *sum, const float (&d)[64]) const
    {
        if constexpr (SUMS == GPU_SUMS_PROMOTED) {
#pragma unroll
            for (int i = 0; i < 64; i++)
                sum[i] = __fadd_rn(sum[i], d[i]);
        } else if (one) {
#pragma unroll
            for (int i = 0; i < 64; i++)
                sum[i] = __fmaf_rn(i / 2 % 2 ? low : high, d[i], sum[i]);
        } else {
#pragma unroll
            for (int i = 0; i < 64; i++)
                sum[i] = __fmaf_rn(__fmul_rn(i / 2 % 2 ? low : high, of_b[8 * (i / 4) + i % 2]), d[i], sum[i]);
        }
    }
};

/* Sums of one tile that leave the tensor cores after each stage. */
template <int TYPES, int SUMS>
static __device__ __forceinline__ void tma_sums_promoted(float (&sum)[128], tma_ring<SUMS> &r, int stages, bool one,
                                                         uint64_t *lag)
{
    typedef tma_shape<SUMS> shape;
    const uint64_t a = wg_descriptor(r.places), b = wg_descriptor(r.places + shape::A);
    float d[64];
#pragma unroll
    for (int i = 0; i < 128; i++)
        sum[i] = 0;
#pragma unroll 1
    for (int k = 0; k < stages; k++) {
        const int at = r.at * (shape::STAGE >> 4);
        gpu_bar_wait(r.full + r.at, r.parity);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            tma_multiply<TYPES, 1, 1, 128>(d, a + at + half * (64 * WG_BYTES >> 4), b + at, 0);
            const tma_scales<SUMS> scales(r.place() + shape::A + shape::B, 64 * half, one);
            wg_wait<0>();
            wg_hold<128>(d);
            if (half && SUMS == GPU_SUMS_PROMOTED)
                r.release(r.at);
            scales.promote(sum + 64 * half, d);
        }
        if (SUMS == GPU_SUMS_FACTORED)
            r.release(r.at);
        if (lag && k == stages / 2 && tma_thread() == 0)
            gpu_bar_arrive(lag);
        r.next();
    }
}

/* ---- results: a warpgroup stores 32 columns of 64 lines at a time ---- */

/* Where the number of (line, column) is: groups of eight are exchanged by the line, so that fragments are stored without
 * conflicts. */
static __device__ __forceinline__ int tma_out_at(int line, int column)
{
    return line * TMA_OUT_COLUMNS + ((column / 8) ^ (line % 4)) * 8 + column % 8;
}

/* What a warpgroup stores at a time. */
struct tma_part {
    unsigned char *d;         /* the matrix */
    const float *sums, *bias; /* of each place by tma_out_at; of each column */
    size_t row, column;
};

/* Any result: pairs. */
static __device__ __forceinline__ void tma_store_pairs(const gpu_formats &f, const gpu_finish &o, const tma_part &p,
                                                       gpu_counter *c)
{
    const int place = tma_thread() % 16 * 2, n = p.column + place + 1 < o.columns ? 2 : 1;
    if (p.column + place >= o.columns)
        return;
    const float bias[2] = {p.bias[place], p.bias[place + 1]};
#pragma unroll 1
    for (int line = tma_thread() / 16; line < 64 && p.row + line < o.rows; line += 8)
        gpu_finish_pair<GPU_RESULT_ANY>(o, f.out[0], p.d, (p.row + line) * o.stride + p.column + place, n,
                                        p.sums + tma_out_at(line, place), bias, c);
}

/* Four numbers as codes, one of which overflows or is none. */
template <class T, gpu_result RESULT>
static __device__ __forceinline__ void tma_round_each(const gpu_formats &f, const float x[4], uint32_t *words,
                                                      gpu_counter *c)
{
    const gpu_format to = gpu_fixed<RESULT>(f.out[0]);
    uint32_t code[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const gpu_code y = gpu_encode(to, GPU_NEAREST, x[k]);
        c->add(to, x[k], y);
        code[k] = y.code;
    }
    gpu_join<T>(code, words);
}

/* Numbers in 16 bytes as codes. */
template <class T, gpu_result RESULT>
static __device__ __forceinline__ void tma_round(const gpu_formats &f, const float (&x)[16 / T::BYTES],
                                                 uint32_t words[4], bool counts, gpu_counter *c)
{
    constexpr int EACH = 16 / T::BYTES;
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < EACH && (T::SHIFT || counts); i++)
        most = max(most, __float_as_uint(x[i]) & 0x7fffffffu);
    if (most >= T::limit(GPU_NEAREST)) {
#pragma unroll
        for (int i = 0; i < EACH; i += 4)
            tma_round_each<T, RESULT>(f, x + i, words + i / 4 * T::BYTES, c);
        return;
    }
#pragma unroll
    for (int i = 0; i < EACH; i += 4)
        gpu_pack<T, GPU_NEAREST>(x + i, words + i / 4 * T::BYTES);
#pragma unroll
    for (int i = 0; counts && i < EACH; i++) {
        const uint32_t a = __float_as_uint(x[i]) & 0x7fffffffu;
        c->nonzero += a != 0;
        c->lost += a != 0 && a <= T::lost(GPU_NEAREST);
    }
}

/* Whole pieces of 16 bytes. */
template <class T, gpu_result RESULT>
static __device__ __forceinline__ void tma_store_pieces(const gpu_formats &f, const gpu_finish &o, const tma_part &p,
                                                        gpu_counter *c)
{
    constexpr int EACH = 16 / T::BYTES, PIECES = TMA_OUT_COLUMNS / EACH, APART = 128 / PIECES;
    const int place = tma_thread() % PIECES * EACH, line = tma_thread() / PIECES;
    const int left = static_cast<int>(o.rows - p.row < 64 ? o.rows - p.row : 64) - line;
    unsigned char *to = p.d + ((p.row + line) * o.stride + p.column + place) * T::BYTES;
    if (p.row >= o.rows)
        return;
#pragma unroll
    for (int n = 0; n < 64 / APART; n++, to += APART * o.stride * T::BYTES) {
        float x[EACH];
        uint32_t words[4];
#pragma unroll
        for (int i = 0; i < EACH; i++)
            x[i] = p.sums[tma_out_at(line + n * APART, place) + i];
#pragma unroll
        for (int i = 0; o.scaled && i < EACH; i++)
            x[i] = __fmul_rn(x[i], o.factor);
#pragma unroll
        for (int i = 0; o.bias && i < EACH; i++)
            x[i] = __fadd_rn(x[i], p.bias[place + i]);
        if (n * APART >= left)
            return;
        tma_round<T, RESULT>(f, x, words, o.counts != nullptr, c);
        *reinterpret_cast<uint4 *>(to) = make_uint4(words[0], words[1], words[2], words[3]);
    }
}

/* Registers 16 * chunk to 16 * chunk + 15. */
static __device__ __forceinline__ void tma_out_put(float *out, const float (&sums)[128], int chunk)
{
    const int line = tma_thread() / 32 * 16 + tma_thread() % 32 / 4, column = 2 * (tma_thread() % 4);
#pragma unroll
    for (int c = 0; c < TMA_CHUNKS; c++)
        if (c == chunk)
#pragma unroll
            for (int i = 0; i < 8; i++)
                *reinterpret_cast<float2 *>(out + tma_out_at(line + 8 * (i % 2), 8 * (i / 2) + column)) =
                    make_float2(sums[16 * c + 2 * i], sums[16 * c + 2 * i + 1]);
}

static __device__ __forceinline__ void tma_store_part(const gpu_formats &f, const gpu_finish &o, const tma_part &p,
                                                      gpu_counter *c)
{
    const bool whole = o.pieces && p.column + TMA_OUT_COLUMNS <= o.columns;
    switch (whole ? o.result : GPU_RESULT_ANY) {
    case GPU_RESULT_BINARY32:
        return tma_store_pieces<gpu_binary32, GPU_RESULT_BINARY32>(f, o, p, c);
    case GPU_RESULT_F16:
        return tma_store_pieces<gpu_fp16, GPU_RESULT_F16>(f, o, p, c);
    case GPU_RESULT_BF16:
        return tma_store_pieces<gpu_bf16, GPU_RESULT_BF16>(f, o, p, c);
    default:
        return tma_store_pairs(f, o, p, c);
    }
}

template <int SUMS>
static __device__ __forceinline__ void tma_store(const gpu_formats &f, const gpu_job &j, float *out,
                                                 const float (&sums)[128], const tma_tile &tile, int group)
{
    constexpr int ACROSS = tma_shape<SUMS>::COLUMNS / TMA_OUT_COLUMNS;
    const gpu_finish &o = j.out;
    float *const bias = out + 64 * TMA_OUT_COLUMNS;
    tma_part p = {o.d + tile.stack * o.apart, out, bias, 0, 0};
    gpu_counter count;
#pragma unroll 1
    for (int chunk = 0; chunk < TMA_CHUNKS; chunk++) {
        p.row = tile.row + (tma_shape<SUMS>::PROMOTES ? chunk / ACROSS * 64 : 64 * group);
        p.column = tile.column + chunk % ACROSS * TMA_OUT_COLUMNS;
        const size_t column = p.column + tma_thread();
        tma_out_put(out, sums, chunk);
        if (tma_thread() < TMA_OUT_COLUMNS)
            bias[tma_thread()] = o.bias && column < o.columns ? gpu_value(f.bias, o.bias, column) : 0;
        gpu_group_sync(1 + group, 128);
        tma_store_part(f, o, p, &count);
        gpu_group_sync(1 + group, 128);
    }
    count.give(o.counts);
}

template <int TYPES, int ALONG_A, int ALONG_B, int SUMS>
static __device__ __forceinline__ void tma_compute(const gpu_formats &f, const gpu_job &j, unsigned char *shared,
                                                   int group, uint64_t *lag)
{
    typedef tma_shape<SUMS> shape;
    const int ring = shape::RINGS == 2 ? group : 0, stages = tma_stages<TYPES>(j);
    const unsigned first = tma_first<SUMS>(ring);
    tma_ring<SUMS> r(shared, ring);
    float *const out = reinterpret_cast<float *>(shared + shape::OUT_AT) + group * TMA_OUT;
    float sums[128] = {};
    if (group && first < j.blocks)
        gpu_bar_wait(lag, 0);
#pragma unroll 1
    for (unsigned t = first; t < j.blocks; t += tma_step<SUMS>()) {
        uint64_t *const tells = group == 0 && t == first ? lag : nullptr;
        if constexpr (shape::PROMOTES)
            tma_sums_promoted<TYPES, SUMS>(sums, r, stages, j.b_factors.lines % shape::COLUMNS == 0, tells);
        else
            tma_sums_kept<TYPES, ALONG_A, ALONG_B>(sums, r, stages, group, tells);
        tma_store<SUMS>(f, j, out, sums, tma_tile_of(j, t, shape::COLUMNS), group);
    }
}

/* ---- the kernel ---- */

template <int TYPES, int ALONG_A, int ALONG_B, int SUMS>
__global__ void GPU_CLUSTERS(TMA_CLUSTER) __launch_bounds__(TMA_THREADS, 1)
    gemm_tma_kernel(GPU_CONSTANT(gpu_formats) f, GPU_CONSTANT(gpu_job) j, GPU_CONSTANT(gpu_tensor) a,
                    GPU_CONSTANT(gpu_tensor) b)
{
    typedef tma_shape<SUMS> shape;
    GPU_DYNAMIC_SHARED(unsigned char, shared);
    const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0), group = warp / TMA_WARPS;
    uint64_t *const lag = reinterpret_cast<uint64_t *>(shared + shape::BARS_AT) + 2 * shape::RINGS * shape::STAGES;
    if (threadIdx.x == 0) {
        for (int i = 0; i < shape::RINGS; i++)
            tma_ring<SUMS>(shared, i).init();
        gpu_bar_init(lag, 1);
        gpu_bar_publish();
    }
    __syncwarp();
    gpu_cluster_sync(); /* a block that copies to the other one, or arrives there, finds its barriers */
    if (group == 0) {
        gpu_registers_less<TMA_FEW_REGISTERS>();
        if (warp < shape::RINGS && (threadIdx.x % 32 == 0 || SUMS == GPU_SUMS_FACTORED))
            tma_copy<TYPES, ALONG_A, ALONG_B, SUMS>(j, a, b, shared, warp);
        __syncwarp();
    } else {
        gpu_registers_more<TMA_MANY_REGISTERS>();
        tma_compute<TYPES, ALONG_A, ALONG_B, SUMS>(f, j, shared, group - 1, lag);
    }
    gpu_cluster_sync(); /* and its shared memory, until the end */
}
