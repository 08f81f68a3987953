/* table.h -- the words of policies, as tables: precisions, autocast's lists, FP8 recipes, kinds
 * of layers. */
#pragma once

#include <mpsim/policy.h>
#include <train/step.h>

#include <stddef.h>

/* A list of words: rows that begin with their name, in the order in which error lines list them. */
typedef struct policy_words {
    const void *rows;
    size_t size, count;
} policy_words;
#define POLICY_WORDS(rows)                                     \
    {                                                          \
        (rows), sizeof *(rows), sizeof(rows) / sizeof(*(rows)) \
    }

/* policy_words_find -- the place of a word in a list, without regard to letter case; -1: it is not there.
 * policy_words_text -- "a, b, c". */
int policy_words_find(const policy_words *words, const char *word);
const char *policy_words_text(const policy_words *words, char *out, size_t size);
const char *policy_words_at(const policy_words *words, size_t i);

/* What a layer does, as autocast's lists see it. */
typedef enum layer_kind {
    LAYER_LINEAR = MPSIM_LAYER_LINEAR,
    LAYER_CONV = MPSIM_LAYER_CONV,
    LAYER_BATCHNORM = MPSIM_LAYER_BATCHNORM,
    LAYER_NORM = MPSIM_LAYER_NORM,
    LAYER_SOFTMAX = MPSIM_LAYER_SOFTMAX,
    LAYER_EMBEDDING = MPSIM_LAYER_EMBEDDING,
    LAYER_LOSS = MPSIM_LAYER_LOSS,
    LAYER_OTHER = MPSIM_LAYER_OTHER,
    LAYER_KINDS = MPSIM_LAYER_KINDS
} layer_kind;

typedef struct autocast_row {
    const char *name;
    uint8_t low[LAYER_KINDS]; /* bit r: role r (train_role) is in the compute format */
} autocast_row;

/* How linear layers quantise their inputs. */
typedef struct recipe_row {
    const char *name;
    const char *act, *weight;              /* rows of mpsim_block_find; GIVEN if delayed       */
    const char *agrad_e4m3, *agrad_hybrid; /* of gradients, hybrid in E5M2; NULL: no such form */
    uint8_t default_e4m3;
    uint8_t delayed;
    uint8_t hadamard; /* of train_placement: NVFP4 as TransformerEngine has it               */
    uint8_t promote;  /* of train_placement                                                  */
    uint8_t columns;  /* replays cast what the weight's gradient is made of on its own, too  */
} recipe_row;

typedef struct precision_row {
    const char *word; /* "fp16", Apex's "O2"; aliases of other tools have their own rows */
    const char *compute, *params, *grads;
    const char *autocast, *scaler, *recipe;
    train_master master;
} precision_row;

extern const policy_words policy_precisions, policy_levels /* Apex's opt levels */, policy_autocasts, policy_recipes,
    policy_layer_kinds;

/* Rows by name; NULL: none. policy_precision_at -- of policy_precisions or policy_levels. */
const precision_row *policy_precision_at(const policy_words *words, int i);
const autocast_row *policy_autocast_find(const char *name);
const recipe_row *policy_recipe_find(const char *name);

extern const char *const policy_layer_kind_words[]; /* by layer_kind, up to NULL */
const char *policy_layer_kind_name(layer_kind k);
int policy_layer_kind_find(layer_kind *k, const char *word); /* 0, or -1 */
/* policy_layer_kind_of_name -- what the last component of a layer's name tells: the pattern, or NULL. */
const char *policy_layer_kind_of_name(const char *layer, layer_kind *kind);
