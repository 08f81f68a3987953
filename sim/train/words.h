/* words.h -- the options of train that say what is trained. */
#pragma once

#include "../cli/options.h"
#include "decoder.h"
#include "policy.h"

/* Options of the run itself, as typed; NULL: not given. */
typedef struct train_words {
    const char *net, *steps, *batch, *seed, *depth, *width, *gain, *loss_factor, *arch, *optimizer, *variant, *lr,
        *momentum, *dampening, *weight_decay, *beta1, *beta2, *eps, *clip, *scaler;
    option_list math;
    int batchnorm, no_batchnorm, tf32;
    decoder_words decoder;
    char rule[32];  /* of clip */
    text_file text; /* of transformers, if it is not the bundled one */
} train_words;

/* Their rows for a command's table; `w` is a train_words variable. */
/* clang-format off */
#define TRAIN_WORD_ROWS(w)                                                                       \
    {0, "The run", OPTION_HEADING, NULL, NULL, NULL},                                            \
    {0, "net", OPTION_STRING, &(w).net, "mlp|cnn|gpt|llama",                                     \
     "a perceptron (default), a convolutional network, or a transformer"},                       \
    {0, "steps", OPTION_STRING, &(w).steps, "N", "steps (mlp: 500, cnn: 200, gpt, llama: 300)"}, \
    {0, "batch", OPTION_STRING, &(w).batch, "N", "images of a step (default 64), or sequences (8)"}, \
    {0, "seed", OPTION_STRING, &(w).seed, "N",                                                   \
     "initial weights, order of images or text, stochastic rounding (default 0)"},               \
    {0, "depth", OPTION_STRING, &(w).depth, "N",                                                 \
     "hidden layers, convolutions, or blocks (default 2)"},                                      \
    {0, "width", OPTION_STRING, &(w).width, "N",                                                 \
     "units of a hidden layer (128), channels of the first convolution (16), or of tokens (64)"},\
    {0, "batchnorm", OPTION_FLAG, &(w).batchnorm, NULL,                                          \
     "batch normalisation after hidden layers (default of cnn)"},                                \
    {0, "no-batchnorm", OPTION_FLAG, &(w).no_batchnorm, NULL, "no batch normalisation (default of mlp)"}, \
    {0, "gain", OPTION_STRING, &(w).gain, "X", "initial weights times X"},                       \
    {0, "loss-factor", OPTION_STRING, &(w).loss_factor, "X",                                     \
     "the loss times X, as where many losses are averaged"},                                     \
    {0, "math", OPTION_LIST, &(w).math, "FORMAT",                                                \
     "format of softmax, loss and normalisation (default binary32); of gpt, llama also norm=FORMAT, " \
     "softmax=FORMAT"},                                                                          \
    {0, "arch", OPTION_STRING, &(w).arch, "NAME",                                                \
     "where matrix products run (default hopper); see below"},                                   \
    {0, "tf32", OPTION_FLAG, &(w).tf32, NULL, "binary32 products on tensor cores, in tf32"},     \
    DECODER_WORD_ROWS((w).decoder),                                                              \
    {0, "Instead of the policy", OPTION_HEADING, NULL, NULL, NULL},                              \
    {0, "optimizer", OPTION_STRING, &(w).optimizer, "NAME", "sgd, adam, adamw, lion or adafactor"}, \
    {0, "variant", OPTION_STRING, &(w).variant, "NAME",                                          \
     "its order of roundings: ieee, torch, torch-foreach, torch-fused-c, apex, ..."},            \
    {0, "lr", OPTION_STRING, &(w).lr, "X", "learning rate"},                                     \
    {0, "momentum", OPTION_STRING, &(w).momentum, "X", "momentum"},                              \
    {0, "dampening", OPTION_STRING, &(w).dampening, "X", "dampening"},                           \
    {0, "weight-decay", OPTION_STRING, &(w).weight_decay, "X", "weight decay"},                  \
    {0, "beta1", OPTION_STRING, &(w).beta1, "X", "of Adam, AdamW and Lion"},                     \
    {0, "beta2", OPTION_STRING, &(w).beta2, "X", "of Adam, AdamW and Lion"},                     \
    {0, "eps", OPTION_STRING, &(w).eps, "X", "of Adam, AdamW and Adafactor"},                    \
    {0, "clip", OPTION_STRING, &(w).clip, "[RULE:]NORM",                                         \
     "clip the norm of all gradients, as 1 or megatron:1; none"},                                \
    {0, "loss-scaling", OPTION_STRING, &(w).scaler, "SCALER",                                    \
     "a scaler as in mpsim scaler --list, with changes: torch:init=2^24"}
/* clang-format on */

/* train_words_read -- what was typed, over the defaults of the network: 0, or an exit code after a
 * message. The overrides point into *w, and so do runs on its text.
 * train_words_text -- the text of a run that was read from `path`.
 * train_words_steps -- the number of steps alone.
 * train_words_given -- an option that was given, `but` (or NULL), --text and --tokens left out; NULL: none. */
int train_words_read(train_words *w, train_settings *s, train_overrides *o);
int train_words_steps(const train_words *w, train_settings *s);
int train_words_text(train_words *w, train_run *r, const char *path);
const char *train_words_given(const train_words *w, const char *but);
void train_words_clear(train_words *w);
