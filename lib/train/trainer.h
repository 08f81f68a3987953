/* trainer.h -- the inside of a training; shared by the files of this folder that implement train.h.
 *
 * A pass (forward and backward for the batch, or forward for the test images) is a list of
 * operations, made when a plan comes into force and done in its order in every step. What an
 * operation writes is what train_visit shows, in the same order. */
#ifndef MPSIM_LIB_TRAIN_TRAINER_H
#define MPSIM_LIB_TRAIN_TRAINER_H

#include <train/train.h>

#include <string.h>

enum { TRAIN_PARAMS = 2 * TRAIN_LAYERS, TRAIN_RESULTS = 3, TRAIN_FP8 = 3 };

/* ---- parameters (params.c) ---- */

typedef struct train_param {
    char name[TRAIN_NAME + 8]; /* "fc1.weight"                                         */
    size_t layer;
    int bias;
    train_tensor kept;  /* what accumulates updates                                    */
    train_tensor copy;  /* the model's, in storage; no data if kept has that format    */
    train_tensor m, v, vmax, kahan; /* those that some plan needs                      */
    train_tensor wgrad; /* as backward left it                                         */
    train_tensor grad;  /* unscaled, clipped, in kept's format                         */
    train_tensor *sums; /* a rank each, and what they are reduced to; NULL: none       */
    const train_tensor *source; /* what unscaling reads: wgrad, or what micro-batches and ranks left */
    uint64_t age;       /* updates so far                                              */
} train_param;

/* ---- operations ---- */

typedef enum train_work {
    WORK_NONE, /* another name of a tensor that is there */
    WORK_CAST,
    WORK_QUANTIZE,
    WORK_HADAMARD,
    WORK_GATHER,
    WORK_GEMM,
    WORK_RELU,
    WORK_RELU_BACK,
    WORK_POOL,
    WORK_POOL_BACK,
    WORK_SUMS,
    WORK_LOSS,
    WORK_NORM,
    WORK_NORM_BACK,
    WORK_NORM_TEST,
    WORKS
} train_work;

typedef struct train_result {
    char name[2 * TRAIN_NAME];
    train_tensor own; /* data NULL where `to` is elsewhere */
    train_tensor *to;
    size_t rank, shape[4];
    int traced;
} train_result;

typedef struct train_do {
    uint8_t work, backward;
    size_t n; /* results */
    train_result results[TRAIN_RESULTS];
    const train_tensor *x, *y, *mean, *inverse, *weight, *bias; /* what it reads */
    train_tensor *running[2];
    train_counts *counts;
    mpsim_round_mode mode;
    train_gemm gemm;
    mpsim_model model;
    mpsim_block_recipe recipe;
    int transposed;
    mpsim_delayed *delayed; /* the state that gives the scale, or NULL */
    int record;             /* 1: tells it the amax */
    int weight_copy;        /* 1: of a parameter, not of an activation */
    const void *index;
    train_pool pool;
} train_do;

typedef struct train_pass {
    size_t images;
    int training;
    train_do **list;
    size_t n, room;
    train_tensor pixels;
    void *indices[4 * TRAIN_LAYERS];
    size_t n_indices;
} train_pass;

/* FP8 history of an operand of a layer: act, weight, agrad. */
typedef struct train_fp8 {
    int used;
    mpsim_delayed state;
} train_fp8;

struct train {
    const train_run *run;
    train_engine *e;
    const train_plan *plan; /* in force; NULL at first */
    mpsim_format math;
    int count;
    uint64_t step; /* done */
    mpsim_scaler scaler;
    train_param params[TRAIN_PARAMS];
    size_t n_params;
    int weight_of[TRAIN_LAYERS], bias_of[TRAIN_LAYERS]; /* parameters of a layer, -1: none */
    train_tensor running[TRAIN_LAYERS][2];              /* of batch normalisation */
    train_fp8 fp8[TRAIN_LAYERS][TRAIN_FP8];
    train_pass batch, test;
    train_counts act, agrad, wgrad;
    uint32_t *labels; /* of the batch, or of the test images */
    float *pixels;
    size_t room_images;
    /* of the step at hand */
    float coefficient, loss;
    uint64_t correct, updates, lost;
};

/* network.c */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int train_fail(char *error, const char *format, ...);
/* Numbers of f are binary32 numbers, signed, with a zero and a NaN. */
int train_fits_binary32(const mpsim_format *f);
/* batch.c: FNV-1a, 64 bits, of what gave h (TRAIN_HASH: of nothing) and of the eight bytes of x,
 * the lowest first. */
#define TRAIN_HASH ((uint64_t)0xcbf29ce484222325u)
uint64_t train_hash(uint64_t h, uint64_t x);
/* The stream of a tensor's random bits in a step (from 0): of step + 1 and of the name. */
uint64_t train_stream_of_step(uint64_t step, const char *name);

/* text.c: n tokens from `start` on, and those that follow each. */
void train_text_fill(const train_text *x, size_t start, size_t n, uint32_t *tokens,
                     uint32_t *labels);

/* params.c */
int train_params_open(train *t, char *error);
int train_params_use(train *t, const train_plan *plan, char *error); /* t->plan is the old one */
void train_params_close(train *t);
int train_param_refresh(train *t, train_param *p, char *error);
/* The parameter as the model has it. */
const train_tensor *train_param_model(const train_param *p);
const train_placement *train_param_place(const train *t, const train_param *p);
/* The rank; shape as in train_item. */
size_t train_param_shape(const train *t, const train_param *p, size_t shape[4]);
int train_engine_failed(const train *t, const char *what, char *error);

/* A pass under construction; build.c appends operations to it. */
typedef struct train_operand {
    const train_tensor *base;   /* in the role's format                                    */
    const train_tensor *first;  /* as the forward product (agrad: dx) reads it             */
    const train_tensor *second; /* as the products for weights (of weight: dx) read it     */
    int turned;                 /* second is transposed already: its columns run along the depth */
} train_operand;

typedef struct train_build {
    train *t;
    train_pass *p;
    const train_plan *plan;
    char *error;
    int failed;
    train_do sink; /* where operations go after a failure */
    train_operand act[TRAIN_LAYERS], weight[TRAIN_LAYERS];
    train_do *layer[TRAIN_LAYERS]; /* the operation that gives the output */
} train_build;

/* An operation of a layer with one result KIND:LAYER in a tensor of its own. */
train_do *train_add(train_build *b, train_work work, size_t layer, const char *kind, size_t rows,
                    size_t cols, const mpsim_format *f);
/* A further result: in a tensor of its own, or the gradient of a parameter. */
void train_add_result(train_build *b, train_do *d, size_t layer, const char *kind, size_t rows,
                      size_t cols, const mpsim_format *f);
void train_add_gradient(train_build *b, train_do *d, int param);
train_do *train_add_bare(train_build *b, train_work work); /* without a result so far */
/* x in format f under the name KIND:LAYER: x itself, or a cast. */
const train_tensor *train_in_format(train_build *b, size_t layer, const char *kind,
                                    const train_tensor *x, const mpsim_format *f,
                                    train_counts *counts);
/* How products read a tensor of a role. */
typedef enum train_copy { COPY_NONE, COPY_TF32, COPY_TENSOR, COPY_BLOCKS, COPY_CODES } train_copy;
train_copy train_copy_kind(const train_build *b, size_t layer, train_role role);
/* Each product has a copy of its own: COPY_BLOCKS, or COPY_CODES, with factors beside them. */
int train_in_blocks(const train_build *b, size_t layer, train_role role);
/* That copy; COPY_NONE gives x. */
const train_tensor *train_copy_of(train_build *b, size_t layer, train_role role, const char *suffix,
                                  const train_tensor *x, int transposed, train_counts *counts);
/* In blocks: the copy of x transposed that the product for the weight's gradient reads. */
const train_tensor *train_copy_for_wgrad(train_build *b, size_t layer, train_role role,
                                         const train_tensor *x, train_counts *counts);
const train_tensor *train_gathered(train_build *b, size_t layer, const char *kind,
                                   const train_tensor *x, size_t rows, size_t cols,
                                   const void *index);
/* An index of n numbers that `fill` makes; owned by the pass. */
typedef void train_filler(int32_t *index, const train_layer *l, size_t images, size_t channels);
const void *train_index(train_build *b, size_t layer, size_t n, size_t channels,
                        train_filler *filler);
train_filler train_columns;  /* im2col of a tensor with `channels` columns */
train_filler train_in_order; /* 0, 1, 2, ...: the same numbers, rows of another length */
/* d = a b for the operation g, with the model of its operands. */
void train_product(train_build *b, train_do *g, size_t layer, const train_tensor *x, int x_turned,
                   const train_tensor *y, int y_turned, const train_tensor *bias,
                   train_counts *counts);

/* forward.c, backward.c: all operations of a pass; backward after forward. */
void train_build_forward(train_build *b);
void train_build_backward(train_build *b);

/* pass.c */
int train_pass_open(train *t, train_pass *p, size_t images, int training, char *error);
void train_pass_close(train *t, train_pass *p);
int train_pass_run(train *t, train_pass *p, const uint32_t *images, uint32_t first, char *error);

/* train.c: makes it the plan in force. */
int train_use(train *t, const train_plan *plan, char *error);

/* update.c */
int train_apply(train *t, train_step *out, char *error);

#endif
