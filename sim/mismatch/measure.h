/* measure.h -- log-probabilities of the same tokens under two arithmetics. */
#pragma once

#include "arithmetic.h"
#include "operands.h"

/* One token. */
typedef struct mismatch_token {
    uint32_t id;
    int differs;  /* the most likely word of A is not that of B                    */
    double lp[2]; /* its log-probability by A and by B                             */
    double exact; /* the same in binary64, of the numbers before they are rounded  */
    double kl;    /* KL(A || B) over all words; NaN where a logit is not finite, infinite where B drops a word of A */
} mismatch_token;

/* How far a side is from exact, over its tokens with a finite log-probability. */
typedef struct mismatch_error {
    uint64_t count;
    double mean, mean_magnitude, largest; /* of lp - exact */
} mismatch_error;

typedef struct mismatch {
    const mismatch_operands *o;
    const arithmetic *sides; /* A and B */
    uint64_t seed;
    mismatch_token *tokens; /* o->count */
    mismatch_error errors[2];
    double mean_kl, largest_kl; /* over the tokens that have one: */
    uint64_t kl_count, differing;
} mismatch;

/* mismatch_measure -- 0, or an exit code after a message; mismatch_clear in any case. */
int mismatch_measure(mismatch *m);
void mismatch_clear(mismatch *m);
