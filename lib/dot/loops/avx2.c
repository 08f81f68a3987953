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
#define LOOPS mpsim_loops_avx2
#include "all_loops.h"
