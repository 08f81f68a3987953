/* series.h -- one number of a log over its lines, as the loss. A number that is quoted is one of the log's own, with its
 * line: medians are samples, not means of two. */
#pragma once

#include "traininglog.h"

typedef struct sample {
    uint64_t line;
    int64_t step; /* -1 */
    double value;
} sample;

typedef struct series {
    const char *name;
    sample *at; /* the finite ones */
    size_t n;
    /* lines in which it is Inf or NaN */
    uint64_t lost, groups; /* all; how many times in a row */
    uint64_t first_lost, last_lost;
    uint64_t since;                            /* the first of those that end the log; 0: the last is finite */
    uint64_t ending;                           /* how many these are */
    uint64_t apart, apart_first, apart_ending; /* of the lost: at steps that did not overflow by any line */
    uint64_t others; /* lines without it, of a log that has it only in messages where it is not finite */
    value_kind as;   /* the first of them: VALUE_NAN, VALUE_INF */
} series;

typedef enum series_of { SERIES_LOSS, SERIES_NORM, SERIES_VALIDATION } series_of;

void traininglog_series_find(series *s, const training_log *l, series_of what);
void traininglog_series_metric(series *s, const training_log *l, unsigned metric);
void traininglog_series_clear(series *s);

/* traininglog_series_median -- the sample in the middle of those from a up to b, of which there is one at least; the lower of two. */
sample traininglog_series_median(const series *s, size_t a, size_t b);
