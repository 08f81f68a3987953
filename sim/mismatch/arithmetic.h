/* arithmetic.h -- how one side computes log-probabilities: its caches, the operands of its last layer, the model of its
 * products, K in parts, the logits, the log-softmax. */
#pragma once

#include "../dot/error.h"
#include "../record/record.h"

enum { ARITHMETIC_RANKS = 1024 };
typedef enum arithmetic_order { ARITHMETIC_CHAIN, ARITHMETIC_TREE } arithmetic_order;
typedef enum arithmetic_scale { ARITHMETIC_TOKEN, ARITHMETIC_TENSOR, ARITHMETIC_ONE } arithmetic_scale;
typedef enum arithmetic_kv_scale {
    ARITHMETIC_KV_TENSOR,
    ARITHMETIC_KV_HEAD,
    ARITHMETIC_KV_TOKEN, /* of a head */
    ARITHMETIC_KV_ONE
} arithmetic_kv_scale;

typedef struct arithmetic {
    mpsim_model model;
    mpsim_format operands; /* H and W are rounded to it            */
    dot_split split;
    mpsim_format logits;  /* they are rounded to it, after the model's own result */
    mpsim_format softmax; /* `math` of mpsim_softmax_xent         */
    double temperature, top_p;
    size_t top_k;        /* 0: all words */
    size_t chunk, ranks; /* 0, 1: the log-softmax is in one piece */
    mpsim_format reduce; /* in which ranks add their sums */
    unsigned order;      /* an arithmetic_order           */
    size_t cached;       /* hidden states go through `cache` */
    mpsim_format cache;
    unsigned scale;   /* an arithmetic_scale, of the cache */
    size_t kv_cached; /* K and V of attention go through `kv` */
    mpsim_format kv;
    unsigned kv_scale; /* an arithmetic_kv_scale */
} arithmetic;

/* mismatch_arithmetic_parse -- "MODEL[,KEY=VALUE]...": 0, or EXIT_USAGE after a message that names the option. */
int mismatch_arithmetic_parse(arithmetic *a, const char *option, const char *text);
/* mismatch_arithmetic_text -- in words, for people. */
const char *mismatch_arithmetic_text(char *out, size_t size, const arithmetic *a);
extern const record_kind mismatch_arithmetic_record; /* an arithmetic */
