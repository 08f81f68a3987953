/* heads.h -- the operands of attention: Q, K and V of some heads, generated or from files, rounded to their formats. */
#pragma once

#include "../dot/operand.h"
#include "../dot/pieces.h"

#include <mpsim/mpsim.h>

/* One of them: batch x heads x tokens x size numbers, in this order or, tokens first, batch x tokens x heads x size. */
typedef struct heads_part {
    operand of; /* rows of `size` numbers */
    size_t batch, heads, tokens, size;
    int tokens_first;
} heads_part;

typedef struct attention_heads {
    heads_part q, k, v;
    size_t groups; /* heads of Q that share one of K and V */
} attention_heads;

/* Where they come from. */
typedef struct heads_source {
    char **files; /* one, of all three, or three; n = 0: generated */
    size_t n;
    const char *names[3]; /* of the tensors; NULL: the only one */
    int tokens_first;
    const trace_options *raw; /* how files are read, or NULL */
    const char *values;       /* generated: how, as heads_values_find knows */
    size_t heads, kv_heads, queries, keys, dim;
    uint64_t seed;
    const char *verb; /* the command, for messages */
} heads_source;

/* Each returns 0, or an exit code after a message. */
int attention_heads_make(attention_heads *h, const heads_source *from);
int attention_heads_round(attention_heads *h, const char *verb, const mpsim_format *qk, const mpsim_format *v);
void attention_heads_clear(attention_heads *h);

/* attention_heads_exact -- whether the formats have all numbers as they were given. attention_heads_given: the heads before they were rounded, in numbers
 * of which the exact scores and values are the same (p is to be cleared, and h to outlive them). */
int attention_heads_exact(const attention_heads *h);
attention_heads attention_heads_given(const attention_heads *h, pieces *p);

/* What there is of one head of Q in all batches, i < attention_heads_count, as matrices. */
size_t attention_heads_count(const attention_heads *h);
mpsim_matrix attention_heads_query(const attention_heads *h, size_t i);
mpsim_matrix attention_heads_key(const attention_heads *h, size_t i);
mpsim_matrix attention_heads_value(const attention_heads *h, size_t i);
