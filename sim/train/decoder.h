/* decoder.h -- the options of train that say which transformer is trained, on what and how. */
#pragma once

#include "../cli/options.h"
#include "text.h"

#include <train/train.h>

/* As typed; NULL: not given. */
typedef struct decoder_words {
    const char *heads, *kv_heads, *hidden, *context, *vocabulary, *norm, *activation, *positions, *attention, *tile,
        *accumulate, *accumulate_format, *ranks, *reduce, *wire, *sum, *decay, *warmup, *cooldown, *min_lr, *validation,
        *text, *tokens;
    int biases, no_biases, tied, own_head, decay_all, gpt2;
} decoder_words;

/* Their rows for a command's table; `d` is a decoder_words variable. */
/* clang-format off */
#define DECODER_WORD_ROWS(d)                                                                       \
    {0, "A transformer", OPTION_HEADING, NULL, NULL, NULL},                                        \
    {0, "gpt2", OPTION_FLAG, &(d).gpt2, NULL,                                                      \
     "GPT-2 of 124 M parameters: depth 12, width 768, 12 heads, context 1024, vocabulary 50257"},  \
    {0, "heads", OPTION_STRING, &(d).heads, "N", "heads of attention (default 4)"},                \
    {0, "kv-heads", OPTION_STRING, &(d).kv_heads, "N",                                             \
     "heads of keys and values, each for several queries (default: as --heads)"},                  \
    {0, "hidden", OPTION_STRING, &(d).hidden, "N",                                                 \
     "units of the feed-forward network (default 4 width; of swiglu 8/3 width)"},                  \
    {0, "context", OPTION_STRING, &(d).context, "N", "tokens of a sequence (default 64)"},         \
    {0, "vocabulary", OPTION_STRING, &(d).vocabulary, "N",                                         \
     "tokens there are (bytes: 256; of llm.c: 50257, 128256)"},                                    \
    {0, "norm", OPTION_STRING, &(d).norm, "layernorm|rmsnorm",                                     \
     "of layers (gpt: layernorm; llama: rmsnorm)"},                                                \
    {0, "activation", OPTION_STRING, &(d).activation, "gelu-tanh|gelu|swiglu",                     \
     "of the feed-forward network (gpt: gelu-tanh; llama: swiglu)"},                               \
    {0, "positions", OPTION_STRING, &(d).positions, "learned|rotary",                              \
     "how the model knows where a token stands (gpt: learned; llama: rotary)"},                    \
    {0, "biases", OPTION_FLAG, &(d).biases, NULL,                                                  \
     "biases in linear layers and norms (default of gpt)"},                                        \
    {0, "no-biases", OPTION_FLAG, &(d).no_biases, NULL, "no biases (default of llama)"},           \
    {0, "tied", OPTION_FLAG, &(d).tied, NULL,                                                      \
     "the head multiplies the table of tokens (default of gpt)"},                                  \
    {0, "own-head", OPTION_FLAG, &(d).own_head, NULL,                                              \
     "the head has its own weight (default of llama)"},                                            \
    {0, "attention", OPTION_STRING, &(d).attention, "materialised|tiled",                          \
     "all scores at once (default), or tiles of them: online softmax"},                            \
    {0, "tile", OPTION_STRING, &(d).tile, "N", "columns of a tile (default 64)"},                  \
    {0, "The text of a transformer", OPTION_HEADING, NULL, NULL, NULL},                            \
    {0, "text", OPTION_INPUT, &(d).text, "FILE",                                                  \
     "train on its bytes; the last tenth is held back (default: this project's own pages)"},       \
    {0, "tokens", OPTION_INPUT, &(d).tokens, "FILE", "train on tokens, as llm.c keeps them"},     \
    {0, "validation", OPTION_STRING, &(d).validation, "N",                                         \
     "sequences of what is held back (default 32)"},                                               \
    {0, "Batches and ranks of a transformer", OPTION_HEADING, NULL, NULL, NULL},                   \
    {0, "accumulate", OPTION_STRING, &(d).accumulate, "N",                                         \
     "micro-batches of a step, of --batch sequences each (default 1)"},                            \
    {0, "accumulate-format", OPTION_STRING, &(d).accumulate_format, "FORMAT",                      \
     "format of their sum (default binary32)"},                                                    \
    {0, "ranks", OPTION_STRING, &(d).ranks, "N", "simulated ranks (default 1), in data parallel"}, \
    {0, "reduce", OPTION_STRING, &(d).reduce, "ring|tree|sequential",                              \
     "the order in which their gradients are added (default ring)"},                               \
    {0, "wire", OPTION_STRING, &(d).wire, "FORMAT",                                                \
     "format of what ranks send (default binary32)"},                                              \
    {0, "wire-sum", OPTION_STRING, &(d).sum, "FORMAT",                                             \
     "format of the sums on their way (default binary32)"},                                        \
    {0, "The learning rate of a transformer", OPTION_HEADING, NULL, NULL, NULL},                   \
    {0, "schedule", OPTION_STRING, &(d).decay, "constant|linear|cosine",                           \
     "how it falls after the warm-up (default cosine)"},                                           \
    {0, "warmup", OPTION_STRING, &(d).warmup, "N", "first steps, in which it rises (default 20)"}, \
    {0, "cooldown", OPTION_STRING, &(d).cooldown, "N",                                             \
     "last steps, in which it falls to 0 (default 0)"},                                            \
    {0, "min-lr", OPTION_STRING, &(d).min_lr, "X",                                                 \
     "what linear and cosine end with, as a share of --lr (default 0.1)"},                         \
    {0, "decay-all", OPTION_FLAG, &(d).decay_all, NULL,                                            \
     "weight decay of norms and biases, too (default: of matrices)"}
/* clang-format on */

/* is_decoder -- gpt or llama. */
int is_decoder(const train_settings *s);

/* decoder_words_read -- into the settings of gpt or llama, whose width is known; of another network each
 * option is refused. *own: the text, if it is not the bundled one. 0, or an exit code
 * after a message.
 * decoder_words_sizes -- of --gpt2, before the options that it leaves open.
 * decoder_words_text -- the text of a run that was read from `path`, with its name and digest.
 * decoder_words_given -- an option but --text and --tokens; NULL: none. */
int decoder_words_read(const decoder_words *w, train_settings *s, text_file *own);
int decoder_words_sizes(const decoder_words *w, train_settings *s, const char *net, const char *depth,
                        const char *width);
int decoder_words_text(const decoder_words *w, train_run *r, const char *path, text_file *own);
const char *decoder_words_given(const decoder_words *w);
