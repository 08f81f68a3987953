/* family.h -- architectures of Hugging Face's transformers: what the layers of each model_type are made of, and their names. */
#pragma once

#include <stdint.h>

/* What a decoder layer, or the model around it, has. */
enum {
    FAMILY_GATED = 1 << 0,        /* the MLP has gates: three matrices                                  */
    FAMILY_MLP_BIAS = 1 << 1,     /* biases of the MLP                                                  */
    FAMILY_QKV_BIAS = 1 << 2,     /* of queries, keys and values                                        */
    FAMILY_OUT_BIAS = 1 << 3,     /* of the projection behind attention                                 */
    FAMILY_NORM_BIAS = 1 << 4,    /* norms have biases                                                  */
    FAMILY_HEAD_NORMS = 1 << 5,   /* norms of queries and keys, one for the size of a head              */
    FAMILY_WIDE_NORMS = 1 << 6,   /* the same over all heads                                            */
    FAMILY_FUSED_QKV = 1 << 7,    /* queries, keys and values are one matrix                            */
    FAMILY_FUSED_GATE = 1 << 8,   /* gates and values of the MLP are one matrix                         */
    FAMILY_POSITIONS = 1 << 9,    /* learnt positions                                                   */
    FAMILY_TIED = 1 << 10,        /* unless the file says otherwise the head is the embedding           */
    FAMILY_HEAD_BIAS = 1 << 11,   /* the head has a bias                                                */
    FAMILY_EMBED_NORM = 1 << 12,  /* a norm behind the embedding                                        */
    FAMILY_LATENT = 1 << 13,      /* multi-head latent attention (MLA)                                  */
    FAMILY_SINKS = 1 << 14,       /* a number a head beside the scores                                  */
    FAMILY_SHARED_GATE = 1 << 15, /* the shared expert has a gate                                      */
    FAMILY_PACKED = 1 << 16,      /* experts are one tensor, with biases                                */
    FAMILY_ENCODER = 1 << 17,     /* BERT: types of tokens, a pooler, no head, no last norm             */
    FAMILY_MULTI_QUERY = 1 << 18  /* one head of keys and values where multi_query says so              */
};

/* Names of layers; those of a block are behind `block` and its number. */
typedef struct family_names {
    const char *embed, *positions, *types, *embed_norm, *block;
    const char *norms[4]; /* in their order; the first so many of them */
    const char *query, *key, *value, *fused, *out;
    const char *gate, *up, *down, *fused_gate; /* of a plain MLP up and down */
    const char *experts, *router, *shared;     /* before those of an expert  */
    const char *last_norm, *head;
} family_names;

typedef struct family {
    const char *type; /* model_type */
    const family_names *names;
    unsigned traits;
    uint8_t norms;  /* of a layer  */
    uint8_t offset; /* places before the first one, of learnt positions */
    uint16_t head;  /* the default size of a head; 0: the hidden size divided by the heads */
} family;

/* memory_family_find -- NULL: it is not known. memory_family_at -- row i; NULL past the end. */
const family *memory_family_find(const char *type);
const family *memory_family_at(int i);
