/* generic.h -- the vector vocabulary, in vectors of 128 bits as the compiler makes them for any
 * machine (SSE2, NEON, ...); avx2.h and avx512.h say the same words in wider vectors.
 *
 * A kernel is written once, in these words, and compiled by one unit for each instruction set,
 * which includes one of these headers first; V_NAME(kernel) is its name there. Everything here is
 * exact but the operations of floating point, which round as the environment says.
 *
 * Types: vu32, vi32, vf32 of V_LANES lanes; vu64, vi64, vf64 of half as many. They are vectors of
 * the compiler's: + - * & | ^ ~ work between vectors, << and >> by a constant (casts between them keep the
 * bits). m32, m64 are masks, a truth for each lane of vu32, vu64; only m32_... and m64_... touch them.
 *
 *   v_load_T, v_store_T   V_LANES (or half) elements, at any alignment; _u16 and _u8: to and from
 *                         lanes of 32 bits, zeros above, cut off; _part: the first n < V_LANES
 *                         elements alone, zeros in the other lanes, which stores leave out
 *   v_stream_T            a store past the caches, at addresses that are multiples of what is stored;
 *                         v_stream_end() once after the last
 *   v_T(x)                x in every lane
 *   v_eq, v_gt, v_ge      comparisons; v_test: a & b is not 0; v_top: the top bit is set
 *   v_pick(m, a, b)       a where m, else b; v_keep(m, a): a where m, else 0
 *   v_xor3(a, b, c)       a ^ b ^ c
 *   v_max_f32, _f64      a where it is the larger, else b: b where one is NaN
 *   v_swap_f32(a, h)     groups of h lanes change places with their neighbours, h < V_LANES a power of two
 *   v_half_f32(a)  (V_HALF only) rounded to fp16, to nearest even, and back; a NaN stays one
 *   v_max_u8              the larger bytes of 32-bit lanes
 *   v_pair_i16(p)         p[0], p[1] in every two lanes of vi16, which has twice V_LANES
 *   v_shl, v_shr, v_sar   by lane; counts above the width give 0 (v_sar: the sign)
 *   v_mul_even, _odd      64-bit products of the even, of the odd lanes
 *   v_high_words, v_low_words   the halves of such products, back in the order of the lanes
 *   v_reduce_rows_u32(a)  of V_LANES vectors the largest lane of each
 *   v_upper_u64(a)        the upper halves of the lanes, moved down (where shifts are scarce by a shuffle); what is above means nothing
 *   v_pack_u32            the lanes where the mask is true, one after the other, to memory with room for
 *                         a whole vector; their number
 *   v_first, v_last       the first, the last half of the lanes, widened; v_narrow: back
 *   v_near_..., v_cut_..., v_up_..., v_down_... (V_NEAR only) floating point rounded to nearest, toward
 *                         zero, up or down, whatever the environment says (but for subnormal numbers) and
 *                         without raising exceptions; _rest: a b - c
 *   v_zip_even, _odd      a[0] b[0] a[2] b[2] ..., a[1] b[1] a[3] b[3] ..., of 64-bit lanes */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { V_LANES = 4 };
#ifndef V_NAME /* neon.h has these words, too, but for some that it says itself */
#define V_NAME(name) name##_generic
#endif
#define V_INLINE static inline __attribute__((always_inline, unused))

typedef uint32_t vu32 __attribute__((vector_size(16)));
typedef int32_t vi32 __attribute__((vector_size(16)));
typedef int16_t vi16 __attribute__((vector_size(16)));
typedef float vf32 __attribute__((vector_size(16)));
typedef uint64_t vu64 __attribute__((vector_size(16)));
typedef int64_t vi64 __attribute__((vector_size(16)));
typedef double vf64 __attribute__((vector_size(16)));
typedef vi32 m32;
typedef vi64 m64;

/* Lanes of a, numbered from 0, and b, from 4. */
#ifdef __clang__
#define V_SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define V_SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (vu32){i, j, k, l})
#endif

/* The lower half of lane i of 64 bits, as a lane of 32. */
#define V_LOWER(i) (2 * (i) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))

/* ---- loads and stores ---- */

#define V_LOAD_STORE(T, type)               \
    V_INLINE type v_load_##T(const void *p) \
    {                                       \
        type a;                             \
        memcpy(&a, p, sizeof a);            \
        return a;                           \
    }                                       \
    V_INLINE void v_store_##T(void *p, type a) { memcpy(p, &a, sizeof a); }
V_LOAD_STORE(u32, vu32)
V_LOAD_STORE(u64, vu64)
V_LOAD_STORE(f32, vf32)
V_LOAD_STORE(f64, vf64)
#undef V_LOAD_STORE

V_INLINE void v_stream_u32(void *p, vu32 a) { memcpy(p, &a, sizeof a); }
V_INLINE void v_stream_u64(void *p, vu64 a) { memcpy(p, &a, sizeof a); }
V_INLINE void v_stream_end(void) {}

typedef uint16_t v_words __attribute__((vector_size(8)));
typedef uint8_t v_bytes __attribute__((vector_size(4)));

V_INLINE vu32 v_load_u16(const void *p)
{
    v_words a;
    memcpy(&a, p, sizeof a);
    return __builtin_convertvector(a, vu32);
}

V_INLINE vu32 v_load_u8(const void *p)
{
    v_bytes a;
    memcpy(&a, p, sizeof a);
    return __builtin_convertvector(a, vu32);
}

V_INLINE void v_store_u16(void *p, vu32 a)
{
    const v_words b = __builtin_convertvector(a, v_words);
    memcpy(p, &b, sizeof b);
}

V_INLINE void v_store_u8(void *p, vu32 a)
{
    const v_bytes b = __builtin_convertvector(a, v_bytes);
    memcpy(p, &b, sizeof b);
}

V_INLINE void v_stream_u16(void *p, vu32 a) { v_store_u16(p, a); }
V_INLINE void v_stream_u8(void *p, vu32 a) { v_store_u8(p, a); }

V_INLINE vu32 v_load_u32_part(const void *p, size_t n)
{
    vu32 a = {0};
    memcpy(&a, p, n * sizeof(uint32_t));
    return a;
}

V_INLINE void v_store_u32_part(void *p, vu32 a, size_t n) { memcpy(p, &a, n * sizeof(uint32_t)); }

/* ---- one number in every lane ---- */

V_INLINE vu32 v_u32(uint32_t x) { return (vu32){x, x, x, x}; }
V_INLINE vi32 v_i32(int32_t x) { return (vi32){x, x, x, x}; }
V_INLINE vf32 v_f32(float x) { return (vf32){x, x, x, x}; }
V_INLINE vu64 v_u64(uint64_t x) { return (vu64){x, x}; }
V_INLINE vi64 v_i64(int64_t x) { return (vi64){x, x}; }
V_INLINE vf64 v_f64(double x) { return (vf64){x, x}; }

/* ---- comparisons, masks ---- */

V_INLINE m32 v_eq_u32(vu32 a, vu32 b) { return (m32)(a == b); }
V_INLINE m32 v_gt_u32(vu32 a, vu32 b) { return (m32)(a > b); }
V_INLINE m32 v_ge_u32(vu32 a, vu32 b) { return (m32)(a >= b); }
V_INLINE m32 v_gt_i32(vi32 a, vi32 b) { return (m32)(a > b); }
V_INLINE m32 v_test_u32(vu32 a, vu32 b) { return (m32)((a & b) != 0); }
V_INLINE m32 v_top_u32(vu32 a) { return (m32)a >> 31; }
V_INLINE m32 v_gt_f32(vf32 a, vf32 b) { return (m32)(a > b); }
V_INLINE m32 v_eq_f32(vf32 a, vf32 b) { return (m32)(a == b); }
V_INLINE m64 v_eq_u64(vu64 a, vu64 b) { return (m64)(a == b); }
V_INLINE m64 v_gt_i64(vi64 a, vi64 b) { return (m64)(a > b); }
V_INLINE m64 v_gt_u64(vu64 a, vu64 b) { return (m64)(a > b); }
V_INLINE m64 v_test_u64(vu64 a, vu64 b) { return (m64)((a & b) != 0); }
V_INLINE m64 v_top_u64(vu64 a) { return (m64)a >> 63; }
V_INLINE m64 v_gt_f64(vf64 a, vf64 b) { return (m64)(a > b); }
V_INLINE m64 v_eq_f64(vf64 a, vf64 b) { return (m64)(a == b); }

V_INLINE m32 m32_and(m32 a, m32 b) { return a & b; }
V_INLINE m32 m32_or(m32 a, m32 b) { return a | b; }
V_INLINE m32 m32_not(m32 a) { return ~a; }
#ifndef V_NEON
V_INLINE int m32_any(m32 a) { return (((vu64)a)[0] | ((vu64)a)[1]) != 0; }
V_INLINE unsigned m32_bits(m32 a) { return (unsigned)((a[0] & 1) | (a[1] & 2) | (a[2] & 4) | (a[3] & 8)); }
V_INLINE unsigned m32_count(m32 a) { return (unsigned)-(a[0] + a[1] + a[2] + a[3]); }
#endif
V_INLINE m64 m64_and(m64 a, m64 b) { return a & b; }
V_INLINE m64 m64_or(m64 a, m64 b) { return a | b; }
V_INLINE m64 m64_not(m64 a) { return ~a; }
V_INLINE int m64_any(m64 a) { return (a[0] | a[1]) != 0; }
V_INLINE unsigned m64_bits(m64 a) { return (unsigned)((a[0] & 1) | (a[1] & 2)); }

V_INLINE unsigned v_pack_u32(void *p, m32 m, vu32 a)
{
    uint32_t *to = p;
    unsigned n = 0;
    for (int i = 0; i < V_LANES; i++) {
        to[n] = a[i];
        n += (unsigned)-m[i];
    }
    return n;
}

V_INLINE vu32 v_pick_u32(m32 m, vu32 a, vu32 b) { return ((vu32)m & a) | (~(vu32)m & b); }
V_INLINE vu64 v_pick_u64(m64 m, vu64 a, vu64 b) { return ((vu64)m & a) | (~(vu64)m & b); }
V_INLINE vu32 v_keep_u32(m32 m, vu32 a) { return (vu32)m & a; }
V_INLINE vu64 v_keep_u64(m64 m, vu64 a) { return (vu64)m & a; }
V_INLINE vu32 v_bits_u32(vu32 m, vu32 a, vu32 b) { return (m & a) | (~m & b); }
V_INLINE vu64 v_bits_u64(vu64 m, vu64 a, vu64 b) { return (m & a) | (~m & b); }
V_INLINE vu64 v_xor3_u64(vu64 a, vu64 b, vu64 c) { return a ^ b ^ c; }
V_INLINE vu32 v_inc_u32(m32 m, vu32 a) { return a - (vu32)m; }
V_INLINE vu64 v_inc_u64(m64 m, vu64 a) { return a - (vu64)m; }

/* ---- integers ---- */

V_INLINE vu32 v_min_u32(vu32 a, vu32 b) { return v_pick_u32(v_gt_u32(a, b), b, a); }
V_INLINE vu32 v_max_u32(vu32 a, vu32 b) { return v_pick_u32(v_gt_u32(a, b), a, b); }
V_INLINE vi32 v_min_i32(vi32 a, vi32 b) { return (vi32)v_pick_u32(v_gt_i32(a, b), (vu32)b, (vu32)a); }
V_INLINE vi32 v_max_i32(vi32 a, vi32 b) { return (vi32)v_pick_u32(v_gt_i32(a, b), (vu32)a, (vu32)b); }
V_INLINE vi64 v_min_i64(vi64 a, vi64 b) { return (vi64)v_pick_u64(v_gt_i64(a, b), (vu64)b, (vu64)a); }
V_INLINE vi64 v_max_i64(vi64 a, vi64 b) { return (vi64)v_pick_u64(v_gt_i64(a, b), (vu64)a, (vu64)b); }
V_INLINE vu32 v_shl_u32(vu32 a, vu32 n) { return v_keep_u32(v_gt_u32(v_u32(32), n), a << (n & 31)); }
V_INLINE vu32 v_shr_u32(vu32 a, vu32 n) { return v_keep_u32(v_gt_u32(v_u32(32), n), a >> (n & 31)); }
V_INLINE vi32 v_sar_i32(vi32 a, vu32 n) { return a >> (vi32)v_min_u32(n, v_u32(31)); }
V_INLINE vu64 v_shl_u64(vu64 a, vu64 n) { return (vu64)(n < 64) & (a << (n & 63)); }
V_INLINE vu64 v_shr_u64(vu64 a, vu64 n) { return (vu64)(n < 64) & (a >> (n & 63)); }

#ifndef V_NEON
V_INLINE vu64 v_mul_even_u32(vu32 a, vu32 b)
{
#ifdef __SSE2__ /* which the compiler does not find by itself */
    return (vu64)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
    return (vu64){(uint64_t)a[0] * b[0], (uint64_t)a[2] * b[2]};
#endif
}

V_INLINE vu64 v_mul_odd_u32(vu32 a, vu32 b)
{
#ifdef __SSE2__
    return v_mul_even_u32((vu32)((vu64)a >> 32), (vu32)((vu64)b >> 32));
#else
    return (vu64){(uint64_t)a[1] * b[1], (uint64_t)a[3] * b[3]};
#endif
}

V_INLINE vu32 v_high_words(vu64 even, vu64 odd)
{
    return (vu32)V_SHUFFLE((vu32)(even >> 32), (vu32)(odd >> 32), V_LOWER(0), V_LOWER(2), V_LOWER(1), V_LOWER(3));
}

V_INLINE vu32 v_low_words(vu64 even, vu64 odd)
{
    return (vu32)V_SHUFFLE((vu32)even, (vu32)odd, V_LOWER(0), V_LOWER(2), V_LOWER(1), V_LOWER(3));
}
#endif

V_INLINE vu64 v_upper_u64(vu64 a) { return a >> 32; }
V_INLINE uint64_t v_sum_u64(vu64 a) { return a[0] + a[1]; }

V_INLINE uint32_t v_reduce_max_u32(vu32 a)
{
    const uint32_t b = a[0] > a[1] ? a[0] : a[1], c = a[2] > a[3] ? a[2] : a[3];
    return b > c ? b : c;
}

V_INLINE uint32_t v_reduce_min_u32(vu32 a)
{
    const uint32_t b = a[0] < a[1] ? a[0] : a[1], c = a[2] < a[3] ? a[2] : a[3];
    return b < c ? b : c;
}

typedef uint8_t v_all_bytes __attribute__((vector_size(16)));

V_INLINE vu32 v_max_u8(vu32 a, vu32 b)
{
#ifdef __SSE2__
    return (vu32)_mm_max_epu8((__m128i)a, (__m128i)b);
#else
    const v_all_bytes x = (v_all_bytes)a, y = (v_all_bytes)b, m = (v_all_bytes)(x > y);
    return (vu32)((m & x) | (~m & y));
#endif
}

V_INLINE vu32 v_reduce_rows_u32(const vu32 a[V_LANES])
{
    vu32 b[2];
    for (int i = 0; i < 2; i++)
        b[i] = v_max_u32((vu32)V_SHUFFLE(a[2 * i], a[2 * i + 1], 0, 4, 1, 5),
                         (vu32)V_SHUFFLE(a[2 * i], a[2 * i + 1], 2, 6, 3, 7));
    return v_max_u32((vu32)V_SHUFFLE(b[0], b[1], 0, 1, 4, 5), (vu32)V_SHUFFLE(b[0], b[1], 2, 3, 6, 7));
}

V_INLINE vi16 v_load_i16(const void *p)
{
    vi16 a;
    memcpy(&a, p, sizeof a);
    return a;
}
V_INLINE vi16 v_i16(int16_t x) { return (vi16){x, x, x, x, x, x, x, x}; }
V_INLINE vi16 v_max_i16(vi16 a, vi16 b)
{
    const vi16 m = (vi16)(a > b);
    return (m & a) | (~m & b);
}
V_INLINE vi16 v_pair_i16(const int16_t *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return (vi16)v_u32(x);
}

/* ---- wider and narrower ---- */

V_INLINE vu64 v_first_u64(vu32 a) { return (vu64){a[0], a[1]}; }
V_INLINE vu64 v_last_u64(vu32 a) { return (vu64){a[2], a[3]}; }
V_INLINE vi64 v_first_i64(vi32 a) { return (vi64){a[0], a[1]}; }
V_INLINE vi64 v_last_i64(vi32 a) { return (vi64){a[2], a[3]}; }
V_INLINE vu64 v_zip_even_u64(vu64 a, vu64 b) { return (vu64){a[0], b[0]}; }
V_INLINE vu64 v_zip_odd_u64(vu64 a, vu64 b) { return (vu64){a[1], b[1]}; }
V_INLINE vf64 v_first_f64(vf32 a) { return (vf64){(double)a[0], (double)a[1]}; }
V_INLINE vf64 v_last_f64(vf32 a) { return (vf64){(double)a[2], (double)a[3]}; }

#ifndef V_NEON
V_INLINE vu32 v_narrow_u32(vu64 first, vu64 last)
{
    return (vu32)V_SHUFFLE((vu32)first, (vu32)last, V_LOWER(0), V_LOWER(1), V_LOWER(2), V_LOWER(3));
}
#endif

V_INLINE vf32 v_narrow_f32(vf64 first, vf64 last)
{
    return (vf32){(float)first[0], (float)first[1], (float)last[0], (float)last[1]};
}

V_INLINE vf32 v_swap_f32(vf32 a, int h) { return h == 2 ? V_SHUFFLE(a, a, 2, 3, 0, 1) : V_SHUFFLE(a, a, 1, 0, 3, 2); }

/* ---- floating point ---- */

V_INLINE vf32 v_f32_of_i32(vi32 a) { return __builtin_convertvector(a, vf32); }
V_INLINE vi32 v_i32_of_f32(vf32 a) { return __builtin_convertvector(a, vi32); }
V_INLINE vf32 v_max_f32(vf32 a, vf32 b) { return (vf32)v_pick_u32(v_gt_f32(a, b), (vu32)a, (vu32)b); }
V_INLINE vf64 v_max_f64(vf64 a, vf64 b) { return (vf64)v_pick_u64(v_gt_f64(a, b), (vu64)a, (vu64)b); }
#ifndef V_NEON
V_INLINE vf32 v_sqrt_f32(vf32 a) { return (vf32){sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3])}; }
#endif
V_INLINE vf64 v_sqrt_f64(vf64 a) { return (vf64){sqrt(a[0]), sqrt(a[1])}; }

#ifndef V_NEON
V_INLINE vf32 v_fma_f32(vf32 a, vf32 b, vf32 c)
{
    return (vf32){fmaf(a[0], b[0], c[0]), fmaf(a[1], b[1], c[1]), fmaf(a[2], b[2], c[2]), fmaf(a[3], b[3], c[3])};
}
#endif

V_INLINE vf32 v_about_f32(vf32 a, vf32 b, vf32 c) { return a * b + c; } /* rounded once or twice */
V_INLINE vf64 v_fma_f64(vf64 a, vf64 b, vf64 c) { return (vf64){fma(a[0], b[0], c[0]), fma(a[1], b[1], c[1])}; }
