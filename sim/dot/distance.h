/* distance.h -- how far results are from the exact ones. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* With d the results and e the exact values, over the results that are finite; relative measures count only those with |e|
 * above a bound, if there is one:
 *
 *   max_rel    largest |d - e| / |e| (over results with e not zero)
 *   mean_rel   mean of |d - e| / |e| over the same
 *   rel        ||d - e|| / ||e||, Euclidean norms
 *   bias       sum (|d| - |e|) / sum |e|: negative where magnitudes are lost
 *   max_abs    largest |d - e|
 *   rmse       square root of the mean of (d - e)^2
 *   mean_abs   mean of |d - e|
 *   mean       mean of d - e
 *
 * Sums of errors, magnitudes and squares are exact. Measures of no results are NaN. */
typedef struct dot_distance {
    uint64_t compared; /* results that the relative measures count */
    double max_rel, mean_rel, rel, bias;
    double max_abs, rmse, mean_abs, mean;
    double cancelled; /* |e| of the result of max_rel, to the root mean square of all e that count */
} dot_distance;

/* What results are compared with. */
typedef struct dot_truth {
    double *given, *rounded; /* exact results of the operands as given, and as rounded; one array if that is the same */
    double
        unit[2];  /* scales of the operands: results and exact results are multiplied by both, absolute measures not */
    double above; /* the bound of |given|, without the scales; below 0: none */
} dot_truth;

typedef struct dot_error {
    uint64_t count, not_finite; /* results; those infinite or NaN, or whose exact value is beyond binary64: left out */
    int same;                   /* `given` and `rounded` are one */
    dot_distance given, rounded;
    double bits_lost; /* by rounded.rel */
    double first;     /* the first result, the scales taken out */
} dot_error;

/* dot_truth_make -- room for n exact results, in one array if `same`; dot_truth_clear frees it. */
dot_truth dot_truth_make(size_t n, int same, double above);
void dot_truth_clear(dot_truth *t);

/* dot_error_compare -- the errors of n results d, whose format has `precision` significand bits. */
void dot_error_compare(dot_error *e, const double *d, const dot_truth *truth, size_t n, int precision);

/* dot_bits_lost -- p + log2(rel), at least 0 and at most p: significand bits of the result that are wrong beyond what
 * rounding it costs. */
double dot_bits_lost(double rel, int precision);
