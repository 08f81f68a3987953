/* train.h -- training, emulated: a network, a plan, an engine, step after step.
 *
 * A step: the batch goes forward; softmax and cross-entropy times the loss scale; backward;
 * gradients are checked, unscaled and clipped; the optimizer moves parameters (or their masters);
 * the model's copy is refreshed; scaler, FP8 scales and the step count move on. Which tensor is in
 * which format, the trainer has from a plan; what an operation is to the bit stands in engine.h.
 * From gradients on a step is that of a replay, too: step.h.
 *
 * Plain C, built by gpu/ without Autotools, too: no options, JSON, YAML, threads or files but the
 * FILE a caller hands over. The default floating-point environment is needed. Functions return 0, or
 * -1 with one line in `error` of TRAIN_ERROR bytes.
 *
 * Formats. Casts round to nearest, ties to even; one that changes nothing is left out, but weights
 * and biases are always copied, so that a product's operands outlive the update.
 *
 *   linear, convolution: x in ACT; weight and bias in WEIGHT; y in OUT. dy in AGRAD; dx in DGRAD,
 *     not computed for the first layer; dW and db in WGRAD. y = x W^T + b; dx = dy W; dW = dy^T x;
 *     db = column_sums of dy in AGRAD.
 *   batch normalisation: x in ACT, weight and bias in WEIGHT, y in OUT, dy in AGRAD, dx in DGRAD,
 *     dweight and dbias in WGRAD. eps 1e-5, momentum 0.1.
 *   relu, pooling, flatten: pass on the format that comes, whatever their placement says, as under
 *     autocast: they do no arithmetic that a format could change.
 *   loss: logits in ACT; dlogits in DGRAD, with the coefficient f32(scale * loss_factor / batch),
 *     evaluated in binary64 from left to right. So every gradient is times scale and loss_factor.
 *     Unscaling divides by the scale alone: the factor is part of the loss, as it is a user's.
 *
 * Copies for products. A recipe of a role (ACT, WEIGHT, AGRAD) quantises what the role's format
 * holds; tf32 = 1 rounds binary32 operands to tf32, nearest-away. With one scale a tensor one
 * copy serves all products. With blocks, these run along the depth of each product: y takes x and
 * W as they are, dx takes dy as it is and W transposed, dW takes dy and x transposed, each
 * quantised on its own. Such copies are rounded to bf16 and multiplied as bf16: that is the
 * trainer's definition of block-scaled recipes, not what hardware with block-scaled instructions
 * does. With `promote` the codes are multiplied, in the default row of arch for their formats, each
 * block of the depth on its own, and its sum times both scales is added in binary32, by fma: DeepGEMM's
 * `final_accum += scale * accum` as nvcc contracts it by default. With `hadamard` both operands of dW go
 * through the transform along the batch first ("act.rht:fc1"), rounded to their format again, as
 * TransformerEngine's kernels do (hadamard_transform_cast_fusion.cu); fewer than 16 at the end of the
 * depth stay as they are in both. FP8 per tensor runs in the default row of arch in all three products; TransformerEngine
 * promotes partial sums (hopper-wgmma-fp8-promoted) in dx and dW, which is not modelled here.
 * Stochastic recipes: the stream of step N and of the tensor's name ("agrad:fc1"), of a transposed
 * copy its own ("agrad.qt:fc1").
 *
 * Convolutions are gather and gemm. im2col of x with C columns has 9 C: row (n, y, x), column (ky
 * 3 + kx) C + c is x[n, y + ky - 1, x + kx - 1, c], 0 outside the image. W is O x 9 C in the same
 * order. y = im2col(x) W^T; dW = dy^T im2col(x); dx = im2col(dy) V^T, V of C x 9 O with V[c, (ky
 * 3 + kx) O + o] = W[o, (2 - ky, 2 - kx, c)]: one chain a number, nothing is scattered. Copies
 * with one scale are made before im2col, with blocks after it.
 *
 * Random bits are words (mpsim_rng_word) of the seed, a stream and an index. "init NAME": initial
 * value of element i of parameter NAME: u = (w >> 8) 2^-24 2 - 1 of word i; u * bound in
 * binary64, rounded to binary32, then to the kept format; bound = gain / sqrt(fan_in), of biases
 * 1 / sqrt(fan_in). Batch normalisation starts with weight 1, bias 0, running mean 0, variance 1.
 * "order of pass N": see train_batch. Stochastic rounding in step N (from 0) of parameter or
 * tensor NAME has stream FNV-1a of the 8 bytes of N + 1, lowest first, and of NAME: what `mpsim
 * replay` takes for file step N + 1. */
#ifndef MPSIM_TRAIN_TRAIN_H
#define MPSIM_TRAIN_TRAIN_H

#include <train/engine.h>
#include <train/step.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TRAIN_ERROR = 256, TRAIN_NAME = 48, TRAIN_LAYERS = 64, TRAIN_PLANS = 16 };

/* train_out_of_memory -- whether such a line says that memory ran out: all of them do in these words. */
int train_out_of_memory(const char *error);

/* ---- data: 1797 handwritten digits of 8 x 8 pixels ---- */

enum {
    TRAIN_PIXELS = 64,
    TRAIN_SIDE = 8,
    TRAIN_CLASSES = 10,
    TRAIN_IMAGES = 1437,
    TRAIN_TESTS = 360
};

/* train_digit -- image i (training images first): pixels[TRAIN_PIXELS] = 0/16 to 16/16, exact in
 * every format of 4 significant bits; returns the label. */
uint32_t train_digit(size_t i, float *pixels);

/* train_batch -- which images step `step` (from 0) takes: a pass over the training images in an
 * order that the seed and the number of the pass give; the images left over at its end are not
 * used. The order: Fisher and Yates from the last place down, place k swaps with place floor(w (k
 * + 1) / 2^32), w the word of index k, stream "order of pass N" (train_stream), N from 0. batch:
 * 1 to TRAIN_IMAGES. */
void train_batch(uint64_t seed, uint64_t step, size_t batch, uint32_t *images);

/* train_stream -- the stream of random bits of a purpose: FNV-1a, 64 bits, of its name. */
uint64_t train_stream(const char *purpose);

/* ---- the network ---- */

typedef enum train_type {
    TRAIN_LINEAR,    /* y = x W^T + b; W is outputs x inputs                                     */
    TRAIN_CONV,      /* 3 x 3, padding 1, no bias; W is outputs x (9 inputs): (y, x, channel)    */
    TRAIN_BATCHNORM, /* of every column (channel)                                                */
    TRAIN_RELU,
    TRAIN_MAXPOOL,   /* 2 x 2                                                                    */
    TRAIN_FLATTEN,   /* pixels of an image to one row, order (y, x, channel)                     */
    TRAIN_LOSS,      /* softmax and cross-entropy, mean over the batch                           */
    TRAIN_TYPES
} train_type;

/* mlp: [fcK, bnK, reluK] of every hidden layer, head, loss. cnn: [convK, bnK, reluK, poolK],
 * flatten, head, loss. K from 1; bnK only with batchnorm. */
typedef struct train_layer {
    char name[TRAIN_NAME]; /* "fc1", "conv1", "bn1", "relu1", "pool1", "flatten", "head", "loss" */
    uint8_t type;
    uint32_t inputs, outputs; /* columns (channels) before and after                             */
    uint32_t side;            /* of the image before: 8, 4, 2; 0: rows are whole images          */
} train_layer;

/* What is trained and how long. Written as text and read back (train_run_write). */
typedef struct train_settings {
    char net[16];       /* "mlp", "cnn"                                                          */
    uint32_t depth;     /* hidden layers (mlp: 2, up to 20), convolutions (cnn: 2, 1 to 3)       */
    uint32_t width;     /* units of a hidden layer (mlp: 128); channels of the first convolution,
                           doubled by each further one (cnn: 16)                                 */
    uint32_t batchnorm; /* 1: after every hidden linear layer or convolution (mlp: 0, cnn: 1)    */
    uint32_t batch;     /* 64                                                                    */
    uint64_t steps;     /* 500; of cnn 200                                                       */
    uint64_t seed;      /* 0: initial weights, order of images, stochastic rounding              */
    double gain;        /* 1: initial weights are uniform in +-gain / sqrt(fan_in), biases too
                           (without the gain), as torch's                                        */
    double loss_factor; /* 1: the loss is multiplied by this, as where many losses are averaged;
                           reported losses are without it                                        */
    char math[16];      /* "binary32": format of softmax, loss and normalisation                 */
    char arch[64];      /* "hopper": where products run: an architecture, or a software model;
                           see train_model                                                       */
    uint32_t tf32;      /* 1: binary32 operands are rounded to tf32 (nearest-away) and multiplied
                           by tensor cores                                                       */
} train_settings;

void train_settings_init(train_settings *s, const char *net); /* of an unknown net: those of mlp */
/* train_network -- the layers; the number of them, 0 after an error (also: settings out of
 * range). */
size_t train_network(const train_settings *s, train_layer layers[TRAIN_LAYERS], char *error);

/* train_model -- how operands of two formats are multiplied on `arch`: the architecture's default
 * row for them; binary32 operands: "fma" (a chain of fma in binary32, what CUDA cores do). `arch`
 * of another name ("exact", "sequential", any of mpsim_model_parse): that model for all operands,
 * its result widened to binary32. "fp32-sequential" is "sequential". The error line names the
 * architectures that have such products. */
int train_model(const train_settings *s, const mpsim_format *a, const mpsim_format *b,
                mpsim_model *m, char *error);

/* ---- the plan ---- */

typedef struct train_plan {
    uint64_t from;               /* the first step, from 0                                        */
    char precision[32];          /* the policy's word, without spaces                             */
    train_placement layers[TRAIN_LAYERS];
    train_master master;
    mpsim_scaler_config scaler;
    mpsim_optim optimizer;       /* param, state and grad_scale are set by the trainer            */
    mpsim_clip_rule clip;
    double max_norm;
    int delayed;                 /* 1: FP8 scales are those of older steps, by `history`: recipes
                                    with one scale a tensor run by MPSIM_SCALE_GIVEN              */
    mpsim_delayed_config history; /* fp8_max is set by the trainer                                */
} train_plan;

/* A whole run: settings, layers, plans in the order of `from`, the first at 0. */
typedef struct train_run {
    train_settings settings;
    train_layer layers[TRAIN_LAYERS];
    size_t n_layers;
    train_plan *plans;
    size_t n_plans;
} train_run;

/* Another plan: parameters are rounded to its kept formats, moments to its state formats,
 * nearest-even; ages and the optimizer's arrays go on; the scaler goes on if its configuration is
 * the same, else it starts anew; so do FP8 histories. As in a replay. */

/* train_run_write, train_run_read -- a run as text, complete and readable: "mpsim-train/1", a
 * line "key value" for every setting, then of every plan "plan FROM", "precision", "master",
 * "scaler" (as mpsim_scaler_parse), "optimizer", "clip", "fp8" and "layer NAME act=FORMAT ..."
 * for every layer, "end". Formats have their canonical names, numbers that are no integers are
 * hexadecimal floating point. What is read is equal to what was written, but for what the trainer
 * sets; plans of a read run are freed by train_run_clear. Text that is not like this is refused
 * with its line. write: -1 only if the FILE fails. */
int train_run_write(const train_run *r, FILE *f);
int train_run_read(train_run *r, FILE *f, char *error);
void train_run_clear(train_run *r);

/* ---- training ---- */

typedef struct train train;

typedef struct train_step {
    uint64_t step;           /* from 0                                                            */
    const train_plan *plan;
    float loss;              /* mean over the batch, before the update, without the loss factor   */
    double accuracy;         /* of the batch, before the update                                   */
    double scale, next_scale;
    unsigned events;         /* MPSIM_SCALER_*                                                    */
    int skipped, stopped;    /* stopped: the scaler raised its error; nothing more can be done    */
    double norm;             /* of all gradients, unscaled, before clipping; NaN: nothing clips, or
                                the step is skipped                                               */
    int clipped;
    const char *cause;       /* first gradient with an infinity or NaN, or NULL                   */
    train_counts act, agrad, wgrad; /* act: ACT, WEIGHT, OUT; agrad: AGRAD, DGRAD; with their copies
                                       for products; wgrad: WGRAD of linear layers, convolutions  */
    uint64_t updates, lost;  /* see train_ops.optim; 0 unless counted                             */
} train_step;

/* train_open -- parameters initialised, nothing trained yet. The engine and *r must stay. count:
 * count lost updates (twice the time of an update). NULL after an error. */
train *train_open(const train_run *r, train_engine *e, int count, char *error);
void train_close(train *t);

/* train_prepare -- brings the plan of the next step in force; train_next does it itself. Parameters
 * and states are in the formats that the step begins with then, which a recorder wants to see. */
int train_prepare(train *t, char *error);
/* train_next -- one step. */
int train_next(train *t, train_step *out, char *error);
/* train_evaluate -- loss and accuracy of the test images with the model as it is; batch
 * normalisation uses its running statistics. Nothing else changes. */
int train_evaluate(train *t, double *loss, double *accuracy, char *error);
uint64_t train_steps_done(const train *t);
/* train_measure_bytes -- memory by the formats of the plan in force; activations: what the
 * forward pass keeps for the backward pass, quantised copies with their scales; not im2col and
 * tf32, which are made again from what is kept. */
void train_measure_bytes(const train *t, train_bytes *b);

/* A tensor of the trainer, after a step. Kinds and names as in mpsim-trace/1: "act:fc1",
 * "out:fc1", "agrad:fc1", "dgrad:fc1", "weight:fc1.weight", "wgrad:fc1.weight" (as backward left
 * it, times loss scale and factor), "master:fc1.weight", "opt.m:fc1.weight", "opt.v:...". Others:
 * "act.q:fc1" (and ".qt": transposed, of blocks; ".q.blocks", ".qt.blocks": the factors of codes; ".rht":
 * transposed and transformed) for copies that products read, "weight.in:fc1"
 * and "bias.in:fc1" in format WEIGHT, "columns:conv1" and "agrad.columns:conv1" (im2col),
 * "weight.turned:conv1", "mean:bn1", "inverse:bn1", "running:bn1.mean", "running:bn1.var",
 * "grad:fc1.weight" (unscaled, clipped), "opt.vmax:", "kahan:". A tensor that two layers share
 * has a name in each; but relu, pooling and flatten, which always read another layer's, have no
 * "act:" and no "agrad:". "mean:" and "inverse:" are binary32 whatever `math` is.
 *
 * "grad:" in a skipped step is unscaled, but not clipped. Where something else divides by the
 * scale, the factor of clipping (deepspeed, fairseq) or a fused optimizer (torch-fused...), that is
 * left to it: "grad:" is then times the scale in a skipped step; with such an optimizer always. */
typedef struct train_item {
    char name[2 * TRAIN_NAME];
    train_tensor *tensor;
    int state;   /* 1: belongs to a checkpoint            */
    int traced;  /* 1: belongs to a trace                 */
    const train_gemm *product; /* that made it, or NULL; its operands are as they were */
    size_t rank, shape[4]; /* of what is traced, activations of pixels: (N, H, W, C); conv weights:
                              (out, 3, 3, in); else rows and cols */
} train_item;

/* train_visit -- every tensor, in the order in which a step makes them, the same for every engine:
 * the first that is wrong is where it began. Stops at the first non-zero result of `each` and
 * returns it. */
int train_visit(train *t, int (*each)(const train_item *x, void *context), void *context);
train_engine *train_engine_of(train *t);

/* Everything of a checkpoint that is no tensor: step, scaler, ages of parameters, FP8 histories,
 * as text that equals itself when read and written again. save: the length without the final
 * zero, at most size - 1 characters are written. load: into a run of the same text
 * (train_run_write) that train_open has just opened; the tensors with state = 1 are put by the
 * caller after it, as the formats may be another plan's. After an error the run must be closed. */
size_t train_state_save(const train *t, char *text, size_t size);
int train_state_load(train *t, const char *text, char *error);

/* ---- two engines in step ---- */

/* train_digest_step -- the digest of everything after a step: of the digests (and inverses) of all
 * tensors in train_visit's order, and of loss, scales and flags. each, if not NULL, is called with
 * every tensor's digest. */
int train_digest_step(train *t, const train_step *s, uint64_t *all,
                      void (*each)(const char *name, uint64_t digest, void *context), void *context,
                      char *error);

/* train_compare_step -- one step on both; 0 if every tensor, loss, scale and flag is equal, 1 if
 * not, with `report` saying which: step, tensor, index, both bit patterns and, for the result of
 * a product, the products (k from..to) before which both agree and after which they do not, found
 * by computing the beginning of the product again; -1 after an error. */
int train_compare_step(train *a, train *b, train_step *step_a, train_step *step_b, char *report,
                       size_t size, char *error);

#ifdef __cplusplus
}
#endif

#endif
