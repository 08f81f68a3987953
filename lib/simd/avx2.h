/* avx2.h -- the vector vocabulary (see generic.h) for AVX2, FMA and F16C. */
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { V_LANES = 8 };
#define V_NAME(name) name##_avx2
#define V_INLINE static inline __attribute__((always_inline, unused))

typedef uint32_t vu32 __attribute__((vector_size(32)));
typedef int32_t vi32 __attribute__((vector_size(32)));
typedef int16_t vi16 __attribute__((vector_size(32)));
typedef float vf32 __attribute__((vector_size(32)));
typedef uint64_t vu64 __attribute__((vector_size(32)));
typedef int64_t vi64 __attribute__((vector_size(32)));
typedef double vf64 __attribute__((vector_size(32)));
typedef vi32 m32;
typedef vi64 m64;

/* ---- loads and stores ---- */

V_INLINE vu32 v_load_u32(const void *p) { return (vu32)_mm256_loadu_si256(p); }
V_INLINE vu64 v_load_u64(const void *p) { return (vu64)_mm256_loadu_si256(p); }
V_INLINE vf32 v_load_f32(const void *p) { return (vf32)_mm256_loadu_si256(p); }
V_INLINE vf64 v_load_f64(const void *p) { return (vf64)_mm256_loadu_si256(p); }
V_INLINE void v_store_u32(void *p, vu32 a) { _mm256_storeu_si256(p, (__m256i)a); }
V_INLINE void v_store_u64(void *p, vu64 a) { _mm256_storeu_si256(p, (__m256i)a); }
V_INLINE void v_store_f32(void *p, vf32 a) { _mm256_storeu_si256(p, (__m256i)a); }
V_INLINE void v_store_f64(void *p, vf64 a) { _mm256_storeu_si256(p, (__m256i)a); }
V_INLINE void v_stream_u32(void *p, vu32 a) { _mm256_stream_si256(p, (__m256i)a); }
V_INLINE void v_stream_u64(void *p, vu64 a) { _mm256_stream_si256(p, (__m256i)a); }
V_INLINE void v_stream_end(void) { _mm_sfence(); }

V_INLINE vu32 v_load_u16(const void *p) { return (vu32)_mm256_cvtepu16_epi32(_mm_loadu_si128(p)); }

V_INLINE vu32 v_load_u8(const void *p) { return (vu32)_mm256_cvtepu8_epi32(_mm_loadl_epi64(p)); }

V_INLINE __m128i v_words(vu32 a) /* 16 bits of each lane */
{
    const __m256i low = _mm256_and_si256((__m256i)a, _mm256_set1_epi32(0xffff));
    return _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
}

V_INLINE __m128i v_bytes(vu32 a) /* 8 bits of each lane, twice */
{
    const __m256i low = _mm256_and_si256((__m256i)a, _mm256_set1_epi32(0xff));
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    return _mm_packus_epi16(words, words);
}

V_INLINE void v_store_u16(void *p, vu32 a) { _mm_storeu_si128(p, v_words(a)); }
V_INLINE void v_store_u8(void *p, vu32 a) { _mm_storel_epi64(p, v_bytes(a)); }
V_INLINE void v_stream_u16(void *p, vu32 a) { _mm_stream_si128(p, v_words(a)); }
V_INLINE void v_stream_u8(void *p, vu32 a) { _mm_stream_si64(p, (long long)_mm_cvtsi128_si64(v_bytes(a))); }

V_INLINE vu32 v_load_u32_part(const void *p, size_t n)
{
    vu32 a = {0};
    memcpy(&a, p, n * sizeof(uint32_t));
    return a;
}

V_INLINE void v_store_u32_part(void *p, vu32 a, size_t n) { memcpy(p, &a, n * sizeof(uint32_t)); }

/* ---- one number in every lane ---- */

V_INLINE vu32 v_u32(uint32_t x) { return (vu32)_mm256_set1_epi32((int)x); }
V_INLINE vi32 v_i32(int32_t x) { return (vi32)_mm256_set1_epi32(x); }
V_INLINE vf32 v_f32(float x) { return (vf32)_mm256_set1_ps(x); }
V_INLINE vu64 v_u64(uint64_t x) { return (vu64)_mm256_set1_epi64x((long long)x); }
V_INLINE vi64 v_i64(int64_t x) { return (vi64)_mm256_set1_epi64x(x); }
V_INLINE vf64 v_f64(double x) { return (vf64)_mm256_set1_pd(x); }

/* ---- comparisons, masks ---- */

V_INLINE m32 v_eq_u32(vu32 a, vu32 b) { return (m32)(a == b); }
V_INLINE m32 v_gt_u32(vu32 a, vu32 b)
{
    const vu32 top = v_u32(0x80000000u);
    return (m32)_mm256_cmpgt_epi32((__m256i)(a ^ top), (__m256i)(b ^ top));
}
V_INLINE m32 v_ge_u32(vu32 a, vu32 b)
{
    return (m32)_mm256_cmpeq_epi32(_mm256_max_epu32((__m256i)a, (__m256i)b), (__m256i)a);
}
V_INLINE m32 v_gt_i32(vi32 a, vi32 b) { return (m32)_mm256_cmpgt_epi32((__m256i)a, (__m256i)b); }
V_INLINE m32 v_test_u32(vu32 a, vu32 b) { return ~(m32)((a & b) == 0); }
V_INLINE m32 v_top_u32(vu32 a) { return (m32)_mm256_srai_epi32((__m256i)a, 31); }
V_INLINE m32 v_gt_f32(vf32 a, vf32 b) { return (m32)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_GT_OQ); }
V_INLINE m32 v_eq_f32(vf32 a, vf32 b) { return (m32)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_EQ_OQ); }
V_INLINE m64 v_eq_u64(vu64 a, vu64 b) { return (m64)(a == b); }
V_INLINE m64 v_gt_i64(vi64 a, vi64 b) { return (m64)_mm256_cmpgt_epi64((__m256i)a, (__m256i)b); }
V_INLINE m64 v_gt_u64(vu64 a, vu64 b)
{
    const vu64 top = v_u64((uint64_t)1 << 63);
    return (m64)_mm256_cmpgt_epi64((__m256i)(a ^ top), (__m256i)(b ^ top));
}
V_INLINE m64 v_test_u64(vu64 a, vu64 b) { return ~(m64)((a & b) == 0); }
V_INLINE m64 v_top_u64(vu64 a) { return v_gt_i64((vi64){0}, (vi64)a); }
V_INLINE m64 v_gt_f64(vf64 a, vf64 b) { return (m64)_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_GT_OQ); }
V_INLINE m64 v_eq_f64(vf64 a, vf64 b) { return (m64)_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_EQ_OQ); }

V_INLINE m32 m32_and(m32 a, m32 b) { return a & b; }
V_INLINE m32 m32_or(m32 a, m32 b) { return a | b; }
V_INLINE m32 m32_not(m32 a) { return ~a; }
V_INLINE int m32_any(m32 a) { return !_mm256_testz_si256((__m256i)a, (__m256i)a); }
V_INLINE unsigned m32_bits(m32 a) { return (unsigned)_mm256_movemask_ps((__m256)a); }
V_INLINE unsigned m32_count(m32 a) { return (unsigned)__builtin_popcount(m32_bits(a)); }
V_INLINE m64 m64_and(m64 a, m64 b) { return a & b; }
V_INLINE m64 m64_or(m64 a, m64 b) { return a | b; }
V_INLINE m64 m64_not(m64 a) { return ~a; }
V_INLINE int m64_any(m64 a) { return !_mm256_testz_si256((__m256i)a, (__m256i)a); }
V_INLINE unsigned m64_bits(m64 a) { return (unsigned)_mm256_movemask_pd((__m256d)a); }

V_INLINE unsigned v_pack_u32(void *p, m32 m, vu32 a)
{
    const unsigned bits = m32_bits(m);
    uint32_t *to = p;
    unsigned n = 0;
    for (int i = 0; i < V_LANES; i++) {
        to[n] = a[i];
        n += bits >> i & 1;
    }
    return n;
}

V_INLINE vu32 v_pick_u32(m32 m, vu32 a, vu32 b) { return (vu32)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)m); }

V_INLINE vu64 v_pick_u64(m64 m, vu64 a, vu64 b) { return (vu64)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)m); }

V_INLINE vu32 v_keep_u32(m32 m, vu32 a) { return (vu32)m & a; }
V_INLINE vu64 v_keep_u64(m64 m, vu64 a) { return (vu64)m & a; }
V_INLINE vu32 v_bits_u32(vu32 m, vu32 a, vu32 b) { return (m & a) | (~m & b); }
V_INLINE vu64 v_bits_u64(vu64 m, vu64 a, vu64 b) { return (m & a) | (~m & b); }
V_INLINE vu64 v_xor3_u64(vu64 a, vu64 b, vu64 c) { return a ^ b ^ c; }
V_INLINE vu32 v_inc_u32(m32 m, vu32 a) { return a - (vu32)m; }
V_INLINE vu64 v_inc_u64(m64 m, vu64 a) { return a - (vu64)m; }

/* ---- integers ---- */

V_INLINE vu32 v_min_u32(vu32 a, vu32 b) { return (vu32)_mm256_min_epu32((__m256i)a, (__m256i)b); }
V_INLINE vu32 v_max_u32(vu32 a, vu32 b) { return (vu32)_mm256_max_epu32((__m256i)a, (__m256i)b); }
V_INLINE vi32 v_min_i32(vi32 a, vi32 b) { return (vi32)_mm256_min_epi32((__m256i)a, (__m256i)b); }
V_INLINE vi32 v_max_i32(vi32 a, vi32 b) { return (vi32)_mm256_max_epi32((__m256i)a, (__m256i)b); }
V_INLINE vi64 v_min_i64(vi64 a, vi64 b) { return (vi64)v_pick_u64(v_gt_i64(a, b), (vu64)b, (vu64)a); }
V_INLINE vi64 v_max_i64(vi64 a, vi64 b) { return (vi64)v_pick_u64(v_gt_i64(a, b), (vu64)a, (vu64)b); }
V_INLINE vu32 v_shl_u32(vu32 a, vu32 n) { return (vu32)_mm256_sllv_epi32((__m256i)a, (__m256i)n); }
V_INLINE vu32 v_shr_u32(vu32 a, vu32 n) { return (vu32)_mm256_srlv_epi32((__m256i)a, (__m256i)n); }
V_INLINE vi32 v_sar_i32(vi32 a, vu32 n) { return (vi32)_mm256_srav_epi32((__m256i)a, (__m256i)n); }
V_INLINE vu64 v_shl_u64(vu64 a, vu64 n) { return (vu64)_mm256_sllv_epi64((__m256i)a, (__m256i)n); }
V_INLINE vu64 v_shr_u64(vu64 a, vu64 n) { return (vu64)_mm256_srlv_epi64((__m256i)a, (__m256i)n); }

V_INLINE vu64 v_mul_even_u32(vu32 a, vu32 b) { return (vu64)_mm256_mul_epu32((__m256i)a, (__m256i)b); }

V_INLINE vu64 v_mul_odd_u32(vu32 a, vu32 b) { return v_mul_even_u32((vu32)((vu64)a >> 32), (vu32)((vu64)b >> 32)); }

V_INLINE vu32 v_high_words(vu64 even, vu64 odd)
{
    return (vu32)_mm256_blend_epi32((__m256i)(even >> 32), (__m256i)odd, 0xaa);
}

V_INLINE vu32 v_low_words(vu64 even, vu64 odd)
{
    return (vu32)_mm256_blend_epi32((__m256i)even, (__m256i)(odd << 32), 0xaa);
}

V_INLINE vu64 v_upper_u64(vu64 a) { return (vu64)_mm256_shuffle_epi32((__m256i)a, 0xf5); }
V_INLINE uint64_t v_sum_u64(vu64 a) { return a[0] + a[1] + a[2] + a[3]; }

V_INLINE uint32_t v_reduce_max_u32(vu32 a)
{
    uint32_t m = a[0];
    for (int i = 1; i < V_LANES; i++)
        m = a[i] > m ? a[i] : m;
    return m;
}

V_INLINE uint32_t v_reduce_min_u32(vu32 a)
{
    uint32_t m = a[0];
    for (int i = 1; i < V_LANES; i++)
        m = a[i] < m ? a[i] : m;
    return m;
}

V_INLINE vu32 v_max_u8(vu32 a, vu32 b) { return (vu32)_mm256_max_epu8((__m256i)a, (__m256i)b); }

V_INLINE vu32 v_reduce_rows_u32(const vu32 a[V_LANES])
{
    __m256i b[4], c[2];
    for (int i = 0; i < 4; i++)
        b[i] = _mm256_max_epu32(_mm256_unpacklo_epi32((__m256i)a[2 * i], (__m256i)a[2 * i + 1]),
                                _mm256_unpackhi_epi32((__m256i)a[2 * i], (__m256i)a[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        c[i] = _mm256_max_epu32(_mm256_unpacklo_epi64(b[2 * i], b[2 * i + 1]),
                                _mm256_unpackhi_epi64(b[2 * i], b[2 * i + 1]));
    return (vu32)_mm256_max_epu32(_mm256_permute2x128_si256(c[0], c[1], 0x20),
                                  _mm256_permute2x128_si256(c[0], c[1], 0x31));
}

V_INLINE vi16 v_load_i16(const void *p) { return (vi16)_mm256_loadu_si256(p); }
V_INLINE vi16 v_i16(int16_t x) { return (vi16)_mm256_set1_epi16(x); }
V_INLINE vi16 v_max_i16(vi16 a, vi16 b) { return (vi16)_mm256_max_epi16((__m256i)a, (__m256i)b); }
V_INLINE vi16 v_pair_i16(const int16_t *p)
{
    int x;
    memcpy(&x, p, sizeof x);
    return (vi16)_mm256_set1_epi32(x);
}

/* ---- wider and narrower ---- */

V_INLINE vu64 v_first_u64(vu32 a) { return (vu64)_mm256_cvtepu32_epi64(_mm256_castsi256_si128((__m256i)a)); }

V_INLINE vu64 v_last_u64(vu32 a) { return (vu64)_mm256_cvtepu32_epi64(_mm256_extracti128_si256((__m256i)a, 1)); }

V_INLINE vi64 v_first_i64(vi32 a) { return (vi64)_mm256_cvtepi32_epi64(_mm256_castsi256_si128((__m256i)a)); }

V_INLINE vi64 v_last_i64(vi32 a) { return (vi64)_mm256_cvtepi32_epi64(_mm256_extracti128_si256((__m256i)a, 1)); }

V_INLINE vu64 v_zip_even_u64(vu64 a, vu64 b) { return (vu64)_mm256_unpacklo_epi64((__m256i)a, (__m256i)b); }

V_INLINE vu64 v_zip_odd_u64(vu64 a, vu64 b) { return (vu64)_mm256_unpackhi_epi64((__m256i)a, (__m256i)b); }

V_INLINE vf64 v_first_f64(vf32 a) { return (vf64)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)a)); }

V_INLINE vf64 v_last_f64(vf32 a) { return (vf64)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)a, 1)); }

V_INLINE vu32 v_narrow_u32(vu64 first, vu64 last)
{
    const __m256 even = _mm256_shuffle_ps((__m256)first, (__m256)last, 0x88);
    return (vu32)_mm256_permute4x64_epi64((__m256i)even, 0xd8);
}

V_INLINE vf32 v_narrow_f32(vf64 first, vf64 last)
{
    return (vf32)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps((__m256d)first)),
                                      _mm256_cvtpd_ps((__m256d)last), 1);
}

V_INLINE vf32 v_swap_f32(vf32 a, int h)
{
    const __m256 x = (__m256)a;
    return (vf32)(h == 4   ? _mm256_permute2f128_ps(x, x, 1)
                  : h == 2 ? _mm256_permute_ps(x, 0x4e)
                           : _mm256_permute_ps(x, 0xb1));
}

/* ---- floating point ---- */

#define V_HALF 1
V_INLINE vf32 v_half_f32(vf32 a)
{
    return (vf32)_mm256_cvtph_ps(_mm256_cvtps_ph((__m256)a, _MM_FROUND_TO_NEAREST_INT));
}

V_INLINE vf32 v_f32_of_i32(vi32 a) { return (vf32)_mm256_cvtepi32_ps((__m256i)a); }
V_INLINE vi32 v_i32_of_f32(vf32 a) { return (vi32)_mm256_cvttps_epi32((__m256)a); }
V_INLINE vf32 v_max_f32(vf32 a, vf32 b) { return (vf32)_mm256_max_ps((__m256)a, (__m256)b); }
V_INLINE vf64 v_max_f64(vf64 a, vf64 b) { return (vf64)_mm256_max_pd((__m256d)a, (__m256d)b); }
V_INLINE vf32 v_sqrt_f32(vf32 a) { return (vf32)_mm256_sqrt_ps((__m256)a); }
V_INLINE vf64 v_sqrt_f64(vf64 a) { return (vf64)_mm256_sqrt_pd((__m256d)a); }

V_INLINE vf32 v_fma_f32(vf32 a, vf32 b, vf32 c) { return (vf32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }

V_INLINE vf32 v_about_f32(vf32 a, vf32 b, vf32 c) { return v_fma_f32(a, b, c); }

V_INLINE vf64 v_fma_f64(vf64 a, vf64 b, vf64 c) { return (vf64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
