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

#ifdef HAVE_AVX512
static int has_avx512(void)
{
    /* __builtin_cpu_supports also asks whether the operating system saves the registers */
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

#ifdef HAVE_AVX2
static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
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
