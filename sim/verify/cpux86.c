/* cpux86.c -- instructions of x86 CPUs; see cpu.h. Each function is compiled for its instruction set alone, and
 * runs where CPUID says that it may. */
#include "cpu.h"

#include <cpuid.h>
#include <immintrin.h>
#include <stdio.h>
#include <string.h>
#if defined __x86_64__ && defined __linux__
#define HAVE_TILES
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#define FOR(features) __attribute__((target(features))) static

/* ---- what is here ---- */

enum { YMM = 0x6, ZMM = 0xe6, TILES = 0x60000 }; /* registers that the operating system saves, as XCR0 has them */

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

#define SCALAR(name, instruction)                                                     \
    FOR(FP16) void name(void *d, const void *a, const void *b)                        \
    {                                                                                 \
        uint16_t code[3];                                                             \
        memcpy(&code[0], a, 2);                                                       \
        memcpy(&code[1], b, 2);                                                       \
        memcpy(&code[2], d, 2);                                                       \
        const __m128i x = _mm_cvtsi32_si128(code[0]), y = _mm_cvtsi32_si128(code[1]); \
        __m128i s = _mm_cvtsi32_si128(code[2]);                                       \
        __asm__(instruction " %2, %1, %0" : "+v"(s) : "v"(x), "v"(y));                \
        code[2] = (uint16_t)_mm_cvtsi128_si32(s);                                     \
        memcpy(d, &code[2], 2);                                                       \
    }
SCALAR(vaddsh, "vaddsh")
SCALAR(vsubsh, "vsubsh")
SCALAR(vmulsh, "vmulsh")
SCALAR(vdivsh, "vdivsh")
SCALAR(vfmadd231sh, "vfmadd231sh")

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

/* ---- AMX: tiles. In bytes, since assemblers know few of the instructions; d, a, b are tmm0, tmm1, tmm2 ---- */

#ifdef HAVE_TILES
typedef struct shape {
    size_t rows, columns, width; /* d is rows x columns, a is rows x width, b is width x columns, of 4 bytes */
} shape;

/* What LDTILECFG reads. */
typedef struct configuration {
    uint8_t palette, start, zero[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} configuration;

#define LOAD(reg, from, bytes) \
    __asm__ volatile(".byte 0xc4, 0xe2, 0x7b, 0x4b, " reg ", 0x08" ::"a"(from), "c"(bytes) : "memory")
#define TILE_0 "0x04"
#define TILE_1 "0x0c"
#define TILE_2 "0x14"

static inline void load_tiles(shape s, const void *d, const void *a, const void *b)
{
    configuration c = {.palette = 1};
    uint32_t pairs[16][16]; /* b as a tile has it: row i has number i of 4 bytes of every column */
    for (size_t i = 0; i < s.width; i++)
        for (size_t j = 0; j < s.columns; j++)
            memcpy(&pairs[i][j], (const char *)b + 4 * (j * s.width + i), 4);
    c.rows[0] = c.rows[1] = (uint8_t)s.rows;
    c.rows[2] = (uint8_t)s.width;
    c.row_bytes[0] = c.row_bytes[2] = (uint16_t)(4 * s.columns);
    c.row_bytes[1] = (uint16_t)(4 * s.width);
    __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0x00" ::"a"(&c) : "memory"); /* ldtilecfg (%rax) */
    LOAD(TILE_0, d, 4 * s.columns);                                              /* tileloadd (%rax,%rcx,1), %tmm0 */
    LOAD(TILE_1, a, 4 * s.width);
    LOAD(TILE_2, pairs, sizeof pairs[0]);
}

static inline void store_tile(shape s, void *d)
{
    __asm__ volatile(".byte 0xc4, 0xe2, 0x7a, 0x4b, 0x04, 0x08" ::"a"(d), "c"(4 * s.columns) : "memory");
    __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0xc0" ::: "memory"); /* tilerelease */
}

#define TILED(name, code, rows, columns, width)                \
    static void name(void *d, const void *a, const void *b)    \
    {                                                          \
        const shape s = {rows, columns, width};                \
        load_tiles(s, d, a, b);                                \
        __asm__ volatile(".byte " code ", 0xc1" ::: "memory"); \
        store_tile(s, d);                                      \
    }
#define TDPBF16PS "0xc4, 0xe2, 0x6a, 0x5c"
#define TDPFP16PS "0xc4, 0xe2, 0x6b, 0x5c"
#define TDPBF8PS "0xc4, 0xe5, 0x68, 0xfd"
#define TDPHF8PS "0xc4, 0xe5, 0x69, 0xfd"
TILED(tdpbf16ps, TDPBF16PS, 16, 16, 16)
TILED(tdpbf16ps_two, TDPBF16PS, 16, 16, 1)
TILED(tdpbf16ps_odd, TDPBF16PS, 5, 7, 7)
TILED(tdpfp16ps, TDPFP16PS, 16, 16, 16)
TILED(tdpfp16ps_two, TDPFP16PS, 16, 16, 1)
TILED(tdpfp16ps_odd, TDPFP16PS, 5, 7, 7)
TILED(tdpbf8ps, TDPBF8PS, 16, 16, 16)
TILED(tdpbf8ps_four, TDPBF8PS, 16, 16, 1)
TILED(tdphf8ps, TDPHF8PS, 16, 16, 16)
TILED(tdphf8ps_four, TDPHF8PS, 16, 16, 1)

/* With rounding toward zero: the instruction is to ask MXCSR for nothing. */
#define TILED_MXCSR(name, instruction)                      \
    static void name(void *d, const void *a, const void *b) \
    {                                                       \
        const unsigned before = _mm_getcsr();               \
        _mm_setcsr(0x1f80 | 0x6000);                        \
        instruction(d, a, b);                               \
        _mm_setcsr(before);                                 \
    }
TILED_MXCSR(tdpbf16ps_mxcsr, tdpbf16ps)
TILED_MXCSR(tdpfp16ps_mxcsr, tdpfp16ps)

/* The kernel lets a process use tiles when asked; its threads inherit that. */
static int tiles_allowed(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 };
    return has(LEAF_7_D, 24, TILES) && syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

/* Whether the instruction can be executed: another process tries. Virtual machines have CPUs that execute what their
 * CPUID leaves out. */
static int executes(void (*execute)(void *d, const void *a, const void *b))
{
    int status;
    if (!tiles_allowed())
        return 0;
    const pid_t child = fork();
    if (child == 0) {
        static uint32_t d[256], a[256], b[256];
        execute(d, a, b);
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
}

#define TRIED(name, instruction)               \
    static int name(void)                      \
    {                                          \
        static int known;                      \
        if (!known)                            \
            known = 1 + executes(instruction); \
        return known - 1;                      \
    }
TRIED(has_amx_bf16, tdpbf16ps)
TRIED(has_amx_fp16, tdpfp16ps)
TRIED(has_amx_fp8, tdpbf8ps)
#endif

/* ---- the table ---- */

#define RN MPSIM_ROUND_NEAREST_EVEN

#define TILE(name, feature, model, operand, rows, lanes, products, here, execute)                            \
    {                                                                                                        \
        name, feature, model, MPSIM_OP_FMA, RN, operand, "binary32", 0, rows, lanes, products, here, execute \
    }
#define MODEL(name, feature, model, operand, lanes, products, here, execute) \
    TILE(name, feature, model, operand, 0, lanes, products, here, execute)
#define OPERATION(name, feature, op, mode, operand, result, traits, lanes, here, execute)             \
    {                                                                                                 \
        name, feature, NULL, MPSIM_OP_##op, mode, operand, result, traits, 0, lanes, 1, here, execute \
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
#ifdef HAVE_TILES
    TILE("tdpbf16ps", "AMX_BF16", "amx-bf16-fp32", "bf16", 16, 16, 32, has_amx_bf16, tdpbf16ps),
    TILE("tdpbf16ps, two products", "AMX_BF16", "amx-bf16-fp32", "bf16", 16, 16, 2, has_amx_bf16, tdpbf16ps_two),
    TILE("tdpbf16ps, 14 products", "AMX_BF16", "amx-bf16-fp32", "bf16", 5, 7, 14, has_amx_bf16, tdpbf16ps_odd),
    TILE("tdpbf16ps, MXCSR toward zero", "AMX_BF16", "amx-bf16-fp32", "bf16", 16, 16, 32, has_amx_bf16,
         tdpbf16ps_mxcsr),
    TILE("tdpfp16ps", "AMX_FP16", "amx-fp16-fp32", "fp16", 16, 16, 32, has_amx_fp16, tdpfp16ps),
    TILE("tdpfp16ps, two products", "AMX_FP16", "amx-fp16-fp32", "fp16", 16, 16, 2, has_amx_fp16, tdpfp16ps_two),
    TILE("tdpfp16ps, 14 products", "AMX_FP16", "amx-fp16-fp32", "fp16", 5, 7, 14, has_amx_fp16, tdpfp16ps_odd),
    TILE("tdpfp16ps, MXCSR toward zero", "AMX_FP16", "amx-fp16-fp32", "fp16", 16, 16, 32, has_amx_fp16,
         tdpfp16ps_mxcsr),
    TILE("tdpbf8ps", "AMX_FP8", "amx-fp8-fp32", "e5m2", 16, 16, 64, has_amx_fp8, tdpbf8ps),
    TILE("tdpbf8ps, four products", "AMX_FP8", "amx-fp8-fp32", "e5m2", 16, 16, 4, has_amx_fp8, tdpbf8ps_four),
    TILE("tdphf8ps", "AMX_FP8", "amx-fp8-fp32", "e4m3", 16, 16, 64, has_amx_fp8, tdphf8ps),
    TILE("tdphf8ps, four products", "AMX_FP8", "amx-fp8-fp32", "e4m3", 16, 16, 4, has_amx_fp8, tdphf8ps_four),
#endif
#ifdef HAVE_FP16
    OPERATION("vaddph zmm", "AVX512_FP16", ADD, RN, "fp16", "fp16", CPU_NAN_MINUS, 32, has_avx512_fp16, vaddph),
    OPERATION("vsubph zmm", "AVX512_FP16", SUB, RN, "fp16", "fp16", CPU_NAN_MINUS, 32, has_avx512_fp16, vsubph),
    OPERATION("vmulph zmm", "AVX512_FP16", MUL, RN, "fp16", "fp16", CPU_NAN_MINUS, 32, has_avx512_fp16, vmulph),
    OPERATION("vdivph zmm", "AVX512_FP16", DIV, RN, "fp16", "fp16", CPU_NAN_MINUS, 32, has_avx512_fp16, vdivph),
    OPERATION("vsqrtph zmm", "AVX512_FP16", SQRT, RN, "fp16", "fp16", CPU_NAN_MINUS, 32, has_avx512_fp16, vsqrtph),
    OPERATION("vfmadd231ph zmm", "AVX512_FP16", FMA, RN, "fp16", "fp16", CPU_NAN_MINUS, 32, has_avx512_fp16,
              vfmadd231ph),
    OPERATION("vaddsh", "AVX512_FP16", ADD, RN, "fp16", "fp16", CPU_NAN_MINUS, 1, has_avx512_fp16, vaddsh),
    OPERATION("vsubsh", "AVX512_FP16", SUB, RN, "fp16", "fp16", CPU_NAN_MINUS, 1, has_avx512_fp16, vsubsh),
    OPERATION("vmulsh", "AVX512_FP16", MUL, RN, "fp16", "fp16", CPU_NAN_MINUS, 1, has_avx512_fp16, vmulsh),
    OPERATION("vdivsh", "AVX512_FP16", DIV, RN, "fp16", "fp16", CPU_NAN_MINUS, 1, has_avx512_fp16, vdivsh),
    OPERATION("vfmadd231sh", "AVX512_FP16", FMA, RN, "fp16", "fp16", CPU_NAN_MINUS, 1, has_avx512_fp16, vfmadd231sh),
    OPERATION("vcvtph2psx zmm", "AVX512_FP16", CONVERT, RN, "fp16", "binary32", 0, 16, has_avx512_fp16, vcvtph2psx),
    OPERATION("vcvtps2phx zmm", "AVX512_FP16", CONVERT, RN, "binary32", "fp16", 0, 16, has_avx512_fp16, vcvtps2phx),
#endif
};

const cpu_instruction *verify_cpu_instruction_at(size_t i)
{
    return i < sizeof instructions / sizeof instructions[0] ? &instructions[i] : NULL;
}

/* ---- this CPU ---- */

void verify_cpu_words(char *out, size_t size)
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
