/* avx512.h -- the vector vocabulary (see generic.h) for AVX-512 F, CD, DQ, BW and VL. */
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { V_LANES = 16 };
#define V_NAME(name) name##_avx512
#define V_INLINE static inline __attribute__((always_inline, unused))

typedef uint32_t vu32 __attribute__((vector_size(64)));
typedef int32_t vi32 __attribute__((vector_size(64)));
typedef int16_t vi16 __attribute__((vector_size(64)));
typedef float vf32 __attribute__((vector_size(64)));
typedef uint64_t vu64 __attribute__((vector_size(64)));
typedef int64_t vi64 __attribute__((vector_size(64)));
typedef double vf64 __attribute__((vector_size(64)));
typedef __mmask16 m32;
typedef __mmask8 m64;

/* ---- loads and stores ---- */

V_INLINE vu32 v_load_u32(const void *p) { return (vu32)_mm512_loadu_si512(p); }
V_INLINE vu64 v_load_u64(const void *p) { return (vu64)_mm512_loadu_si512(p); }
V_INLINE vf32 v_load_f32(const void *p) { return (vf32)_mm512_loadu_si512(p); }
V_INLINE vf64 v_load_f64(const void *p) { return (vf64)_mm512_loadu_si512(p); }
V_INLINE void v_store_u32(void *p, vu32 a) { _mm512_storeu_si512(p, (__m512i)a); }
V_INLINE void v_store_u64(void *p, vu64 a) { _mm512_storeu_si512(p, (__m512i)a); }
V_INLINE void v_store_f32(void *p, vf32 a) { _mm512_storeu_si512(p, (__m512i)a); }
V_INLINE void v_store_f64(void *p, vf64 a) { _mm512_storeu_si512(p, (__m512i)a); }
V_INLINE void v_stream_u32(void *p, vu32 a) { _mm512_stream_si512(p, (__m512i)a); }
V_INLINE void v_stream_u64(void *p, vu64 a) { _mm512_stream_si512(p, (__m512i)a); }
V_INLINE void v_stream_end(void) { _mm_sfence(); }

V_INLINE vu32 v_load_u16(const void *p) { return (vu32)_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)); }

V_INLINE vu32 v_load_u8(const void *p) { return (vu32)_mm512_cvtepu8_epi32(_mm_loadu_si128(p)); }

V_INLINE void v_store_u16(void *p, vu32 a) { _mm256_storeu_si256(p, _mm512_cvtepi32_epi16((__m512i)a)); }

V_INLINE void v_store_u8(void *p, vu32 a) { _mm_storeu_si128(p, _mm512_cvtepi32_epi8((__m512i)a)); }

V_INLINE void v_stream_u16(void *p, vu32 a) { _mm256_stream_si256(p, _mm512_cvtepi32_epi16((__m512i)a)); }

V_INLINE void v_stream_u8(void *p, vu32 a) { _mm_stream_si128(p, _mm512_cvtepi32_epi8((__m512i)a)); }

V_INLINE vu32 v_load_u32_part(const void *p, size_t n)
{
    return (vu32)_mm512_maskz_loadu_epi32((__mmask16)((1u << n) - 1), p);
}

V_INLINE void v_store_u32_part(void *p, vu32 a, size_t n)
{
    _mm512_mask_storeu_epi32(p, (__mmask16)((1u << n) - 1), (__m512i)a);
}

/* ---- one number in every lane ---- */

V_INLINE vu32 v_u32(uint32_t x) { return (vu32)_mm512_set1_epi32((int)x); }
V_INLINE vi32 v_i32(int32_t x) { return (vi32)_mm512_set1_epi32(x); }
V_INLINE vf32 v_f32(float x) { return (vf32)_mm512_set1_ps(x); }
V_INLINE vu64 v_u64(uint64_t x) { return (vu64)_mm512_set1_epi64((long long)x); }
V_INLINE vi64 v_i64(int64_t x) { return (vi64)_mm512_set1_epi64(x); }
V_INLINE vf64 v_f64(double x) { return (vf64)_mm512_set1_pd(x); }

/* ---- comparisons, masks ---- */

V_INLINE m32 v_eq_u32(vu32 a, vu32 b) { return _mm512_cmpeq_epu32_mask((__m512i)a, (__m512i)b); }
V_INLINE m32 v_gt_u32(vu32 a, vu32 b) { return _mm512_cmpgt_epu32_mask((__m512i)a, (__m512i)b); }
V_INLINE m32 v_ge_u32(vu32 a, vu32 b) { return _mm512_cmpge_epu32_mask((__m512i)a, (__m512i)b); }
V_INLINE m32 v_gt_i32(vi32 a, vi32 b) { return _mm512_cmpgt_epi32_mask((__m512i)a, (__m512i)b); }
V_INLINE m32 v_test_u32(vu32 a, vu32 b) { return _mm512_test_epi32_mask((__m512i)a, (__m512i)b); }
V_INLINE m32 v_top_u32(vu32 a) { return _mm512_movepi32_mask((__m512i)a); }
V_INLINE m32 v_gt_f32(vf32 a, vf32 b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ); }
V_INLINE m32 v_eq_f32(vf32 a, vf32 b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ); }
V_INLINE m64 v_eq_u64(vu64 a, vu64 b) { return _mm512_cmpeq_epu64_mask((__m512i)a, (__m512i)b); }
V_INLINE m64 v_gt_i64(vi64 a, vi64 b) { return _mm512_cmpgt_epi64_mask((__m512i)a, (__m512i)b); }
V_INLINE m64 v_gt_u64(vu64 a, vu64 b) { return _mm512_cmpgt_epu64_mask((__m512i)a, (__m512i)b); }
V_INLINE m64 v_test_u64(vu64 a, vu64 b) { return _mm512_test_epi64_mask((__m512i)a, (__m512i)b); }
V_INLINE m64 v_top_u64(vu64 a) { return _mm512_movepi64_mask((__m512i)a); }
V_INLINE m64 v_gt_f64(vf64 a, vf64 b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_GT_OQ); }
V_INLINE m64 v_eq_f64(vf64 a, vf64 b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_EQ_OQ); }

V_INLINE m32 m32_and(m32 a, m32 b) { return a & b; }
V_INLINE m32 m32_or(m32 a, m32 b) { return a | b; }
V_INLINE m32 m32_not(m32 a) { return (m32)~a; }
V_INLINE int m32_any(m32 a) { return a != 0; }
V_INLINE unsigned m32_bits(m32 a) { return a; }
V_INLINE unsigned m32_count(m32 a) { return (unsigned)__builtin_popcount(a); }
V_INLINE m64 m64_and(m64 a, m64 b) { return a & b; }
V_INLINE m64 m64_or(m64 a, m64 b) { return a | b; }
V_INLINE m64 m64_not(m64 a) { return (m64)~a; }
V_INLINE int m64_any(m64 a) { return a != 0; }
V_INLINE unsigned m64_bits(m64 a) { return a; }

V_INLINE unsigned v_pack_u32(void *p, m32 m, vu32 a)
{
    _mm512_storeu_si512(p, _mm512_maskz_compress_epi32(m, (__m512i)a)); /* quicker than to memory */
    return (unsigned)__builtin_popcount(m);
}

V_INLINE vu32 v_pick_u32(m32 m, vu32 a, vu32 b) { return (vu32)_mm512_mask_mov_epi32((__m512i)b, m, (__m512i)a); }

V_INLINE vu64 v_pick_u64(m64 m, vu64 a, vu64 b) { return (vu64)_mm512_mask_mov_epi64((__m512i)b, m, (__m512i)a); }

V_INLINE vu32 v_keep_u32(m32 m, vu32 a) { return (vu32)_mm512_maskz_mov_epi32(m, (__m512i)a); }
V_INLINE vu64 v_keep_u64(m64 m, vu64 a) { return (vu64)_mm512_maskz_mov_epi64(m, (__m512i)a); }

V_INLINE vu32 v_bits_u32(vu32 m, vu32 a, vu32 b)
{
    return (vu32)_mm512_ternarylogic_epi32((__m512i)m, (__m512i)a, (__m512i)b, 0xca);
}

V_INLINE vu64 v_bits_u64(vu64 m, vu64 a, vu64 b)
{
    return (vu64)_mm512_ternarylogic_epi64((__m512i)m, (__m512i)a, (__m512i)b, 0xca);
}

V_INLINE vu64 v_xor3_u64(vu64 a, vu64 b, vu64 c)
{
    return (vu64)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0x96);
}

V_INLINE vu32 v_inc_u32(m32 m, vu32 a)
{
    return (vu32)_mm512_mask_sub_epi32((__m512i)a, m, (__m512i)a, _mm512_set1_epi32(-1));
}

V_INLINE vu64 v_inc_u64(m64 m, vu64 a)
{
    return (vu64)_mm512_mask_sub_epi64((__m512i)a, m, (__m512i)a, _mm512_set1_epi64(-1));
}

/* ---- integers ---- */

V_INLINE vu32 v_min_u32(vu32 a, vu32 b) { return (vu32)_mm512_min_epu32((__m512i)a, (__m512i)b); }
V_INLINE vu32 v_max_u32(vu32 a, vu32 b) { return (vu32)_mm512_max_epu32((__m512i)a, (__m512i)b); }
V_INLINE vi32 v_min_i32(vi32 a, vi32 b) { return (vi32)_mm512_min_epi32((__m512i)a, (__m512i)b); }
V_INLINE vi32 v_max_i32(vi32 a, vi32 b) { return (vi32)_mm512_max_epi32((__m512i)a, (__m512i)b); }
V_INLINE vi64 v_min_i64(vi64 a, vi64 b) { return (vi64)_mm512_min_epi64((__m512i)a, (__m512i)b); }
V_INLINE vi64 v_max_i64(vi64 a, vi64 b) { return (vi64)_mm512_max_epi64((__m512i)a, (__m512i)b); }
V_INLINE vu32 v_shl_u32(vu32 a, vu32 n) { return (vu32)_mm512_sllv_epi32((__m512i)a, (__m512i)n); }
V_INLINE vu32 v_shr_u32(vu32 a, vu32 n) { return (vu32)_mm512_srlv_epi32((__m512i)a, (__m512i)n); }
V_INLINE vi32 v_sar_i32(vi32 a, vu32 n) { return (vi32)_mm512_srav_epi32((__m512i)a, (__m512i)n); }
V_INLINE vu64 v_shl_u64(vu64 a, vu64 n) { return (vu64)_mm512_sllv_epi64((__m512i)a, (__m512i)n); }
V_INLINE vu64 v_shr_u64(vu64 a, vu64 n) { return (vu64)_mm512_srlv_epi64((__m512i)a, (__m512i)n); }

V_INLINE vu64 v_mul_even_u32(vu32 a, vu32 b) { return (vu64)_mm512_mul_epu32((__m512i)a, (__m512i)b); }

V_INLINE vu64 v_mul_odd_u32(vu32 a, vu32 b) { return v_mul_even_u32((vu32)((vu64)a >> 32), (vu32)((vu64)b >> 32)); }

V_INLINE vu32 v_high_words(vu64 even, vu64 odd)
{
    return (vu32)_mm512_mask_mov_epi32((__m512i)(even >> 32), 0xaaaa, (__m512i)odd);
}

V_INLINE vu32 v_low_words(vu64 even, vu64 odd)
{
    return (vu32)_mm512_mask_mov_epi32((__m512i)even, 0xaaaa, (__m512i)(odd << 32));
}

V_INLINE vu64 v_upper_u64(vu64 a) { return (vu64)_mm512_shuffle_epi32((__m512i)a, _MM_PERM_DDBB); }
V_INLINE uint64_t v_sum_u64(vu64 a) { return (uint64_t)_mm512_reduce_add_epi64((__m512i)a); }
V_INLINE uint32_t v_reduce_max_u32(vu32 a) { return _mm512_reduce_max_epu32((__m512i)a); }
V_INLINE uint32_t v_reduce_min_u32(vu32 a) { return _mm512_reduce_min_epu32((__m512i)a); }

V_INLINE vu32 v_max_u8(vu32 a, vu32 b) { return (vu32)_mm512_max_epu8((__m512i)a, (__m512i)b); }

V_INLINE vu32 v_reduce_rows_u32(const vu32 a[V_LANES])
{
    __m512i b[8], c[4], d[2];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        b[i] = _mm512_max_epu32(_mm512_unpacklo_epi32((__m512i)a[2 * i], (__m512i)a[2 * i + 1]),
                                _mm512_unpackhi_epi32((__m512i)a[2 * i], (__m512i)a[2 * i + 1]));
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        c[i] = _mm512_max_epu32(_mm512_unpacklo_epi64(b[2 * i], b[2 * i + 1]),
                                _mm512_unpackhi_epi64(b[2 * i], b[2 * i + 1]));
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++)
        d[i] = _mm512_max_epu32(_mm512_shuffle_i32x4(c[2 * i], c[2 * i + 1], 0x88),
                                _mm512_shuffle_i32x4(c[2 * i], c[2 * i + 1], 0xdd));
    return (vu32)_mm512_max_epu32(_mm512_shuffle_i32x4(d[0], d[1], 0x88), _mm512_shuffle_i32x4(d[0], d[1], 0xdd));
}

V_INLINE vi16 v_load_i16(const void *p) { return (vi16)_mm512_loadu_si512(p); }
V_INLINE vi16 v_i16(int16_t x) { return (vi16)_mm512_set1_epi16(x); }
V_INLINE vi16 v_max_i16(vi16 a, vi16 b) { return (vi16)_mm512_max_epi16((__m512i)a, (__m512i)b); }
V_INLINE vi16 v_pair_i16(const int16_t *p)
{
    int x;
    memcpy(&x, p, sizeof x);
    return (vi16)_mm512_set1_epi32(x);
}

/* ---- wider and narrower ---- */

V_INLINE vu64 v_first_u64(vu32 a) { return (vu64)_mm512_cvtepu32_epi64(_mm512_castsi512_si256((__m512i)a)); }

V_INLINE vu64 v_last_u64(vu32 a) { return (vu64)_mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64((__m512i)a, 1)); }

V_INLINE vi64 v_first_i64(vi32 a) { return (vi64)_mm512_cvtepi32_epi64(_mm512_castsi512_si256((__m512i)a)); }

V_INLINE vi64 v_last_i64(vi32 a) { return (vi64)_mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64((__m512i)a, 1)); }

V_INLINE vu64 v_zip_even_u64(vu64 a, vu64 b) { return (vu64)_mm512_unpacklo_epi64((__m512i)a, (__m512i)b); }

V_INLINE vu64 v_zip_odd_u64(vu64 a, vu64 b) { return (vu64)_mm512_unpackhi_epi64((__m512i)a, (__m512i)b); }

V_INLINE vf64 v_first_f64(vf32 a) { return (vf64)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)a)); }

V_INLINE vf64 v_last_f64(vf32 a) { return (vf64)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)a, 1)); }

V_INLINE vu32 v_narrow_u32(vu64 first, vu64 last)
{
    return (vu32)_mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi64_epi32((__m512i)first)),
                                    _mm512_cvtepi64_epi32((__m512i)last), 1);
}

V_INLINE vf32 v_narrow_f32(vf64 first, vf64 last)
{
    return (vf32)_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)first)),
                                    _mm512_cvtpd_ps((__m512d)last), 1);
}

V_INLINE vf32 v_swap_f32(vf32 a, int h)
{
    const __m512 x = (__m512)a;
    return (vf32)(h == 8   ? _mm512_shuffle_f32x4(x, x, 0x4e)
                  : h == 4 ? _mm512_shuffle_f32x4(x, x, 0xb1)
                  : h == 2 ? _mm512_permute_ps(x, 0x4e)
                           : _mm512_permute_ps(x, 0xb1));
}

/* ---- floating point ---- */

#define V_HALF 1
V_INLINE vf32 v_half_f32(vf32 a)
{
    return (vf32)_mm512_cvtph_ps(_mm512_cvt_roundps_ph((__m512)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

V_INLINE vf32 v_f32_of_i32(vi32 a) { return (vf32)_mm512_cvtepi32_ps((__m512i)a); }
V_INLINE vi32 v_i32_of_f32(vf32 a) { return (vi32)_mm512_cvttps_epi32((__m512)a); }
V_INLINE vf32 v_max_f32(vf32 a, vf32 b) { return (vf32)_mm512_max_ps((__m512)a, (__m512)b); }
V_INLINE vf64 v_max_f64(vf64 a, vf64 b) { return (vf64)_mm512_max_pd((__m512d)a, (__m512d)b); }
V_INLINE vf32 v_sqrt_f32(vf32 a) { return (vf32)_mm512_sqrt_ps((__m512)a); }
V_INLINE vf64 v_sqrt_f64(vf64 a) { return (vf64)_mm512_sqrt_pd((__m512d)a); }

V_INLINE vf32 v_fma_f32(vf32 a, vf32 b, vf32 c) { return (vf32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }

V_INLINE vf32 v_about_f32(vf32 a, vf32 b, vf32 c) { return v_fma_f32(a, b, c); }

V_INLINE vf64 v_fma_f64(vf64 a, vf64 b, vf64 c) { return (vf64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }

/* ---- floating point, the rounding in the instruction ---- */

#define V_NEAR 1
#define V_NEAREST_SAE (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define V_CUT_SAE (_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define V_UP_SAE (_MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)
#define V_DOWN_SAE (_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)

V_INLINE vf32 v_near_add_f32(vf32 a, vf32 b) { return (vf32)_mm512_add_round_ps((__m512)a, (__m512)b, V_NEAREST_SAE); }

V_INLINE vf32 v_cut_add_f32(vf32 a, vf32 b) { return (vf32)_mm512_add_round_ps((__m512)a, (__m512)b, V_CUT_SAE); }

V_INLINE vf32 v_up_add_f32(vf32 a, vf32 b) { return (vf32)_mm512_add_round_ps((__m512)a, (__m512)b, V_UP_SAE); }

V_INLINE vf32 v_down_add_f32(vf32 a, vf32 b) { return (vf32)_mm512_add_round_ps((__m512)a, (__m512)b, V_DOWN_SAE); }

V_INLINE vf32 v_near_sub_f32(vf32 a, vf32 b) { return (vf32)_mm512_sub_round_ps((__m512)a, (__m512)b, V_NEAREST_SAE); }

V_INLINE vf32 v_near_mul_f32(vf32 a, vf32 b) { return (vf32)_mm512_mul_round_ps((__m512)a, (__m512)b, V_NEAREST_SAE); }

V_INLINE vf32 v_cut_mul_f32(vf32 a, vf32 b) { return (vf32)_mm512_mul_round_ps((__m512)a, (__m512)b, V_CUT_SAE); }

V_INLINE vf32 v_near_rest_f32(vf32 a, vf32 b, vf32 c)
{
    return (vf32)_mm512_fmsub_round_ps((__m512)a, (__m512)b, (__m512)c, V_NEAREST_SAE);
}

V_INLINE vf64 v_near_add_f64(vf64 a, vf64 b)
{
    return (vf64)_mm512_add_round_pd((__m512d)a, (__m512d)b, V_NEAREST_SAE);
}

V_INLINE vf64 v_near_sub_f64(vf64 a, vf64 b)
{
    return (vf64)_mm512_sub_round_pd((__m512d)a, (__m512d)b, V_NEAREST_SAE);
}

V_INLINE vf64 v_near_mul_f64(vf64 a, vf64 b)
{
    return (vf64)_mm512_mul_round_pd((__m512d)a, (__m512d)b, V_NEAREST_SAE);
}

V_INLINE vf64 v_near_fma_f64(vf64 a, vf64 b, vf64 c)
{
    return (vf64)_mm512_fmadd_round_pd((__m512d)a, (__m512d)b, (__m512d)c, V_NEAREST_SAE);
}

V_INLINE vf64 v_cut_mul_f64(vf64 a, vf64 b) { return (vf64)_mm512_mul_round_pd((__m512d)a, (__m512d)b, V_CUT_SAE); }

V_INLINE vf64 v_near_rest_f64(vf64 a, vf64 b, vf64 c)
{
    return (vf64)_mm512_fmsub_round_pd((__m512d)a, (__m512d)b, (__m512d)c, V_NEAREST_SAE);
}
