/* sweep.h -- what a figure shows: errors of models over K from a report of mpsim dot. */
#pragma once

#include "report.h"

enum { PLOT_MODELS_MAX = 20, PLOT_LENGTHS_MAX = 64 };

/* In place of an error: not in the report, or of results that are not all finite. */
#define PLOT_MISSING (-2.0)
#define PLOT_NOT_FINITE (-1.0)

typedef struct plot_model {
    char *name, *format; /* of the result */
    size_t curve;        /* equal for models whose errors are all equal; from 1 on */
    double errors[PLOT_LENGTHS_MAX];
} plot_model;

/* What was multiplied; NULL: the report does not say. */
typedef struct plot_operand {
    const char *format, *values;
    double scale;
} plot_operand;

/* Strings are literals or of the report, but for those of the models. */
typedef struct plot_sweep {
    const plot_report *report;
    const char *column, *axis; /* member of the report, and what the axis calls it */
    size_t at;                 /* of the columns */
    plot_operand operands[2];
    int relative; /* of the result: to be compared with a unit roundoff */
    size_t n_lengths, n_models, n_curves;
    uint64_t lengths[PLOT_LENGTHS_MAX]; /* K, in growing order */
    plot_model models[PLOT_MODELS_MAX];
} plot_sweep;

void plot_sweep_clear(plot_sweep *s);

/* plot_sweep_end -- the last K where a model has an error, or not all results are finite. */
size_t plot_sweep_end(const plot_sweep *s, const plot_model *m);
