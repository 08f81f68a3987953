/* casts.cuh -- casts between usual formats (usual.cuh): a thread has four loads of at most 16 bytes under way, and counts in
 * registers. Other formats and modes: cast_kernel of lists.cuh. */
#pragma once

#include "lists.cuh"
#include "usual.cuh"

enum { GPU_CAST_AHEAD = 4 }; /* loads of a thread under way */

/* How numbers are rounded. Results of what is no rounded number, by sign; whether such a result is infinite or NaN. */
struct gpu_casting {
    uint32_t over[2], infinite[2], nan[2];
    int over_is_no_number, infinite_is_no_number, nan_is_no_number;
    gpu_draw draw;
    float scale;            /* of casts that are SCALED */
    uint64_t stream, block; /* of random bits: the block of elements 0 to 3 */
    uint32_t keys[MPSIM_PHILOX_ROUNDS][2];
};

/* The random words of N quads of elements. Rounds of all go together, so that a round's keys are loaded once. */
template <int N>
static __device__ __forceinline__ void gpu_cast_words(const gpu_casting &how, const uint64_t quad[N],
                                                      uint32_t words[N][4])
{
    GPU_UNROLL
    for (int n = 0; n < N; n++) {
        words[n][0] = (uint32_t)(how.block + quad[n]);
        words[n][1] = (uint32_t)((how.block + quad[n]) >> 32);
        words[n][2] = (uint32_t)how.stream;
        words[n][3] = (uint32_t)(how.stream >> 32);
    }
    GPU_UNROLL
    for (int i = 0; i < MPSIM_PHILOX_ROUNDS; i++)
        GPU_UNROLL
    for (int n = 0; n < N; n++)
        mpsim_philox_round(words[n], how.keys[i][0], how.keys[i][1]);
}

/* What a thread sees: zeros, infinities and NaNs before; numbers beyond the largest one; `small`: numbers that are zero after. */
struct gpu_cast_counter {
    unsigned zero, small, overflow, infinite, nan;

    __device__ gpu_cast_counter() : zero(0), small(0), overflow(0), infinite(0), nan(0)
    {
    }

    /* Of n elements; all threads of a block. At most one addition to memory a counter. */
    __device__ void give(const gpu_casting &how, gpu_word *counts, unsigned n) const
    {
        GPU_SHARED(unsigned, sums, [GPU_COUNTERS]);
        if (!counts)
            return;
        if (threadIdx.x < GPU_COUNTERS)
            sums[threadIdx.x] = 0;
        __syncthreads();
        add(&sums[GPU_COUNT_NONZERO], n - zero - infinite - nan);
        add(&sums[GPU_COUNT_LOST], small - zero);
        add(&sums[GPU_COUNT_OVERFLOW], overflow);
        add(&sums[GPU_COUNT_NONFINITE], (how.over_is_no_number ? overflow : 0) +
                                            (how.infinite_is_no_number ? infinite : 0) +
                                            (how.nan_is_no_number ? nan : 0));
        __syncthreads();
        if (threadIdx.x < GPU_COUNTERS && sums[threadIdx.x])
            atomicAdd(counts + threadIdx.x, (gpu_word)sums[threadIdx.x]);
    }

    static __device__ void add(unsigned *to, unsigned n)
    {
        const unsigned sum = __reduce_add_sync(0xffffffffu, n);
        if (sum && threadIdx.x % 32 == 0)
            atomicAdd(to, sum);
    }
};

/* The larger one; NaN if one is. */
static __device__ __forceinline__ float gpu_most_of(float a, float b)
{
#if defined(__CUDA_ARCH__)
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
#else
    return a > b || a != a ? a : b;
#endif
}

/* Counted if x = 0; if |x| <= most: an addition under a predicate. */
static __device__ __forceinline__ void gpu_count_zero(unsigned *n, float x)
{
#if defined(__CUDA_ARCH__)
    asm("{ .reg .pred p; setp.eq.f32 p, %1, 0f00000000; @p add.u32 %0, %0, 1; }" : "+r"(*n) : "f"(x));
#else
    *n += x == 0;
#endif
}

static __device__ __forceinline__ void gpu_count_within(unsigned *n, float x, float most)
{
#if defined(__CUDA_ARCH__)
    asm("{ .reg .pred p; setp.le.f32 p, %1, %2; @p add.u32 %0, %0, 1; }" : "+r"(*n) : "f"(fabsf(x)), "f"(most));
#else
    *n += fabsf(x) <= most;
#endif
}

/* x times a positive scale, rounded to odd: the exact product cut off, with the last bit set if anything was lost. A format
 * with at least two bits fewer everywhere rounds it as it rounds the exact product; so do comparisons with numbers whose last
 * bit is 0. What was lost is rounded up, so that it is not zero however small it is. Beyond binary32: its largest number; an
 * infinity gives a NaN. */
static __device__ __forceinline__ float gpu_times_odd(float x, float scale)
{
    const float a = fabsf(x), cut = __fmul_rz(a, scale), lost = __fmaf_ru(a, scale, -cut);
    return __uint_as_float(__float_as_uint(cut) | (lost != 0) | (__float_as_uint(x) & 0x80000000u));
}

template <int WORDS>
struct alignas(4 * WORDS) gpu_words {
    uint32_t w[WORDS];
};

/* From: what is read. To: what numbers are rounded to, times a scale if SCALED. Y: what is written, To or a wider format. */
template <class From, class To, class Y, int MODE, int SCALED = 0>
struct gpu_cast {
    static constexpr int WIDER = From::BYTES > Y::BYTES ? From::BYTES : Y::BYTES;
    static constexpr int N = WIDER == 4 ? 4 : WIDER == 2 ? 8 : 16; /* elements of a load */
    static constexpr int TOGETHER = MODE != GPU_STOCHASTIC || To::FLAT || N >= 8
                                        ? 1
                                        : 8 / N; /* loads, for their random words */
    /* Blocks of a multiprocessor at once. */
    static constexpr int BLOCKS = MODE == GPU_STOCHASTIC && Y::BITS != To::BITS                       ? 3
                                  : MODE == GPU_STOCHASTIC || Y::BYTES > From::BYTES || To::BITS == 4 ? 4
                                                                                                      : 5;
    static constexpr uint32_t END = MODE == GPU_STOCHASTIC || (!SCALED && From::end() < To::limit(MODE))
                                        ? From::end()
                                        : To::limit(MODE);
    static_assert(!SCALED || MODE != GPU_STOCHASTIC, "random bits need all bits of a product");
    typedef gpu_words<N * From::BYTES / 4> input;
    typedef gpu_words<N * Y::BYTES / 4> output;

    /* A rounded number as a code of Y. */
    static __device__ __forceinline__ uint32_t result(uint32_t code)
    {
        if constexpr (To::BITS == Y::BITS)
            return code;
        else
            return gpu_nearest<Y, GPU_NEAREST>(gpu_finite<To>(code));
    }

    /* What is rounded. Products of binary32 are rounded once by the multiplication. */
    static __device__ __forceinline__ float product(const gpu_casting &how, float x)
    {
        return !SCALED ? x : To::SHIFT ? gpu_times_odd(x, how.scale) : __fmul_rn(x, how.scale);
    }

    /* A number that may overflow. */
    static __device__ __forceinline__ uint32_t number(const gpu_casting &how, float number, uint32_t word,
                                                      gpu_cast_counter *c)
    {
        const float x = product(how, number);
        const uint32_t u = __float_as_uint(x), a = u & 0x7fffffffu;
        uint32_t y, beyond;
        if constexpr (MODE == GPU_STOCHASTIC) {
            y = gpu_stochastic<To>(how.draw, a, word);
            beyond = y > To::MAX;
            y |= u >> 31 << (To::BITS - 1);
        } else {
            y = gpu_nearest<To, MODE>(x);
            beyond = a >= To::limit(MODE);
        }
        c->zero += number == 0;
        c->small += (y & To::MASK) == 0 && !beyond;
        c->overflow += beyond;
        return beyond ? (u >> 31 ? how.over[1] : how.over[0]) : result(y);
    }

    /* Any code of From. */
    static __device__ __forceinline__ uint32_t one(const gpu_casting &how, uint32_t code, uint32_t word,
                                                   gpu_cast_counter *c)
    {
        const float x = gpu_any<From>(code);
        const uint32_t a = __float_as_uint(x) & 0x7fffffffu, negative = __float_as_uint(x) >> 31;
        if (a < 0x7f800000u)
            return number(how, x, word, c);
        c->infinite += a == 0x7f800000u;
        c->nan += a > 0x7f800000u;
        return a > 0x7f800000u ? (negative ? how.nan[1] : how.nan[0]) : (negative ? how.infinite[1] : how.infinite[0]);
    }

    /* Four numbers that do not overflow, to nearest; x: before the scale. */
    static __device__ __forceinline__ void nearest(const float x[4], float v[4], uint32_t *to, gpu_cast_counter *c)
    {
        const float lost = __uint_as_float(To::lost(MODE));
        GPU_UNROLL
        for (int t = 0; t < 4; t++) {
            gpu_count_zero(&c->zero, x[t]);
            gpu_count_within(&c->small, v[t], lost);
        }
        if constexpr (To::BITS == Y::BITS) {
            gpu_pack<To, MODE>(v, to);
        } else {
            uint32_t codes[To::BYTES];
            gpu_pack<To, MODE>(v, codes);
            gpu_unpack<To>(codes, v);
            gpu_pack<Y, GPU_NEAREST>(v, to);
        }
    }

    /* Four codes, one after the other: few registers. */
    static __device__ __forceinline__ void each(const gpu_casting &how, const uint32_t *from, const uint32_t random[4],
                                                uint32_t *to, gpu_cast_counter *c)
    {
        uint32_t code[4], word[4], y[4] = {0, 0, 0, 0};
        GPU_UNROLL
        for (int t = 0; t < 4; t++) {
            code[t] = gpu_code_at<From>(from, t);
            word[t] = random[t];
        }
        GPU_ROLLED
        for (int k = 0; k < 4; k++) {
            const uint32_t next = one(how, code[0], word[0], c);
            GPU_UNROLL
            for (int t = 0; t < 3; t++) {
                code[t] = code[t + 1];
                word[t] = word[t + 1];
                y[t] = y[t + 1];
            }
            y[3] = next;
        }
        gpu_join<Y>(y, to);
    }

    static __device__ __forceinline__ float largest(const float v[4])
    {
        return gpu_most_of(gpu_most_of(fabsf(v[0]), fabsf(v[1])), gpu_most_of(fabsf(v[2]), fabsf(v[3])));
    }

    /* Whether four numbers are rounded together: they do not overflow, nor are they so small that most of their bits are lost. */
    static __device__ __forceinline__ int is_usual(const float x[4], const float v[4])
    {
        if constexpr (MODE == GPU_STOCHASTIC)
            return largest(v) <= __uint_as_float((To::MAX + To::REBIAS) << To::SHIFT) &&
                   !(gpu_has_small<To>(v) && gpu_has_far<To>(v));
        else
            return largest(v) < __uint_as_float(END) &&
                   (!SCALED || From::FLAT || largest(x) < __uint_as_float(From::end()));
    }

    /* Four such numbers by random bits. Few results are zero. */
    static __device__ __forceinline__ void stochastic(const gpu_casting &how, const float x[4],
                                                      const uint32_t random[4], uint32_t *to, gpu_cast_counter *c)
    {
        uint32_t y[4], codes[To::BYTES];
        if (To::FLAT || gpu_has_small<To>(x))
            GPU_UNROLL
        for (int t = 0; t < 4; t++)
            y[t] = gpu_stochastic_signed<To>(how.draw, __float_as_uint(x[t]), random[t]);
        else GPU_UNROLL for (int t = 0; t < 4; t++) y[t] = gpu_stochastic_fast<To>(how.draw, x[t], random[t]);
        gpu_join_signed<To>(y, x, codes);
        if (gpu_has_zero_code<To>(codes))
            GPU_UNROLL
        for (int t = 0; t < 4; t++) {
            c->zero += x[t] == 0;
            c->small += (gpu_code_at<To>(codes, t) & To::MASK) == 0;
        }
        if constexpr (To::BITS == Y::BITS) {
            GPU_UNROLL
            for (int t = 0; t < Y::BYTES; t++)
                to[t] = codes[t];
        } else {
            float v[4];
            gpu_unpack<To>(codes, v);
            gpu_pack<Y, GPU_NEAREST>(v, to);
        }
    }

    /* Four codes: together if all are numbers that do not overflow. */
    static __device__ __forceinline__ void four(const gpu_casting &how, const uint32_t *from, const uint32_t random[4],
                                                uint32_t *to, gpu_cast_counter *c)
    {
        float x[4], v[4];
        gpu_unpack<From>(from, x);
        GPU_UNROLL
        for (int t = 0; t < 4; t++)
            v[t] = product(how, x[t]);
        if (!is_usual(x, v))
            return each(how, from, random, to, c);
        if constexpr (MODE != GPU_STOCHASTIC)
            nearest(x, v, to, c);
        else
            stochastic(how, x, random, to, c);
    }

    /* Loads number i, i + stride, and so on. */
    template <int K>
    static __device__ __forceinline__ void some(const gpu_casting &how, const input x[K], uint64_t i, uint64_t stride,
                                                void *y, gpu_cast_counter *c)
    {
        enum { QUADS = N / 4 };
        uint32_t words[K * QUADS][4] = {};
        if constexpr (MODE == GPU_STOCHASTIC) {
            uint64_t quad[K * QUADS];
            GPU_UNROLL
            for (int k = 0; k < K * QUADS; k++)
                quad[k] = (i + (unsigned)(k / QUADS) * stride) * QUADS + (unsigned)(k % QUADS);
            gpu_cast_words<K * QUADS>(how, quad, words);
        }
        GPU_UNROLL
        for (int k = 0; k < K; k++) {
            output to;
            GPU_UNROLL
            for (int q = 0; q < QUADS; q++)
                four(how, x[k].w + q * From::BYTES, words[k * QUADS + q], to.w + q * Y::BYTES, c);
            static_cast<output *>(y)[i + (unsigned)k * stride] = to;
        }
    }

    /* Element i alone. */
    static __device__ __forceinline__ void single(const gpu_casting &how, const gpu_pair &p, size_t i,
                                                  gpu_cast_counter *c)
    {
        uint32_t random[1][4] = {};
        const uint64_t quad[1] = {i / 4};
        if constexpr (MODE == GPU_STOCHASTIC)
            gpu_cast_words<1>(how, quad, random);
        const unsigned t = i % 4;
        const uint32_t word = t == 0 ? random[0][0] : t == 1 ? random[0][1] : t == 2 ? random[0][2] : random[0][3];
        gpu_store_bytes<Y::BYTES>(p.y, i, one(how, gpu_load_bytes<From::BYTES>(p.x, i), word, c));
    }

    /* Loads that the pointers allow. */
    static __device__ __forceinline__ size_t loads(const gpu_pair &p)
    {
        return (uintptr_t)p.x % sizeof(input) == 0 && (uintptr_t)p.y % sizeof(output) == 0 ? p.n / N : 0;
    }
};

/* result: gpu_word[GPU_COUNTERS]. A tensor that is not aligned, and the last elements of each, go one by one. */
template <class From, class To, class Y, int MODE, int SCALED, class List>
GPU_KERNEL void __launch_bounds__(GPU_LIST_THREADS, (gpu_cast<From, To, Y, MODE, SCALED>::BLOCKS))
    usual_cast_kernel(GPU_CONSTANT(gpu_casting) how, GPU_CONSTANT(List) list)
{
    typedef gpu_cast<From, To, Y, MODE, SCALED> cast;
    typedef typename cast::input input;
    gpu_cast_counter c;
    const unsigned k = gpu_list_item(list);
    const gpu_pair p = list.item[k];
    const size_t n = cast::loads(p), stride = (size_t)gpu_list_own(list, k) * blockDim.x;
    const size_t first = (size_t)gpu_list_block(list, k) * blockDim.x + threadIdx.x;
    const input *const from = static_cast<const input *>(p.x);
    unsigned done = 0;
    size_t i = first;
    for (; i + (GPU_CAST_AHEAD - 1) * stride < n; i += GPU_CAST_AHEAD * stride, done += GPU_CAST_AHEAD * cast::N) {
        input x[GPU_CAST_AHEAD];
        GPU_UNROLL
        for (int t = 0; t < GPU_CAST_AHEAD; t++)
            x[t] = from[i + (unsigned)t * stride];
        GPU_UNROLL
        for (int t = 0; t < GPU_CAST_AHEAD; t += cast::TOGETHER)
            cast::template some<cast::TOGETHER>(how, x + t, i + (unsigned)t * stride, stride, p.y, &c);
    }
    for (; i < n; i += stride, done += cast::N)
        cast::template some<1>(how, from + i, i, stride, p.y, &c);
    for (i = n * cast::N + first; i < p.n; i += stride, done++)
        cast::single(how, p, i, &c);
    c.give(how, static_cast<gpu_word *>(p.result), done);
}

/* ---- on the host ---- */

/* A code of f as one of y, which has its numbers: its value. */
static inline uint32_t gpu_code_in(const mpsim_format *f, uint64_t code, const mpsim_format *y)
{
    mpsim_rounding r;
    const double value = mpsim_scalar_decode(f, code);
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (mpsim_format_same(f, y))
        return (uint32_t)code;
    if (gpu_is_usual<gpu_binary32>(y))
        return mpsim_bits_f32(mpsim_number_to_f32(mpsim_number_f64(value)));
    return (uint32_t)mpsim_encode_f64(y, &r, value, 0, NULL);
}

/* Infinities, NaNs and overflows, of both signs; rng: NULL, or its index is a multiple of 4. */
static inline void gpu_casting_set(gpu_casting *g, const mpsim_format *f, const mpsim_rounding *r, const mpsim_rng *rng,
                                   const mpsim_format *y)
{
    const auto is_no_number = [f](uint64_t code) { return mpsim_scalar_classify(f, code) < MPSIM_CLASS_ZERO; };
    memset(g, 0, sizeof *g);
    g->scale = (float)r->scale;
    for (int s = 0; s < 2; s++) {
        const uint64_t most = mpsim_scalar_max(f, s), infinite = mpsim_scalar_infinite(f, r, s);
        const uint64_t over = r->overflow == MPSIM_OVERFLOW_MAX ? most : infinite;
        const uint64_t kept = r->infinity == MPSIM_INFINITY_MAX ? most : infinite;
        const uint64_t nan = mpsim_scalar_nan(f, r, s, 0);
        g->over[s] = gpu_code_in(f, over, y);
        g->infinite[s] = gpu_code_in(f, kept, y);
        g->nan[s] = gpu_code_in(f, nan, y);
        g->over_is_no_number = is_no_number(over);
        g->infinite_is_no_number = is_no_number(kept);
        g->nan_is_no_number = is_no_number(nan);
    }
    if (!mpsim_is_stochastic(r->mode) || !rng)
        return;
    g->draw.mask = 0xffffffffu << (32 - r->sr_bits);
    g->draw.half = r->mode == MPSIM_ROUND_STOCHASTIC_B && r->sr_bits < 32 ? 1u << (31 - r->sr_bits) : 0;
    g->draw.cut = r->mode == MPSIM_ROUND_STOCHASTIC_A || r->sr_bits < 32;
    g->draw.even = r->mode == MPSIM_ROUND_STOCHASTIC_C;
    g->stream = rng->stream;
    g->block = rng->index / 4;
    uint32_t k0 = (uint32_t)rng->seed, k1 = (uint32_t)(rng->seed >> 32);
    for (uint32_t *key : g->keys) {
        key[0] = k0;
        key[1] = k1;
        mpsim_philox_key(&k0, &k1);
    }
}

/* GPU_NEAREST, GPU_AWAY or GPU_STOCHASTIC; -1: none of these kernels has the rounding. */
static inline int gpu_cast_mode(const mpsim_format *f, const mpsim_rounding *r, const mpsim_rng *rng)
{
    if (r->by_field || r->flush_input || r->flush_output || r->scale != (float)r->scale || mpsim_keeps_payloads(f, r))
        return -1;
    if (r->mode == MPSIM_ROUND_NEAREST_EVEN)
        return GPU_NEAREST;
    if (r->mode == MPSIM_ROUND_NEAREST_AWAY)
        return GPU_AWAY;
    if (!mpsim_is_stochastic(r->mode) || !rng || rng->index % 4)
        return -1;
    return r->mode != MPSIM_ROUND_STOCHASTIC_C || r->sr_bits == 32 ? int(GPU_STOCHASTIC) : -1;
}

/* A kernel, and for how many elements a block of it is worth while. */
template <class List>
struct gpu_usual_cast {
    int (*from)(const mpsim_format *), (*to)(const mpsim_format *), (*y)(const mpsim_format *);
    int mode, scaled, blocks;
    void (*kernel)(GPU_CONSTANT_TYPE(gpu_casting), GPU_CONSTANT_TYPE(List));

    template <class From, class To, class Y, int MODE, int SCALED = 0>
    static gpu_usual_cast of()
    {
        return {gpu_is_usual<From>,
                gpu_is_usual<To>,
                gpu_is_usual<Y>,
                MODE,
                SCALED,
                gpu_cast<From, To, Y, MODE, SCALED>::BLOCKS,
                usual_cast_kernel<From, To, Y, MODE, SCALED, List>};
    }
};

/* The row of a table of n for a cast; NULL: there is none. */
template <class List>
static inline const gpu_usual_cast<List> *gpu_usual_find(const gpu_usual_cast<List> *rows, size_t n,
                                                         const mpsim_format *from, const mpsim_format *to,
                                                         const mpsim_format *y, int mode, int scaled)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].mode == mode && rows[i].scaled == scaled && rows[i].from(from) && rows[i].to(to) && rows[i].y(y))
            return &rows[i];
    return NULL;
}

/* Blocks of n elements on a device of so many multiprocessors. */
static inline unsigned gpu_usual_blocks(size_t n, int blocks, int multiprocessors)
{
    const size_t most = (size_t)blocks * (size_t)multiprocessors, wanted = (n + GPU_LIST_LEAST - 1) / GPU_LIST_LEAST;
    return (unsigned)(wanted < most ? wanted : most);
}
