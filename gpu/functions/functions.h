/* functions.h -- every result of the special function unit: ex2, rcp, rsqrt, lg2, sin, cos, tanh, sqrt and the approximate
 * divisions. Plain C: the instructions, which inputs, what is kept, and the interface of the device's part.
 *
 * Binary32: all 2^32 operands, by binades (sign and exponent, 512 of them, the top 9 bits of the operand): a digest of each
 * binade's results, one of a sample, and how far results are from the correctly rounded ones (exact.h). Of some binades every
 * result is kept as a difference (pack.h). 16 bits: every result is kept. Divisions: digests of drawn pairs. */
#pragma once

#include "../gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the unit approximates. */
typedef enum gpu_function {
    GPU_EX2,
    GPU_RCP,
    GPU_RSQRT,
    GPU_LG2,
    GPU_TANH,
    GPU_SIN,
    GPU_COS,
    GPU_SQRT,
    GPU_FUNCTIONS /* how many; none of them */
} gpu_function;

typedef enum gpu_shape {
    GPU_UNARY,  /* binary32                                */
    GPU_HALF,   /* 16 bits                                 */
    GPU_PACKED, /* two of 16 bits in a word                */
    GPU_BINARY  /* two operands of binary32: a quotient    */
} gpu_shape;

/* The instructions of PTX; the first GPU_FUNCTIONS are the unit's functions in their order, without code around them. */
enum { GPU_OPERATIONS = 27 };
typedef struct gpu_operation {
    const char *name; /* "ex2.approx.ftz.f32"                                                          */
    gpu_shape shape;
    int alone; /* of GPU_PACKED: the operation of one half                                             */
} gpu_operation;
const gpu_operation *gpu_operation_at(int operation);

/* How much: significands of a binade that are multiples of 2^shift, of those each step-th for the sample; pairs. */
typedef struct gpu_extent {
    int shift;
    uint32_t sample_step, pairs;
} gpu_extent;
void gpu_extent_of(gpu_extent *e, int tiny);
static inline uint32_t gpu_extent_count(const gpu_extent *e)
{
    return (uint32_t)1 << (23 - e->shift);
}

/* Of a binade; digests are sums of mpsim_mix(operand, result). GPU_HALF: number 0 is all 2^16 operands. GPU_PACKED: numbers 0
 * and 1 are the low and the high halves. GPU_BINARY: number 0 are pairs of any bits, number 1 pairs near 1; digests of
 * mpsim_mix(number of the pair, result). */
enum { GPU_BINADES = 512 };
typedef struct gpu_binade {
    uint64_t digest, sample;
} gpu_binade;

/* Distances from the correctly rounded results, in codes. */
typedef struct gpu_distance {
    uint64_t equal, one, two; /* how many are 0, 1 and 2 away */
    uint64_t largest;
} gpu_distance;

/* A binade of which every result is kept, or all of 16 bits. In the order of their value: a file that is cut has the first. */
typedef struct gpu_table {
    int operation;
    uint32_t first; /* the first operand */
} gpu_table;
size_t gpu_tables(void);
gpu_table gpu_table_at(size_t i);
uint32_t gpu_table_count(const gpu_table *t, const gpu_extent *e);
uint32_t gpu_table_operand(const gpu_table *t, const gpu_extent *e, uint32_t i);

/* ---- the device's part, which plays no rule: 0, or -1 with a line in `why` ---- */

int gpu_functions_open(gpu_device *d, char *why, size_t size);
int gpu_functions_digests(int operation, const gpu_extent *e, gpu_binade *to, char *why, size_t size);
int gpu_functions_distances(gpu_function f, const gpu_extent *e, gpu_distance *to, char *why, size_t size);
/* Results of a table, and the correctly rounded ones (16 bits: zeros). */
int gpu_functions_values(const gpu_table *t, const gpu_extent *e, uint32_t *results, uint32_t *exact, char *why,
                         size_t size);

#ifdef __cplusplus
}
#endif
