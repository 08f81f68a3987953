/* avx512.c -- the inner loops for AVX-512; compiled with its flags. */
#include "loops.h"

#include "../../simd/avx512.h"

#define VECTOR __m512
#define LANES 16
#define ROWS 8
#define PANELS 2 /* 8 rows of 2 vectors: 10 loads for 16 FMAs, whose latency 16 chains hide */
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define SPLAT _mm512_set1_ps
#define MUL _mm512_mul_ps
#define ADD _mm512_add_ps
#define FMA _mm512_fmadd_ps
#define TILE tile_avx512
#define CHAIN chain_avx512
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

const mpsim_loops mpsim_loops_avx512 = {.decode = decode,
                                        .look_f32 = look_f32,
                                        .look_f64 = look_f64,
                                        .widen = widen,
                                        .tile = tile_avx512,
                                        .fused = fused,
                                        .chain = chain_avx512,
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
