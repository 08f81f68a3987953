/* cpuarm.c -- instructions of 64-bit Arm CPUs; see cpu.h. Each function is compiled for its instruction set alone,
 * and runs where the kernel says that the CPU has it. Default FPCR: nearest even, nothing flushed, NaNs kept; bfdot,
 * bfmmla and bfmopa do not ask it, but for EBF. */
#include "cpu.h"

#include <arm_neon.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#define FOR(features) __attribute__((target(features))) static

/* ---- what is here: bits of the kernel's interface (asm/hwcap.h) ---- */

static int has_bf16(void)
{
    return getauxval(AT_HWCAP2) >> 14 & 1;
}

/* FPCR.EBF keeps a 1 where the CPU has FEAT_EBF16; not every kernel says so. */
enum { EBF = 1 << 13 };

static int has_ebf16(void)
{
    uint64_t before, after;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | EBF));
    __asm__ volatile("mrs %0, fpcr" : "=r"(after));
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
    return has_bf16() && after & EBF;
}

static int has_sme(void)
{
    return getauxval(AT_HWCAP2) >> 23 & 1;
}

static int has_sme_ebf16(void)
{
    return has_sme() && has_ebf16();
}

static int has_fhm(void)
{
    return getauxval(AT_HWCAP) >> 23 & 1;
}

static int has_simd(void)
{
    return getauxval(AT_HWCAP) >> 1 & 1;
}

/* ---- FEAT_BF16 ---- */

#define BF16 "arch=armv8.2-a+bf16"

FOR(BF16) void bfdot(void *d, const void *a, const void *b)
{
    float32x4_t s = vld1q_f32(d);
    const uint16x8_t x = vld1q_u16(a), y = vld1q_u16(b);
    __asm__("bfdot %0.4s, %1.8h, %2.8h" : "+w"(s) : "w"(x), "w"(y));
    vst1q_f32(d, s);
}

/* An element of four products at a time: row i of the first, row j of the second operand. */
FOR(BF16) void bfmmla(void *d, const void *a, const void *b)
{
    for (size_t l = 0; l < 4; l++) {
        uint16_t x[8] = {0}, y[8] = {0};
        float c[4] = {0};
        memcpy(x + 4 * (l / 2), (const uint16_t *)a + 4 * l, 8);
        memcpy(y + 4 * (l % 2), (const uint16_t *)b + 4 * l, 8);
        memcpy(&c[l], (const float *)d + l, 4);
        float32x4_t s = vld1q_f32(c);
        const uint16x8_t u = vld1q_u16(x), v = vld1q_u16(y);
        __asm__("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(s) : "w"(u), "w"(v));
        vst1q_f32(c, s);
        memcpy((float *)d + l, &c[l], 4);
    }
}

/* Elements 0, 2, 4, 6 (bfmlalb) or 1, 3, 5, 7 of a register. */
#define BFMLAL(name, first)                                               \
    FOR(BF16) void name(void *d, const void *a, const void *b)            \
    {                                                                     \
        uint16_t x[8] = {0}, y[8] = {0};                                  \
        for (size_t l = 0; l < 4; l++) {                                  \
            x[2 * l + first] = ((const uint16_t *)a)[l];                  \
            y[2 * l + first] = ((const uint16_t *)b)[l];                  \
        }                                                                 \
        float32x4_t s = vld1q_f32(d);                                     \
        const uint16x8_t u = vld1q_u16(x), v = vld1q_u16(y);              \
        __asm__(#name " %0.4s, %1.8h, %2.8h" : "+w"(s) : "w"(u), "w"(v)); \
        vst1q_f32(d, s);                                                  \
    }
BFMLAL(bfmlalb, 0)
BFMLAL(bfmlalt, 1)

FOR(BF16) void bfcvtn(void *d, const void *a, const void *b)
{
    uint16x4_t r;
    const float32x4_t x = vld1q_f32(a);
    (void)b;
    __asm__("bfcvtn %0.4h, %1.4s" : "=w"(r) : "w"(x));
    vst1_u16(d, r);
}

/* The same with FPCR.EBF set. */
#define WITH_EBF(name)                                            \
    static void name##_ebf(void *d, const void *a, const void *b) \
    {                                                             \
        uint64_t before;                                          \
        __asm__ volatile("mrs %0, fpcr" : "=r"(before));          \
        __asm__ volatile("msr fpcr, %0" : : "r"(before | EBF));   \
        name(d, a, b);                                            \
        __asm__ volatile("msr fpcr, %0" : : "r"(before));         \
    }
WITH_EBF(bfdot)
WITH_EBF(bfmmla)

/* ---- FEAT_SME: tiles of 4 x 4 results, the smallest there are; of larger ones the first four rows and columns. The
 * words are instructions, since few assemblers know them. Entering and leaving clears all vector registers. ---- */

#define STRING(x) #x
#define INST(word) ".inst " STRING(word) "\n\t"
#define ROW(load_or_store) INST(load_or_store) "add %0, %0, #16\n\t" /* of za0, number w12 + the last bits, at x0 */

#define OUTER(name, word)                                                                                              \
    static void name(void *d, const void *a, const void *b)                                                            \
    {                                                                                                                  \
        register void *to __asm__("x0") = d;                                                                           \
        register const void *x __asm__("x1") = a, *y __asm__("x2") = b;                                                \
        __asm__ volatile(INST(0xd503477f)   /* smstart */                                                              \
                         INST(0x2558e100)   /* ptrue p0.h, vl8 */                                                      \
                         INST(0x2598e081)   /* ptrue p1.s, vl4 */                                                      \
                         INST(0xa4a0a020)   /* ld1h {z0.h}, p0/z, [x1] */                                              \
                         INST(0xa4a0a041)   /* ld1h {z1.h}, p0/z, [x2] */                                              \
                         "mov w12, wzr\n\t" /* ld1w {za0h.s[w12, 0]}, p1/z, [x0] */                                    \
                         ROW(0xe09f0400) ROW(0xe09f0401) ROW(0xe09f0402) ROW(0xe09f0403)                               \
                             INST(word)        /* on za0.s, p0/m, p0/m, z0.h, z1.h */                                  \
                         "sub %0, %0, #64\n\t" /* st1w {za0h.s[w12, 0]}, p1, [x0] */                                   \
                         ROW(0xe0bf0400) ROW(0xe0bf0401) ROW(0xe0bf0402) ROW(0xe0bf0403) INST(0xd503467f) /* smstop */ \
                         : "+r"(to)                                                                                    \
                         : "r"(x), "r"(y)                                                                              \
                         : "memory", "x12", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",  \
                           "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",  \
                           "v25", "v26", "v27", "v28", "v29", "v30", "v31");                                           \
    }
OUTER(bfmopa, 0x81810000)
OUTER(fmopa, 0x81a10000)
WITH_EBF(bfmopa)

/* ---- FEAT_FHM ---- */

/* Elements 0 to 3 (fmlal) or 4 to 7 of a register. */
#define FMLAL(name, first)                                                         \
    FOR("arch=armv8.2-a+fp16fml") void name(void *d, const void *a, const void *b) \
    {                                                                              \
        uint16_t x[8] = {0}, y[8] = {0};                                           \
        memcpy(x + first, a, 8);                                                   \
        memcpy(y + first, b, 8);                                                   \
        float32x4_t s = vld1q_f32(d);                                              \
        const uint16x8_t u = vld1q_u16(x), v = vld1q_u16(y);                       \
        __asm__(#name " %0.4s, %1.4h, %2.4h" : "+w"(s) : "w"(u), "w"(v));          \
        vst1q_f32(d, s);                                                           \
    }
FMLAL(fmlal, 0)
FMLAL(fmlal2, 4)

/* ---- of every 64-bit Arm CPU ---- */

static void fcvtl(void *d, const void *a, const void *b)
{
    float32x4_t r;
    const uint16x4_t x = vld1_u16(a);
    (void)b;
    __asm__("fcvtl %0.4s, %1.4h" : "=w"(r) : "w"(x));
    vst1q_f32(d, r);
}

static void fcvtn(void *d, const void *a, const void *b)
{
    uint16x4_t r;
    const float32x4_t x = vld1q_f32(a);
    (void)b;
    __asm__("fcvtn %0.4h, %1.4s" : "=w"(r) : "w"(x));
    vst1_u16(d, r);
}

static void fmla(void *d, const void *a, const void *b)
{
    float32x4_t s = vld1q_f32(d);
    const float32x4_t x = vld1q_f32(a), y = vld1q_f32(b);
    __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(s) : "w"(x), "w"(y));
    vst1q_f32(d, s);
}

/* ---- the table; all registers have four elements of binary32, tiles four of them ---- */

#define MODEL(name, feature, model, operand, products, traits, here, execute)                                      \
    {                                                                                                              \
        name, feature, model, MPSIM_OP_FMA, MPSIM_ROUND_NEAREST_EVEN, operand, "binary32", traits, 0, 4, products, \
            here, execute                                                                                          \
    }
#define OPERATION(name, feature, op, operand, result, traits, here, execute)                                          \
    {                                                                                                                 \
        name, feature, NULL, MPSIM_OP_##op, MPSIM_ROUND_NEAREST_EVEN, operand, result, traits, 0, 4, 1, here, execute \
    }

#define TILE(name, feature, model, operand, here, execute)                                                           \
    {                                                                                                                \
        name, feature, model, MPSIM_OP_FMA, MPSIM_ROUND_NEAREST_EVEN, operand, "binary32", 0, 4, 4, 2, here, execute \
    }

static const cpu_instruction instructions[] = {
    MODEL("bfdot", "FEAT_BF16", "arm-bf16-fp32", "bf16", 2, 0, has_bf16, bfdot),
    MODEL("bfmmla", "FEAT_BF16", "arm-bf16-fp32", "bf16", 4, 0, has_bf16, bfmmla),
    MODEL("bfdot, FPCR.EBF", "FEAT_EBF16", "arm-ebf16-fp32", "bf16", 2, CPU_ANY_NAN, has_ebf16, bfdot_ebf),
    MODEL("bfmmla, FPCR.EBF", "FEAT_EBF16", "arm-ebf16-fp32", "bf16", 4, CPU_ANY_NAN, has_ebf16, bfmmla_ebf),
    TILE("bfmopa", "FEAT_SME", "arm-bf16-fp32", "bf16", has_sme, bfmopa),
    TILE("bfmopa, FPCR.EBF", "FEAT_SME, FEAT_EBF16", "arm-ebf16-fp32", "bf16", has_sme_ebf16, bfmopa_ebf),
    TILE("fmopa", "FEAT_SME", "arm-fp16-fp32", "fp16", has_sme, fmopa),
    MODEL("bfmlalb", "FEAT_BF16", "arm-bfmlal-fp32", "bf16", 1, CPU_ANY_NAN, has_bf16, bfmlalb),
    MODEL("bfmlalt", "FEAT_BF16", "arm-bfmlal-fp32", "bf16", 1, CPU_ANY_NAN, has_bf16, bfmlalt),
    MODEL("fmlal", "FEAT_FHM", "arm-fmlal-fp32", "fp16", 1, CPU_ANY_NAN, has_fhm, fmlal),
    MODEL("fmlal2", "FEAT_FHM", "arm-fmlal-fp32", "fp16", 1, CPU_ANY_NAN, has_fhm, fmlal2),
    OPERATION("bfcvtn", "FEAT_BF16", CONVERT, "binary32", "bf16", 0, has_bf16, bfcvtn),
    OPERATION("fcvtl", "FEAT_AdvSIMD", CONVERT, "fp16", "binary32", 0, has_simd, fcvtl),
    OPERATION("fcvtn", "FEAT_AdvSIMD", CONVERT, "binary32", "fp16", 0, has_simd, fcvtn),
    OPERATION("fmla", "FEAT_AdvSIMD", FMA, "binary32", "binary32", CPU_ANY_NAN, has_simd, fmla),
};

const cpu_instruction *verify_cpu_instruction_at(size_t i)
{
    return i < sizeof instructions / sizeof instructions[0] ? &instructions[i] : NULL;
}

/* ---- this CPU, from the kernel's copy of MIDR_EL1 ---- */

void verify_cpu_words(char *out, size_t size)
{
    unsigned midr = 0;
    char line[64];
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", "r");
    if (f && fgets(line, sizeof line, f))
        sscanf(line, "%x", &midr);
    if (f)
        fclose(f);
    if (midr)
        snprintf(out, size, "Arm implementer 0x%02x part 0x%03x variant %u revision %u", midr >> 24, midr >> 4 & 0xfff,
                 midr >> 20 & 15, midr & 15);
    else
        snprintf(out, size, "Arm, of an unknown kind");
}
