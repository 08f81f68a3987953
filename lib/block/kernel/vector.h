/* vector.h -- the functions of kernel.h in the words of lib/simd/generic.h, written once.
 *
 * Included by one unit for each instruction set, after its header. */
#include "kernel.h"

#define INFINITE 0x7f800000u
#define V_CALLED static __attribute__((noinline))

V_INLINE m32 less_u31(vu32 a, vu32 b) /* both below 2^31 */
{
    return v_gt_i32((vi32)b, (vi32)a);
}

V_INLINE vu32 magnitude(vu32 u)
{
    return u & 0x7fffffffu;
}

/* ---- amax ---- */

V_INLINE vu32 amax_of(vu32 so_far, vu32 u, int drops_nan)
{
    const vu32 a = magnitude(u);
    return v_max_u32(so_far, drops_nan ? v_keep_u32(m32_not(less_u31(v_u32(INFINITE), a)), a) : a);
}

enum { AHEAD = 4096 }; /* bytes; the machine's own prefetches end at each page */

V_INLINE vu32 amax_at(vu32 so_far, const float *x, int drops_nan)
{
    __builtin_prefetch((const void *)((uintptr_t)x + AHEAD));
    return amax_of(so_far, v_load_u32(x), drops_nan);
}

/* Of V_LANES blocks at once, of whole vectors: their largest lanes are found by one tree. Returns how many blocks. */
V_INLINE size_t amax_rows(uint32_t *bits, const float *x, size_t width, size_t n, int drops_nan)
{
    size_t k = 0;
    for (; k + V_LANES <= n; k += V_LANES) {
        vu32 of[V_LANES];
#pragma GCC unroll 16
        for (size_t j = 0; j < V_LANES; j++, x += width) {
            of[j] = amax_at(v_u32(0), x, drops_nan);
            for (size_t i = V_LANES; i < width; i += V_LANES)
                of[j] = amax_at(of[j], x + i, drops_nan);
        }
        v_store_u32(bits + k, v_max_u32(v_load_u32(bits + k), v_reduce_rows_u32(of)));
    }
    return k;
}

V_INLINE void amax(uint32_t *bits, const float *x, size_t width, size_t n, int drops_nan)
{
    enum { SHORT = 128 };
    const size_t tail = width % V_LANES;
    const size_t done = tail == 0 && width <= SHORT ? amax_rows(bits, x, width, n, drops_nan) : 0;
    x += done * width;
    for (size_t k = done; k < n; k++, x += width) {
        vu32 m = v_u32(0), other = m;
        const size_t half = width / V_LANES / 2 * V_LANES; /* two streams are read faster than one */
        for (size_t i = 0; i < half; i += V_LANES) {
            m = amax_at(m, x + i, drops_nan);
            other = amax_at(other, x + half + i, drops_nan);
        }
        if (2 * half + V_LANES <= width)
            m = amax_at(m, x + 2 * half, drops_nan);
        if (tail)
            other = amax_of(other, v_load_u32_part(x + width - tail, tail), drops_nan);
        const uint32_t largest = v_reduce_max_u32(v_max_u32(m, other));
        bits[k] = largest > bits[k] ? largest : bits[k];
    }
}

static void amax_run(uint32_t *bits, const float *x, size_t width, size_t n, int drops_nan)
{
    if (drops_nan)
        amax(bits, x, width, n, 1);
    else
        amax(bits, x, width, n, 0);
}

/* ---- elements ---- */

/* An element rounded: its magnitude's code, and its magnitude as a binary32 number. */
typedef struct rounded {
    vu32 code;
    vf32 value;
} rounded;

/* To nearest even; a is at most the largest number. What is added is so large that the last place of the sum is that of
 * the format where a is, and moves the code to where the format's begin: an even number of places, so ties stay ties. */
V_INLINE rounded round_nearest(const mpsim_element_grid *k, vu32 a)
{
    const vu32 binade = v_max_u32(a, v_u32(k->normal)) & INFINITE;
    const vf32 lift = (vf32)(binade + k->lift), sum = (vf32)a + lift;
    return (rounded){((vu32)sum + v_shr_u32(binade, v_u32(k->drop))) & 0x7f, sum - lift};
}

/* In any other deterministic mode, by the fraction `rest` / 2^drop; see mpsim_scalar_encode. */
V_INLINE rounded round_directed(const mpsim_element_grid *k, int mode, vu32 a, m32 negative)
{
    const vu32 least = v_u32(k->normal >> 23), e = a >> 23;
    const vu32 deeper = v_max_u32(e, least) - e; /* binades below the smallest normal one */
    const vu32 drop = v_min_u32(deeper + k->drop, v_u32(31));
    const vu32 sig = (a & 0x7fffff) | v_keep_u32(v_test_u32(a, a), v_u32(0x800000));
    /* the code, but for the significand's hidden bit, which goes to the exponent */
    const vu32 binade = v_shl_u32(v_max_u32(e, least) - least, v_u32(23 - k->drop));
    const vu32 low = binade + v_shr_u32(sig, drop);
    const vu32 rest = sig & (v_shl_u32(v_u32(1), drop) - 1), half = v_shl_u32(v_u32(1), drop - 1);
    const m32 inexact = v_test_u32(rest, rest);
    m32 away = m32_and(inexact, m32_not(inexact));
    if (mode == MPSIM_ROUND_NEAREST_AWAY)
        away = m32_not(less_u31(rest, half));
    else if (mode == MPSIM_ROUND_UP)
        away = m32_and(inexact, m32_not(negative));
    else if (mode == MPSIM_ROUND_DOWN)
        away = m32_and(inexact, negative);
    else if (mode == MPSIM_ROUND_TO_ODD)
        away = m32_and(inexact, m32_not(v_test_u32(low, v_u32(1))));
    const vu32 code = low + v_keep_u32(away, v_u32(1));
    const m32 small = less_u31(code, v_u32((uint32_t)1 << (23 - k->drop)));
    const vf32 subnormal = v_f32_of_i32((vi32)code) * (vf32)v_u32(k->unit);
    const rounded r = {
        code,
        (vf32)v_pick_u32(small, (vu32)subnormal, v_shl_u32(code + k->rebias, v_u32(k->drop))),
    };
    return r;
}

/* E2M1 by random bits; see batch.c. The products are exact: powers of two, 8 bits. */

/* The bits of twice the step at a >= 0: 1, 2, 4, and 8 from 8 on, where all is 6. */
V_INLINE vu32 fp4_steps(vf32 a)
{
    return v_max_u32((vu32)a & INFINITE, v_u32(0x3f800000));
}

V_INLINE vf32 fp4_sum(vu32 a, vu32 word)
{
    /* 8 and above are 6 as all above 6 are */
    const vf32 x = (vf32)v_min_u32(a, (vu32)v_f32(8));
    return v_f32_of_i32((vi32)(word >> 24)) * 0x1p-9f * (vf32)fp4_steps(x) + x;
}

V_INLINE rounded round_fp4_grid(vu32 a, vu32 word)
{
    const vf32 t = fp4_sum(a, word);
    const vu32 steps = fp4_steps(t);
    /* over the step: the bits of 1 / x and those of x sum up to twice those of 1 */
    const vi32 n = v_i32_of_f32(t * (vf32)(INFINITE - steps));
    const rounded r = {
        v_min_u32((vu32)n + ((steps - 0x3f800000) >> 22), v_u32(7)),
        (vf32)v_min_u32((vu32)(v_f32_of_i32(n) * (vf32)(steps - 0x800000)), (vu32)v_f32(6)),
    };
    return r;
}

enum { GRID = MPSIM_ROUND_MODES }; /* for a mode */

/* Modes that no recipe has share loops, which ask for the mode: each with its own takes long to compile. */
V_INLINE int directed(const mpsim_block_kernel *k)
{
    const int is_one = k->mode > MPSIM_ROUND_TOWARD_ZERO && k->mode <= MPSIM_ROUND_TO_ODD;
    return is_one ? k->mode : MPSIM_ROUND_TOWARD_ZERO;
}

/* Where a format has one zero; where microxcaling has another. */
V_INLINE void correct_zeros(const mpsim_block_kernel *k, int mode, vu32 u, rounded *r, vu32 *sign)
{
    if (k->one_zero)
        *sign = v_keep_u32(v_test_u32(r->code, r->code), *sign);
    if (k->microx) {
        const m32 half = v_eq_u32(magnitude(u), v_u32(k->below_half));
        *sign = v_keep_u32(m32_not(v_eq_u32(u, v_u32(0x80000000u))), *sign);
        if (mode == MPSIM_ROUND_NEAREST_AWAY) {
            r->code = r->code | v_keep_u32(half, v_u32(1));
            r->value = (vf32)v_pick_u32(half, v_u32(k->grid.unit), (vu32)r->value);
        }
    }
}

/* Sets *code, returns the value; of numbers. */
V_INLINE vf32 number(const mpsim_block_kernel *k, int mode, vf32 y, vu32 word, vu32 *code)
{
    const vu32 u = (vu32)y, a = v_min_u32(magnitude(u), v_u32(k->grid.max));
    vu32 sign = u; /* its highest bit */
    rounded r;
    if (mode == MPSIM_ROUND_NEAREST_EVEN)
        r = round_nearest(&k->grid, a);
    else if (mode == GRID)
        r = round_fp4_grid(magnitude(u), word);
    else
        r = round_directed(&k->grid, mode, a, v_top_u32(u));
    if (k->one_zero || k->microx)
        correct_zeros(k, mode, u, &r, &sign);
    *code = v_bits_u32(v_u32(k->sign_bit - 1), r.code, v_shr_u32(sign, v_u32(k->sign_shift)));
    return (vf32)v_bits_u32(v_u32(0x80000000u), sign, (vu32)r.value);
}

V_INLINE vf32 element(const mpsim_block_kernel *k, int mode, vf32 y, vu32 word, vu32 *code)
{
    const vu32 u = (vu32)y;
    vu32 value = (vu32)number(k, mode, y, word, code);
    const m32 nan = less_u31(v_u32(INFINITE), magnitude(u));
    if (m32_any(nan)) {
        *code = v_pick_u32(nan, v_u32(k->nan_code), *code);
        value = v_pick_u32(nan, v_u32(k->nan_value), value);
    }
    return (vf32)value;
}

V_INLINE vf32 scaled_back(const mpsim_block_kernel *k, vf32 q, vf32 factor, vf32 inverse)
{
    return k->dequantize == MPSIM_OVER_FACTOR ? q / factor : q * inverse;
}

/* What is cast for x. */
V_INLINE vf32 scaled(const mpsim_block_kernel *k, vf32 x, vf32 factor, vf32 inverse)
{
    return k->divides ? x / inverse : x * factor;
}

#include "count.h"

/* The first n < V_LANES elements of a vector; t: NULL, or where they are counted. */
V_INLINE void cast_part(const mpsim_block_kernel *k, int mode, uint8_t *codes, float *values, const float *x,
                        vf32 factor, vf32 inverse, const uint32_t *words, size_t n, tally *t)
{
    vu32 code;
    uint8_t bytes[V_LANES];
    float back[V_LANES];
    const vf32 from = (vf32)v_load_u32_part(x, n), y = scaled(k, from, factor, inverse);
    const vu32 word = mode == GRID ? v_load_u32_part(words, n) : v_u32(0);
    const vf32 q = element(k, mode, y, word, &code);
    v_store_u8(bytes, code);
    if (codes)
        memcpy(codes, bytes, n);
    if (values || t)
        v_store_f32(back, scaled_back(k, q, factor, inverse));
    if (values)
        memcpy(values, back, n * sizeof *values);
    if (t) /* zeros otherwise, even where those times `inverse` are none */
        count(k, mode, t, from, factor, inverse, y, word, q, (vf32)v_load_u32_part(back, n));
}

/* Elements i to i + V_LANES - 1. */
V_INLINE void cast_vector(const mpsim_block_kernel *k, int mode, uint8_t *codes, float *values, const float *x,
                          vf32 factor, vf32 inverse, const uint32_t *words, size_t i, tally *t)
{
    vu32 code;
    __builtin_prefetch((const void *)((uintptr_t)(x + i) + k->ahead));
    const vf32 from = v_load_f32(x + i), y = scaled(k, from, factor, inverse);
    const vu32 word = mode == GRID ? v_load_u32(words + i) : v_u32(0);
    const vf32 q = element(k, mode, y, word, &code);
    if (codes) {
        __builtin_prefetch((const void *)((uintptr_t)(codes + i) + 2048), 1);
        v_store_u8(codes + i, code);
    }
    if (values)
        v_store_f32(values + i, scaled_back(k, q, factor, inverse));
    if (t)
        count(k, mode, t, from, factor, inverse, y, word, q, scaled_back(k, q, factor, inverse));
}

V_INLINE void cast(const mpsim_block_kernel *kernel, int mode, uint8_t *codes, float *values, const float *x,
                   const float *factors, const float *inverses, const uint32_t *words, size_t width, size_t n, tally *t)
{
    const mpsim_block_kernel k = *kernel; /* of which nobody else has an address */
    const size_t whole = width - width % V_LANES;
    if (width == V_LANES) { /* one loop, so that constants stay in registers */
        for (size_t j = 0; j < n; j++)
            cast_vector(&k, mode, codes, values, x, v_f32(factors[j]), v_f32(inverses[j]), words, j * V_LANES, t);
        return;
    }
    for (size_t j = 0, at = 0; j < n; j++, at += width) {
        const vf32 factor = v_f32(factors[j]), inverse = v_f32(inverses[j]);
        for (size_t i = at; i < at + whole; i += V_LANES)
            cast_vector(&k, mode, codes, values, x, factor, inverse, words, i, t);
        if (whole < width) {
            const size_t i = at + whole;
            cast_part(&k, mode, codes ? codes + i : NULL, values ? values + i : NULL, x + i, factor, inverse,
                      mode == GRID ? words + i : NULL, width - whole, t);
        }
    }
}

#define CAST(name, mode)                                                                                              \
    static void name(const mpsim_block_kernel *k, uint8_t *codes, float *values, const float *x, const float *factor, \
                     const float *inverse, const uint32_t *words, size_t width, size_t n, mpsim_counts *counts)       \
    {                                                                                                                 \
        tally t = {.all = 0};                                                                                         \
        if (counts) {                                                                                                 \
            cast(k, mode, codes, values, x, factor, inverse, words, width, n, &t);                                    \
            add_tally(counts, &t);                                                                                    \
        } else {                                                                                                      \
            cast(k, mode, codes, values, x, factor, inverse, words, width, n, NULL);                                  \
        }                                                                                                             \
    }
CAST(cast_nearest_even, MPSIM_ROUND_NEAREST_EVEN)
CAST(cast_nearest_away, MPSIM_ROUND_NEAREST_AWAY)
CAST(cast_directed, directed(k))
CAST(cast_fp4_grid, GRID)
#undef CAST

#include "careful.h"
#include "errors.h"
#include "scales.h"

const mpsim_block_functions V_NAME(mpsim_block) = {
    .amax = amax_run,
    .scales = scales_run,
    .cast = {[MPSIM_ROUND_NEAREST_EVEN] = cast_nearest_even,
             [MPSIM_ROUND_NEAREST_AWAY] = cast_nearest_away,
             [MPSIM_ROUND_TOWARD_ZERO] = cast_directed,
             [MPSIM_ROUND_UP] = cast_directed,
             [MPSIM_ROUND_DOWN] = cast_directed,
             [MPSIM_ROUND_TO_ODD] = cast_directed},
    .fp4_grid = cast_fp4_grid,
    .careful = careful_run,
    .errors = {[MPSIM_ROUND_NEAREST_EVEN] = errors_nearest_even,
               [MPSIM_ROUND_NEAREST_AWAY] = errors_nearest_away,
               [MPSIM_ROUND_TOWARD_ZERO] = errors_directed,
               [MPSIM_ROUND_UP] = errors_directed,
               [MPSIM_ROUND_DOWN] = errors_directed,
               [MPSIM_ROUND_TO_ODD] = errors_directed},
    .errors_fp4_grid = errors_fp4_grid,
};
