/* block.h -- what block quantisation gives, computed a second time.
 *
 * The rows and rules are typed from TransformerEngine @d0067d0d, torchao @36027d82 and 0.18,
 * microxcaling @7bc41952, MS-AMP @9746ea85, DeepSeek-V3, DeepGEMM @38939a4c and OCP MX 1.0. The oracle enumerates the magnitudes of
 * an element format from bias and field widths and rounds by comparing with exact midpoints; its
 * binary32 operations are MPFR's at 24 bits with the exponents and subnormals of binary32. It
 * shares no code and no constant with lib/. */
#pragma once

#include "support/support.h"

#include <mpsim/block.h>

/* Element formats. */
typedef struct grid {
    const char *name;
    int bits, mbits, bias;
    unsigned top, nan; /* code of the largest number; of NaN, 0: none */
    double v[130];     /* magnitudes by code, and one beyond the top  */
} grid;

enum { ORACLE_ELEMENTS = 5, ORACLE_ROWS = 37 };

extern const char *const oracle_elements[ORACLE_ELEMENTS]; /* their names */

const grid *grid_of(const char *name);
double grid_max(const grid *g);
int grid_emax(const grid *g);

/* Rounding of elements; AWAY is microxcaling's, STOCHASTIC that of NVFP4 by a byte. */
enum { EVEN, AWAY, STOCHASTIC };

typedef struct element {
    unsigned code;
    double value;
    int overflow, underflow, subnormal, inexact, tie, not_a_number;
} element;

element oracle_cast(const grid *g, int mode, float y, unsigned random);

/* The table; the library's recipe of a row. */
typedef struct row {
    const char *name, *element;
    int rule, power, mode;
    uint32_t rows, cols;
    double inf, epsilon;
} row;

extern const row oracle_table[ORACLE_ROWS], oracle_given;

mpsim_block_recipe oracle_recipe(const row *r);
int propagates_nan(int rule);

/* The largest binary32 number. */
#define BIG 0x1.fffffep127

/* Scales. */
typedef struct scale {
    unsigned code;
    float amax, factor, inverse;
    float s8; /* NVFP4 */
} scale;

/* Under NVFP4: the scale of the tensor. */
typedef struct tensor {
    float encode, decode, amax;
} tensor;

tensor oracle_tensor(const row *r, float amax);
scale oracle_scale(const row *r, const grid *g, const tensor *t, float amax, float given);

/* An element as it is cast; whether q is that in exact numbers. */
float oracle_scaled(const row *r, const scale *s, float x);
int oracle_is_exact(const row *r, const scale *s, float x, double q);

/* What an element stands for, as the source dequantises. */
float oracle_value(const row *r, const scale *s, double q);

/* Binary32 operations. */
float f32_mul(float a, float b);
float f32_div(float a, float b);
float f32_add(float a, float b);

/* floor(log2 a) of a finite a > 0. */
int floor_log2(double a);

/* Equal bits, or NaN both. */
int block_same(float a, float b);
