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
#include "decode_loops.h"
#include "exact_loops.h"
#include "fused_loops.h"
#include "cut_loops.h"
#include "wide_loops.h"
#include "scaledgroups_loops.h"
#include "lanes_loops.h"
#include "rounded_vectors.h"
#include "doubles_loops.h"
#include "group_loops.h"

const mpsim_loops mpsim_loops_generic = {.decode = decode,
                                         .look_f32 = look_f32,
                                         .look_f64 = look_f64,
                                         .widen = widen,
                                         .tile = tile_generic,
                                         .fused = fused,
                                         .chain = chain_generic,
                                         .exact = exact_doubles,
                                         .halves = halves,
                                         .odd = odd,
                                         .slice = slice,
                                         .slices = slices,
                                         .rounded_f32 = rounded_f32,
                                         .rounded_f64 = rounded_f64,
                                         .outer_f32 = outer_f32,
                                         .outer_f64 = outer_f64,
                                         .lanes = lanes,
                                         .doubles = doubles,
                                         .scaledgroups = scaledgroups,
                                         .groups = groups,
                                         .odd_groups = odd_groups,
                                         .cut = cut,
                                         .cuts = cuts,
                                         .mark_row = mark_row,
                                         .mark_columns = mark_columns,
                                         .wide = wide,
                                         .wide_from = WIDE_FROM,
                                         .wide_cuts = wide_cuts,
                                         .wide_row = wide_row,
                                         .wide_columns = wide_columns};

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
