/* trainparts.h -- what the files of train.h share. */
#pragma once

#include "train.h"

typedef struct matrix {
    size_t rows, cols;
    float *v;
    const oracle_format *f;
    float inverse;
    const struct matrix *blocks; /* factors of blocks, or NULL */
    size_t block_rows;
} matrix;

/* Weight and bias of a layer: as the model keeps them, as they enter, what gathers updates. */
typedef struct parameter {
    matrix stored, used, kept, grad, m, v;
    matrix entered, ready; /* used by the step that was; grad unscaled and clipped */
    char name[TRAIN_NAME + 8];
    int exists;
} parameter;

enum { ACT_Q, WEIGHT_Q, AGRAD_Q, QUANTISED };

typedef struct layer {
    const train_layer *is;
    const train_placement *in;
    matrix act, out, agrad, dgrad, q[QUANTISED], qt[QUANTISED], mean, inverse, running[2];
    matrix q_blocks[QUANTISED], qt_blocks[QUANTISED], rht[QUANTISED];
    matrix columns, around, turn; /* what convolutions multiply */
    parameter p[2];
    mpsim_delayed scale[QUANTISED];
    float *history[QUANTISED];
    struct layer *shared; /* whose weight it has, or NULL */
} layer;

struct oracle_train {
    const train_run *run;
    const train_plan *plan;
    layer layers[TRAIN_LAYERS];
    size_t n, images;
    uint64_t step, age;
    float scale; /* torch's scaler is the oracle's own */
    uint64_t clean;
    mpsim_scaler scaler; /* others are the library's           */
    uint32_t labels[TRAIN_IMAGES + TRAIN_TESTS];
    const oracle_format *math;
    int testing;
    unsigned micro; /* number of the micro-batch of transformers */
};

const oracle_format *oracle_format_of(const mpsim_format *f);

/* A matrix of zeros in place of m; a copy, rounded. */
void shape(matrix *m, size_t rows, size_t cols, const oracle_format *f);
void cast(matrix *to, const matrix *from, const oracle_format *f);

/* x to nearest, ties away from zero, in a format with the exponents of binary32. */
float nearest_away(const oracle_format *f, float x);

/* d = op(a) op(b), transposed where ta, tb are 1, plus bias, which may be NULL. */
void product(const oracle_train *o, matrix *d, const oracle_format *f, matrix a, int ta, matrix b, int tb,
             const matrix *bias);
/* The same with chains that begin with the numbers of start; NULL: +0. */
void product_from(const oracle_train *o, matrix *d, const oracle_format *f, matrix a, int ta, matrix b, int tb,
                  const matrix *bias, const float *start);

/* Rows: pixels; columns: (y, x, channel) of the 3 x 3 around each, +0 outside. */
void windows(matrix *w, const matrix *x, size_t side);

/* Weights outputs x (9 inputs) as inputs x (9 outputs), the window turned by half a circle. */
void turned(matrix *t, const matrix *w, size_t inputs);

extern const train_role oracle_roles[QUANTISED];

/* Whether the recipe of ACT_Q, WEIGHT_Q or AGRAD_Q has blocks; a copy for one product in blocks
 * along its rows (COLUMNS, WEIGHT: of x transposed; the latter for the weight's gradient), as bf16, or
 * codes with factors; what enters all products in place of x: x, its copy with one scale or in
 * tf32. */
int in_blocks(const layer *l, int which);
typedef enum copy_for { COPY_ROWS, COPY_COLUMNS, COPY_TURNED, COPY_WEIGHT } copy_for;
matrix in_pieces(const oracle_train *o, layer *l, int which, const matrix *x, copy_for use);
matrix entering(const oracle_train *o, layer *l, int which, const matrix *x);

/* binary32 where the run rounds it to tf32: y, a copy; else x. */
matrix in_tf32(const oracle_train *o, matrix *y, const matrix *x);

/* Linear layers and convolutions: y = x W^T + b; its gradients, of x unless it is the first layer. */
void linear(oracle_train *o, layer *l, const oracle_format *f);
void linear_back(oracle_train *o, layer *l, int first);
float mean_loss(const oracle_train *o, const float *losses, size_t n);

/* The plan of this step: formats, the scaler, FP8 scales. Numbers are rounded, the rest goes on. */
void plan_now(oracle_train *o);

/* The stream of random words of a parameter or tensor in this step. */
uint64_t oracle_stream_of_step(const oracle_train *o, const char *name);

/* The copies of what was updated: the model's, and as it enters products. */
void refresh(const oracle_train *o, const layer *l, parameter *p);

/* The loss scale after a step. */
void rescale(oracle_train *o, int found);

/* From gradients as backward leaves them to new parameters and a new scale. */
void update(oracle_train *o, oracle_step *out);
