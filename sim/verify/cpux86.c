/* cpux86.c -- instructions of x86 CPUs; see cpu.h. Each function is compiled for its instruction set alone, and
 * runs where CPUID says that it may. */
#include "cpu.h"

#include <cpuid.h>
#include <immintrin.h>
#include <stdio.h>
#include <string.h>

#define FOR(features) __attribute__((target(features))) static

/* ---- what is here ---- */

enum { YMM = 0x6, ZMM = 0xe6 }; /* registers that the operating system saves, as XCR0 has them */

typedef enum leaf { LEAF_1_C, LEAF_7_B, LEAF_7_D, LEAF_71_A } leaf;

static int has(leaf l, int bit, unsigned registers)
{
    unsigned a, b, c, d, saved, high, word[4];
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return 0;
    word[LEAF_1_C] = c;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if ((saved & registers) != registers || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return 0;
    word[LEAF_7_B] = b;
    word[LEAF_7_D] = d;
    word[LEAF_71_A] = a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) ? a : 0;
    return word[l] >> bit & 1;
}

static int has_avx512(void)
{
    return has(LEAF_7_B, 16, ZMM) && has(LEAF_7_B, 31, ZMM) && has(LEAF_7_B, 30, ZMM); /* F, VL, BW */
}

static int has_avx512_bf16(void)
{
    return has_avx512() && has(LEAF_71_A, 5, ZMM);
}

static int has_f16c(void)
{
    return has(LEAF_1_C, 29, YMM);
}

static int has_fma(void)
{
    return has(LEAF_1_C, 12, YMM);
}

static int has_avx512_fp16(void)
{
    return has_avx512() && has(LEAF_7_D, 23, ZMM);
}

/* AMX: its rows are named, not run, since nobody has tried code that configures tiles. */
static int has_amx_bf16(void)
{
    return has(LEAF_7_D, 22, 0);
}

static int has_amx_fp16(void)
{
    return has(LEAF_71_A, 21, 0);
}

static int has_amx_fp8(void)
{
    unsigned a, b, c, d;
    return has(LEAF_7_D, 24, 0) && __get_cpuid_count(0x1e, 1, &a, &b, &c, &d) && a >> 4 & 1;
}

/* ---- AVX512-BF16 ---- */

#if __GNUC__ >= 10 || __clang_major__ >= 9
#define BF16 "avx512f,avx512vl,avx512bw,avx512bf16"

FOR(BF16) void vdpbf16ps_zmm(void *d, const void *a, const void *b)
{
    __m512 s = _mm512_loadu_ps(d);
    s = _mm512_dpbf16_ps(s, (__m512bh)_mm512_loadu_si512(a), (__m512bh)_mm512_loadu_si512(b));
    _mm512_storeu_ps(d, s);
}

FOR(BF16) void vdpbf16ps_ymm(void *d, const void *a, const void *b)
{
    __m256 s = _mm256_loadu_ps(d);
    s = _mm256_dpbf16_ps(s, (__m256bh)_mm256_loadu_si256((const __m256i *)a),
                         (__m256bh)_mm256_loadu_si256((const __m256i *)b));
    _mm256_storeu_ps(d, s);
}

FOR(BF16) void vdpbf16ps_xmm(void *d, const void *a, const void *b)
{
    __m128 s = _mm_loadu_ps(d);
    s = _mm_dpbf16_ps(s, (__m128bh)_mm_loadu_si128((const __m128i *)a), (__m128bh)_mm_loadu_si128((const __m128i *)b));
    _mm_storeu_ps(d, s);
}

/* With rounding toward zero and MXCSR's own flushing off and on: the instruction is to ask neither. */
FOR(BF16) void vdpbf16ps_mxcsr(void *d, const void *a, const void *b)
{
    const unsigned before = _mm_getcsr();
    _mm_setcsr(0x1f80 | 0x6000);
    vdpbf16ps_zmm(d, a, b);
    _mm_setcsr(before);
}

FOR(BF16) void vcvtneps2bf16(void *d, const void *a, const void *b)
{
    (void)b;
    const __m256bh r = _mm512_cvtneps_pbh(_mm512_loadu_ps(a));
    memcpy(d, &r, sizeof r);
}

FOR(BF16) void vcvtne2ps2bf16(void *d, const void *a, const void *b)
{
    (void)b;
    const __m512bh r = _mm512_cvtne2ps_pbh(_mm512_loadu_ps((const float *)a + 16), _mm512_loadu_ps(a));
    memcpy(d, &r, sizeof r);
}
#define HAVE_BF16
#endif

/* ---- F16C, and its form of AVX-512 ---- */

FOR("f16c,avx") void vcvtph2ps_ymm(void *d, const void *a, const void *b)
{
    (void)b;
    _mm256_storeu_ps(d, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)a)));
}

#define CUT(name, mode)                                                                           \
    FOR("f16c,avx") void name(void *d, const void *a, const void *b)                              \
    {                                                                                             \
        (void)b;                                                                                  \
        _mm_storeu_si128((__m128i *)d, _mm256_cvtps_ph(_mm256_loadu_ps((const float *)a), mode)); \
    }
CUT(vcvtps2ph_rne, _MM_FROUND_TO_NEAREST_INT)
CUT(vcvtps2ph_down, _MM_FROUND_TO_NEG_INF)
CUT(vcvtps2ph_up, _MM_FROUND_TO_POS_INF)
CUT(vcvtps2ph_zero, _MM_FROUND_TO_ZERO)

FOR("avx512f") void vcvtph2ps_zmm(void *d, const void *a, const void *b)
{
    (void)b;
    _mm512_storeu_ps(d, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)a)));
}

FOR("avx512f") void vcvtps2ph_zmm(void *d, const void *a, const void *b)
{
    (void)b;
    _mm256_storeu_si256((__m256i *)d, _mm512_cvtps_ph(_mm512_loadu_ps((const float *)a), _MM_FROUND_TO_NEAREST_INT));
}

/* ---- fused multiply-adds: d = a b + d. In assembler, so that no compiler exchanges operands ---- */

FOR("fma,avx") void vfmadd231ps_ymm(void *d, const void *a, const void *b)
{
    __m256 s = _mm256_loadu_ps(d);
    const __m256 x = _mm256_loadu_ps(a), y = _mm256_loadu_ps(b);
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(s) : "x"(x), "x"(y));
    _mm256_storeu_ps(d, s);
}

FOR("avx512f") void vfmadd231ps_zmm(void *d, const void *a, const void *b)
{
    __m512 s = _mm512_loadu_ps(d);
    const __m512 x = _mm512_loadu_ps(a), y = _mm512_loadu_ps(b);
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(s) : "v"(x), "v"(y));
    _mm512_storeu_ps(d, s);
}

/* ---- AVX512-FP16 ---- */

#if (defined __clang__ && __clang_major__ >= 14) || (!defined __clang__ && __GNUC__ >= 12)
#define FP16 "avx512fp16,avx512f,avx512vl,avx512bw"
#define TWO(name, instruction)                                              \
    FOR(FP16) void name(void *d, const void *a, const void *b)              \
    {                                                                       \
        const __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b); \
        __m512i s;                                                          \
        __asm__(instruction " %2, %1, %0" : "=v"(s) : "v"(x), "v"(y));      \
        _mm512_storeu_si512(d, s);                                          \
    }
TWO(vaddph, "vaddph")
TWO(vsubph, "vsubph")
TWO(vmulph, "vmulph")
TWO(vdivph, "vdivph")

FOR(FP16) void vsqrtph(void *d, const void *a, const void *b)
{
    const __m512i x = _mm512_loadu_si512(a);
    __m512i s;
    (void)b;
    __asm__("vsqrtph %1, %0" : "=v"(s) : "v"(x));
    _mm512_storeu_si512(d, s);
}

FOR(FP16) void vfmadd231ph(void *d, const void *a, const void *b)
{
    const __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b);
    __m512i s = _mm512_loadu_si512(d);
    __asm__("vfmadd231ph %2, %1, %0" : "+v"(s) : "v"(x), "v"(y));
    _mm512_storeu_si512(d, s);
}

FOR(FP16) void vcvtph2psx(void *d, const void *a, const void *b)
{
    const __m256i x = _mm256_loadu_si256((const __m256i *)a);
    __m512 y;
    (void)b;
    __asm__("vcvtph2psx %1, %0" : "=v"(y) : "v"(x));
    _mm512_storeu_ps(d, y);
}

FOR(FP16) void vcvtps2phx(void *d, const void *a, const void *b)
{
    const __m512 x = _mm512_loadu_ps(a);
    __m256i y;
    (void)b;
    __asm__("vcvtps2phx %1, %0" : "=v"(y) : "v"(x));
    _mm256_storeu_si256((__m256i *)d, y);
}
#define HAVE_FP16
#endif

/* ---- the table ---- */

#define RN MPSIM_ROUND_NEAREST_EVEN

#define MODEL(name, feature, model, operand, lanes, products, here, execute)                           \
    {                                                                                                  \
        name, feature, model, MPSIM_OP_FMA, RN, operand, "binary32", 0, lanes, products, here, execute \
    }
#define OPERATION(name, feature, op, mode, operand, result, traits, lanes, here, execute)          \
    {                                                                                              \
        name, feature, NULL, MPSIM_OP_##op, mode, operand, result, traits, lanes, 1, here, execute \
    }

static const cpu_instruction instructions[] = {
#ifdef HAVE_BF16
    MODEL("vdpbf16ps zmm", "AVX512_BF16", "avx512-bf16-fp32", "bf16", 16, 2, has_avx512_bf16, vdpbf16ps_zmm),
    MODEL("vdpbf16ps ymm", "AVX512_BF16", "avx512-bf16-fp32", "bf16", 8, 2, has_avx512_bf16, vdpbf16ps_ymm),
    MODEL("vdpbf16ps xmm", "AVX512_BF16", "avx512-bf16-fp32", "bf16", 4, 2, has_avx512_bf16, vdpbf16ps_xmm),
    MODEL("vdpbf16ps zmm, MXCSR toward zero", "AVX512_BF16", "avx512-bf16-fp32", "bf16", 16, 2, has_avx512_bf16,
          vdpbf16ps_mxcsr),
    OPERATION("vcvtneps2bf16 zmm", "AVX512_BF16", CONVERT, RN, "binary32", "bf16", CPU_FLUSH_INPUT, 16, has_avx512_bf16,
              vcvtneps2bf16),
    OPERATION("vcvtne2ps2bf16 zmm", "AVX512_BF16", CONVERT, RN, "binary32", "bf16", CPU_FLUSH_INPUT, 32,
              has_avx512_bf16, vcvtne2ps2bf16),
#endif
    OPERATION("vcvtph2ps ymm", "F16C", CONVERT, RN, "fp16", "binary32", 0, 8, has_f16c, vcvtph2ps_ymm),
    OPERATION("vcvtps2ph ymm, nearest", "F16C", CONVERT, RN, "binary32", "fp16", 0, 8, has_f16c, vcvtps2ph_rne),
    OPERATION("vcvtps2ph ymm, down", "F16C", CONVERT, MPSIM_ROUND_DOWN, "binary32", "fp16", 0, 8, has_f16c,
              vcvtps2ph_down),
    OPERATION("vcvtps2ph ymm, up", "F16C", CONVERT, MPSIM_ROUND_UP, "binary32", "fp16", 0, 8, has_f16c, vcvtps2ph_up),
    OPERATION("vcvtps2ph ymm, toward zero", "F16C", CONVERT, MPSIM_ROUND_TOWARD_ZERO, "binary32", "fp16", 0, 8,
              has_f16c, vcvtps2ph_zero),
    OPERATION("vcvtph2ps zmm", "AVX512F", CONVERT, RN, "fp16", "binary32", 0, 16, has_avx512, vcvtph2ps_zmm),
    OPERATION("vcvtps2ph zmm, nearest", "AVX512F", CONVERT, RN, "binary32", "fp16", 0, 16, has_avx512, vcvtps2ph_zmm),
    OPERATION("vfmadd231ps ymm", "FMA", FMA, RN, "binary32", "binary32", CPU_NAN_MINUS, 8, has_fma, vfmadd231ps_ymm),
    OPERATION("vfmadd231ps zmm", "AVX512F", FMA, RN, "binary32", "binary32", CPU_NAN_MINUS, 16, has_avx512,
              vfmadd231ps_zmm),
    MODEL("tdpbf16ps", "AMX_BF16", "amx-bf16-fp32", "bf16", 1, 32, has_amx_bf16, NULL),
    MODEL("tdpfp16ps", "AMX_FP16", "amx-fp16-fp32", "fp16", 1, 32, has_amx_fp16, NULL),
    MODEL("tdpbf8ps and others", "AMX_FP8", "amx-fp8-fp32", "e5m2", 1, 64, has_amx_fp8, NULL),
#ifdef HAVE_FP16
    OPERATION("vaddph zmm", "AVX512_FP16", ADD, RN, "fp16", "fp16", CPU_NAN_MINUS, 32, has_avx512_fp16, vaddph),
    OPERATION("vsubph zmm", "AVX512_FP16", SUB, RN, "fp16", "fp16", CPU_NAN_MINUS, 32, has_avx512_fp16, vsubph),
    OPERATION("vmulph zmm", "AVX512_FP16", MUL, RN, "fp16", "fp16", CPU_NAN_MINUS, 32, has_avx512_fp16, vmulph),
    OPERATION("vdivph zmm", "AVX512_FP16", DIV, RN, "fp16", "fp16", CPU_NAN_MINUS, 32, has_avx512_fp16, vdivph),
    OPERATION("vsqrtph zmm", "AVX512_FP16", SQRT, RN, "fp16", "fp16", CPU_NAN_MINUS, 32, has_avx512_fp16, vsqrtph),
    OPERATION("vfmadd231ph zmm", "AVX512_FP16", FMA, RN, "fp16", "fp16", CPU_NAN_MINUS, 32, has_avx512_fp16,
              vfmadd231ph),
    OPERATION("vcvtph2psx zmm", "AVX512_FP16", CONVERT, RN, "fp16", "binary32", 0, 16, has_avx512_fp16, vcvtph2psx),
    OPERATION("vcvtps2phx zmm", "AVX512_FP16", CONVERT, RN, "binary32", "fp16", 0, 16, has_avx512_fp16, vcvtps2phx),
#endif
};

const cpu_instruction *cpu_instruction_at(size_t i)
{
    return i < sizeof instructions / sizeof instructions[0] ? &instructions[i] : NULL;
}

/* ---- this CPU ---- */

void cpu_words(char *out, size_t size)
{
    unsigned a = 0, b = 0, c = 0, d = 0, brand[13] = {0};
    char maker[13] = {0};
    __get_cpuid(0, &a, &b, &c, &d);
    memcpy(maker, &b, 4);
    memcpy(maker + 4, &d, 4);
    memcpy(maker + 8, &c, 4);
    __get_cpuid(1, &a, &b, &c, &d);
    const unsigned base = a >> 8 & 15, family = base == 15 ? base + (a >> 20 & 255) : base;
    const unsigned model = (a >> 4 & 15) | (base == 15 || base == 6 ? a >> 12 & 0xf0 : 0);
    for (unsigned i = 0; i < 3; i++)
        __get_cpuid(0x80000002 + i, &brand[4 * i], &brand[4 * i + 1], &brand[4 * i + 2], &brand[4 * i + 3]);
    snprintf(out, size, "%s family %u model %u stepping %u, %s", maker, family, model, a & 15, (const char *)brand);
    for (size_t n = strlen(out); n && out[n - 1] == ' '; n--)
        out[n - 1] = 0;
}
