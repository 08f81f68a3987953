/* words.h -- the options of train that say what is trained. */
#pragma once

#include "../cli/options.h"
#include "decoder.h"
#include "policy.h"

/* What is trained, and what the options write to. Late options write to the settings, which `begin` fills first. */
typedef struct train_words {
    train_settings *settings;
    train_overrides *overrides;
    const char *net; /* NULL: not given */
    uint64_t steps;  /* 0: not given */
    option_list math;
    int batchnorm, no_batchnorm, tf32;
    decoder_words decoder;
    char rule[32];  /* of --clip */
    text_file text; /* of transformers, if it is not the bundled one */
} train_words;

/* Their names, but for --steps and those of the text. */
#define TRAIN_WORDS                                                                                                    \
    "net batch seed depth width batchnorm no-batchnorm gain loss-factor math arch tf32 optimizer variant lr momentum " \
    "dampening weight-decay beta1 beta2 eps clip loss-scaling " DECODER_WORDS

/* Their rows for a command's table; `w` is a train_words variable, `s` its settings, `o` its overrides. */
/* clang-format off */
#define TRAIN_WORD_ROWS(w, s, o)                                                                  \
    {0, "The run", OPTION_HEADING, NULL, NULL, NULL},                                            \
    {0, "net", OPTION_CHOICE, &(w).net, "mlp|cnn|gpt|llama",                                     \
     "a perceptron (default), a convolutional network, or a transformer"},                       \
    {0, "", OPTION_THEN, READS(train_words_begin, &(w), NULL), NULL, NULL},                      \
    {0, "steps", OPTION_COUNT64, &(w).steps, "N", "steps (mlp: 500, cnn: 200, gpt, llama: 300)"}, \
    {0, "batch", OPTION_COUNT32, &(s).batch, "N", "images of a step (default 64), or sequences (8)"}, \
    {0, "seed", OPTION_COUNT64, &(s).seed, "N",                                                   \
     "initial weights, order of images or text, stochastic rounding (default 0)"},               \
    {0, "depth", OPTION_COUNT32, &(s).depth, "N",                                                 \
     "hidden layers, convolutions, or blocks (default 2)"},                                      \
    {0, "width", OPTION_COUNT32, &(s).width, "N",                                                 \
     "units of a hidden layer (128), channels of the first convolution (16), or of tokens (64)"},\
    {0, "batchnorm", OPTION_FLAG, &(w).batchnorm, NULL,                                          \
     "batch normalisation after hidden layers (default of cnn)"},                                \
    {0, "no-batchnorm", OPTION_FLAG, &(w).no_batchnorm, NULL, "no batch normalisation (default of mlp)"}, \
    {0, "gain", OPTION_NUMBER, &(s).gain, "X", "initial weights times X"},                       \
    {0, "loss-factor", OPTION_NUMBER, &(s).loss_factor, "X",                                     \
     "the loss times X, as where many losses are averaged"},                                     \
    {0, "math", OPTION_LIST, &(w).math, "FORMAT",                                                \
     "format of softmax, loss and normalisation (default binary32); of gpt, llama also norm=FORMAT, " \
     "softmax=FORMAT"},                                                                          \
    {0, "arch", OPTION_READ, READS(train_read_arch, (s).arch, "so long a name"), "NAME",                                                \
     "where matrix products run (default hopper); see below"},                                   \
    {0, "tf32", OPTION_FLAG, &(w).tf32, NULL, "binary32 products on tensor cores, in tf32"},     \
    DECODER_WORD_ROWS((w).decoder, (s).decoder),                                                              \
    {0, "Instead of the policy", OPTION_HEADING, NULL, NULL, NULL},                              \
    {0, "optimizer", OPTION_READ, READS(train_read_optimizer, &(o).optimizer, NULL), "NAME", "sgd, adam, adamw, lion or adafactor"}, \
    {0, "variant", OPTION_READ, READS(train_read_variant, &(o).variant, VARIANTS), "NAME",                                          \
     "its order of roundings: ieee, torch, torch-foreach, torch-fused-c, apex, ..."},            \
    {0, "lr", OPTION_NUMBER, &(o).lr, "X", "learning rate"},                                     \
    {0, "momentum", OPTION_NUMBER, &(o).momentum, "X", "momentum"},                              \
    {0, "dampening", OPTION_NUMBER, &(o).dampening, "X", "dampening"},                           \
    {0, "weight-decay", OPTION_NUMBER, &(o).weight_decay, "X", "weight decay"},                  \
    {0, "beta1", OPTION_NUMBER, &(o).beta1, "X", "of Adam, AdamW and Lion"},                     \
    {0, "beta2", OPTION_NUMBER, &(o).beta2, "X", "of Adam, AdamW and Lion"},                     \
    {0, "eps", OPTION_NUMBER, &(o).eps, "X", "of Adam, AdamW and Adafactor"},                    \
    {0, "clip", OPTION_READ, READS(train_read_clip, &(w), CLIPS), "[RULE:]NORM",                                         \
     "clip the norm of all gradients, as 1 or megatron:1; none"},                                \
    {0, "loss-scaling", OPTION_READ, READS(train_read_scaler, &(o).scaler, NULL), "SCALER",                                    \
     "a scaler as in mpsim scaler --list, with changes: torch:init=2^24"},                       \
    EXCLUSIVE("batchnorm no-batchnorm", NULL),                                                   \
    EXCLUDES("batchnorm no-batchnorm", DECODERS, NULL),                                          \
    RANGE("steps", 1, 1e9),                                                                      \
    RANGE("seed", 0, 0x1p63 - 1024),                                                             \
    RANGE("gain loss-factor", 1e-18, 1e18),                                                      \
    RANGE("lr weight-decay eps", 0, 1e6),                                                        \
    RANGE("momentum dampening beta1 beta2", 0, 1)
/* clang-format on */

/* Readers of these rows (options.h); train_words_begin: the settings of the network, before options change them. */
int train_words_begin(void *words, const char *where, const char *text);
int train_read_arch(void *arch, const char *where, const char *text);
int train_read_optimizer(void *name, const char *where, const char *text);
int train_read_variant(void *name, const char *where, const char *text);
int train_read_clip(void *words, const char *where, const char *text);
int train_read_scaler(void *spec, const char *where, const char *text);
#define VARIANTS "one of ieee, torch, torch-foreach, apex, ... (mpsim/optim.h)"
#define CLIPS "a norm from 1e-30 to 1e30, alone or behind its rule as megatron:1 (data/policies/README.md), or none"

/* train_words_read -- what follows from the options: 0, or an exit code after a message. The overrides point into *w, and so do
 * runs on its text.
 * train_words_text -- the text of a run that was read from `path`. */
int train_words_read(train_words *w);
int train_words_text(train_words *w, train_run *r, const char *path);
void train_words_clear(train_words *w);
