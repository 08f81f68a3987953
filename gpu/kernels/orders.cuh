/* orders.cuh -- sums of lines of a tensor in a fixed order: lanes and the tree of mpsim_sum_lanes, neighbours pairwise, exact.
 *
 * LANES: a block has `across` sums and 256 / across threads for each; a thread holds PER lanes, PER numbers of each are loaded before
 * they are added. PAIRWISE: a thread adds a power of two of neighbours, which is a subtree, and the block the results; a last,
 * shorter part passes as a single number does. EXACT: integers of 32 bits in limbs of 64, in any order. */
#pragma once

#include "codes.cuh"

enum { GPU_ORDER_THREADS = 256, GPU_ORDER_LEVELS = 64 };

struct gpu_lines {
    const void *x;
    void *y;
    gpu_format from, to, math;
    uint64_t sums, inner, terms;
    int64_t outer_stride, inner_stride, stride; /* in elements                                            */
    float divisor;                              /* rounded to `math`; 0: none                             */
    unsigned lanes, across;                     /* of a block, both powers of two                         */
    int beside;                                 /* 1: neighbours in a warp have sums beside one another   */
    uint64_t part;                              /* PAIRWISE: terms of a thread, a power of two            */
};

/* binary32 and bf16, added in binary32. */
struct gpu_order_plain {
    static __device__ __forceinline__ float at(const gpu_lines &l, int64_t i)
    {
        return l.from.bytes == 2 ? __uint_as_float((uint32_t) static_cast<const uint16_t *>(l.x)[i] << 16)
                                 : static_cast<const float *>(l.x)[i];
    }
    static __device__ __forceinline__ float add(const gpu_lines &, float a, float b)
    {
        return __fadd_rn(a, b);
    }
};

struct gpu_order_any {
    static __device__ GPU_NOINLINE float at(const gpu_lines &l, int64_t i)
    {
        return gpu_hold(l.math, gpu_value(l.from, l.x, (size_t)i));
    }
    static __device__ GPU_NOINLINE float add(const gpu_lines &l, float a, float b)
    {
        return gpu_hold(l.math, __fadd_rn(a, b));
    }
};

/* The first term of sum s. */
static __device__ __forceinline__ int64_t gpu_line_of(const gpu_lines &l, uint64_t s)
{
    return (int64_t)(s / l.inner) * l.outer_stride + (int64_t)(s % l.inner) * l.inner_stride;
}

static __device__ __forceinline__ void gpu_line_end(const gpu_lines &l, uint64_t s, float sum)
{
    const float y = l.divisor != 0 ? gpu_hold(l.math, __fdiv_rn(sum, l.divisor)) : sum;
    gpu_store(l.to, l.y, s, gpu_encode(l.to, GPU_NEAREST, y).code);
}

/* ---- lanes ---- */

/* The lanes r, r + R, ... of a sum whose first term is at `first`, each added to s[k] in turn; R PER lanes. */
template <class M, int PER>
static __device__ __forceinline__ void gpu_order_lanes(const gpu_lines &l, int64_t first, unsigned r, unsigned R,
                                                       float s[PER])
{
    enum { AHEAD = PER < 4 ? 4 / PER : 1 };
    const uint64_t step = (uint64_t)R * PER;
    const int64_t at = first + (int64_t)r * l.stride;
    uint64_t i = 0;
    for (; i + AHEAD * step <= l.terms; i += AHEAD * step) {
        float x[AHEAD][PER];
        GPU_UNROLL
        for (int a = 0; a < AHEAD; a++)
            GPU_UNROLL
        for (int k = 0; k < PER; k++)
            x[a][k] = M::at(l, at + (int64_t)(i + (uint64_t)a * step + (uint64_t)R * k) * l.stride);
        GPU_UNROLL
        for (int a = 0; a < AHEAD; a++)
            GPU_UNROLL
        for (int k = 0; k < PER; k++)
            s[k] = M::add(l, s[k], x[a][k]);
    }
    for (; i < l.terms; i += step)
        GPU_UNROLL
    for (int k = 0; k < PER; k++)
        if (i + r + (uint64_t)R * k < l.terms)
            s[k] = M::add(l, s[k], M::at(l, at + (int64_t)(i + (uint64_t)R * k) * l.stride));
}

template <class M, int PER>
GPU_KERNEL void __launch_bounds__(GPU_ORDER_THREADS) lanes_kernel(GPU_CONSTANT(gpu_lines) l)
{
    GPU_SHARED(float, tree, [GPU_ORDER_THREADS]);
    const unsigned t = threadIdx.x, R = l.lanes / PER, C = l.across;
    const unsigned c = l.beside ? t % C : t / R, r = l.beside ? t / C : t % R;
    const uint64_t sum = (uint64_t)blockIdx.x * C + c;
    const int inside = r < R && c < C && sum < l.sums;
    float s[PER];
    GPU_UNROLL
    for (int k = 0; k < PER; k++)
        s[k] = 0;
    if (inside)
        gpu_order_lanes<M, PER>(l, gpu_line_of(l, sum), r, R, s);
    GPU_UNROLL
    for (int h = PER / 2; h > 0; h /= 2)
        GPU_UNROLL
    for (int k = 0; k < PER / 2; k++)
        if (k < h)
            s[k] = M::add(l, s[k], s[k + h]);
    tree[t] = s[0];
    __syncthreads();
    const unsigned next = l.beside ? C : 1;
    for (unsigned h = R / 2; h > 0; h /= 2) {
        if (inside && r < h)
            tree[t] = M::add(l, tree[t], tree[t + h * next]);
        __syncthreads();
    }
    if (inside && r == 0)
        gpu_line_end(l, sum, tree[t]);
}

/* ---- pairwise ---- */

/* The subtree of terms begin to end - 1: what is left of a level passes. */
template <class M>
static __device__ float gpu_order_pairs(const gpu_lines &l, int64_t first, uint64_t begin, uint64_t end)
{
    float held[GPU_ORDER_LEVELS];
    int n = 0;
    for (uint64_t i = begin; i < end; i++) {
        float x = M::at(l, first + (int64_t)i * l.stride);
        for (uint64_t k = i - begin; k & 1; k >>= 1)
            x = M::add(l, held[--n], x);
        held[n++] = x;
    }
    float x = held[--n];
    while (n > 0)
        x = M::add(l, held[--n], x);
    return x;
}

/* A block a sum. */
template <class M>
GPU_KERNEL void __launch_bounds__(GPU_ORDER_THREADS) pairwise_kernel(GPU_CONSTANT(gpu_lines) l)
{
    GPU_SHARED(float, tree, [GPU_ORDER_THREADS]);
    const unsigned t = threadIdx.x;
    const uint64_t sum = blockIdx.x, begin = (uint64_t)t * l.part;
    if (begin < l.terms)
        tree[t] = gpu_order_pairs<M>(l, gpu_line_of(l, sum), begin, min(l.terms, begin + l.part));
    __syncthreads();
    for (unsigned n = (unsigned)((l.terms + l.part - 1) / l.part); n > 1; n = (n + 1) / 2) {
        float x = 0;
        if (2 * t < n)
            x = 2 * t + 1 < n ? M::add(l, tree[2 * t], tree[2 * t + 1]) : tree[2 * t];
        __syncthreads();
        if (2 * t < n)
            tree[t] = x;
        __syncthreads();
    }
    if (t == 0)
        gpu_line_end(l, sum, M::add(l, 0, l.terms ? tree[0] : 0));
}

/* ---- exact ---- */

enum { GPU_EXACT_LOWEST = -149, GPU_EXACT_LIMBS = 12 };

enum { GPU_EXACT_NAN = 1, GPU_EXACT_PLUS = 2, GPU_EXACT_MINUS = 4 };

/* What a thread adds to two neighbouring limbs before it gives it away. */
struct gpu_exact_run {
    int at;
    gpu_word low, high;
};

static __device__ __forceinline__ void gpu_exact_give(gpu_word *limb, const gpu_exact_run &r)
{
    if (r.low)
        atomicAdd(limb + r.at, r.low);
    if (r.high)
        atomicAdd(limb + r.at + 1, r.high);
}

static __device__ __forceinline__ void gpu_exact_add(gpu_word *limb, gpu_exact_run *run, unsigned *found, float x)
{
    const uint32_t u = __float_as_uint(x), a = u & 0x7fffffffu, e = a >> 23;
    if (e == 255) {
        *found |= a > 0x7f800000u ? GPU_EXACT_NAN : u >> 31 ? GPU_EXACT_MINUS : GPU_EXACT_PLUS;
        return;
    }
    const gpu_word significand = e ? (a & 0x7fffffu) | 0x800000u : a, minus = (gpu_word)0 - (u >> 31);
    const int exp = (int)(e ? e : 1) - 150 - GPU_EXACT_LOWEST + 0, at = exp >> 5;
    if (at != run->at) {
        gpu_exact_give(limb, *run);
        run->at = at;
        run->low = run->high = 0;
    }
    const gpu_word placed = significand << (exp & 31);
    run->low += ((placed & 0xffffffffu) ^ minus) - minus;
    run->high += ((placed >> 32) ^ minus) - minus;
}

/* Limbs of 32 bits, the highest with the sign; 1: the sum was negative, and is made positive. */
static __device__ int gpu_exact_carry(const gpu_word *limb, uint32_t digit[GPU_EXACT_LIMBS])
{
    long long carry = 0;
    for (int i = 0; i < GPU_EXACT_LIMBS; i++) {
        carry += (long long)limb[i];
        digit[i] = (uint32_t)carry;
        carry >>= 32;
    }
    const int minus = digit[GPU_EXACT_LIMBS - 1] >> 31 != 0;
    uint64_t up = 1;
    for (int i = 0; minus && i < GPU_EXACT_LIMBS; i++) {
        up += (uint32_t)~digit[i];
        digit[i] = (uint32_t)up;
        up >>= 32;
    }
    return minus;
}

/* The highest 128 bits and a sticky one. */
static __device__ mpsim_number gpu_exact_number(const gpu_word *limb)
{
    uint32_t digit[GPU_EXACT_LIMBS], word[4] = {0, 0, 0, 0};
    mpsim_number x = {MPSIM_NUMBER_FINITE, gpu_exact_carry(limb, digit), 0, 0, 0};
    int top = GPU_EXACT_LIMBS - 1, sticky = 0;
    while (top >= 0 && !digit[top])
        top--;
    if (top < 0) {
        x.sign = 0;
        return x;
    }
    for (int i = 0; i <= top; i++) {
        if (top - i < 4)
            word[top - i] = digit[i];
        else
            sticky |= digit[i] != 0;
    }
    const uint64_t hi = (uint64_t)word[0] << 32 | word[1], lo = (uint64_t)word[2] << 32 | word[3];
    const int shift = mpsim_clz64(hi);
    x.hi = shift ? hi << shift | lo >> (64 - shift) : hi;
    x.lo = lo << shift | (uint64_t)sticky;
    x.exp = 32 * top + 31 - shift + GPU_EXACT_LOWEST;
    return x;
}

static __device__ mpsim_number gpu_exact_sum(const gpu_word *limb, unsigned found)
{
    mpsim_number x = {MPSIM_NUMBER_FINITE, 0, 0, 0, 0};
    if (found & GPU_EXACT_NAN || found == (GPU_EXACT_PLUS | GPU_EXACT_MINUS)) {
        x.kind = MPSIM_NUMBER_NAN;
        x.hi = (uint64_t)1 << 63;
    } else if (found) {
        x.kind = MPSIM_NUMBER_INF;
        x.sign = found == GPU_EXACT_MINUS;
    } else {
        x = gpu_exact_number(limb);
    }
    return x;
}

/* A block begins a sum of that many limbs. */
static __device__ __forceinline__ void gpu_exact_begin(gpu_word *limb, unsigned limbs, unsigned *found)
{
    if (threadIdx.x < limbs)
        limb[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        found[0] = 0;
    __syncthreads();
}

/* A block a sum. Rounded once, to the format of y. */
GPU_KERNEL void __launch_bounds__(GPU_ORDER_THREADS) exact_kernel(GPU_CONSTANT(gpu_lines) l)
{
    GPU_SHARED(gpu_word, limb, [GPU_EXACT_LIMBS]);
    GPU_SHARED(unsigned, found, [1]);
    gpu_exact_run run = {0, 0, 0};
    unsigned own = 0;
    gpu_exact_begin(limb, GPU_EXACT_LIMBS, found);
    const int64_t first = gpu_line_of(l, blockIdx.x);
    for (uint64_t i = threadIdx.x; i < l.terms; i += GPU_ORDER_THREADS)
        gpu_exact_add(limb, &run, &own, gpu_value(l.from, l.x, (size_t)(first + (int64_t)i * l.stride)));
    gpu_exact_give(limb, run);
    if (own)
        atomicOr(found, own);
    __syncthreads();
    if (threadIdx.x == 0) {
        mpsim_rounding r;
        unsigned flags;
        memset(&r, 0, sizeof r);
        r.scale = 1;
        r.sr_bits = 32;
        r.mode = MPSIM_ROUND_NEAREST_EVEN;
        gpu_store(
            l.to, l.y, blockIdx.x,
            (uint32_t)mpsim_scalar_encode(&l.to.math.format, &r, r.mode, gpu_exact_sum(limb, found[0]), 0, &flags));
    }
}
