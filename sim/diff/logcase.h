/* logcase.h -- what the judges of log-probabilities look at, and the judges. */
#pragma once

#include "logjudge.h"

typedef struct log_case {
    const log_tokens *t;
    double *a, *b, *d; /* of the tokens that are finite on both sides; d = b - a */
    size_t n, one_sided;
    double size[2], apart;     /* mean |a|, mean |b|, mean |d|        */
    double mean, rms;          /* of d                                */
    double ratio, ratio_error; /* mean of exp(d), its standard error  */
    double back, back_error;   /* the same of exp(-d)                 */
    double logits;             /* root mean square of d / (1 - p): differences of logits that explain d */
    double most_logits;        /* the largest |d| / (1 - p) / 2 */
    double correlation;        /* of d and a */
} log_case;

typedef int log_judge(const log_case *c, log_finding *f);

/* Exact relations, or nearly: logplain.c. Of distributions: logsampled.c. */
log_judge diff_log_negated, diff_log_probabilities, diff_log_no_logarithms, diff_log_scaled, diff_log_offset,
    diff_log_shifted, diff_log_masked;
log_judge diff_log_renormalised, diff_log_tempered, diff_log_stale, diff_log_rounding, diff_log_other_policy;

/* diff_log_say_sampler -- whose probabilities the tokens were drawn from, where the mean ratio shows it: to the evidence. */
void diff_log_say_sampler(const log_case *c, finding *f);

/* diff_log_quantile -- quantile q of n numbers, which are sorted. */
double diff_log_quantile(double *x, size_t n, double q);
