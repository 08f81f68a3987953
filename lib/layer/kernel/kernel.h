/* kernel.h -- functions of arrays and rows in vectors, beside scalar.h, functions.h and transformer.h, which say what they
 * are: the same operations in the same order, with the same bits. Compiled once for each instruction set that has a fused
 * multiply-add. The bits of a NaN, too: what has a NaN among its operands is computed with operations that keep the NaN of
 * the first operand (mpsim_math_settle), and a NaN that an operation makes has the same bits everywhere. Numbers on
 * which the machine is slow: careful.h.
 *
 * There is a loop for each rounding: binary32, bf16, fp16 and any format whose overflow is infinity. The rounding
 * is a constant where the loop is compiled, so no element branches. Rounding to the format of the results is a
 * separate pass over a part in the cache. */
#pragma once

#include "../transformer.h"

#include <mpsim/transformer.h>

#include <stddef.h>

typedef struct mpsim_layer_kernels mpsim_layer_kernels;

/* y[i] = f(x[i]); y may be x. */
typedef void mpsim_layer_function(float *y, const float *x, size_t n);

typedef mpsim_number_counts mpsim_count_function(const float *x, size_t n);

/* Normal numbers of two words each (Box and Muller), of which there are some more, up to whole vectors. */
typedef void mpsim_normal_function(float deviation, float *y, const uint32_t *words, size_t n);

/* The rounding of n numbers in place. */
typedef void mpsim_round_function(const mpsim_math *m, float *x, size_t n);

/* ---- activations ---- */

typedef struct mpsim_activate_job {
    mpsim_activation kind;
    mpsim_math m, out; /* of operations, of results */
    mpsim_gelu g;
    const mpsim_layer_kernels *kernels; /* whose functions of arrays the loops over one number call */
} mpsim_activate_job;

/* v: the values of gates x; NULL but of SWIGLU. y may be x or v. */
typedef void mpsim_activate_function(const mpsim_activate_job *j, float *y, const float *x, const float *v, size_t n);

/* dv: the gradients of values, or NULL. Results may be operands. */
typedef void mpsim_activate_back_function(const mpsim_activate_job *j, float *dx, float *dv, const float *dy,
                                          const float *x, const float *v, size_t n);

/* ---- softmax ---- */

typedef enum mpsim_softmax_kind {
    MPSIM_SOFTMAX_P,
    MPSIM_SOFTMAX_LOG,
    MPSIM_SOFTMAX_BACK,
    MPSIM_SOFTMAX_LOG_BACK,
    MPSIM_SOFTMAX_KINDS
} mpsim_softmax_kind;

/* A row: n columns, of which it sees those whose byte of the mask is not 0 (NULL: all). */
typedef struct mpsim_softmax_row {
    const mpsim_math *m, *out;
    float scale; /* in m */
    size_t n;
    const uint8_t *mask;
    const mpsim_layer_kernels *kernels;
} mpsim_softmax_row;

/* y: P of scores a; their logarithm; dS of dP a and P b; dS of dy a and the logarithm b. y may be a or b. */
typedef void mpsim_softmax_function(const mpsim_softmax_row *r, float *y, const float *a, const float *b);

/* ---- cross-entropy ---- */

typedef struct mpsim_xent {
    mpsim_math m, out;
    size_t classes;
    float coefficient; /* in m */
    const mpsim_layer_kernels *kernels;
} mpsim_xent;

/* A row: its loss; 1 in *hit if the first largest logit is the label. dx may be x, or NULL. */
typedef float mpsim_xent_function(const mpsim_xent *p, float *dx, const float *x, size_t label, int *hit);

/* ---- norms of rows ---- */

typedef struct mpsim_norm_job {
    const mpsim_rownorm *r;
    mpsim_math m, out;
    float n, eps; /* in m */
    const mpsim_layer_kernels *kernels;
} mpsim_norm_job;

/* A row: bias, dy or NULL. mean and inverse, in m: forward's results. */
typedef struct mpsim_norm_row {
    const float *x, *weight, *bias, *dy;
    float mean, inverse;
} mpsim_norm_row;

/* y may be x; dx may be dy or x. */
typedef void mpsim_norm_function(const mpsim_norm_job *j, mpsim_norm_row *r, float *y);
typedef void mpsim_norm_back_function(const mpsim_norm_job *j, const mpsim_norm_row *r, float *dx);

/* ---- sums over rows ---- */

enum { MPSIM_COLUMNS_WIDTH = 16 };

/* What products are. */
typedef enum mpsim_columns_kind {
    MPSIM_COLUMNS_ROWS,     /* dy * h; mean (NULL: +0) and inverse are a number a row */
    MPSIM_COLUMNS_CHANNELS, /* dy * h; mean and inverse: MPSIM_COLUMNS_WIDTH numbers, in m */
    MPSIM_COLUMNS_SQUARES   /* (x - mean)^2, mean as CHANNELS have it */
} mpsim_columns_kind;

/* Columns `at` and on, at most MPSIM_COLUMNS_WIDTH, of matrices whose rows are `stride` apart; x NULL where products are
 * not wanted. */
typedef struct mpsim_columns {
    mpsim_columns_kind kind;
    const mpsim_math *m;
    const float *dy, *x, *mean, *inverse;
    size_t rows, stride, at, width;
} mpsim_columns;

/* sums: of dy; products; each of `width` numbers or NULL. */
typedef void mpsim_columns_function(const mpsim_columns *c, float *sums, float *products);

/* ---- batch normalisation ---- */

/* Channels `at` and on, at most MPSIM_COLUMNS_WIDTH, in m: y = h * weight + bias; dx = weight * ((dy - bias) - h * slope). */
typedef struct mpsim_channels {
    const mpsim_math *m, *out;
    size_t rows, stride, at, width;
    float mean[MPSIM_COLUMNS_WIDTH], inverse[MPSIM_COLUMNS_WIDTH], weight[MPSIM_COLUMNS_WIDTH];
    float bias[MPSIM_COLUMNS_WIDTH], slope[MPSIM_COLUMNS_WIDTH];
} mpsim_channels;

/* Arrays begin at the first channel. y may be x, dx may be dy or x. */
typedef void mpsim_channels_function(const mpsim_channels *c, float *y, const float *x);
typedef void mpsim_channels_back_function(const mpsim_channels *c, float *dx, const float *dy, const float *x);

/* ---- elements ---- */

typedef enum mpsim_elements_kind {
    MPSIM_ELEMENTS_ADD,
    MPSIM_ELEMENTS_MULTIPLY,
    MPSIM_ELEMENTS_DROP,
    MPSIM_ELEMENTS_KINDS
} mpsim_elements_kind;

typedef struct mpsim_elementwise {
    mpsim_math m, out;
    uint64_t least; /* words that keep an element */
    float factor;   /* of what is kept, in m */
} mpsim_elementwise;

/* b: numbers, or 32-bit words of DROP. y may be a or b. */
typedef void mpsim_elements_function(const mpsim_elementwise *e, float *y, const float *a, const void *b, size_t n);

/* ---- the table ---- */

struct mpsim_layer_kernels {
    mpsim_layer_function *exp, *exp2, *tanh, *erf, *sigmoid;
    mpsim_normal_function *normal;
    mpsim_count_function *count;
    mpsim_round_function *round;
    mpsim_activate_function *activate;
    mpsim_activate_back_function *activate_back;
    mpsim_softmax_function *softmax[MPSIM_SOFTMAX_KINDS];
    mpsim_xent_function *xent;
    mpsim_norm_function *norm;
    mpsim_norm_back_function *norm_back;
    mpsim_columns_function *columns;
    mpsim_channels_function *channels;
    mpsim_channels_back_function *channels_back;
    mpsim_elements_function *elements[MPSIM_ELEMENTS_KINDS];
};

extern const mpsim_layer_kernels mpsim_layer_kernels_neon, mpsim_layer_kernels_avx2, mpsim_layer_kernels_avx512;

/* One number at a time. */
mpsim_activate_function mpsim_activate_plain;
mpsim_activate_back_function mpsim_activate_back_plain;
mpsim_normal_function mpsim_normal_plain;
mpsim_xent_function mpsim_xent_plain;
mpsim_norm_function mpsim_norm_plain;
mpsim_norm_back_function mpsim_norm_back_plain;
mpsim_columns_function mpsim_columns_plain;
mpsim_channels_function mpsim_channels_plain;
mpsim_channels_back_function mpsim_channels_back_plain;
mpsim_softmax_function mpsim_softmax_p_plain, mpsim_softmax_log_plain, mpsim_softmax_back_plain;
mpsim_softmax_function mpsim_softmax_log_back_plain;
mpsim_elements_function mpsim_add_plain, mpsim_multiply_plain, mpsim_drop_plain;

/* mpsim_softmax_zero, mpsim_softmax_nan -- which zero, which NaN the largest score of a row is, if it is one. */
float mpsim_softmax_zero(const mpsim_softmax_row *r, const float *s);
float mpsim_softmax_nan(const mpsim_softmax_row *r, const float *s);

/* mpsim_layer_kernels_active -- those of the instruction set in use, or loops over the scalar code. */
const mpsim_layer_kernels *mpsim_layer_kernels_active(void);
