/* flushed.cuh -- products and sums in binary32 without subnormal numbers, for the tiles of chain.cuh: CDNA2's trees of 2 or 4 products,
 * chains of multiply-adds whose second of two products comes first (x86's vdpbf16ps), chains of even and of odd products that meet
 * at the end of a chunk (AMX), and pairs of products whose sums are rounded to odd (Arm's bfdot).
 *
 * Sums of two binary32 numbers below the smallest normal number are exact, and so are products of 22 bits there: the instructions
 * that flush have the definition's bits, of operands without such numbers, too. A multiply-add may be rounded up to the smallest normal
 * number, which the definition flushes if the sum is smaller with unbounded exponents, too: that case is left to the reference, as a
 * NaN is.
 *
 * A sum rounded to odd is the one whose last bit is set of those toward -infinity and +infinity: they are neighbours, or equal. That is
 * the largest number also where the definition has an infinity, and so the largest number is left to the reference. */
#pragma once

#include "tile.cuh"

namespace library
{

typedef float chain_sums[TILE_SIDE][TILE_SIDE];

/* How products meet: MULADD and FMA one after the other; a TREE of all; flushed: ODD_FIRST and LANES of FMA, PAIRS and QUADS that are
 * trees, pairs TO_ODD. */
enum chain_way {
    CHAIN_MULADD,
    CHAIN_FMA,
    CHAIN_TREE,
    CHAIN_ODD_FIRST,
    CHAIN_LANES,
    CHAIN_PAIRS,
    CHAIN_QUADS,
    CHAIN_TO_ODD,
    CHAIN_WAYS
};

static __device__ __forceinline__ float flushed_zero(float x)
{
    return fabsf(x) < 0x1p-126f ? __uint_as_float(__float_as_uint(x) & 0x80000000u) : x;
}

/* One instruction that takes numbers below 2^-126 for zeros, and gives zeros for them; on the host its intrinsic. */
#if defined(__CUDA_ARCH__)
#define FLUSHED(name, instruction, host)                                    \
    static __device__ __forceinline__ float name(float a, float b)          \
    {                                                                       \
        float y;                                                            \
        asm(instruction ".ftz.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); \
        return y;                                                           \
    }
#else
#define FLUSHED(name, instruction, host)                             \
    static __device__ __forceinline__ float name(float a, float b)   \
    {                                                                \
        return flushed_zero(host(flushed_zero(a), flushed_zero(b))); \
    }
#endif
FLUSHED(flushed_mul, "mul.rn", __fmul_rn)
FLUSHED(flushed_add, "add.rn", __fadd_rn)
FLUSHED(flushed_add_down, "add.rm", __fadd_rd)
FLUSHED(flushed_add_up, "add.rp", __fadd_ru)
#undef FLUSHED

/* To odd; an exact zero is +0. */
static __device__ __forceinline__ float flushed_add_odd(float a, float b)
{
    const float down = flushed_add_down(a, b), up = flushed_add_up(a, b);
    return __float_as_uint(down) & 1 ? down : up;
}

static __device__ __forceinline__ float flushed_largest()
{
    return __uint_as_float(0x7f7fffffu);
}

/* fma(a, b, s) where it may be flushed. */
static __device__ GPU_NOINLINE float flushed_fma(float a, float b, float s)
{
    const float y = __fmaf_rn(a, b, s);
    if (fabsf(y) == 0x1p-126f && fabsf(__fmaf_rz(a, b, s)) < 0x1p-126f)
        return __uint_as_float(0x7fc00000u);
    return flushed_zero(y);
}

/* Product k of a stage: four values of each operand. */
struct flushed_values {
    float x[TILE_SIDE], y[TILE_SIDE];
};

static __device__ __forceinline__ flushed_values flushed_at(const float (*a)[TILE_PITCH], const float (*b)[TILE_PITCH],
                                                            int k, int row, int column)
{
    flushed_values v;
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE; i++) {
        v.x[i] = a[k][row + i];
        v.y[i] = b[k][column + i];
    }
    return v;
}

static __device__ __forceinline__ void flushed_chain(chain_sums &s, const flushed_values &v)
{
    chain_sums next;
    int rare = 0;
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++) {
        const float y = __fmaf_rn(v.x[i / TILE_SIDE], v.y[i % TILE_SIDE], s[i / TILE_SIDE][i % TILE_SIDE]);
        next[i / TILE_SIDE][i % TILE_SIDE] = y;
        rare |= fabsf(y) <= 0x1p-126f;
    }
    if (!rare) {
        GPU_UNROLL
        for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++)
            s[i / TILE_SIDE][i % TILE_SIDE] = next[i / TILE_SIDE][i % TILE_SIDE];
        return;
    }
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++)
        s[i / TILE_SIDE][i % TILE_SIDE] = flushed_fma(v.x[i / TILE_SIDE], v.y[i % TILE_SIDE],
                                                      s[i / TILE_SIDE][i % TILE_SIDE]);
}

template <int N>
static __device__ __forceinline__ void flushed_tree(chain_sums &s, const flushed_values *v)
{
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++) {
        float p[N];
        GPU_UNROLL
        for (int k = 0; k < N; k++)
            p[k] = flushed_mul(v[k].x[i / TILE_SIDE], v[k].y[i % TILE_SIDE]);
        GPU_UNROLL
        for (int n = 1; n < N; n *= 2)
            GPU_UNROLL
        for (int k = 0; k < N; k += 2 * n)
            p[k] = flushed_add(p[k], p[k + n]);
        s[i / TILE_SIDE][i % TILE_SIDE] = flushed_add(s[i / TILE_SIDE][i % TILE_SIDE], p[0]);
    }
}

/* The sum of two products, and it to s, both to odd; *rare: one of them is the largest number. */
static __device__ __forceinline__ float flushed_pair_odd(float s, float p, float q, int *rare)
{
    const float t = flushed_add_odd(p, q), y = flushed_add_odd(s, t);
    *rare |= fabsf(t) == flushed_largest() || fabsf(y) == flushed_largest();
    return y;
}

static __device__ GPU_NOINLINE float flushed_pair_rare(float s, float p, float q)
{
    int rare = 0;
    const float y = flushed_pair_odd(s, p, q, &rare);
    return rare ? __uint_as_float(0x7fc00000u) : y;
}

static __device__ __forceinline__ void flushed_to_odd(chain_sums &s, const flushed_values *v)
{
    chain_sums next;
    int rare = 0;
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++)
        next[i / TILE_SIDE][i % TILE_SIDE] =
            flushed_pair_odd(s[i / TILE_SIDE][i % TILE_SIDE], flushed_mul(v[0].x[i / TILE_SIDE], v[0].y[i % TILE_SIDE]),
                             flushed_mul(v[1].x[i / TILE_SIDE], v[1].y[i % TILE_SIDE]), &rare);
    if (!rare) {
        GPU_UNROLL
        for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++)
            s[i / TILE_SIDE][i % TILE_SIDE] = next[i / TILE_SIDE][i % TILE_SIDE];
        return;
    }
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++)
        s[i / TILE_SIDE][i % TILE_SIDE] = flushed_pair_rare(s[i / TILE_SIDE][i % TILE_SIDE],
                                                            flushed_mul(v[0].x[i / TILE_SIDE], v[0].y[i % TILE_SIDE]),
                                                            flushed_mul(v[1].x[i / TILE_SIDE], v[1].y[i % TILE_SIDE]));
}

/* Products k to end - 1 of a stage, k even: even ones to one sum, odd ones to the other. */
static __device__ __forceinline__ void flushed_lanes(chain_sums &even, chain_sums &odd, const float (*a)[TILE_PITCH],
                                                     const float (*b)[TILE_PITCH], int k, int end, int row, int column)
{
    GPU_ROLLED
    for (; k < end; k += 2) {
        flushed_chain(even, flushed_at(a, b, k, row, column));
        flushed_chain(odd, flushed_at(a, b, k + 1, row, column));
    }
}

/* Both sums to those of the chunks before, and the next ones from +0. */
static __device__ __forceinline__ void flushed_outer(chain_sums &sums, chain_sums &even, chain_sums &odd)
{
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++) {
        float *const to = &sums[i / TILE_SIDE][i % TILE_SIDE], *const x = &even[i / TILE_SIDE][i % TILE_SIDE],
                     *const y = &odd[i / TILE_SIDE][i % TILE_SIDE];
        *to = flushed_add(*to, flushed_add(*x, *y));
        *x = *y = 0;
    }
}

/* Products k to end - 1 of a stage; what fills the last step up is neutral: +0 to a chain and a pair, -0 to a tree. */
template <int WAY>
static __device__ __forceinline__ void flushed_stage(chain_sums &s, const float (*a)[TILE_PITCH],
                                                     const float (*b)[TILE_PITCH], int end, int row, int column)
{
    enum { N = WAY == CHAIN_QUADS ? 4 : 2 };
    GPU_ROLLED
    for (int k = 0; k < end; k += N) {
        flushed_values v[N];
        GPU_UNROLL
        for (int n = 0; n < N; n++)
            v[n] = flushed_at(a, b, k + n, row, column);
        if constexpr (WAY == CHAIN_ODD_FIRST) {
            flushed_chain(s, v[1]);
            flushed_chain(s, v[0]);
        } else if constexpr (WAY == CHAIN_TO_ODD) {
            flushed_to_odd(s, v);
        } else {
            flushed_tree<N>(s, v);
        }
    }
}

} // namespace library
