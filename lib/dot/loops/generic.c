/* generic.c -- choice of the inner loops at run time, and those without an instruction set. */
#include "config.h"

#include "loops.h"

#include <mpsim/isa.h>
#include <string.h>

#define TILE  tile_generic
#define CHAIN chain_generic
#define EXACT exact_generic
#include "tile_loops.h"
#include "chain_portable.h"

const mpsim_loops mpsim_loops_generic = {tile_generic, chain_generic, exact_generic};

const mpsim_loops *mpsim_loops_active(void)
{
    const char *isa = mpsim_isa_active();
    (void)isa;
#ifdef HAVE_AVX512
    if (strcmp(isa, "avx512") == 0)
        return &mpsim_loops_avx512;
#endif
#ifdef HAVE_FMA
    /* every known processor with AVX2 has FMA, but these are two bits */
    if (strcmp(isa, "avx2") == 0 && __builtin_cpu_supports("fma"))
        return &mpsim_loops_fma;
#endif
    return &mpsim_loops_generic;
}
