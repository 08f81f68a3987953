/* metric.h -- the named numbers of the lines of a log besides loss, norm, scale and step. Their meaning follows from the words of their
 * names, with any folder before them: how far the policy of reinforcement learning is from its reference, what trainer and sampler make of
 * the same tokens, how much is clipped, rewards, entropy. Numbers whose names say nothing are counted as not read.
 *
 * A row of the table has the words that a name needs and those that it must not have, and the limit of the metric
 * with its source. A number that no row knows is named in the report and makes the verdict less sure. Before a rule
 * is added, what a log means is written down: data/logs for threads, tests/logs/written for forms. */
#pragma once

#include "field.h"
#include "words.h"

typedef enum metric_kind {
    METRIC_GAP,     /* between the log-probabilities of trainer and sampler */
    METRIC_KL,      /* from the policy to its reference, or to itself before the step */
    METRIC_CLIP,    /* share of what the objective clips */
    METRIC_REWARD,  /* these four are numbers of reinforcement learning */
    METRIC_ENTROPY, /* fine-tuning reports it, too */
    METRIC_LOSS,    /* losses, which are read elsewhere */
    METRIC_KNOWN, /* other numbers that say nothing of precision: times, memory, the learning rate; or read as loss, norm, place */
    METRIC_UNREAD /* no name that is known */
} metric_kind;

enum { METRIC_NAME = 64, METRIC_NAMES = 32, METRICS_MAX = 1 << 20, METRIC_COLUMNS = 256 };

/* A number with a name of its own. */
typedef struct metric {
    char name[METRIC_NAME]; /* as the log prints it, in lower case                         */
    size_t shown;           /* where the end of the name begins that says as much, without folders */
    metric_kind kind;
    double limit; /* beyond it it is a warning */
} metric;

typedef struct metric_value {
    uint64_t line;
    int64_t step; /* -1 */
    unsigned metric;
    value_kind kind;
    double value;
} metric_value;

/* A name that was seen, whatever it means. */
typedef struct metric_column {
    uint64_t key, lines;
    int name; /* of .names; -1: it is none of them */
    metric_kind kind;
    char text[METRIC_NAME];
    double first;
    int varies;
} metric_column;

typedef struct metric_values {
    metric names[METRIC_NAMES]; /* of the kinds from METRIC_GAP to METRIC_ENTROPY, in that order, then as they come */
    size_t n_names;
    metric_value *at;
    size_t count;
    int lossless;  /* no loss was read: names of losses are names of numbers that were not read */
    int truncated; /* more than METRICS_MAX */
    metric_column columns[METRIC_COLUMNS];
    size_t n_columns;
} metric_values;

/* traininglog_metric_kind_of -- what a name in lower case is for, and its limit. */
metric_kind traininglog_metric_kind_of(const char *name, double *limit);
const char *traininglog_metric_kind_name(metric_kind kind);

/* traininglog_metric_values_take -- the numbers of a line of which those that are no measurements are masked. */
void traininglog_metric_values_take(metric_values *all, const char *text, uint64_t line, int64_t step);
/* traininglog_metric_values_sort -- names in the order of their kinds. */
void traininglog_metric_values_sort(metric_values *all);
/* traininglog_metric_is_in -- whether a line has one of the kinds from METRIC_GAP to METRIC_ENTROPY. */
int traininglog_metric_is_in(const char *text);

/* traininglog_metric_unread -- the i-th name of a number that was not read, in several lines with several values; NULL: there are no more. */
const char *traininglog_metric_unread(const metric_values *all, size_t i);
