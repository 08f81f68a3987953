/* avx2.c -- the inner loops for AVX2 and FMA; compiled with their flags. */
#include "loops.h"

#include "../../simd/avx2.h"

#define VECTOR __m256
#define LANES 8
#define ROWS 4 /* 4 rows of 2 vectors: 8 chains hide the latency of an FMA */
#define PANELS 1
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define SPLAT _mm256_set1_ps
#define MUL _mm256_mul_ps
#define ADD _mm256_add_ps
#define FMA _mm256_fmadd_ps
#define TILE tile_avx2
#define CHAIN chain_avx2
#include "tile_loops.h"
#include "chain_vectors.h"
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

const mpsim_loops mpsim_loops_avx2 = {.decode = decode,
                                      .look_f32 = look_f32,
                                      .look_f64 = look_f64,
                                      .widen = widen,
                                      .tile = tile_avx2,
                                      .fused = fused,
                                      .chain = chain_avx2,
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
