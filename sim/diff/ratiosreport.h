/* ratiosreport.h -- what is said of log-probabilities of the same tokens by two engines. */
#pragma once

#include "../record/record.h"
#include "ratios.h"

/* diff_ratios_band -- the band of ratios from "0.8,1.2", numbers of at least 0, or "0.2", how far it goes from 1; NULL is 0.8,1.2.
 * 0, or EXIT_USAGE after a message that begins with `verb`. */
int diff_ratios_band(double *low, double *high, const char *verb, const char *text);

enum { RATIOS_DUAL = 3, RATIOS_TRUNCATED = 2 }; /* where a dual clip and a truncation usually cut ratios */

/* Of one token or more. */
typedef struct ratios_magnitudes {
    double q50, q90, q99, q999, max;
} ratios_magnitudes;

typedef struct ratios_worst {
    uint64_t sequence, token;
    double a, b;
} ratios_worst;

/* What a loss leaves out. */
typedef struct ratios_dropped {
    uint64_t above, below, dual, truncated;
    double lost;
} ratios_dropped;

typedef struct ratios_numbers {
    double mean, mean_magnitude, deviation, k1, k3, mean_ratio, perplexity_ratio, effective_share, mean_probability,
        max_probability, product_min, product_median, product_max;
    ratios_magnitudes magnitude;
    ratios_worst worst;
    double ratio_max;
    ratios_sequences sequences;
    ratios_dropped dropped;
} ratios_numbers;

/* The content of a report. */
typedef struct ratios_summary {
    uint64_t sequences, tokens, padding, one_sided, above_zero, equal, outside, sequences_outside;
    size_t some; /* there are tokens, and numbers */
    ratios_numbers numbers;
} ratios_summary;

extern const record_kind diff_ratios_record; /* a ratios_summary */

/* diff_ratios_summarise -- of ratios that are sorted. diff_ratios_print -- the same of one token or more, as text; say_where: the place of the
 * largest difference, which one tensor has. */
ratios_summary diff_ratios_summarise(const ratios *r);
void diff_ratios_print(FILE *to, const ratios *r, int say_where);
