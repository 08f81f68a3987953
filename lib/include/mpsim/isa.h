/* isa.h -- the instruction sets that the array functions can use.
 *
 * The best one that the machine has is used by itself. Tests and measurements may choose
 * another; results never differ by a bit. */
#ifndef MPSIM_ISA_H
#define MPSIM_ISA_H

#include <mpsim/status.h>
#include <stddef.h>

MPSIM_BEGIN

/* mpsim_isa_at -- names of what was compiled in, best first: "avx512", "avx2" (with FMA),
 * "neon", "generic" (vectors of 128 bits as the compiler makes them), "scalar" (the reference
 * alone); NULL past the end. */
MPSIM_API const char *mpsim_isa_at(size_t i);

/* mpsim_isa_active -- the name of the one in use. */
MPSIM_API const char *mpsim_isa_active(void);

/* mpsim_isa_use -- use this one from now on, in all threads.
 *
 * MPSIM_ENOTFOUND for an unknown name, MPSIM_EUNAVAILABLE if the machine lacks it; the choice
 * is unchanged then. There is no silent fallback. */
MPSIM_API mpsim_status mpsim_isa_use(const char *name);

MPSIM_END

#endif
