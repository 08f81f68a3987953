/* isa.c -- instruction sets, best first; see mpsim/isa.h. */
#include "config.h"

#include "isa.h"

#include <mpsim/isa.h>
#include <stdatomic.h>
#include <string.h>

typedef struct row {
    const char *name;
    mpsim_isa isa;
    int (*available)(void);
} row;

#if defined HAVE_AVX2 || defined HAVE_AVX512
/* By CPUID itself: __builtin_cpu_supports asks a library of the compiler, which may be a stub that says no (zig's). */
#include <cpuid.h>

enum { YMM = 0x6, ZMM = 0xe6 }; /* registers, as XCR0 has them */

/* Whether the operating system saves the registers, and the processor has FMA, F16C and these features of leaf 7, in ebx and
 * in ecx. */
static int has(unsigned registers, unsigned features, unsigned more)
{
    unsigned a, b, c, d, saved, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_FMA) || !(c & bit_F16C))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    return (saved & registers) == registers && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & features) == features &&
           (c & more) == more;
}

/* has, asked once: in a virtual machine CPUID is answered by the host, which takes as long as thousands of casts. */
static int has_once(atomic_int *known, unsigned registers, unsigned features, unsigned more)
{
    int k = atomic_load_explicit(known, memory_order_relaxed);
    if (k < 0) {
        k = has(registers, features, more);
        atomic_store_explicit(known, k, memory_order_relaxed);
    }
    return k;
}
#endif

#ifdef HAVE_AVX512
static int has_avx512(void)
{
    static atomic_int known = -1;
    return has_once(&known, ZMM, (unsigned)(bit_AVX512F | bit_AVX512CD | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL),
                    0);
}
#endif

int mpsim_isa_counts_bits(void)
{
#ifdef HAVE_AVX512
    enum { VPOPCNTDQ = 1 << 14 };
    static atomic_int known = -1;
    return has_once(&known, ZMM, bit_AVX512F, VPOPCNTDQ);
#else
    return 0;
#endif
}

#ifdef HAVE_AVX2
static int has_avx2(void)
{
    static atomic_int known = -1;
    return has_once(&known, YMM, bit_AVX2, 0);
}
#endif

static int always(void)
{
    return 1;
}

static const row rows[] = {
#ifdef HAVE_AVX512
    {"avx512", MPSIM_ISA_AVX512, has_avx512},
#endif
#ifdef HAVE_AVX2
    {"avx2", MPSIM_ISA_AVX2, has_avx2},
#endif
#ifdef HAVE_NEON
    {"neon", MPSIM_ISA_NEON, always},
#endif
    {"generic", MPSIM_ISA_GENERIC, always},   {"scalar", MPSIM_ISA_SCALAR, always},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static atomic_int active = -1; /* index of a row; -1: not chosen yet */

static const row *choose(void)
{
    int i = atomic_load_explicit(&active, memory_order_relaxed);
    if (i < 0) {
        for (i = 0; !rows[i].available(); i++)
            ;
        atomic_store_explicit(&active, i, memory_order_relaxed);
    }
    return &rows[i];
}

mpsim_isa mpsim_isa_choice(void)
{
    return choose()->isa;
}

const char *mpsim_isa_at(size_t i)
{
    return i < ROWS ? rows[i].name : NULL;
}

const char *mpsim_isa_active(void)
{
    return choose()->name;
}

mpsim_status mpsim_isa_use(const char *name)
{
    if (!name)
        return MPSIM_EINVAL;
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0) {
            if (!rows[i].available())
                return MPSIM_EUNAVAILABLE;
            atomic_store_explicit(&active, i, memory_order_relaxed);
            return MPSIM_OK;
        }
    return MPSIM_ENOTFOUND;
}
