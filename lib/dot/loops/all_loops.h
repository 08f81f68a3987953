/* all_loops.h -- the inner loops that every unit of an instruction set has, and their table LOOPS; included once by a unit, behind its
 * TILE and CHAIN. */
#include "decode_loops.h"
#include "kinds_loops.h"
#include "exact_loops.h"
#include "fused_loops.h"
#include "cut_loops.h"
#include "wide_loops.h"
#include "staged_loops.h"
#include "wide_rows.h"
#include "scaledgroups_loops.h"
#include "lanes_loops.h"
#include "rounded_vectors.h"
#include "doubles_loops.h"
#include "group_loops.h"

const mpsim_loops LOOPS = {.decode = decode,
                           .look_f32 = look_f32,
                           .look_f64 = look_f64,
                           .widen = widen,
                           .kinds = kinds,
                           .tile = TILE,
                           .fused = fused,
                           .chain = CHAIN,
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
