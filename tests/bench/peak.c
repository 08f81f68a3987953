/* peak.c -- see peak.h. Twelve registers, in assembly: no compiler takes it apart. */
#include "peak.h"

#include <mpsim/isa.h>

#include <string.h>

enum { TIMES = 100000, REGISTERS = 12 };

#if defined __x86_64__

/* clang-format off */
#define CLEAR(w, i) "vxorps %%xmm" #i ", %%xmm" #i ", %%xmm" #i "\n\t"
#define FUSED_F32(w, i) "vfmadd231ps %%" w "14, %%" w "15, %%" w #i "\n\t"
#define FUSED_F64(w, i) "vfmadd231pd %%" w "14, %%" w "15, %%" w #i "\n\t"
#define PRODUCT_AND_SUM(w, i) "vmulps %%" w "14, %%" w "15, %%" w "13\n\tvaddps %%" w "15, %%" w #i ", %%" w #i "\n\t"
#define ALL(what, w) what(w, 0) what(w, 1) what(w, 2) what(w, 3) what(w, 4) what(w, 5) what(w, 6) what(w, 7) \
    what(w, 8) what(w, 9) what(w, 10) what(w, 11)
#define LOOP(name, what, w)                                                                                  \
    static void name(void *context)                                                                          \
    {                                                                                                        \
        (void)context;                                                                                       \
        long n = TIMES;                                                                                      \
        __asm__ volatile(ALL(CLEAR, w) CLEAR(w, 13) CLEAR(w, 14) CLEAR(w, 15)                                \
                         "1:\n\t" ALL(what, w) "dec %0\n\tjnz 1b\n\tvzeroupper"                              \
                         : "+r"(n) : : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", \
                           "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");            \
    }
/* clang-format on */

LOOP(fused_f32_avx2, FUSED_F32, "ymm")
LOOP(fused_f64_avx2, FUSED_F64, "ymm")
LOOP(product_and_sum_avx2, PRODUCT_AND_SUM, "ymm")
LOOP(fused_f32_avx512, FUSED_F32, "zmm")
LOOP(fused_f64_avx512, FUSED_F64, "zmm")
LOOP(product_and_sum_avx512, PRODUCT_AND_SUM, "zmm")

static const struct loop {
    const char *isa;
    size_t bytes; /* of a vector */
    void (*run[3])(void *);
} loops[] = {{"avx512",
              64,
              {[PEAK_FUSED_F32] = fused_f32_avx512,
               [PEAK_PRODUCT_AND_SUM_F32] = product_and_sum_avx512,
               [PEAK_FUSED_F64] = fused_f64_avx512}},
             {"avx2",
              32,
              {[PEAK_FUSED_F32] = fused_f32_avx2,
               [PEAK_PRODUCT_AND_SUM_F32] = product_and_sum_avx2,
               [PEAK_FUSED_F64] = fused_f64_avx2}}};

double bench_peak(const bench *b, int kind)
{
    const size_t each = kind == PEAK_FUSED_F64 ? sizeof(double) : sizeof(float);
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        if (strcmp(loops[i].isa, mpsim_isa_active()) == 0)
            return bench_seconds(b, loops[i].run[kind], NULL) /
                   ((double)TIMES * REGISTERS * (double)(loops[i].bytes / each));
    return 0;
}

#else

double bench_peak(const bench *b, int kind)
{
    (void)b;
    (void)kind;
    return 0;
}

#endif
