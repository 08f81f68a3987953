/* limit.h -- the limit of a condition of --fail-if: ">1%". */
#pragma once

typedef enum limit_comparison { LIMIT_ABOVE, LIMIT_BELOW, LIMIT_AT_LEAST, LIMIT_AT_MOST } limit_comparison;

/* All zeros: above 0. */
typedef struct limit {
    limit_comparison comparison;
    int per_cent;
    double value;
} limit;

/* stat_limit_read -- the whole of a text, as ">= 1 %". 0, or why not; then *text is what is no number. */
enum { LIMIT_NO_COMPARISON = -1, LIMIT_NO_NUMBER = -2 };
int stat_limit_read(limit *l, const char **text);
int stat_limit_holds(const limit *l, double x);
/* stat_limit_is_upper -- whether larger numbers are worse. */
int stat_limit_is_upper(const limit *l);
