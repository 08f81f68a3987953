/* logjudge.h -- what the differences of two engines' log-probabilities are taken for, and why. */
#pragma once

#include "verdict.h"

#include <stddef.h>
#include <stdint.h>

/* In the order of certainty. V(NAME, word, title for people) */
/* clang-format off */
#define LOG_VERDICT_LIST(V) \
    V(LOG_EQUAL, "equal", "equal") \
    V(LOG_TOO_FEW, "too-few", "too few tokens for a verdict") \
    V(LOG_NEGATED, "negated", "the sign flipped: log-probabilities and losses") \
    V(LOG_PROBABILITIES, "probabilities", "probabilities on one side, their logarithms on the other") \
    V(LOG_NO_LOGARITHMS, "no-logarithms", "no log-probabilities") \
    V(LOG_BASE, "base", "logarithms of another base") \
    V(LOG_SCALED, "scaled", "a constant ratio of log-probabilities") \
    V(LOG_OFFSET, "offset", "a constant difference") \
    V(LOG_SHIFTED, "shifted", "shifted by one token") \
    V(LOG_MASKED, "masked", "a constant in place of log-probabilities") \
    V(LOG_RENORMALISED, "renormalised", "renormalised after top-p or top-k on one side") \
    V(LOG_TEMPERED, "tempered", "raw against tempered log-probabilities") \
    V(LOG_STALE, "stale", "a stale policy") \
    V(LOG_ROUNDING, "rounding", "no larger than rounding explains, without a direction") \
    V(LOG_OTHER_POLICY, "other-policy", "another policy, or much coarser arithmetic") \
    V(LOG_UNEXPLAINED, "unexplained", "not explained by rounding, and no pattern is known")
/* clang-format on */

typedef enum log_verdict {
#define V(NAME, word, title) NAME,
    LOG_VERDICT_LIST(V)
#undef V
        LOG_VERDICTS
} log_verdict;

extern const char *const diff_log_words[]; /* "rounding", up to NULL */
extern const char *const diff_log_titles[LOG_VERDICTS];

typedef struct log_sequence {
    size_t first, n; /* tokens */
    int64_t step;
} log_sequence;

/* The tokens that are judged: at most LOG_MOST. */
enum { LOG_MOST = 1 << 24, LOG_FEWEST = 32 };
typedef struct log_tokens {
    double *a, *b;
    size_t n;
    log_sequence *sequences;
    size_t n_sequences;
    size_t tensors,
        behind[2]; /* pairs of tensors with a step before; of these A, or B, nearer to the other side's step before */
} log_tokens;

typedef struct log_finding {
    unsigned verdict; /* a log_verdict */
    finding said;     /* its evidence; the scale: a base, a ratio or a temperature; the shift: of B, in tokens */
} log_finding;

/* diff_log_add -- one sequence of n tokens of a step; the padding at its end is left out. */
void diff_log_add(log_tokens *t, int64_t step, const double *a, const double *b, size_t n);
void diff_log_clear(log_tokens *t);

/* diff_log_judge -- the first verdict that holds. */
void diff_log_judge(log_finding *f, const log_tokens *t);
