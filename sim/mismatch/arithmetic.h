/* arithmetic.h -- how one side computes log-probabilities: the operands of its last layer, the model of its products, K in
 * parts, the logits, the log-softmax. */
#pragma once

#include "../dot/error.h"
#include "../record/record.h"

typedef struct arithmetic {
    mpsim_model model;
    mpsim_format operands; /* H and W are rounded to it            */
    dot_split split;
    mpsim_format logits;  /* they are rounded to it, after the model's own result */
    mpsim_format softmax; /* `math` of mpsim_softmax_xent         */
} arithmetic;

/* mismatch_arithmetic_parse -- "MODEL[,KEY=VALUE]...": 0, or EXIT_USAGE after a message that names the option. */
int mismatch_arithmetic_parse(arithmetic *a, const char *option, const char *text);
/* mismatch_arithmetic_text -- in words, for people. */
const char *mismatch_arithmetic_text(char *out, size_t size, const arithmetic *a);
extern const record_kind mismatch_arithmetic_record; /* an arithmetic */
