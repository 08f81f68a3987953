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
#define LOOPS mpsim_loops_avx512
#include "all_loops.h"
