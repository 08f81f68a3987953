/* metric.h -- what reinforcement learning prints beside its loss: how far the policy is from its reference, what
 * trainer and sampler make of the same tokens, how much is clipped, rewards. The names are those of NeMo RL, verl and
 * TRL. */
#pragma once

#include "words.h"

#include <stddef.h>

typedef enum metric_kind {
    METRIC_GAP,  /* between the log-probabilities of trainer and sampler */
    METRIC_KL,   /* from the policy to its reference, or to itself before the step */
    METRIC_CLIP, /* share of what the objective clips */
    METRIC_REWARD
} metric_kind;

enum { METRICS_MAX = 1 << 20 };

/* A name; beyond `limit` it is a warning. */
typedef struct metric {
    const char *name;
    metric_kind kind;
    double limit;
} metric;

extern const metric metrics[];
extern const size_t metric_count;

typedef struct metric_value {
    uint64_t line;
    int64_t step; /* -1 */
    unsigned metric;
    value_kind kind;
    double value;
} metric_value;

typedef struct metric_values {
    metric_value *at;
    size_t count;
    int truncated; /* more than METRICS_MAX */
} metric_values;

/* metric_values_take -- those of a line. */
void metric_values_take(metric_values *all, const char *text, uint64_t line, int64_t step);
/* metric_is_in -- whether a line has one. */
int metric_is_in(const char *text);
