/* measure.h -- attention of all heads under a model, and how far it is from exact. */
#pragma once

#include "../dot/error.h"
#include "heads.h"

/* Results of one sign, by the exact one, of rows whose largest score repeats, or of the others. */
typedef struct attention_signs {
    uint64_t count, away; /* finite ones; those that are beyond exact, away from zero */
    double mean;          /* (d - e) / mean |e| of these results                      */
} attention_signs;

enum { ATTENTION_NEGATIVE, ATTENTION_POSITIVE };

typedef struct attention_result {
    mpsim_attention_counts counts;
    dot_error error;
    double lean;                 /* sum of (d - e) sign(e) / sqrt(n sum (d - e)^2): 1 where all errors are of one size
                                   and away from zero, -1 toward it, 0 where they are one as often as the other */
    attention_signs signs[2][2]; /* [1: rows that repeat][ATTENTION_...] */
} attention_result;

/* Each 0, or an exit code after a message. The models of `a` are set. attention_exactly: the exact results of all heads, queries x size
 * each, to be freed by dot_truth_clear in any case. */
int attention_exactly(dot_truth *to, const mpsim_attention *a, const attention_heads *h, double above);
int attention_measure(attention_result *to, const mpsim_attention *a, const attention_heads *h, const dot_truth *exact,
                      uint64_t seed);
