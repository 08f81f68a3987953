/* train.h -- training, emulated: a network, a plan, an engine, step after step.
 *
 * A step: the batch goes forward; softmax and cross-entropy times the loss scale; backward;
 * gradients are checked, unscaled and clipped; the optimizer moves parameters (or their masters);
 * the model's copy is refreshed; scaler, FP8 scales and the step count move on. Which tensor is in
 * which format, the trainer takes from a plan; engine.h defines each operation to the bit.
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
 * does. That is what arch "blackwell-scaled" and "rtx-blackwell-scaled" do: the codes are multiplied with the scales of
 * their blocks (mpsim_gemm_scaled), and the sum is times f32(scale_a scale_b) of the tensors (NVFP4); on the CPU. With `promote` the codes are multiplied, in the default row of arch for their formats, each
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
 * Transformers (gpt, llama). Rows are places: sequence after sequence of `context` tokens; the label of a
 * place is the next token. The layers of block K (from 0), "hK." before their names:
 *
 *   ln1 attn.qkv attn.heads attn.scores attn.softmax attn.context attn.proj add1
 *   ln2 mlp.fc mlp.act mlp.proj add2
 *
 * before them wte, and wpe with learned positions; after them lnf, head, loss. The stream is what passes
 * from add to add.
 *
 *   wte: y = RN(OUT, row of the weight); the weight is read as the model has it. wpe: y = RN(OUT, x + row
 *     of the weight), x as it comes. Their gradients, from dy in AGRAD, are chains, in WGRAD; dy in AGRAD of
 *     wpe goes on to wte as it is.
 *   ln1, ln2, lnf: x in ACT; weight and bias in WEIGHT; y in OUT; dy in AGRAD; dx in DGRAD; dweight and
 *     dbias in WGRAD. eps 1e-5.
 *   attn.qkv: a linear layer; its columns are the queries of all heads, then the keys, then the values of
 *     kv_heads. mlp.fc: a linear layer, of swiglu with 2 * hidden columns.
 *   attn.heads: queries, keys (both rotated by their place: rotary positions) and values in OUT, from what
 *     comes as it is; their gradients together in DGRAD. Their rows are in the order sequence, head, place.
 *   attn.scores: Q in ACT, K in WEIGHT; scores in OUT; their gradient in AGRAD; dQ and dK in DGRAD. Every
 *     head's S = Q K^T; dQ = dS K; dK = dS^T Q; of kv_heads, dK of every head, then their sum in DGRAD.
 *   attn.softmax: scores in ACT, P in OUT, dP in AGRAD, dS in DGRAD; scale f32(1 / sqrt(size of a head)).
 *   attn.context: P in ACT, V in WEIGHT; O in OUT; dO in AGRAD; dP and dV in DGRAD. O = P V; dP = dO V^T;
 *     dV = P^T dO, as dK. O in that order is "out.heads:"; "out:" has it at its place, in rows of heads * size
 *     columns. So has "agrad:" dO; "agrad.heads:", in the order of heads, is what products or their copies read.
 *   mlp.act: x as it comes; y and dx in the format of x and dy (as relu); in `math`.
 *   add1, add2: y = RN(OUT, x + the input of ln1 (ln2)), both as they come; going back dy in AGRAD goes to
 *     the branch as it is, and at the branch's beginning (ln1, ln2) RN(add's DGRAD, dx of ln + dy) goes on.
 *   head: linear without bias; tied: its weight is that of wte, where it lies as wte's placement says;
 *     its gradient is stored first, in WGRAD of wte, then that of wte begins with it ("wgrad:wte.weight" is
 *     shown once, after both).
 *
 * Recipes and tf32 of attn.scores and attn.context are of both operands of a product, ACT, WEIGHT and
 * AGRAD; only with one scale a tensor. Products of heads are stacks (train_gemm.stacks) of `heads` a
 * sequence.
 *
 * In tiles (attention = "tiled") the same, but for each tile of `tile` columns, ascending: S in binary32;
 * mpsim_causal_tile_forward with P in context's ACT; O, binary32, goes on from the tile before
 * (TRAIN_FROM_SUM); in the end y in context's OUT. Keys and values of a tile meet rows from its first
 * column on only. With a recipe for context's ACT, P is in its element format with p_scale = 2^floor(log2 of
 * the format's largest number); Q, K and V are quantised as without tiles; O = O * V's inverse
 * (mpsim_scale_array) before its end, where that is not 1. Going back: nothing is
 * quantised; dO in context's AGRAD, d = mpsim_causal_tile_dots(dO, y); tile after tile S again, P in
 * context's ACT, dV of the tile = P^T dO in context's DGRAD; dP = dO V^T in binary32; dS in
 * scores' AGRAD; dK of the tile = dS^T Q in scores' DGRAD; dQ = dQ + dS K in binary32 (TRAIN_ADD_TO), in the
 * end in scores' DGRAD. tf32: of all these operands, forward and back, P and dS after their rounding. softmax's
 * placement is not looked at; nothing of a tile has a name.
 *
 * Names: "out:", "out.key:", "out.value:" and "dgrad:" of hK.attn.heads; of attn.scores "act:" (Q), "key:",
 * their copies "act.q:", "key.q:", and "agrad:", "agrad.q:", "dgrad:" (dQ), "dgrad.key:"; of attn.context
 * "act:" (P), "value:", their copies "act.q:", "value.q:", "agrad:" (dO), "agrad.heads:", "agrad.q:", "dgrad:" (dP),
 * "dgrad.value:"; with fewer kv_heads "dgrad.keys:", "dgrad.values:" of every head before their sums. In tiles
 * also "lse:" and "dots:" of attn.context, and neither scores, P, dP nor dS. "dgrad:hK.add1": the sum at the
 * beginning of its branch. "mean:", "inverse:" of norms: a number a row. Only act, out, agrad, dgrad and wgrad
 * are traced. Counts are of what is rounded to a format of a placement (P, y with act; dV, dS, dK, dQ with agrad;
 * P of the backward pass, and numbers that only change their order, are not counted).
 *
 * Tables of rotary positions: of place p and c < size / 2, w = exp(-((2 c) / size) * ln(base)) with exp and
 * ln correctly rounded to binary64 (mpsim_function_apply) and all else binary64 operations from left to
 * right; a = p * w; a = a - floor(a * 0x1.45f306dc9c883p-3 + 0.5) * 0x1.921fb54442d18p+2; C = mpsim_cos(f32(a)),
 * S = mpsim_sin(f32(a)). base 10000.
 *
 * Initial weights of transformers: normal with deviation 0.02 * gain, of attn.proj and mlp.proj divided by
 * sqrt(2 * depth) in binary64; biases 0; norms 1 and 0. Element i of "init NAME": with the words v of index 2 i
 * and w of 2 i + 1, in binary32: u = ((v >> 8) + 1) * 2^-24; z = sqrt(-2 * mpsim_log(u)) *
 * mpsim_cos(((w >> 8) * 2^-24) * 0x1.921fb6p+2); f32(deviation) * z, then to the kept format.
 *
 * Windows of text: sequence b of micro-batch m of rank r in step s (all from 0) begins at token floor(x * (n -
 * context) / 2^32), n the tokens that are trained on, x the word of index ((s * accumulate + m) * ranks +
 * r) * batch + b, stream "text windows". Validation: windows 0, 1, 2, ... of context + 1 tokens each, one
 * beginning `context` tokens after the other, of the held-back part; `validation` of them or as many as there
 * are, in passes of up to `batch`; the loss is the sum of the passes' mean losses, each times its windows, by
 * their number, in binary64.
 *
 * Micro-batches and ranks: rank 0 does its `accumulate` micro-batches, then rank 1, ...; the coefficient of
 * the loss is f32(scale * loss_factor / (rows * accumulate)). With accumulate > 1 a rank's gradient is g =
 * RN(accumulate_format, g + micro-batch's), from the first micro-batch's, rounded so; with ranks > 1 those of
 * ranks are reduced: mpsim_reduce_array with the orders, wire and accumulator of the settings, averaged after
 * the sum, result binary32. What comes out takes the place of what backward left ("wgrad:" of a micro-batch
 * is "wgrad.micro:" then, and not traced). Random bits of tensors in micro-batch k, counted over all ranks
 * from 0, are of the stream of NAME, with k > 0 of NAME/k. The loss of a step is the mean over micro-batches
 * and ranks, in binary64 and in their order.
 *
 * Schedules: step s takes lr times the factor, in binary64: s < warmup: (s + 1) / warmup; else with
 * p = (s - warmup) / (steps - warmup): constant 1; linear 1 - (1 - min_lr) * p; cosine min_lr + (1 -
 * min_lr) * 0.5 * (1 + mpsim_cos(f32(p * 0x1.921fb54442d18p+1))). cooldown > 0: in the last `cooldown` steps that
 * times (steps - s) / (cooldown + 1). Steps after the last take what the last took. Weight decay is 0 for what has one dimension (norms, biases) unless
 * decay_all is 1, with transformers only.
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

enum { TRAIN_ERROR = 256, TRAIN_NAME = 48, TRAIN_LAYERS = 256, TRAIN_PLANS = 16 };

/* train_out_of_memory -- whether such a line says that memory ran out: all of them do in these words. */
int train_out_of_memory(const char *error);

/* ---- data: 1797 handwritten digits of 8 x 8 pixels ---- */

enum { TRAIN_PIXELS = 64, TRAIN_SIDE = 8, TRAIN_CLASSES = 10, TRAIN_IMAGES = 1437, TRAIN_TESTS = 360 };

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

/* ---- data: text as tokens ---- */

/* Text of a transformer: `trained` training tokens, then `held` validation tokens. */
typedef struct train_text {
    const char *name;   /* without spaces, below 64 characters */
    const void *tokens; /* of `bytes` bytes each: 1, 2 or 4    */
    uint8_t bytes;
    size_t trained, held;
    uint32_t vocabulary; /* above every token                   */
    uint64_t digest;     /* mpsim_digest_bytes of the tokens as little-endian numbers of 4 bytes */
} train_text;

/* train_text_bundled -- "mpsim": this project's own pages, bytes as tokens, vocabulary 256. */
const train_text *train_text_bundled(void);
uint32_t train_token(const train_text *t, size_t i);

/* ---- the network ---- */

typedef enum train_type {
    TRAIN_LINEAR,    /* y = x W^T + b; W is outputs x inputs                                     */
    TRAIN_CONV,      /* 3 x 3, padding 1, no bias; W is outputs x (9 inputs): (y, x, channel)    */
    TRAIN_BATCHNORM, /* of every column (channel)                                                */
    TRAIN_RELU,
    TRAIN_MAXPOOL,   /* 2 x 2                                                                    */
    TRAIN_FLATTEN,   /* pixels of an image to one row, order (y, x, channel)                     */
    TRAIN_LOSS,      /* softmax and cross-entropy, mean over the batch                           */
    TRAIN_EMBED,     /* rows of a table by tokens; W is vocabulary x width                       */
    TRAIN_POSITIONS, /* plus a row of a table by place; W is context x width                     */
    TRAIN_NORM,      /* LayerNorm, RMSNorm of every row                                          */
    TRAIN_HEADS,     /* queries, keys, values of heads                                           */
    TRAIN_SCORES,    /* Q K^T                                                                    */
    TRAIN_SOFTMAX,   /* causal                                                                   */
    TRAIN_CONTEXT,   /* P V                                                                      */
    TRAIN_ACTIVATION,
    TRAIN_ADD, /* plus the input of layer `from`                                           */
    TRAIN_TYPES
} train_type;

/* mlp: [fcK, bnK, reluK] of every hidden layer, head, loss. cnn: [convK, bnK, reluK, poolK],
 * flatten, head, loss. K from 1; bnK only with batchnorm. */
typedef struct train_layer {
    char name[TRAIN_NAME]; /* "fc1", "conv1", "bn1", "relu1", "pool1", "flatten", "head", "loss" */
    uint8_t type;
    uint32_t inputs, outputs; /* columns (channels) before and after                             */
    uint32_t side;            /* of the image before: 8, 4, 2; 0: rows are whole images          */
    uint32_t from;            /* of TRAIN_ADD: where its branch begins, the number of a layer    */
    uint8_t plain;            /* 1: without bias (linear layers, norms)                          */
} train_layer; /* TRAIN_EMBED: inputs = vocabulary, outputs = width, W is inputs x outputs; TRAIN_POSITIONS: the
                  same with context; TRAIN_HEADS to those of a head (size), TRAIN_SCORES to context, TRAIN_CONTEXT to
                  heads * size columns */

/* Largest sizes of a transformer; largest warm-up and cool-down in steps. */
enum {
    TRAIN_MOST_WIDTH = 8192,
    TRAIN_MOST_HIDDEN = 1 << 16,
    TRAIN_MOST_CONTEXT = 1 << 14, /* and columns of a tile */
    TRAIN_MOST_VOCABULARY = 1 << 20,
    TRAIN_MOST_ACCUMULATE = 1 << 12,
    TRAIN_MOST_RANKS = 1 << 12,
    TRAIN_MOST_SCHEDULE = 1000000000,
    TRAIN_MOST_VALIDATION = 1 << 20
};

/* A transformer and how it is trained; of other networks all zeros but accumulate, ranks: 1. In the text of
 * a run these are there with net gpt and llama only, in this order, after the other settings. Words are
 * enumerators of their tables. */
typedef enum train_decay { TRAIN_CONSTANT, TRAIN_LINEAR_DECAY, TRAIN_COSINE } train_decay;

typedef struct train_decoder {
    uint32_t heads, kv_heads;                      /* 4; kv_heads as heads                                            */
    uint32_t hidden;                               /* of the feed-forward network: 4 width; of swiglu 8/3 width, up to a
                                  multiple of 8                                                  */
    uint32_t context;                              /* tokens of a sequence: 64                                        */
    uint32_t vocabulary;                           /* that of the text, or above                                      */
    uint8_t norm;                                  /* mpsim_norm_kind: "layernorm", "rmsnorm"                         */
    uint8_t activation;                            /* mpsim_activation: "gelu-tanh", "gelu", "swiglu"                 */
    uint8_t rotary;                                /* 0: learned positions                                            */
    uint8_t biases;                                /* of linear layers but the head, and of LayerNorm                 */
    uint8_t tied;                                  /* the head's weight is wte's                                      */
    uint32_t tile;                                 /* 0: attention materialised; else columns of a tile               */
    char math_norm[16], math_softmax[16];          /* of norms, of attention's softmax; "": as `math`      */
    uint32_t accumulate, ranks;                    /* micro-batches, 1; simulated ranks, 1; `batch` sequences each    */
    char accumulate_format[16], wire[16], sum[16]; /* "binary32"; of reductions wire and accumulator */
    uint8_t reduce;                                /* mpsim_reduce_order: "sequential", "ring", "tree"                */
    uint8_t decay;                                 /* train_decay: "constant", "linear", "cosine"                     */
    uint8_t decay_all;                             /* 1: norms and biases decay, too                                  */
    uint64_t warmup, cooldown;                     /* steps                                                           */
    double min_lr;                                 /* a share of lr                                                   */
    uint32_t validation;                           /* windows                                                         */
    char text[64];                                 /* name of the text: "mpsim"                                       */
    uint64_t text_digest;                          /* train_text.digest                                               */
} train_decoder;

/* A training: network, data and steps. Written as text and read back (train_run_write). */
typedef struct train_settings {
    char net[16];          /* "mlp", "cnn", "gpt", "llama"                                          */
    uint32_t depth;        /* hidden layers (mlp: 2, up to 20), convolutions (cnn: 2, 1 to 3)       */
    uint32_t width;        /* units of a hidden layer (mlp: 128); channels of the first convolution,
                           doubled by each further one (cnn: 16)                                 */
    uint32_t batchnorm;    /* 1: after every hidden linear layer or convolution (mlp: 0, cnn: 1)    */
    uint32_t batch;        /* 64                                                                    */
    uint64_t steps;        /* 500; of cnn 200                                                       */
    uint64_t seed;         /* 0: initial weights, order of images, stochastic rounding              */
    double gain;           /* 1: initial weights are uniform in +-gain / sqrt(fan_in), biases too
                           (without the gain), as torch's                                        */
    double loss_factor;    /* 1: the loss is multiplied by this, as where many losses are averaged;
                           reported losses are without it                                        */
    char math[16];         /* "binary32": format of softmax, loss and normalisation                 */
    char arch[64];         /* "hopper": where products run: an architecture, or a software model;
                           see train_model                                                       */
    uint32_t tf32;         /* 1: binary32 operands are rounded to tf32 (nearest-away) and multiplied
                           by tensor cores                                                       */
    train_decoder decoder; /* of gpt and llama                                                   */
} train_settings;

void train_settings_init(train_settings *s, const char *net); /* of an unknown net: those of mlp */
/* train_decoder_hidden -- `hidden` where it is not said, of width and activation: 4 * width; of swiglu 8 / 3
 * of it, up to a multiple of 8. */
uint32_t train_decoder_hidden(const train_settings *s);
/* train_text_check -- -1, with a line, where the text is too short for the windows, not that of the
 * settings, or has tokens beyond their vocabulary. */
int train_text_check(const train_text *t, const train_settings *s, char *error);
/* train_network -- the layers; the number of them, 0 after an error (also: settings out of
 * range). */
size_t train_network(const train_settings *s, train_layer layers[TRAIN_LAYERS], char *error);

/* train_model -- how operands of two formats are multiplied on `arch`: the architecture's default
 * row for them; binary32 operands: "fma" (a chain of fma in binary32, what CUDA cores do). `arch`
 * of another name ("exact", "sequential", any of mpsim_model_parse): that model for all operands,
 * its result widened to binary32. "fp32-sequential" is "sequential". The error line names the
 * architectures that have such products. */
int train_model(const train_settings *s, const mpsim_format *a, const mpsim_format *b, mpsim_model *m, char *error);

/* ---- the plan ---- */

typedef struct train_plan {
    uint64_t from;      /* the first step, from 0                                        */
    char precision[32]; /* the policy's word, without spaces                             */
    train_placement layers[TRAIN_LAYERS];
    train_master master;
    mpsim_scaler_config scaler;
    mpsim_optim optimizer; /* param, state and grad_scale are set by the trainer            */
    mpsim_muon muon;       /* of layers that say so                                         */
    mpsim_clip_rule clip;
    double max_norm;
    uint32_t clip_scaled;         /* 1: clipped before unscaling, train/step.h */
    int delayed;                  /* 1: FP8 scales are those of older steps, by `history`: recipes
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
    const train_text *text; /* of transformers; NULL: the bundled one. Not written: its name and digest are
                               settings, and must be those                                       */
} train_run;

/* train_schedule -- what the learning rates of a step are multiplied by. */
double train_schedule(const train_settings *s, uint64_t step);

/* Another plan: parameters are rounded to its kept formats, moments to its state formats,
 * nearest-even; ages and the optimizer's arrays go on; the scaler goes on if its configuration is
 * the same, else it starts anew; so do FP8 histories. As in a replay. */

/* train_run_write, train_run_read -- a run as text, complete and readable: "mpsim-run/1", a
 * line "key value" for every setting, then of every plan "plan FROM", "precision", "master",
 * "scaler" (as mpsim_scaler_parse), "optimizer", "clip", "fp8" and "layer NAME act=FORMAT ..."
 * for every layer, "end". `math_norm` and `math_softmax` that are "" are "-". Formats have their canonical names, numbers that are no integers are
 * hexadecimal floating point. What is read is equal to what was written, but for what the trainer
 * sets; plans of a read run are freed by train_run_clear. Text that is not like this is refused
 * with its line. write: -1 only if the FILE fails. */
int train_run_write(const train_run *r, FILE *f);
int train_run_read(train_run *r, FILE *f, char *error);
void train_run_clear(train_run *r);

/* ---- training ---- */

typedef struct train train;

typedef struct train_step {
    uint64_t step; /* from 0                                                            */
    const train_plan *plan;
    float loss;      /* mean over the batch, before the update, without the loss factor   */
    double accuracy; /* of the batch, before the update; of transformers of the next token */
    double lr;       /* that the optimizer was given                                      */
    double scale, next_scale;
    unsigned events;      /* MPSIM_SCALER_*                                                    */
    int skipped, stopped; /* stopped: the scaler raised its error; nothing more can be done    */
    double norm;          /* of all gradients, unscaled, before clipping; NaN: nothing clips, or
                                the step is skipped                                               */
    int clipped;
    const char *cause;              /* first gradient with an infinity or NaN, or NULL                   */
    train_counts act, agrad, wgrad; /* act: ACT, WEIGHT, OUT; agrad: AGRAD, DGRAD; with their copies
                                       for products; wgrad: WGRAD of linear layers, convolutions,
                                       embeddings, positions */
    uint64_t updates, lost;         /* see train_ops.optim; 0 unless counted                             */
} train_step;

/* TRAIN_COUNT: lost updates are counted (twice the time of an update). TRAIN_LEAN: train_visit shows only what belongs
 * to a checkpoint; all other tensors take memory one after the other. */
enum { TRAIN_COUNT = 1, TRAIN_LEAN = 2 };

/* train_open -- parameters initialised, nothing trained yet. The engine and *r must stay. how: a sum of these.
 * NULL after an error. */
train *train_open(const train_run *r, train_engine *e, int how, char *error);
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
/* train_measure_bytes -- memory of a rank by the formats of the plan in force; gradients: with the sums of
 * micro-batches, where there are several; activations: what the
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
    int state;                 /* 1: belongs to a checkpoint            */
    int traced;                /* 1: belongs to a trace                 */
    const train_gemm *product; /* that made it, or NULL; its operands are as they were */
    size_t rank, shape[4];     /* of what is traced, activations of pixels: (N, H, W, C); conv weights:
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
                      void (*each)(const char *name, uint64_t digest, void *context), void *context, char *error);

/* train_compare_step -- one step on both; 0 if every tensor, loss, scale and flag is equal, 1 if
 * not, with `report` saying which: step, tensor, index, both bit patterns and, for the result of
 * a product, the products (k from..to) before which both agree and after which they do not, found
 * by computing the beginning of the product again; -1 after an error. */
int train_compare_step(train *a, train *b, train_step *step_a, train_step *step_b, char *report, size_t size,
                       char *error);

#ifdef __cplusplus
}
#endif

#endif
