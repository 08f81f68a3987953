/* data.h -- what a figure shows: groups of tensors from a report of mpsim stat. */
#pragma once

#include "item.h"

enum {
    PLOT_EXPONENT_MIN = -1074, /* of binary64, as in mpsim/stats.h */
    PLOT_EXPONENT_MAX = 1023,
    PLOT_BINS = PLOT_EXPONENT_MAX - PLOT_EXPONENT_MIN + 1,
    PLOT_SCALES_MAX = 6,
    PLOT_GROUPS_MAX = 60
};

/* What a cast to one format with one scale does to a group. */
typedef struct plot_losses {
    uint64_t tensors; /* that the report has this cast for */
    uint64_t underflow, overflow;
} plot_losses;

typedef struct plot_group {
    char *name;
    uint64_t tensors; /* items of the report that were added up */
    uint64_t scaled;  /* of them, those that the report's scales multiply */
    uint64_t count, zero, nan, inf;
    double amin, amax; /* of the finite non-zero elements; 0 if there are none */
    double l2;
    plot_losses casts[PLOT_FORMATS_MAX][PLOT_SCALES_MAX];
    uint64_t bins[PLOT_BINS];        /* bins[e - PLOT_EXPONENT_MIN]: elements with exponent e */
    uint64_t scaled_bins[PLOT_BINS]; /* those of scaled items */
} plot_group;

typedef enum plot_grouping { PLOT_BY_NOTHING, PLOT_BY_KIND, PLOT_BY_TENSOR } plot_grouping;

/* Names of formats point into the report: they live as long as it does. */
typedef struct plot_data {
    const plot_report *report;
    plot_format formats[PLOT_FORMATS_MAX];
    double scales[PLOT_SCALES_MAX]; /* > 0; the first is 1, the data as recorded */
    int cast_unscaled;              /* the report has casts of the recorded data */
    size_t n_formats, n_scales, n_groups;
    plot_steps steps;
    plot_group *groups;
} plot_data;

/* plot_data_read -- add up what `selection` takes of the report, in groups, in the order of the
 * report. PLOT_BY_NOTHING gives exactly one group. 0, or an exit code after a message; to be
 * cleared in both cases. */
int plot_data_read(plot_data *d, const plot_report *report, const plot_selection *selection, plot_grouping grouping,
                   int need_histogram);
void plot_data_clear(plot_data *d);
