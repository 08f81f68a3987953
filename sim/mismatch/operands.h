/* operands.h -- what log-probabilities are of: hidden states, the weights of the last layer, the tokens. */
#pragma once

#include "../dot/operand.h"

typedef struct mismatch_source {
    const char *hidden, *head, *tokens; /* files; all NULL: generated */
    const char *hidden_name, *head_name, *tokens_name;
    const trace_options *raw;       /* how hidden and head are read, or NULL */
    size_t count, vocabulary, size; /* generated */
    double spread;
    uint64_t seed;
} mismatch_source;

typedef struct mismatch_operands {
    operand hidden, head; /* count and vocabulary rows of `size` numbers */
    size_t count, vocabulary, size;
    size_t length;    /* tokens of a sequence: the last but one dimension of the hidden states */
    uint32_t *tokens; /* NULL: they are to be drawn */
    char label[256];  /* of the tokens */
} mismatch_operands;

/* mismatch_operands_make -- 0, or an exit code after a message; mismatch_operands_clear in any case. */
int mismatch_operands_make(mismatch_operands *o, const mismatch_source *from);
void mismatch_operands_clear(mismatch_operands *o);
