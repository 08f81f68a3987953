/* ratios.h -- log-probabilities of the same tokens by two engines: their differences, and ratios of probabilities. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Log-probabilities a and b of tokens in sequences; d = b - a, the ratio of their probabilities is exp(d). */
typedef struct ratios {
    double low, high;               /* the band that ratios are clipped to                                   */
    double dual, truncated;         /* where a dual clip, and a truncation, cut ratios                        */
    int whole;                      /* no sequence has padding: zeros at its end are tokens                   */
    size_t tokens, sequences, rows; /* rows: sequences, those without a token included */
    uint64_t padding;               /* left out: zeros at the end of a sequence, or no finite number, in both */
    uint64_t one_sided;             /* left out: finite in one alone                                          */
    uint64_t above_zero;            /* no log-probabilities                                                   */
    uint64_t equal, outside;        /* tokens of d = 0; whose ratio is outside the band                        */
    double sum, sum_of_magnitudes, sum_of_squares, sum_of_ratios, sum_of_square_ratios; /* d, |d|, d d, ... */
    uint64_t above, over_dual, over;      /* tokens whose ratio is above the band, those bounds */
    double lost, most_ratio;              /* of the sum of ratios: what a truncation takes; the largest ratio */
    double sum_k3;                        /* exp(d) - 1 - d */
    double probability, most_probability; /* |exp(b) - exp(a)|: sum, largest */
    double *magnitudes, *products;        /* |d| of the tokens; the sums of d of the sequences */
    uint64_t outside_sequences;           /* whose product of ratios is outside the band       */
    double worst[2];                      /* the a and b of the largest |d| */
    uint64_t worst_at[2];                 /* its row and token              */
} ratios;

/* diff_ratios_add -- one sequence of n tokens. */
void diff_ratios_add(ratios *r, const double *a, const double *b, size_t n);
/* diff_ratios_sort -- once all are there: what the quantiles need. */
void diff_ratios_sort(ratios *r);
void diff_ratios_clear(ratios *r);

/* Quantile q of |d|, and of the sequences' sums of d: the smallest number that a share q of them does not exceed; NaN
 * of none. */
double diff_ratios_magnitude(const ratios *r, double q);
double diff_ratios_product(const ratios *r, double q);
/* Of the products of sequences: their mean, the share that is effective, those above the truncation, the share of the sum that
 * a truncation takes. */
typedef struct ratios_sequences {
    double mean, effective, lost;
    uint64_t over;
} ratios_sequences;
ratios_sequences diff_ratios_of_sequences(const ratios *r);
/* (sum of ratios)^2 / (tokens * sum of their squares): 1 where all are alike. */
double diff_ratios_effective(const ratios *r);
