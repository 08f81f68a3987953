/* logprob.h -- mpsim diff --logprob: what two engines give the same tokens. */
#pragma once

#include "diff.h"
#include "side.h"

typedef struct logprob_options {
    const char *paths[2];
    double band[2];         /* of ratios: the lower end, the upper one */
    double dual, truncated; /* where a dual clip, and a truncation, cut ratios */
} logprob_options;

/* diff_logprob_run -- compare tensors of one name and shape, rows as sequences, of the steps that both have, and write the
 * report. *differ: whether any token does. 0, or an exit code after a message. */
int diff_logprob_run(FILE *to, report_style style, const logprob_options *o, side *a, side *b, int *differ);
