/* loops.h -- the inner loops of matrix products, compiled once for each instruction set: one or
 * more rows of a times a panel of MPSIM_PANEL columns of b.
 *
 * Which one runs changes speed, never a bit. */
#pragma once

#include "../cut.h"
#include "../exact.h"
#include "../groups.h"
#include "../kinds.h"
#include "../scaledgroups.h"
#include "../lanes.h"
#include "../rounded.h"
#include "../tile_lane.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

typedef struct mpsim_loops {
    mpsim_panel_decode_function *decode;
    mpsim_look_function *look_f32, *look_f64;
    mpsim_widen_function *widen;
    mpsim_kinds_function *kinds;
    mpsim_tile_function *tile;
    mpsim_fused_function *fused;
    mpsim_chain_function *chain;
    mpsim_doubles_function *exact;
    mpsim_halves_function *halves;
    mpsim_odd_function *odd;
    mpsim_slice_function *slice;
    mpsim_slices_function *slices;
    mpsim_rounded_function *rounded_f32, *rounded_f64;
    mpsim_outer_function *outer_f32, *outer_f64;
    mpsim_lanes_function *lanes;
    mpsim_doubles_function *doubles;
    mpsim_scaledgroups_function *scaledgroups;
    mpsim_group_function *groups;
    mpsim_odd_groups_function *odd_groups;
    mpsim_cut_function *cut;
    mpsim_cut_probe *cuts;
    mpsim_mark_function *mark_row, *mark_columns;
    mpsim_wide_function *wide;
    size_t wide_from; /* products of a line that these chains are worth */
    mpsim_cut_probe *wide_cuts;
    mpsim_line_function *wide_row, *wide_columns;
} mpsim_loops;

extern const mpsim_loops mpsim_loops_generic, mpsim_loops_avx2, mpsim_loops_avx512;

/* mpsim_loops_active -- those of the active instruction set (mpsim/isa.h). */
const mpsim_loops *mpsim_loops_active(void);
