/* runs.h -- what a figure shows: trainings from reports of mpsim train. */
#pragma once

#include "report.h"

enum { PLOT_RUNS_MAX = 20 };

/* A step. */
typedef struct plot_point {
    uint64_t step;
    double loss;  /* NaN and infinities as they are  */
    double scale; /* > 0: the loss scale of the step */
    int skipped;
    uint64_t of, lost; /* of the column: lost out of so many */
} plot_point;

typedef struct plot_training {
    const char *name;
    const plot_report *report;
    char *label;      /* the name, where it is its own; or NULL */
    size_t n, finite; /* points; those up to the last finite loss */
    plot_point *points;
    int scaled; /* some scale is not 1, or some step is skipped */
} plot_training;

/* Strings point into the reports or are literals. */
typedef struct plot_runs {
    const plot_report *report;
    const char *column, *axis; /* member of the report, and what the axis calls its lost share */
    size_t at;                 /* of the columns */
    int matters;               /* some run loses at least one in a thousand */
    size_t n_runs;
    uint64_t first, last; /* steps */
    plot_training runs[PLOT_RUNS_MAX];
} plot_runs;

void plot_runs_clear(plot_runs *s);
