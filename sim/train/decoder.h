/* decoder.h -- the options of train that say which transformer is trained, on what and how. */
#pragma once

#include "../cli/options.h"
#include "text.h"

#include <train/train.h>

typedef struct decoder_words {
    const char *text, *tokens; /* files; NULL: not given */
    int biases, no_biases, tied, own_head, decay_all, gpt2, tiled;
} decoder_words;

/* The networks that are transformers, as terms of rules; the names of their options but --text and --tokens. */
#define DECODERS "net=gpt net=llama gpt2"
#define DECODER_WORDS                                                                                             \
    "gpt2 heads kv-heads hidden context vocabulary norm activation positions biases no-biases tied own-head "     \
    "attention tile validation accumulate accumulate-format ranks reduce wire wire-sum schedule warmup cooldown " \
    "min-lr decay-all"

/* Their rows for a command's table; `w` is a decoder_words variable, `d` a train_decoder. */
/* clang-format off */
#define DECODER_WORD_ROWS(w, d)                                                                    \
    {0, "A transformer", OPTION_HEADING, NULL, NULL, NULL},                                        \
    {0, "gpt2", OPTION_FLAG, &(w).gpt2, NULL,                                                      \
     "GPT-2 of 124 M parameters: depth 12, width 768, 12 heads, context 1024, vocabulary 50257"},  \
    {0, "heads", OPTION_COUNT32, &(d).heads, "N", "heads of attention (default 4)"},                \
    {0, "kv-heads", OPTION_COUNT32, &(d).kv_heads, "N",                                             \
     "heads of keys and values; several query heads share one (default: as --heads)"},                  \
    {0, "hidden", OPTION_COUNT32, &(d).hidden, "N",                                                 \
     "units of the feed-forward network (default 4 width; swiglu 8/3 width)"},                  \
    {0, "context", OPTION_COUNT32, &(d).context, "N", "tokens of a sequence (default 64)"},         \
    {0, "vocabulary", OPTION_COUNT32, &(d).vocabulary, "N",                                         \
     "number of tokens (bytes: 256; llm.c: 50257, 128256)"},                                    \
    {0, "norm", OPTION_BYTE, &(d).norm, "layernorm|rmsnorm",                                     \
     "normalisation of layers (gpt: layernorm; llama: rmsnorm)"},                                                \
    {0, "activation", OPTION_BYTE, &(d).activation, "gelu-tanh|gelu|swiglu",                     \
     "activation of the feed-forward network (gpt: gelu-tanh; llama: swiglu)"},                               \
    {0, "positions", OPTION_BYTE, &(d).rotary, "learned|rotary",                              \
     "position embedding (gpt: learned; llama: rotary)"},                    \
    {0, "biases", OPTION_FLAG, &(w).biases, NULL,                                                  \
     "biases in linear layers and norms (default of gpt)"},                                        \
    {0, "no-biases", OPTION_FLAG, &(w).no_biases, NULL, "no biases (default of llama)"},           \
    {0, "tied", OPTION_FLAG, &(w).tied, NULL,                                                      \
     "the head shares the weight of the token embedding (default of gpt)"},                                  \
    {0, "own-head", OPTION_FLAG, &(w).own_head, NULL,                                              \
     "the head has its own weight (default of llama)"},                                            \
    {0, "attention", OPTION_WORD, &(w).tiled, "materialised|tiled",                          \
     "compute all scores at once (default), or tile by tile with an online softmax"},                            \
    {0, "tile", OPTION_COUNT32, &(d).tile, "N", "columns of a tile (default 64)"},                  \
    {0, "The text of a transformer", OPTION_HEADING, NULL, NULL, NULL},                            \
    {0, "text", OPTION_INPUT, &(w).text, "FILE",                                                  \
     "train on the bytes of FILE; the last tenth is for validation (default: the project's own pages)"},       \
    {0, "tokens", OPTION_INPUT, &(w).tokens, "FILE", "train on a token file of llm.c"},     \
    {0, "validation", OPTION_COUNT32, &(d).validation, "N",                                         \
     "validation sequences (default 32)"},                                               \
    {0, "Batches and ranks of a transformer", OPTION_HEADING, NULL, NULL, NULL},                   \
    {0, "accumulate", OPTION_COUNT32, &(d).accumulate, "N",                                         \
     "micro-batches in a step, of --batch sequences each (default 1)"},                            \
    {0, "accumulate-format", OPTION_READ, READS(train_read_format, (d).accumulate_format, TRAIN_FORMATS), "FORMAT",                      \
     "format in which gradients of micro-batches are summed (default binary32)"},                                                    \
    {0, "ranks", OPTION_COUNT32, &(d).ranks, "N", "simulated data-parallel ranks (default 1)"}, \
    {0, "reduce", OPTION_BYTE, &(d).reduce, "sequential|ring|tree",                              \
     "order in which gradients of ranks are summed (default ring)"},                               \
    {0, "wire", OPTION_READ, READS(train_read_format, (d).wire, TRAIN_FORMATS), "FORMAT",                                                \
     "format in which ranks send gradients (default binary32)"},                                              \
    {0, "wire-sum", OPTION_READ, READS(train_read_format, (d).sum, TRAIN_FORMATS), "FORMAT",                                             \
     "format of the partial sums of --reduce (default binary32)"},                                        \
    {0, "The learning rate of a transformer", OPTION_HEADING, NULL, NULL, NULL},                   \
    {0, "schedule", OPTION_BYTE, &(d).decay, "constant|linear|cosine",                           \
     "decay of the learning rate after the warm-up (default cosine)"},                                           \
    {0, "warmup", OPTION_COUNT64, &(d).warmup, "N", "steps in which the learning rate rises (default 20)"}, \
    {0, "cooldown", OPTION_COUNT64, &(d).cooldown, "N",                                             \
     "last steps, in which the learning rate falls to 0 (default 0)"},                                            \
    {0, "min-lr", OPTION_NUMBER, &(d).min_lr, "X",                                                 \
     "final learning rate of linear and cosine, as a share of --lr (default 0.1)"},                         \
    {0, "decay-all", OPTION_FLAG, &(w).decay_all, NULL,                                            \
     "apply weight decay to norms and biases too (default: matrices alone)"},                              \
    NEEDS(DECODER_WORDS, DECODERS, "these options are for transformers"),                                    \
    NEEDS("text tokens", DECODERS " run resume+!policy+!compare", "these options are for transformers"),     \
    EXCLUDES("gpt2", "net=mlp net=cnn net=llama depth width heads kv-heads hidden vocabulary",     \
             "GPT-2 has fixed sizes"),                                                        \
    EXCLUSIVE("biases no-biases", NULL),                                                           \
    EXCLUSIVE("tied own-head", NULL),                                                              \
    EXCLUSIVE("text tokens", NULL),                                                                \
    NEEDS("tile", "attention=tiled", NULL),                                                        \
    NEEDS("accumulate-format", "accumulate>1", NULL),                                              \
    NEEDS("reduce wire wire-sum", "ranks>1", NULL),                                                \
    EXCLUDES("min-lr", "schedule=constant", NULL),                                                 \
    RANGE("heads kv-heads", 1, TRAIN_MOST_WIDTH),                                                  \
    RANGE("hidden", 1, TRAIN_MOST_HIDDEN),                                                         \
    RANGE("context tile", 1, TRAIN_MOST_CONTEXT),                                                  \
    RANGE("vocabulary", 2, TRAIN_MOST_VOCABULARY),                                                 \
    RANGE("validation", 1, TRAIN_MOST_VALIDATION),                                                 \
    RANGE("accumulate", 1, TRAIN_MOST_ACCUMULATE),                                                 \
    RANGE("ranks", 1, TRAIN_MOST_RANKS),                                                           \
    RANGE("warmup cooldown", 0, TRAIN_MOST_SCHEDULE),                                              \
    RANGE("min-lr", 0, 1)
/* clang-format on */

/* train_is_decoder -- gpt or llama. */
int train_is_decoder(const train_settings *s);

/* train_read_format -- the canonical name of a format into one of the arrays of settings (a reader of options.h; `where` may be NULL). */
int train_read_format(void *name, const char *where, const char *text);
#define TRAIN_FORMATS "one of binary32, fp16, bf16"

/* train_decoder_words_begin -- the settings of gpt or llama before options change them: of --gpt2, and 0 for what follows from others.
 * train_decoder_words_read -- what follows from the options, of another network nothing. *own: the text, if it is not the bundled
 * one. 0, or an exit code after a message.
 * train_decoder_words_text -- the text of a run that was read from `path`, with its name and digest. */
void train_decoder_words_begin(const decoder_words *w, train_settings *s);
int train_decoder_words_read(const decoder_words *w, train_settings *s, text_file *own);
int train_decoder_words_text(const decoder_words *w, train_run *r, const char *path, text_file *own);
