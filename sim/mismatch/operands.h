/* operands.h -- the operands of log-probabilities: Q, K and V of attention or none, hidden states, the weights of the last layer,
 * the tokens. */
#pragma once

#include "../attention/heads.h"

typedef struct mismatch_source {
    const char *hidden, *head, *tokens; /* files; all NULL: generated */
    const char *hidden_name, *head_name, *tokens_name;
    const trace_options *raw; /* how hidden, head, Q, K and V are read, or NULL */
    char *qkv[3];             /* files of Q, K and V; K, V NULL: the file of Q; Q NULL: generated if `attends` */
    const char *qkv_names[3];
    int tokens_first, attends;
    size_t count, vocabulary, size; /* generated */
    double spread;
    uint64_t seed;
} mismatch_source;

typedef struct mismatch_operands {
    int attends; /* hidden states are rms(hidden + attention of `heads`), see attend.h */
    attention_heads heads;
    operand hidden, head; /* count and vocabulary rows of `size` numbers */
    size_t count, vocabulary, size;
    size_t length;    /* tokens of a sequence: the last but one dimension of the hidden states */
    uint32_t *tokens; /* NULL: they are to be drawn */
    char label[256];  /* of the tokens */
} mismatch_operands;

/* mismatch_operands_make -- 0, or an exit code after a message; mismatch_operands_clear in any case. */
int mismatch_operands_make(mismatch_operands *o, const mismatch_source *from);
void mismatch_operands_clear(mismatch_operands *o);
