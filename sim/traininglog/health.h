/* health.h -- what a log tells of a training besides a loss scale: for runs without a loss scaler, in bf16 or binary32,
 * it is all that there is to judge by. */
#pragma once

#include "series.h"

/* ENOUGH: lines that a judgement needs; FLAT: equal ones that are no chance. */
enum { HEALTH_ENOUGH = 5, HEALTH_FLAT = 10, HEALTH_METRICS = METRIC_NAMES };

typedef enum health_finding {
    HEALTH_UNKNOWN,     /* too few lines */
    HEALTH_LOST,        /* the loss, or the norm, is Inf or NaN to the end, or in most lines */
    HEALTH_ISOLATED,    /* now and then */
    HEALTH_VALIDATION,  /* only that on validation data */
    HEALTH_METRIC_LOST, /* another number is Inf or NaN */
    HEALTH_GAP,         /* trainer and sampler differ */
    HEALTH_KL,          /* the policy has left its reference */
    HEALTH_CLIP,        /* most of the objective is clipped */
    HEALTH_RISES,       /* the loss */
    HEALTH_FLAT_LOSS,   /* nothing is learned */
    HEALTH_JUMPS,       /* and comes back */
    HEALTH_WELL
} health_finding;

typedef struct health {
    const metric_values *metrics;
    series loss, norm, validation;
    series more[HEALTH_METRICS]; /* of the names of the log, in their order */
    int learns;                  /* by reinforcement: the loss is no measure */
    /* what was found */
    health_finding found;
    const series *worst; /* the metric beyond its limit; NULL */
    double limit;
    sample low, high; /* of a loss, or KL, that rises */
    series_peaks loss_jumps, norm_jumps;
} health;

void health_find(health *h, const training_log *l);
void health_clear(health *h);
/* health_judge -- the first that holds; it, and what it rests on, is in *h. */
health_finding health_judge(health *h);
/* health_is_flat -- whether nothing is learned. */
int health_is_flat(const health *h);
