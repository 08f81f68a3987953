/* environment.h -- the default floating-point environment (nearest even, subnormal numbers kept,
 * no traps), or one that rounds toward zero, while a fast path runs, and that of the caller afterwards, its flags included.
 *
 * By the control register where it is known (a few cycles), else by fenv. The operations that count
 * on it are in functions of other units, called through pointers: none can move out from between. */
#pragma once

#include <stdint.h>

#if defined __SSE2__

#include <xmmintrin.h>

#ifdef __x86_64__

typedef unsigned mpsim_environment;

enum { MPSIM_CSR_FLAGS = 0x3f };

/* Writing the register takes more than reading it: not where it has this control. */
static inline mpsim_environment mpsim_environment_set(unsigned control)
{
    const unsigned before = _mm_getcsr();
    if ((before & ~(unsigned)MPSIM_CSR_FLAGS) != control)
        _mm_setcsr(control);
    return before;
}

static inline void mpsim_environment_restore(mpsim_environment before)
{
    if (_mm_getcsr() != before)
        _mm_setcsr(before);
}

#else

/* i386: functions of its C library (sqrt of what has no root) compute in the x87, which has traps and flags of its own. */
typedef struct mpsim_environment {
    unsigned control;
    uint32_t x87[7];
} mpsim_environment;

#define MPSIM_X87 "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)"

static inline mpsim_environment mpsim_environment_set(unsigned control)
{
    mpsim_environment before;
    __asm__ volatile("fnstenv %0\n\tfninit" : "=m"(before.x87) : : MPSIM_X87);
    before.control = _mm_getcsr();
    _mm_setcsr(control);
    return before;
}

static inline void mpsim_environment_restore(mpsim_environment before)
{
    _mm_setcsr(before.control);
    __asm__ volatile("fldenv %0" : : "m"(before.x87) : MPSIM_X87);
}

#endif

static inline mpsim_environment mpsim_environment_default(void)
{
    return mpsim_environment_set(0x1f80);
}

/* The default one, but with subnormal operands read as zeros and tiny results made zeros. */
static inline mpsim_environment mpsim_environment_flushing(void)
{
    return mpsim_environment_set(0x1f80 | 0x8040);
}

/* The default one, but rounding toward zero. */
static inline mpsim_environment mpsim_environment_toward_zero(void)
{
    return mpsim_environment_set(0x1f80 | 0x6000);
}

#elif defined __aarch64__

#define mpsim_environment_flushing mpsim_environment_default /* none: see lib/dot/chain.c */

typedef struct mpsim_environment {
    uint64_t control, flags;
} mpsim_environment;

static inline mpsim_environment mpsim_environment_set(uint64_t control)
{
    mpsim_environment before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before.control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(before.flags));
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
    return before;
}

static inline mpsim_environment mpsim_environment_default(void)
{
    return mpsim_environment_set(0);
}

static inline mpsim_environment mpsim_environment_toward_zero(void)
{
    return mpsim_environment_set(0xc00000);
}

static inline void mpsim_environment_restore(mpsim_environment before)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(before.control));
    __asm__ volatile("msr fpsr, %0" : : "r"(before.flags));
}

#else

#include <fenv.h>

#define mpsim_environment_flushing mpsim_environment_default

typedef fenv_t mpsim_environment;

static inline mpsim_environment mpsim_environment_default(void)
{
    fenv_t before;
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    return before;
}

static inline mpsim_environment mpsim_environment_toward_zero(void)
{
    const mpsim_environment before = mpsim_environment_default();
    fesetround(FE_TOWARDZERO);
    return before;
}

static inline void mpsim_environment_restore(mpsim_environment before)
{
    fesetenv(&before);
}

#endif
