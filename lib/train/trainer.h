/* trainer.h -- the inside of a training; shared by the files of this folder that implement train.h.
 *
 * A pass (forward and backward for the batch, or forward for the test images) is a list of
 * operations, made when a plan comes into force and done in its order in every step. What an
 * operation writes is what train_visit shows, in the same order.
 *
 * Parameters are lists: all are unscaled, measured, updated, cast and quantised by one call of the engine.
 * Consecutive operations of a pass that do not depend on each other are one list, too (pass.c). Weights enter the
 * first pass of a step for all micro-batches and ranks, and are counted for each of them; if they are rounded
 * stochastically, every micro-batch rounds anew.
 *
 * What bounds a step of GPT-2 (make bench-transformers): half of the time is multiply-adds of tensor-core sums. The
 * first touch of a page costs 2 us, so tensors are written before they are read (a page that is read first costs a
 * second fault). Pages of 2 MiB were tried: a virtual machine that reports free memory to its host takes 2 to 3 s
 * for a GiB of them, and 0.5 s with pages of 4 KiB. */
#pragma once

#include <train/train.h>

#include <string.h>

enum { TRAIN_PARAMS = 2 * TRAIN_LAYERS, TRAIN_RESULTS = 3, TRAIN_FP8 = 3 };
enum { TRAIN_DEEPEST = (TRAIN_LAYERS - 5) / 13 }; /* of blocks of a transformer */

/* ---- parameters (params.c) ---- */

typedef struct train_param {
    char name[TRAIN_NAME + 8]; /* "fc1.weight"                                         */
    size_t layer;
    int bias;
    unsigned rank;                  /* 1: of one dimension: biases, norms; 2: matrices             */
    train_tensor kept;              /* what accumulates updates                                    */
    train_tensor copy;              /* the model's, in storage; no data if kept has that format    */
    train_tensor m, v, vmax, kahan; /* those that some plan needs                      */
    train_tensor wgrad;             /* as backward left it                                         */
    train_tensor grad;              /* unscaled, clipped, in kept's format                         */
    train_tensor *sums;             /* a rank each, and what they are reduced to; NULL: none       */
    const train_tensor *source;     /* what unscaling reads: wgrad, or what micro-batches and ranks left */
    uint64_t age;                   /* updates so far                                              */
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
    WORK_EMBED,
    WORK_EMBED_BACK,
    WORK_POSITIONS,
    WORK_POSITIONS_BACK,
    WORK_ROWNORM,
    WORK_ROWNORM_BACK,
    WORK_SPLIT,
    WORK_JOIN,
    WORK_CAUSAL,
    WORK_CAUSAL_BACK,
    WORK_ACTIVATE,
    WORK_ACTIVATE_BACK,
    WORK_ADD,
    WORK_GROUPS,
    WORK_DOTS,
    WORK_TILES,
    WORK_TILES_BACK,
    WORKS
} train_work;

typedef struct train_result {
    char name[2 * TRAIN_NAME];
    train_tensor own; /* data NULL where `to` is elsewhere */
    train_tensor *to;
    size_t rank, shape[4];
    int traced;
    int hidden;   /* 1: another operation goes on with it and shows it */
    int borrowed; /* 1: own's data is of the pass (train_scratch)      */
} train_result;

/* Attention in tiles (decoder/tiles.c): what it reads and, of the pass, where it works. */
typedef enum train_scratch_use {
    SCRATCH_SUM, /* O, dQ while they grow */
    SCRATCH_ROW_MAX,
    SCRATCH_ROW_SUM,
    SCRATCH_ZEROS,     /* zeros as many as SCRATCH_SUM has numbers  */
    SCRATCH_INFINITES, /* -inf, one a row                           */
    SCRATCH_USES
} train_scratch_use;

/* Of a tile, as many as are done at once: few where they are large, so that long sequences do not take the
 * memory that tiles are there to save. */
typedef enum train_tile_use { TILE_S, TILE_P, TILE_P_TF32, TILE_DP, TILE_DS, TILE_DS_TF32, TILE_USES } train_tile_use;
enum { TRAIN_TILES_AT_ONCE = 4, TRAIN_TILES_NUMBERS = 1 << 22 }; /* NUMBERS: of S, of all that are done at once */

typedef struct train_tiles {
    train_tile shape; /* of all columns; first, cols: set for each tile */
    size_t tile, shared, at_once;
    const train_tensor *q, *k, *v, *dy, *lse, *dots;
    train_tensor scratch[SCRATCH_USES], own[TRAIN_TILES_AT_ONCE][TILE_USES];
    mpsim_model scores, context, dvalue, dp, dkey, dquery; /* of the products */
    train_counts *act, *agrad;
} train_tiles;

/* Casts of parameters and the copies of these that products read; sums of columns: all of a pass at once,
 * whatever their place in its list. */
typedef enum train_when { WHEN_IN_ORDER, WHEN_FIRST, WHEN_LAST } train_when;
enum { TRAIN_AT_ONCE = 8 }; /* operations of one kind that follow one another */

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
    int record;             /* 1: it records the amax, once a step */
    float amax;             /* the largest of the step so far; complete after finish */
    uint8_t when;           /* train_when */
    int scaled;             /* 1: the factors of blocks are their scale codes' */
    int weight_copy;        /* 1: of a parameter, not of an activation */
    const void *index;
    train_pool pool;
    const uint32_t *tokens;
    train_heads heads;
    train_tiles *tiles; /* own */
} train_do;

/* Memory that operations of a pass take one after the other: of the largest that needs it. */
typedef struct train_scratch {
    char use[24];
    train_tensor tensor;  /* rows: numbers, cols: 1 */
    float value;          /* that all of it begins with */
    train_tensor **users; /* what gets its data         */
    size_t n, room;
} train_scratch;

/* Memory of a lean training: of tensors of passes, one after the other. */
typedef struct train_block {
    train_tensor tensor; /* rows: numbers, cols: 1 */
    size_t free;         /* the place in the order of a pass from which another tensor may have it */
} train_block;

typedef struct train_pass {
    size_t images;
    int training;
    unsigned micro; /* number of the micro-batch, of all ranks: random bits, scores */
    train_do **list;
    size_t n, room;
    train_tensor pixels;
    uint32_t *tokens; /* images * context; NULL with images */
    train_scratch *scratch;
    size_t n_scratch;
    void *indices[4 * TRAIN_LAYERS];
    size_t n_indices;
} train_pass;

/* FP8 history of an operand of a layer: act, weight, agrad. */
typedef struct train_fp8 {
    int used;
    mpsim_delayed state;
} train_fp8;

/* What a pass says of its batch; complete after finish. */
typedef struct train_score {
    float loss;
    uint64_t correct;
} train_score;

struct train {
    const train_run *run;
    train_engine *e;
    const train_plan *plan; /* in force; NULL at first */
    mpsim_format math, math_norm, math_softmax;
    int count, lean;
    uint64_t step; /* done */
    train_block *blocks;
    size_t n_blocks;
    mpsim_scaler scaler;
    train_param params[TRAIN_PARAMS];
    size_t n_params;
    int weight_of[TRAIN_LAYERS], bias_of[TRAIN_LAYERS]; /* parameters of a layer, -1: none */
    train_tensor running[TRAIN_LAYERS][2];              /* of batch normalisation */
    train_tensor rotary[2];                             /* cosines, sines of places */
    train_fp8 fp8[TRAIN_LAYERS][TRAIN_FP8];
    train_pass batch, test, rest; /* rest: the last windows, where they are fewer than a batch */
    train_counts act, agrad, wgrad;
    train_counts entering; /* of parameters that enter a pass; at the end of a step they are added to act */
    train_score *scores;   /* of every micro-batch of all ranks; of evaluations the first */
    uint32_t *labels;      /* of the batch, or of the test images */
    float *pixels;
    const train_text *text; /* of transformers, and where a pass's windows begin */
    size_t *starts;
    mpsim_format accumulate; /* of the sums of micro-batches */
    mpsim_reduce reduce;     /* of ranks */
    /* of the current step */
    float coefficient;
    uint64_t updates, lost;
};

/* common.c */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int train_fail(char *error, const char *format, ...);
int train_engine_failed(const train *t, const char *what, char *error);
/* Numbers of f are binary32 numbers, signed, with a zero and a NaN. */
int train_fits_binary32(const mpsim_format *f);
/* The error of a format that does not fit. */
#define TRAIN_NO_FIT "no signed format within binary32 with a NaN"
/* Whether a network reads text. */
int train_is_text(const train_settings *s);

/* decoder/settings.c: of transformers the defaults, checks, layers. */
void train_decoder_init(train_settings *s);
int train_decoder_check(const train_settings *s, char *error);
size_t train_decoder_layers(const train_settings *s, train_layer *layers);
/* Columns of a head. */
size_t train_head_size(const train_settings *s);

/* decoder/sizes.c: 0 if no tensor of a batch, nor all parameters, have more numbers than a run may have. */
int train_decoder_sizes(const train_settings *s, const train_layer *layers, size_t n, char *error);

/* decoder/open.c: formats of its arithmetic, t->rotary. */
int train_decoder_open(train *t, char *error);

/* batch.c: FNV-1a, 64 bits, of what gave h (TRAIN_HASH: of nothing) and of the eight bytes of x,
 * the lowest first. */
#define TRAIN_HASH ((uint64_t)0xcbf29ce484222325u)
uint64_t train_hash(uint64_t h, uint64_t x);
/* The stream of a tensor's random bits in a step (from 0): of step + 1 and of the name. */
uint64_t train_stream_of_step(uint64_t step, const char *name);

/* text.c: n tokens from `start` on, and those that follow each. */
void train_text_fill(const train_text *x, size_t start, size_t n, uint32_t *tokens, uint32_t *labels);

/* params.c */
int train_params_open(train *t, char *error);
int train_params_use(train *t, const train_plan *plan, char *error); /* t->plan is the old one */
void train_params_close(train *t);
/* The model's copies of all parameters. */
int train_params_refresh(train *t, char *error);
/* The parameter as the model has it. */
const train_tensor *train_param_model(const train_param *p);
const train_placement *train_param_place(const train *t, const train_param *p);
/* The rank; shape as in train_item. */
size_t train_param_shape(const train *t, const train_param *p, size_t shape[4]);
/* Its last two dimensions, for optimizers that ask for them. */
void train_param_matrices(const train *t, const train_param *p, mpsim_optim *o);

/* scratch.c: x gets memory of the pass, which others of the same use and format get, too, once all are
 * known and train_scratch_open is called; value: that its elements have then. 0, or -1 with a line. */
int train_borrow(train_pass *p, const char *use, train_tensor *x, float value, char *error);
int train_scratch_open(train *t, train_pass *p, char *error);
void train_scratch_close(train *t, train_pass *p);

/* blocks.c, of lean trainings. train_pass_first: what enters a pass in the order in which it is done, each cast with what
 * products read instead of it, so that nothing is kept that nothing else reads. train_blocks_place: all tensors of a
 * pass get memory; that of another pass is theirs, too. train_blocks_try: 0 if a tensor may be in a format. */
size_t train_pass_first(const train_pass *p, train_do **all);
int train_blocks_place(train *t, train_pass *p, char *error);
int train_blocks_try(train *t, const mpsim_format *f);
void train_blocks_close(train *t);

/* A pass under construction; build.c appends operations to it. */
typedef struct train_operand {
    const train_tensor *base;   /* in the role's format                                    */
    const train_tensor *first;  /* as the forward product (agrad: dx) reads it             */
    const train_tensor *second; /* as the products for weights (of weight: dx) read it     */
    int transposed;             /* second is transposed already: its columns run along the depth */
} train_operand;

typedef struct train_build {
    train *t;
    train_pass *p;
    const train_plan *plan;
    char *error;
    int failed;
    train_do sink; /* where operations go after a failure */
    train_operand act[TRAIN_LAYERS], weight[TRAIN_LAYERS];
    train_do *layer[TRAIN_LAYERS];            /* the operation that gives the output */
    const train_tensor *input[TRAIN_LAYERS];  /* of a layer, as it comes                        */
    const train_tensor *around[TRAIN_LAYERS]; /* going back: what an add hands on past its branch */
    const train_tensor *key, *value;          /* of the current block; going back their gradients  */
} train_build;

/* The operations of a layer of a pass: from its input the output, going back from the output's gradient
 * that of the input. */
typedef const train_tensor *train_builder(train_build *b, size_t layer, const train_tensor *x);

/* An operation of a layer with one result KIND:LAYER in a tensor of its own. */
train_do *train_add(train_build *b, train_work work, size_t layer, const char *kind, size_t rows, size_t cols,
                    const mpsim_format *f);
/* A further result: in a tensor of its own, or the gradient of a parameter. */
void train_add_result(train_build *b, train_do *d, size_t layer, const char *kind, size_t rows, size_t cols,
                      const mpsim_format *f);
void train_add_gradient(train_build *b, train_do *d, int param);
train_do *train_add_bare(train_build *b, train_work work); /* without a result so far */
/* The last result is not shown: another operation goes on with it, or has gone on. */
void train_hide(train_do *d);
/* d goes on with the result of another operation. */
void train_go_on(train_build *b, train_do *d, train_tensor *x);
/* A parameter in format WEIGHT: always a tensor of its own, so that the operands of a product are
 * there after the update. */
const train_tensor *train_entering(train_build *b, size_t layer, int param, const char *kind);
/* Of the elements of a recipe; NULL, and b->failed, where it is not in the table. */
const mpsim_format *train_element_format(train_build *b, const mpsim_block_recipe *r);
/* x in format f under the name KIND:LAYER: x itself, or a cast. */
const train_tensor *train_in_format(train_build *b, size_t layer, const char *kind, const train_tensor *x,
                                    const mpsim_format *f, train_counts *counts);
/* Back through a normalisation, of a batch or of rows: the gradient of its input. */
const train_tensor *train_norm_back(train_build *b, size_t layer, train_work work, const train_tensor *dy);
/* How products read a tensor of a role. */
typedef enum train_copy { COPY_NONE, COPY_TF32, COPY_TENSOR, COPY_BLOCKS, COPY_CODES, COPY_SCALED } train_copy;
train_copy train_copy_kind(const train_build *b, size_t layer, train_role role);
/* Each product has a copy of its own: COPY_BLOCKS, or COPY_CODES and COPY_SCALED, with factors beside them. */
int train_in_blocks(const train_build *b, size_t layer, train_role role);
/* That copy; COPY_NONE gives x. */
const train_tensor *train_copy_of(train_build *b, size_t layer, train_role role, const char *suffix,
                                  const train_tensor *x, int transposed, train_counts *counts);
/* The same under the name WORD:LAYER. */
const train_tensor *train_copy_named(train_build *b, size_t layer, train_role role, const char *word,
                                     const train_tensor *x, int transposed, train_counts *counts);
/* In blocks: the copy of x transposed that the product for the weight's gradient reads. */
const train_tensor *train_copy_for_wgrad(train_build *b, size_t layer, train_role role, const train_tensor *x,
                                         train_counts *counts);
const train_tensor *train_gathered(train_build *b, size_t layer, const char *kind, const train_tensor *x, size_t rows,
                                   size_t cols, const void *index);
/* An index of n numbers that `fill` makes; owned by the pass. */
typedef void train_filler(int32_t *index, const train_layer *l, size_t images, size_t channels);
const void *train_index(train_build *b, size_t layer, size_t n, size_t channels, train_filler *filler);
train_filler train_columns;  /* im2col of a tensor with `channels` columns */
train_filler train_in_order; /* 0, 1, 2, ...: the same numbers, rows of another length */
/* d = a b for the operation g, with the model of its operands. */
void train_product(train_build *b, train_do *g, size_t layer, const train_tensor *x, int x_transposed,
                   const train_tensor *y, int y_transposed, const train_tensor *bias, train_counts *counts);

/* scaled.c: architectures that multiply blocks with their scales, "rtx-blackwell-scaled". *base: that without "-scaled".
 * Whether the settings name one; else *base is their name. */
int train_is_scaled(const train_settings *s, char base[64]);
/* The model of two block recipes' elements there: 0, or -1. */
int train_scaled_model(const train_settings *s, const mpsim_block_recipe *x, const mpsim_block_recipe *y,
                       mpsim_model *m);

/* The model of products of two formats, for a layer. */
void train_product_model(train_build *b, size_t layer, const mpsim_format *x, const mpsim_format *y, mpsim_model *m);

/* decoder/layers.c, decoder/attention.c */
train_builder train_embed_forward, train_embed_backward, train_positions_forward, train_positions_backward,
    train_norm_forward, train_norm_backward, train_activation_forward, train_activation_backward, train_add_forward,
    train_add_backward;
train_builder train_heads_forward, train_heads_backward, train_scores_forward, train_scores_backward,
    train_softmax_forward, train_softmax_backward, train_context_forward, train_context_backward;

/* decoder/tiles.c: attention in tiles, done. */
int train_do_tiles(train *t, train_do *d);

/* forward.c, backward.c: all operations of a pass; backward after forward. */
void train_build_forward(train_build *b);
void train_build_backward(train_build *b);

/* pass.c */
int train_pass_open(train *t, train_pass *p, size_t images, int training, char *error);
void train_pass_close(train *t, train_pass *p);
int train_pass_run(train *t, train_pass *p, const uint32_t *images, uint32_t first, char *error);
/* Whether parameters enter every pass of a step with other numbers; else the first pass does it for all. */
int train_enters_anew(const train_pass *p);
/* Its operations, of what is in pixels or tokens, and in t->labels. */
int train_pass_do(train *t, train_pass *p, char *error);

/* windows.c: where the windows of a micro-batch begin; how many there are to evaluate on. */
void train_windows(const train *t, uint32_t micro, uint32_t rank, size_t *starts);
size_t train_windows_held(const train_text *x, const train_settings *s);

/* gather.c: micro-batches and ranks of a step (1 where there is no text); with more than one the
 * sums of parameters, by the plan in force; what a micro-batch left is added to its rank's; the
 * ranks are reduced. */
uint32_t train_micro_batches(const train_settings *s);
uint32_t train_ranks(const train_settings *s);
int train_gather_open(train *t, char *error);
void train_gather_close(train *t);
int train_gather(train *t, uint32_t micro, uint32_t rank, char *error);
int train_gather_ranks(train *t, char *error);

/* train.c: makes it the plan in force. */
int train_use(train *t, const train_plan *plan, char *error);

/* update.c */
int train_apply(train *t, train_step *out, char *error);
