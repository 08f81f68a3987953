/* flat.cuh -- rows of binary32, bf16 and fp16 as the usual trainings have them: eight elements at a time, by loads of 16 bytes.
 *
 * Four threads have a row, a warp has eight: thread q has the eights q, q + 4, ..., that is, of a sum in 32 lanes the lanes
 * 8 q to 8 q + 7, each in its order. What a kernel goes through twice is held in shared memory, where each thread reads
 * what it wrote; rows that do not fit are read again. Other formats and other rows: rows.cuh and attention.cuh. */
#pragma once

#include "casts.cuh"

enum {
    GPU_FLAT_THREADS = 32,
    GPU_FLAT_TEAM = 4, /* threads of a row */
    GPU_FLAT_ROWS = GPU_FLAT_THREADS / GPU_FLAT_TEAM,
    GPU_FLAT_AHEAD = 4, /* loads of a thread under way */
    GPU_FLAT_ROOM = GPU_ON_HOST ? 8 * 1024
                                : 48 * 1024 /* bytes of shared memory; few on a CPU, whose tests have both ways */
};

/* ---- eight codes ---- */

struct gpu_eight {
    uint32_t w[8]; /* of 16 bits: four words */
};

static __device__ __forceinline__ gpu_eight gpu_flat_load(const gpu_format &f, const void *p, size_t eight)
{
    const gpu_words<4> *const at = static_cast<const gpu_words<4> *>(p) + (f.bytes == 4 ? 2 * eight : eight);
    gpu_eight c;
    gpu_words<4> half = at[0];
    GPU_UNROLL
    for (int t = 0; t < 4; t++)
        c.w[t] = half.w[t];
    if (f.bytes == 4)
        half = at[1];
    GPU_UNROLL
    for (int t = 0; t < 4; t++)
        c.w[4 + t] = half.w[t];
    return c;
}

static __device__ __forceinline__ void gpu_flat_store(const gpu_format &f, void *p, size_t eight, const gpu_eight &c)
{
    gpu_words<4> *const at = static_cast<gpu_words<4> *>(p) + (f.bytes == 4 ? 2 * eight : eight);
    at[0] = gpu_words<4>{{c.w[0], c.w[1], c.w[2], c.w[3]}};
    if (f.bytes == 4)
        at[1] = gpu_words<4>{{c.w[4], c.w[5], c.w[6], c.w[7]}};
}

static __device__ __forceinline__ float gpu_flat_fp16(uint32_t code)
{
#if defined(__CUDA_ARCH__)
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"((unsigned short)code));
    return v;
#else
    return gpu_any<gpu_fp16>(code);
#endif
}

static __device__ __forceinline__ void gpu_flat_values(const gpu_format &f, const gpu_eight &c, float v[8])
{
    if (f.convert == GPU_CVT_BF16) {
        GPU_UNROLL
        for (int t = 0; t < 8; t++)
            v[t] = __uint_as_float(t % 2 ? c.w[t / 2] & 0xffff0000u : c.w[t / 2] << 16);
    } else if (f.convert == GPU_CVT_F16) {
        GPU_UNROLL
        for (int t = 0; t < 8; t++)
            v[t] = gpu_flat_fp16(t % 2 ? c.w[t / 2] >> 16 : c.w[t / 2] & 0xffffu);
    } else {
        GPU_UNROLL
        for (int t = 0; t < 8; t++)
            v[t] = __uint_as_float(c.w[t]);
    }
}

/* Numbers below the limit. */
static __device__ __forceinline__ gpu_eight gpu_flat_codes(const gpu_format &f, const float v[8])
{
    gpu_eight c;
    GPU_UNROLL
    for (int t = 0; t < 8; t++)
        c.w[t] = __float_as_uint(v[t]);
    if (f.convert == GPU_CVT_BF16) {
        GPU_UNROLL
        for (int t = 0; t < 4; t++)
            c.w[t] = gpu_pair_of<gpu_bf16>(v[2 * t], v[2 * t + 1]);
    } else if (f.convert == GPU_CVT_F16) {
        GPU_UNROLL
        for (int t = 0; t < 4; t++)
            c.w[t] = gpu_pair_of<gpu_fp16>(v[2 * t], v[2 * t + 1]);
    }
    return c;
}

/* ---- rounding, storing, counting ---- */

/* Where eight numbers are written. */
struct gpu_flat_out {
    const gpu_format &f;
    float limit, lost; /* the smallest that overflows, the largest that becomes zero */

    __device__ __forceinline__ gpu_flat_out(const gpu_format &of) : f(of)
    {
        limit = __uint_as_float(of.kind == GPU_BINARY32 ? 0x7f800000u : of.limit);
        lost = of.kind == GPU_BINARY32 ? 0 : __fmul_rn(0.5f, of.unit);
    }

    /* Any number, and what becomes of it. */
    __device__ __forceinline__ uint32_t one(float x, gpu_counter *c) const
    {
        const uint32_t u = __float_as_uint(x), a = u & 0x7fffffffu, edge = __float_as_uint(limit);
        const int is_over = a >= edge, is_nan = a > 0x7f800000u;
        if (a < 0x7f800000u && a != 0) {
            c->nonzero++;
            c->lost += __uint_as_float(a) <= lost;
            c->overflow += is_over;
        }
        c->nonfinite += is_over;
        if (f.kind == GPU_BINARY32)
            return u;
        if (is_over)
            return is_nan ? f.nan : (u >> 31 ? f.sign : 0) | f.inf;
        return f.convert == GPU_CVT_BF16 ? gpu_pair_of<gpu_bf16>(x, 0) & 0xffffu
                                         : gpu_pair_of<gpu_fp16>(x, 0) & 0xffffu;
    }

    /* As gpu_put; eights of numbers that are finite before and after, and not zero, are counted at once. */
    __device__ __forceinline__ void put(void *p, size_t eight, const float v[8], gpu_counter *c) const
    {
        float most = fabsf(v[0]), least = most;
        GPU_UNROLL
        for (int t = 1; t < 8; t++) {
            most = gpu_most_of(most, fabsf(v[t]));
            least = fminf(least, fabsf(v[t]));
        }
        if (most < limit && least > lost) {
            c->nonzero += 8;
            gpu_flat_store(f, p, eight, gpu_flat_codes(f, v));
            return;
        }
        uint32_t code[8];
        gpu_eight y;
        GPU_UNROLL
        for (int t = 0; t < 8; t++)
            code[t] = one(v[t], c);
        GPU_UNROLL
        for (int t = 0; t < 8; t++)
            y.w[t] = f.bytes == 4 ? code[t] : t < 4 ? code[2 * t % 8] | code[(2 * t + 1) % 8] << 16 : 0;
        gpu_flat_store(f, p, eight, y);
    }
};

/* ---- rows ---- */

/* A loop of a warp over its eight rows at a time: all lanes come to its collectives. */
#define GPU_FOR_FLAT_ROWS(first, rows) \
    for (size_t first = (size_t)blockIdx.x * GPU_FLAT_ROWS; first < (rows); first += (size_t)gridDim.x * GPU_FLAT_ROWS)

/* The row of a thread; the last one again where there are fewer. */
struct gpu_flat_row {
    size_t row, first;  /* first: its first eight among all */
    unsigned q, eights; /* of the row */
    int is_inside;

    __device__ __forceinline__ gpu_flat_row(size_t of_warp, size_t rows, size_t cols)
    {
        const size_t at = of_warp + threadIdx.x / GPU_FLAT_TEAM;
        is_inside = at < rows;
        row = is_inside ? at : rows - 1;
        eights = (unsigned)(cols / 8);
        first = row * eights;
        q = threadIdx.x % GPU_FLAT_TEAM;
    }

    /* use(e, load(e)) for this thread's eights e < end, ascending, with loads ahead. */
    template <class Load, class Use>
    __device__ __forceinline__ void each(unsigned end, Load load, Use use) const
    {
        unsigned e = q;
        for (; e + GPU_FLAT_TEAM * (GPU_FLAT_AHEAD - 1) < end; e += GPU_FLAT_TEAM * GPU_FLAT_AHEAD) {
            decltype(load(0u)) c[GPU_FLAT_AHEAD];
            GPU_UNROLL
            for (int k = 0; k < GPU_FLAT_AHEAD; k++)
                c[k] = load(e + GPU_FLAT_TEAM * k);
            GPU_UNROLL
            for (int k = 0; k < GPU_FLAT_AHEAD; k++)
                use(e + GPU_FLAT_TEAM * k, c[k]);
        }
        GPU_ROLLED
        for (; e < end; e += GPU_FLAT_TEAM)
            use(e, load(e));
    }
    /* The same without loads ahead. */
    template <class Use>
    __device__ __forceinline__ void each(unsigned end, Use use) const
    {
        GPU_ROLLED
        for (unsigned e = q; e < end; e += GPU_FLAT_TEAM)
            use(e);
    }
};

/* Codes of a row in shared memory, or where they were read. */
struct gpu_flat_held {
    gpu_words<4> *room; /* NULL: not held */
    const gpu_format &f;
    const void *p;
    size_t first;

    __device__ __forceinline__ gpu_words<4> *at(unsigned e) const
    {
        return room + (e / GPU_FLAT_TEAM * (f.bytes == 4 ? 2 : 1)) * GPU_FLAT_THREADS + threadIdx.x;
    }
    __device__ __forceinline__ gpu_eight load(unsigned e) const
    {
        return gpu_flat_load(f, p, first + e);
    }
    __device__ __forceinline__ void hold(unsigned e, const gpu_eight &c) const
    {
        if (!room)
            return;
        at(e)[0] = gpu_words<4>{{c.w[0], c.w[1], c.w[2], c.w[3]}};
        if (f.bytes == 4)
            at(e)[GPU_FLAT_THREADS] = gpu_words<4>{{c.w[4], c.w[5], c.w[6], c.w[7]}};
    }
    __device__ __forceinline__ void again(unsigned e, float v[8]) const
    {
        gpu_eight c;
        if (!room) {
            c = load(e);
        } else {
            const gpu_words<4> low = at(e)[0], high = f.bytes == 4 ? at(e)[GPU_FLAT_THREADS] : low;
            GPU_UNROLL
            for (int t = 0; t < 8; t++)
                c.w[t] = t < 4 ? low.w[t] : high.w[t - 4];
        }
        gpu_flat_values(f, c, v);
    }
};

/* The sum of a row in 32 lanes, s being those of this thread, in all threads of the row. */
static __device__ __forceinline__ float gpu_flat_sum(float s[8])
{
    GPU_UNROLL
    for (int h = 2; h > 0; h /= 2)
        GPU_UNROLL
    for (int t = 0; t < 8; t++)
        s[t] = __fadd_rn(s[t], __shfl_down_sync(0xffffffffu, s[t], h, GPU_FLAT_TEAM));
    GPU_UNROLL
    for (int h = 4; h > 0; h /= 2)
        GPU_UNROLL
    for (int t = 0; t < h; t++)
        s[t] = __fadd_rn(s[t], s[t + h]);
    return __shfl_sync(0xffffffffu, s[0], 0, GPU_FLAT_TEAM);
}

static __device__ __forceinline__ void gpu_flat_zero(float s[8])
{
    GPU_UNROLL
    for (int t = 0; t < 8; t++)
        s[t] = 0;
}

/* ---- columns ----
 *
 * The sums of 16 columns over all rows in 256 lanes: two threads beside one another have a lane, eight columns each. */
enum { GPU_FLAT_COLUMNS = 16, GPU_FLAT_LANES = 256, GPU_FLAT_COLUMN_THREADS = 2 * GPU_FLAT_LANES };

typedef float gpu_flat_tree[GPU_FLAT_LANES][GPU_FLAT_COLUMNS];

/* s: of this thread's lane; afterwards in the threads of lane 0 the sums. All threads of the block. */
static __device__ __forceinline__ void gpu_flat_columns(gpu_flat_tree &tree, float s[8])
{
    const unsigned lane = threadIdx.x / 2, c = threadIdx.x % 2 * 8;
    for (unsigned h = GPU_FLAT_LANES / 2; h > 0; h /= 2) {
        if (lane >= h && lane < 2 * h)
            GPU_UNROLL
        for (int t = 0; t < 8; t++)
            tree[lane][c + t] = s[t];
        __syncthreads();
        if (lane < h)
            GPU_UNROLL
        for (int t = 0; t < 8; t++)
            s[t] = __fadd_rn(s[t], tree[lane + h][c + t]);
        __syncthreads();
    }
}

/* use(row, load(row)) for the rows of this thread's lane, ascending. */
template <class Load, class Use>
static __device__ __forceinline__ void gpu_flat_lane(size_t rows, Load load, Use use)
{
    size_t row = threadIdx.x / 2;
    for (; row + (GPU_FLAT_AHEAD - 1) * GPU_FLAT_LANES < rows; row += GPU_FLAT_AHEAD * GPU_FLAT_LANES) {
        decltype(load(row)) c[GPU_FLAT_AHEAD];
        GPU_UNROLL
        for (int k = 0; k < GPU_FLAT_AHEAD; k++)
            c[k] = load(row + k * GPU_FLAT_LANES);
        GPU_UNROLL
        for (int k = 0; k < GPU_FLAT_AHEAD; k++)
            use(c[k]);
    }
    GPU_ROLLED
    for (; row < rows; row += GPU_FLAT_LANES)
        use(load(row));
}

/* ---- on the host ---- */

static inline int gpu_flat_format(const gpu_format &f)
{
    return f.kind == GPU_BINARY32 || f.convert == GPU_CVT_BF16 || f.convert == GPU_CVT_F16;
}

static inline int gpu_flat_at(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

/* Bytes of shared memory that hold eight rows of codes of so many bytes; 0: they do not fit. */
static inline size_t gpu_flat_room(size_t cols, size_t bytes)
{
    const size_t rounds = (cols + 8 * GPU_FLAT_TEAM - 1) / (8 * GPU_FLAT_TEAM);
    const size_t room = rounds * 8 * bytes * GPU_FLAT_THREADS;
    return room <= GPU_FLAT_ROOM ? room : 0;
}
