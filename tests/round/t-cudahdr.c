/* t-cudahdr.c -- NVIDIA's own conversions as a second oracle, on the CPU.
 *
 * cuda_fp8.h, cuda_fp6.h and cuda_fp4.h are plain C for a host compiler; what they do is what
 * the presets "cuda" and "cuda-nosat" promise. Only this file includes them: it needs
 * -std=gnu11 and -isystem with the toolkit's include folder, and no library of CUDA. */
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

#include <mpsim/round.h>

#include "support/support.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the header's functions under one signature ---- */

#define FP8(name, sat, kind)                              \
    static unsigned name##_f32(float x)                   \
    {                                                     \
        return __nv_cvt_float_to_fp8(x, sat, kind);       \
    }                                                     \
    static unsigned name##_f64(double x)                  \
    {                                                     \
        return __nv_cvt_double_to_fp8(x, sat, kind);      \
    }                                                     \
    static unsigned name##_half(__half_raw x)             \
    {                                                     \
        return __nv_cvt_halfraw_to_fp8(x, sat, kind);     \
    }                                                     \
    static unsigned name##_bf16(__nv_bfloat16_raw x)      \
    {                                                     \
        return __nv_cvt_bfloat16raw_to_fp8(x, sat, kind); \
    }
FP8(e4m3_sat, __NV_SATFINITE, __NV_E4M3)
FP8(e4m3_nosat, __NV_NOSAT, __NV_E4M3)
FP8(e5m2_sat, __NV_SATFINITE, __NV_E5M2)
FP8(e5m2_nosat, __NV_NOSAT, __NV_E5M2)

#define SMALL(name, type, kind)                                           \
    static unsigned name##_f32(float x)                                   \
    {                                                                     \
        return __nv_cvt_float_to_##type(x, kind, cudaRoundNearest);       \
    }                                                                     \
    static unsigned name##_f64(double x)                                  \
    {                                                                     \
        return __nv_cvt_double_to_##type(x, kind, cudaRoundNearest);      \
    }                                                                     \
    static unsigned name##_half(__half_raw x)                             \
    {                                                                     \
        return __nv_cvt_halfraw_to_##type(x, kind, cudaRoundNearest);     \
    }                                                                     \
    static unsigned name##_bf16(__nv_bfloat16_raw x)                      \
    {                                                                     \
        return __nv_cvt_bfloat16raw_to_##type(x, kind, cudaRoundNearest); \
    }
SMALL(e3m2, fp6, __NV_E3M2)
SMALL(e2m3, fp6, __NV_E2M3)
SMALL(e2m1, fp4, __NV_E2M1)

#define E8M0(name, sat, rounding)                              \
    static unsigned name##_f32(float x)                        \
    {                                                          \
        return __nv_cvt_float_to_e8m0(x, sat, rounding);       \
    }                                                          \
    static unsigned name##_f64(double x)                       \
    {                                                          \
        return __nv_cvt_double_to_e8m0(x, sat, rounding);      \
    }                                                          \
    static unsigned name##_bf16(__nv_bfloat16_raw x)           \
    {                                                          \
        return __nv_cvt_bfloat16raw_to_e8m0(x, sat, rounding); \
    }
E8M0(e8m0_rz_sat, __NV_SATFINITE, cudaRoundZero)
E8M0(e8m0_rz_nosat, __NV_NOSAT, cudaRoundZero)
E8M0(e8m0_rp_sat, __NV_SATFINITE, cudaRoundPosInf)
E8M0(e8m0_rp_nosat, __NV_NOSAT, cudaRoundPosInf)

enum { RNE = MPSIM_ROUND_NEAREST_EVEN, RTZ = MPSIM_ROUND_TOWARD_ZERO, RUP = MPSIM_ROUND_UP };

static const struct conversion {
    const char *format, *preset;
    int mode;
    unsigned (*f32)(float);
    unsigned (*f64)(double);
    unsigned (*half)(__half_raw); /* NULL: the header has none */
    unsigned (*bf16)(__nv_bfloat16_raw);
} conversions[] = {
    {"e4m3", "cuda", RNE, e4m3_sat_f32, e4m3_sat_f64, e4m3_sat_half, e4m3_sat_bf16},
    {"e4m3", "cuda-nosat", RNE, e4m3_nosat_f32, e4m3_nosat_f64, e4m3_nosat_half, e4m3_nosat_bf16},
    {"e5m2", "cuda", RNE, e5m2_sat_f32, e5m2_sat_f64, e5m2_sat_half, e5m2_sat_bf16},
    {"e5m2", "cuda-nosat", RNE, e5m2_nosat_f32, e5m2_nosat_f64, e5m2_nosat_half, e5m2_nosat_bf16},
    {"e3m2", "cuda", RNE, e3m2_f32, e3m2_f64, e3m2_half, e3m2_bf16},
    {"e2m3", "cuda", RNE, e2m3_f32, e2m3_f64, e2m3_half, e2m3_bf16},
    {"e2m1", "cuda", RNE, e2m1_f32, e2m1_f64, e2m1_half, e2m1_bf16},
    {"e8m0", "cuda", RTZ, e8m0_rz_sat_f32, e8m0_rz_sat_f64, NULL, e8m0_rz_sat_bf16},
    {"e8m0", "cuda-nosat", RTZ, e8m0_rz_nosat_f32, e8m0_rz_nosat_f64, NULL, e8m0_rz_nosat_bf16},
    {"e8m0", "cuda", RUP, e8m0_rp_sat_f32, e8m0_rp_sat_f64, NULL, e8m0_rp_sat_bf16},
    {"e8m0", "cuda-nosat", RUP, e8m0_rp_nosat_f32, e8m0_rp_nosat_f64, NULL, e8m0_rp_nosat_bf16},
};
enum { CONVERSIONS = sizeof conversions / sizeof conversions[0] };

/* ---- comparison ---- */

typedef struct subject {
    const struct conversion *c;
    mpsim_format f;
    mpsim_rounding r;
    size_t compared, wrong;
    char first[300];
} subject;

static subject subject_of(const struct conversion *c)
{
    subject s = {.c = c};
    const mpsim_preset *p = mpsim_preset_find(c->preset);
    ck_assert_msg(p != NULL, "no preset %s", c->preset);
    ck_assert(mpsim_format_parse(&s.f, c->format) == MPSIM_OK);
    mpsim_rounding_preset(&s.r, p, &s.f);
    s.r.mode = (uint8_t)c->mode;
    return s;
}

static void compare(subject *s, const char *from, double x, uint64_t bits, uint64_t want, uint64_t got)
{
    s->compared++;
    if (got != want && s->wrong++ == 0)
        snprintf(s->first, sizeof s->first, "%s -> %s %s %s x=%a (%#" PRIx64 "): header %#" PRIx64 ", mpsim %#" PRIx64,
                 from, s->f.name, s->c->preset, mpsim_round_mode_name(s->r.mode), x, bits, want, got);
}

#define ck_no_mismatch(s) ck_assert_msg((s)->wrong == 0, "%zu of %zu wrong; %s", (s)->wrong, (s)->compared, (s)->first)

enum { BLOCK = 4096 };

static void compare_f32(subject *s, const uint32_t *u, size_t n)
{
    float x[BLOCK] = {0};
    uint8_t codes[BLOCK];
    for (size_t i = 0; i < n; i++)
        x[i] = f32_of_bits(u[i]);
    ck_assert(mpsim_encode_array_f32(&s->f, &s->r, NULL, codes, x, n, NULL) == MPSIM_OK);
    for (size_t i = 0; i < n; i++)
        compare(s, "f32", (double)x[i], u[i], s->c->f32(x[i]), codes[i]);
}

/* The header's functions of double keep a NaN's sign and leading payload bits; those of float
 * set all bits but the sign, and the presets follow them. */
static void compare_f64(subject *s, double x)
{
    mpsim_rounding r = s->r;
    r.nan = MPSIM_NANS_PAYLOAD;
    compare(s, "f64", x, bits_of_f64(x), s->c->f64(x), mpsim_encode_f64(&s->f, &r, x, 0, NULL));
}

/* ---- from binary32 ---- */

/* A stride of 859, a prime, through the 2^32 patterns; a larger multiplier goes round again,
 * to other patterns. All of them if tests may be expensive. */
START_TEST(casts_of_binary32_equal_the_header)
{
    subject s = subject_of(&conversions[_i]);
    const size_t stride = test_expensive() ? 1 : 859;
    const size_t n = test_expensive() ? (size_t)1 << 32 : test_scaled((size_t)1 << 22);
    uint32_t u[BLOCK];
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        for (size_t k = 0; k < m; k++)
            u[k] = (uint32_t)((i + k) * stride);
        compare_f32(&s, u, m);
    }
    ck_no_mismatch(&s);
    ck_assert_uint_eq(s.compared, n);
}

/* The finite magnitudes of a format in ascending order, and the one that would follow. */
static size_t magnitudes(const mpsim_format *f, double v[300])
{
    size_t n = 0;
    for (uint64_t code = 0; code <= f->max_finite; code++)
        v[n++] = mpsim_decode(f, code);
    v[n] = 2 * v[n - 1] - v[n - 2];
    return n + 1;
}

static void edge_f32(subject *s, double v)
{
    uint32_t u[6];
    if (v > (double)FLT_MAX) /* beyond E8M0 */
        return;
    const uint32_t at = bits_of_f32((float)v);
    for (uint32_t k = 0; k < 3; k++) {
        u[2 * k] = at + k - (at > 0);
        u[2 * k + 1] = u[2 * k] | 0x80000000u;
    }
    compare_f32(s, u, 6);
}

/* Every number, every midpoint, and their neighbours; NaNs of all kinds. */
START_TEST(edges_in_binary32_equal_the_header)
{
    subject s = subject_of(&conversions[_i]);
    double v[300];
    const size_t n = magnitudes(&s.f, v);
    for (size_t i = 0; i < n; i++) {
        edge_f32(&s, v[i]);
        if (i + 1 < n)
            edge_f32(&s, (v[i] + v[i + 1]) / 2);
        edge_f32(&s, v[i] / 2);
    }
    edge_f32(&s, 0x1p-149);
    edge_f32(&s, 0x1p-126);
    edge_f32(&s, 0x1p-127);
    edge_f32(&s, 0x1.fffffep+127);
    for (uint32_t k = 0; k < 23; k++) {
        const uint32_t one = 0x7f800000u | 1u << k, low = 0x7f800000u | ((2u << k) - 1);
        const uint32_t high = 0x7fffffffu & ~((1u << k) - 1);
        const uint32_t u[6] = {one, low, high, ~(~one & 0x7fffffffu), low | 1u << 31, high | 1u << 31};
        compare_f32(&s, u, 6);
    }
    ck_no_mismatch(&s);
}

/* ---- from binary64 ---- */

static void edge_f64(subject *s, double v)
{
    for (int sign = 0; sign < 2; sign++) {
        const double x = sign ? -v : v;
        compare_f64(s, x);
        compare_f64(s, nextafter(x, (double)INFINITY));
        compare_f64(s, nextafter(x, -(double)INFINITY));
        /* Off the point by less than binary32 or fp16 could tell. */
        compare_f64(s, x * (1 + 0x1p-30));
        compare_f64(s, x * (1 - 0x1p-30));
        compare_f64(s, x * (1 + 0x1p-13));
        compare_f64(s, x * (1 - 0x1p-13));
    }
}

START_TEST(casts_of_binary64_equal_the_header)
{
    subject s = subject_of(&conversions[_i]);
    double v[300];
    const size_t n = magnitudes(&s.f, v);
    for (size_t i = 0; i < n; i++) {
        edge_f64(&s, v[i]);
        if (i + 1 < n)
            edge_f64(&s, (v[i] + v[i + 1]) / 2);
        edge_f64(&s, v[i] / 2);
    }
    static const double far[] = {0x1p-1074,       0x1p-1022, 0x1p-150,
                                 0x1p-149,        0x1p-127,  0x1p-126,
                                 0x1.fffffep+127, 0x1p+128,  0x1.fffffffffffffp+1023};
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++)
        edge_f64(&s, far[i]);
    for (unsigned k = 0; k < 52; k++)
        for (uint64_t sign = 0; sign < 2; sign++)
            compare_f64(&s, f64_of_bits(sign << 63 | 0x7ff0000000000000u | (uint64_t)1 << k));
    for (uint64_t k = 1; k < 64; k++) { /* the six leading bits of the payload */
        compare_f64(&s, f64_of_bits(0x7ff0000000000001u | k << 46));
        compare_f64(&s, f64_of_bits(0xfff0000000000000u | k << 46));
    }
    /* Random significands, exponents from -140 to 140. */
    uint64_t state = test_seed();
    const size_t random = test_scaled(100000);
    for (size_t i = 0; i < random; i++) {
        const uint64_t w = test_random(&state);
        const uint64_t e = 883 + (w >> 52 & 2047) % 281;
        compare_f64(&s, f64_of_bits((w & 0x800fffffffffffffu) | e << 52));
    }
    ck_no_mismatch(&s);
}

/* ---- from and to 16 bits ---- */

/* All 2^16 fp16 and bf16 patterns: they widen exactly, so one rounding is all there is. */
START_TEST(casts_of_16_bits_equal_the_header)
{
    subject s = subject_of(&conversions[_i]);
    const mpsim_format *half = mpsim_format_find("fp16"), *bf16 = mpsim_format_find("bf16");
    for (uint32_t u = 0; u < 0x10000; u++) {
        const double x = mpsim_decode(half, u), y = mpsim_decode(bf16, u);
        if (s.c->half) {
            const __half_raw raw = {(unsigned short)u};
            compare(&s, "fp16", x, u, s.c->half(raw), mpsim_encode_f64(&s.f, &s.r, x, 0, NULL));
        }
        const __nv_bfloat16_raw raw = {(unsigned short)u};
        compare(&s, "bf16", y, u, s.c->bf16(raw), mpsim_encode_f64(&s.f, &s.r, y, 0, NULL));
    }
    ck_no_mismatch(&s);
}

static unsigned half_of_e4m3(unsigned char c)
{
    return __nv_cvt_fp8_to_halfraw(c, __NV_E4M3).x;
}
static unsigned half_of_e5m2(unsigned char c)
{
    return __nv_cvt_fp8_to_halfraw(c, __NV_E5M2).x;
}
static unsigned half_of_e3m2(unsigned char c)
{
    return __nv_cvt_fp6_to_halfraw(c, __NV_E3M2).x;
}
static unsigned half_of_e2m3(unsigned char c)
{
    return __nv_cvt_fp6_to_halfraw(c, __NV_E2M3).x;
}
static unsigned half_of_e2m1(unsigned char c)
{
    return __nv_cvt_fp4_to_halfraw(c, __NV_E2M1).x;
}
static unsigned bf16_of_e8m0(unsigned char c)
{
    return __nv_cvt_e8m0_to_bf16raw(c).x;
}

/* Every code in the other direction: the header's fp16 or bf16 against mpsim's encoding, by
 * the preset "cuda", of the decoded value. */
START_TEST(decoding_equals_the_header)
{
    static const struct {
        const char *from, *to;
        unsigned (*decode)(unsigned char);
    } rows[] = {
        {"e4m3", "fp16", half_of_e4m3}, {"e5m2", "fp16", half_of_e5m2}, {"e3m2", "fp16", half_of_e3m2},
        {"e2m3", "fp16", half_of_e2m3}, {"e2m1", "fp16", half_of_e2m1}, {"e8m0", "bf16", bf16_of_e8m0},
    };
    const mpsim_preset *cuda = mpsim_preset_find("cuda");
    size_t wrong = 0;
    char first[200] = "";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const mpsim_format *from = mpsim_format_find(rows[i].from);
        const mpsim_format *to = mpsim_format_find(rows[i].to);
        mpsim_rounding r;
        mpsim_rounding_preset(&r, cuda, to);
        for (unsigned code = 0; code < 1u << from->bits; code++) {
            const double x = mpsim_decode(from, code);
            unsigned flags;
            const uint64_t got = mpsim_encode_f64(to, &r, x, 0, &flags);
            const unsigned want = rows[i].decode((unsigned char)code);
            if ((got != want || (flags & MPSIM_FLAG_INEXACT)) && wrong++ == 0)
                snprintf(first, sizeof first, "%s %#x = %a to %s: header %#x, mpsim %#" PRIx64, from->name, code, x,
                         to->name, want, got);
        }
    }
    ck_assert_msg(wrong == 0, "%zu wrong; %s", wrong, first);
}

int main(void)
{
    test_seed();
    const double long_enough = test_expensive() ? 3 * 3600.0 : 60;
    TCase *f32 = test_case("binary32", long_enough);
    tcase_add_loop_test(f32, casts_of_binary32_equal_the_header, 0, CONVERSIONS);
    tcase_add_loop_test(f32, edges_in_binary32_equal_the_header, 0, CONVERSIONS);
    TCase *f64 = test_case("binary64", 60);
    tcase_add_loop_test(f64, casts_of_binary64_equal_the_header, 0, CONVERSIONS);
    TCase *short_types = test_case("16 bits", 60);
    tcase_add_loop_test(short_types, casts_of_16_bits_equal_the_header, 0, CONVERSIONS);
    tcase_add_test(short_types, decoding_equals_the_header);
    return test_main("cudahdr", (TCase *const[]){f32, f64, short_types, NULL});
}
