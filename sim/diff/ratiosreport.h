/* ratiosreport.h -- what is said of log-probabilities of the same tokens by two engines. */
#pragma once

#include "../record/record.h"
#include "ratios.h"

/* ratios_band -- the band of ratios from "0.8,1.2", numbers of at least 0, or "0.2", how far it goes from 1; NULL is 0.8,1.2.
 * 0, or EXIT_USAGE after a message that begins with `verb`. */
int ratios_band(double *low, double *high, const char *verb, const char *text);

enum { RATIOS_QUANTILES = 5 };

/* What follows from ratios that are sorted; the numbers only where there is a token. */
typedef struct ratios_summary {
    const ratios *of;
    size_t tokens;                               /* of->tokens                              */
    double mean, mean_magnitude, deviation;      /* of d; of |d|; of d                      */
    double k1, k3, mean_ratio, perplexity_ratio; /* estimates of KL; means of ratios        */
    double effective_share, mean_probability, max_probability;
    double products[3];                  /* of a sequence: smallest, median, largest */
    double magnitudes[RATIOS_QUANTILES]; /* of |d|: 50 %, 90 %, 99 %, 99.9 %, 100 %  */
} ratios_summary;

ratios_summary ratios_summarise(const ratios *r);
extern const record_kind ratios_record; /* a ratios_summary */

/* ratios_print -- ratios with one token or more, sorted, as text. say_where: the place of the largest difference, which one
 * tensor has. */
void ratios_print(FILE *to, const ratios *r, int say_where);
