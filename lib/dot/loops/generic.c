/* generic.c -- choice of the inner loops at run time, and those without an instruction set. */
#include "config.h"

#include "loops.h"

#include "../../base/isa.h"
#include "../../simd/generic.h"

#define TILE tile_generic
#define CHAIN chain_generic
#include "tile_loops.h"
#ifdef __FP_FAST_FMAF /* an instruction of the machine that the whole library is compiled for, as of NEON */
#define VECTOR vf32
#define LANES V_LANES
#define ROWS 4
#define PANELS 1
#define LOAD v_load_f32
#define STORE v_store_f32
#define SPLAT v_f32
#define MUL(x, y) ((x) * (y))
#define ADD(x, y) ((x) + (y))
#define FMA v_fma_f32
#include "chain_vectors.h"
#else
#include "chain_portable.h"
#endif
#define LOOPS mpsim_loops_generic
#include "all_loops.h"

static const mpsim_loops *const loops[MPSIM_ISAS] = {
    [MPSIM_ISA_SCALAR] = &mpsim_loops_generic, [MPSIM_ISA_GENERIC] = &mpsim_loops_generic,
    [MPSIM_ISA_NEON] = &mpsim_loops_generic,
#ifdef HAVE_AVX2
    [MPSIM_ISA_AVX2] = &mpsim_loops_avx2,
#endif
#ifdef HAVE_AVX512
    [MPSIM_ISA_AVX512] = &mpsim_loops_avx512,
#endif
};

const mpsim_loops *mpsim_loops_active(void)
{
    return loops[mpsim_isa_choice()];
}
