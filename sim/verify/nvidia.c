/* nvidia.c -- verify: casts against NVIDIA's own headers, which are plain C for a host compiler.
 *
 * Only this file of the program includes them: it needs -std=gnu11 and -isystem with the toolkit's
 * include folder, and no library of CUDA. What they do is what the presets "cuda" and "cuda-nosat"
 * promise. */
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

#include "verify.h"

#include "../process/progress.h"

#include <threads/parallel.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the header's functions under one signature ---- */

typedef struct source {
    float f32;
    double f64;
    unsigned short bits;
} source;

enum { F32, F64, HALF, BF16, SOURCES };
static const char *const source_names[] = {"binary32", "binary64", "fp16", "bf16"};

#define CONVERT(name, to, ...)                                                                       \
    static unsigned name(int from, source x)                                                         \
    {                                                                                                \
        const __half_raw half = {x.bits};                                                            \
        const __nv_bfloat16_raw bf16 = {x.bits};                                                     \
        switch (from) {                                                                              \
        case F32:                                                                                    \
            return __nv_cvt_float_to_##to(x.f32, __VA_ARGS__);                                       \
        case F64:                                                                                    \
            return __nv_cvt_double_to_##to(x.f64, __VA_ARGS__);                                      \
            HALF_##to(__VA_ARGS__) default : return __nv_cvt_bfloat16raw_to_##to(bf16, __VA_ARGS__); \
        }                                                                                            \
    }
#define HALF_fp8(...) \
    case HALF:        \
        return __nv_cvt_halfraw_to_fp8(half, __VA_ARGS__);
#define HALF_fp6(...) \
    case HALF:        \
        return __nv_cvt_halfraw_to_fp6(half, __VA_ARGS__);
#define HALF_fp4(...) \
    case HALF:        \
        return __nv_cvt_halfraw_to_fp4(half, __VA_ARGS__);
#define HALF_e8m0(...) \
    case HALF:         \
        (void)half;    \
        return 0; /* the header has none */

CONVERT(e4m3_sat, fp8, __NV_SATFINITE, __NV_E4M3)
CONVERT(e4m3_nosat, fp8, __NV_NOSAT, __NV_E4M3)
CONVERT(e5m2_sat, fp8, __NV_SATFINITE, __NV_E5M2)
CONVERT(e5m2_nosat, fp8, __NV_NOSAT, __NV_E5M2)
CONVERT(e3m2, fp6, __NV_E3M2, cudaRoundNearest)
CONVERT(e2m3, fp6, __NV_E2M3, cudaRoundNearest)
CONVERT(e2m1, fp4, __NV_E2M1, cudaRoundNearest)
CONVERT(e8m0_rz_sat, e8m0, __NV_SATFINITE, cudaRoundZero)
CONVERT(e8m0_rz_nosat, e8m0, __NV_NOSAT, cudaRoundZero)
CONVERT(e8m0_rp_sat, e8m0, __NV_SATFINITE, cudaRoundPosInf)
CONVERT(e8m0_rp_nosat, e8m0, __NV_NOSAT, cudaRoundPosInf)

enum { RNE = MPSIM_ROUND_NEAREST_EVEN, RTZ = MPSIM_ROUND_TOWARD_ZERO, RUP = MPSIM_ROUND_UP };

static const struct conversion {
    const char *format, *preset;
    int mode;
    unsigned (*convert)(int from, source x);
    const char *header;
} conversions[] = {
    {"e4m3", "cuda", RNE, e4m3_sat, "cuda_fp8.h"},
    {"e4m3", "cuda-nosat", RNE, e4m3_nosat, "cuda_fp8.h"},
    {"e5m2", "cuda", RNE, e5m2_sat, "cuda_fp8.h"},
    {"e5m2", "cuda-nosat", RNE, e5m2_nosat, "cuda_fp8.h"},
    {"e3m2", "cuda", RNE, e3m2, "cuda_fp6.h"},
    {"e2m3", "cuda", RNE, e2m3, "cuda_fp6.h"},
    {"e2m1", "cuda", RNE, e2m1, "cuda_fp4.h"},
    {"e8m0", "cuda", RTZ, e8m0_rz_sat, "cuda_fp8.h"},
    {"e8m0", "cuda-nosat", RTZ, e8m0_rz_nosat, "cuda_fp8.h"},
    {"e8m0", "cuda", RUP, e8m0_rp_sat, "cuda_fp8.h"},
    {"e8m0", "cuda-nosat", RUP, e8m0_rp_nosat, "cuda_fp8.h"},
};
enum { CONVERSIONS = sizeof conversions / sizeof conversions[0] };

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

static const struct decoding {
    const char *from, *to;
    unsigned (*decode)(unsigned char);
} decodings[] = {
    {"e4m3", "fp16", half_of_e4m3}, {"e5m2", "fp16", half_of_e5m2}, {"e3m2", "fp16", half_of_e3m2},
    {"e2m3", "fp16", half_of_e2m3}, {"e2m1", "fp16", half_of_e2m1}, {"e8m0", "bf16", bf16_of_e8m0},
};

/* ---- one conversion ---- */

enum { BLOCK = 4096, TASKS = 64 };

/* What one task found: rows are merged in the order of tasks, whatever ran first. */
typedef struct job {
    const struct conversion *c;
    mpsim_format f;
    mpsim_rounding r;
    int from;
    uint64_t n, stride; /* F32: n inputs, patterns i * stride mod 2^32 */
    uint64_t seed;      /* F64 */
    verify_row found[TASKS];
} job;

static void differs(job *j, verify_row *row, double x, uint64_t bits, unsigned want, unsigned got)
{
    verify_differs(row, "%s 0x%0*" PRIx64 " (%a) to %s@%s, %s: 0x%02x (%a), header 0x%02x (%a)", source_names[j->from],
                   j->from == F64   ? 16
                   : j->from == F32 ? 8
                                    : 4,
                   bits, x, j->f.name, j->c->preset, mpsim_round_mode_name((mpsim_round_mode)j->r.mode), got,
                   mpsim_decode(&j->f, got), want, mpsim_decode(&j->f, want));
}

/* Pattern number i of binary32: numbers of the format, midpoints, and their neighbours; then a
 * stride through all. Everything, with a stride of 1. */
static uint32_t input_f32(const job *j, uint64_t i)
{
    const uint64_t numbers = j->f.max_finite + 1, code = i / 12;
    if (j->stride == 1 || code >= numbers)
        return (uint32_t)(i * j->stride);
    const double a = mpsim_decode(&j->f, code);
    const double b = code + 1 < numbers ? mpsim_decode(&j->f, code + 1) : 2 * a - mpsim_decode(&j->f, code - 1);
    const float x = (float)(i % 2 ? (a + b) / 2 : a);
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    u += (uint32_t)(i / 2 % 3);
    return (u ? u - 1 : 0) | (i / 6 % 2 ? 0x80000000u : 0);
}

static void task_f32(job *j, verify_row *row, uint64_t first, uint64_t end)
{
    float x[BLOCK];
    uint8_t codes[BLOCK];
    for (uint64_t i = first; i < end; i += BLOCK) {
        const size_t n = end - i < BLOCK ? (size_t)(end - i) : BLOCK;
        for (size_t k = 0; k < n; k++) {
            const uint32_t u = input_f32(j, i + k);
            memcpy(&x[k], &u, sizeof u);
        }
        if (mpsim_encode_array_f32(&j->f, &j->r, NULL, codes, x, n, NULL) != MPSIM_OK)
            verify_differs(row, "%s: the library refuses it", j->f.name);
        for (size_t k = 0; k < n; k++) {
            const unsigned want = j->c->convert(F32, (source){.f32 = x[k]});
            if (codes[k] != want)
                differs(j, row, (double)x[k], input_f32(j, i + k), want, codes[k]);
        }
        row->compared += n;
    }
}

static uint64_t mix(uint64_t z) /* the finaliser of SplitMix64 */
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* Number i of the inputs of binary64: numbers of the format and midpoints, seen from both sides
 * and from as far as binary32 or fp16 could not tell; NaNs; then any. */
static double input_f64(const job *j, uint64_t i)
{
    static const double off[] = {0, 0x1p-30, -0x1p-30, 0x1p-13, -0x1p-13, 0x1p-52, -0x1p-53};
    const uint64_t word = mix(j->seed + i * 0x9e3779b97f4a7c15), numbers = j->f.max_finite + 1;
    double x;
    if (i < 28 * numbers) {
        const uint64_t code = i / 28;
        const double a = mpsim_decode(&j->f, code);
        const double b = code + 1 < numbers ? mpsim_decode(&j->f, code + 1) : 2 * a - mpsim_decode(&j->f, code - 1);
        x = (i / 7 % 2 ? (a + b) / 2 : a) * (1 + off[i % 7]);
        return i / 14 % 2 ? -x : x;
    }
    uint64_t u = word;
    if (i % 16 == 0) /* NaNs and infinities: few payload bits */
        u |= 0x7ff0000000000000, u &= 0xfff0000000000000 | mix(word) << 46;
    else /* exponents from -140 to 140 */
        u = (u & 0x800fffffffffffff) | (883 + mix(word) % 281) << 52;
    memcpy(&x, &u, sizeof x);
    return x;
}

static void task_f64(job *j, verify_row *row, uint64_t first, uint64_t end)
{
    mpsim_rounding r = j->r;
    r.nan = MPSIM_NANS_PAYLOAD; /* unlike those of float, the header's functions of double */
    for (uint64_t i = first; i < end; i++) {
        const double x = input_f64(j, i);
        const unsigned want = j->c->convert(F64, (source){.f64 = x});
        const unsigned got = (unsigned)mpsim_encode_f64(&j->f, &r, x, 0, NULL);
        uint64_t u;
        memcpy(&u, &x, sizeof u);
        row->compared++;
        if (got != want)
            differs(j, row, x, u, want, got);
    }
}

static void task_16(job *j, verify_row *row, uint64_t first, uint64_t end)
{
    const mpsim_format *f = mpsim_format_find(source_names[j->from]);
    for (uint64_t u = first; u < end; u++) {
        const double x = mpsim_decode(f, u);
        const unsigned want = j->c->convert(j->from, (source){.bits = (unsigned short)u});
        const unsigned got = (unsigned)mpsim_encode_f64(&j->f, &j->r, x, 0, NULL);
        row->compared++;
        if (got != want)
            differs(j, row, x, u, want, got);
    }
}

static void task(int i, void *context)
{
    job *j = context;
    const uint64_t first = j->n / TASKS * (uint64_t)i;
    const uint64_t end = i + 1 < TASKS ? first + j->n / TASKS : j->n;
    (j->from == F32 ? task_f32 : j->from == F64 ? task_f64 : task_16)(j, &j->found[i], first, end);
}

/* One source type into the row. */
static void run(const verify *v, verify_row *row, const struct conversion *c, int from)
{
    static job j;
    memset(&j, 0, sizeof j);
    j.c = c;
    j.f = *mpsim_format_find(c->format);
    mpsim_rounding_preset(&j.r, mpsim_preset_find(c->preset), &j.f);
    j.r.mode = (uint8_t)c->mode;
    j.from = from;
    j.seed = v->seed;
    j.stride = v->thorough ? 1 : 859; /* a prime */
    j.n = from == F32   ? (uint64_t)1 << (v->thorough ? 32 : 22)
          : from == F64 ? (uint64_t)1 << (v->thorough ? 24 : 17)
                        : 1 << 16;
    parallel_for(TASKS, task, &j);
    for (int i = 0; i < TASKS; i++) {
        row->compared += j.found[i].compared;
        if (row->mismatches == 0)
            memcpy(row->text, j.found[i].text, sizeof row->text);
        row->mismatches += j.found[i].mismatches;
    }
}

/* Every code in the other direction: exact. */
static void decode(verify_row *row)
{
    for (size_t i = 0; i < sizeof decodings / sizeof decodings[0]; i++) {
        const mpsim_format *from = mpsim_format_find(decodings[i].from);
        const mpsim_format *to = mpsim_format_find(decodings[i].to);
        mpsim_rounding r;
        mpsim_rounding_preset(&r, mpsim_preset_find("cuda"), to);
        for (unsigned code = 0; code < 1u << from->bits; code++) {
            const double x = mpsim_decode(from, code);
            const unsigned got = (unsigned)mpsim_encode_f64(to, &r, x, 0, NULL);
            const unsigned want = decodings[i].decode((unsigned char)code);
            row->compared++;
            if (got != want)
                verify_differs(row, "%s 0x%02x (%a) to %s: 0x%04x, header 0x%04x", from->name, code, x, to->name, got,
                               want);
        }
    }
}

int verify_nvidia_here(const verify *v, char *text, size_t size)
{
    (void)v;
    snprintf(text, size, "headers of CUDA %d.%d", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    return 1;
}

int verify_nvidia(verify *v)
{
    for (size_t i = 0; i < CONVERSIONS; i++) {
        const struct conversion *c = &conversions[i];
        const int has_half = strcmp(c->format, "e8m0") != 0;
        verify_row *row = verify_add(v, "nvidia", "binary32/64, %sbf16 to %s@%s%s%s", has_half ? "fp16, " : "",
                                     c->format, c->preset, c->mode == RNE ? "" : ", ",
                                     c->mode == RNE ? "" : mpsim_round_mode_name((mpsim_round_mode)c->mode));
        snprintf(row->with, sizeof row->with, "%s", c->header);
        progress_say("nvidia: %s", row->what);
        for (int from = 0; from < SOURCES; from++)
            if (from != HALF || has_half)
                run(v, row, c, from);
    }
    verify_row *row = verify_add(v, "nvidia", "e4m3, e5m2, e3m2, e2m3, e2m1 to fp16, e8m0 to bf16");
    snprintf(row->with, sizeof row->with, "cuda_fp{8,6,4}.h");
    decode(row);
    return 0;
}
