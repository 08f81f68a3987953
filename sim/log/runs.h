/* runs.h -- the same number of several training logs, at the steps that all of them tell. */
#pragma once

#include "../traininglog/series.h"

enum { RUNS_MAX = 64 };

typedef struct log_run {
    const char *path;
    training_log *log;
    series all; /* as the log tells it; of a step that is told twice the last one stays */
    sample *at; /* at the steps of all runs */
} log_run;

typedef struct log_runs {
    log_run run[RUNS_MAX];
    size_t count;
    size_t n;         /* common steps */
    int unit;         /* 0; of numbers whose squares binary64 does not hold, the exponent of the largest */
    int by_order;     /* the lines carry no steps: the first with the first, the second with the second, ... */
    const char *what; /* "loss" */
} log_runs;

/* log_runs_read -- `what`: loss, norm, validation, or the name of a metric. 0, or an exit code after a message. */
int log_runs_read(log_runs *r, const char *what, char **paths, size_t count);
void log_runs_clear(log_runs *r);
