/* scaled.h -- what a figure shows: casts of gradients at each loss scale, from a report of mpsim stat. */
#pragma once

#include "noise.h"

enum { PLOT_CURVES_MAX = 12 };

/* Of a curve, in a format, at a scale. */
typedef struct plot_scaled_cast {
    uint64_t underflow, overflow;
    plot_noise noise; /* of the items of the report that were added up */
} plot_scaled_cast;

typedef struct plot_curve {
    char *name;
    size_t items;
    uint64_t count, zero, not_finite;
    plot_scaled_cast *casts; /* formats x scales, scales varying fastest */
} plot_curve;

/* The safe scales of a format: those at which no element of any curve overflows and of no curve more
 * than `limit` per cent of the elements underflow. */
typedef struct plot_window {
    scale_run run; /* last < first: there are none                             */
    size_t best;   /* then: the largest scale at which nothing overflows,      */
    double lost;   /* and the per cent of the curve of which most underflows there; < 0: something
                           overflows at every scale */
} plot_window;

typedef struct plot_scaled {
    const plot_report *report;
    plot_formats formats;
    scale_list scales; /* growing, at least two */
    plot_curve curves[PLOT_CURVES_MAX];
    size_t n_curves;
    plot_window windows[PLOT_FORMATS_MAX];
    double limit; /* per cent */
    plot_steps steps;
} plot_scaled;

/* plot_scaled_read -- add up what `selection` takes of what the report's scales multiply: for each
 * kind, for each tensor, or in total, as selection->by says. 0, or an exit code after a message; to be
 * cleared in both cases. */
int plot_scaled_read(plot_scaled *s, const plot_report *report, const plot_selection *selection);
void plot_scaled_clear(plot_scaled *s);

/* Of a curve, in a format, at a scale: per cent of all elements; decibels, NaN if there are none. */
double plot_scaled_underflow(const plot_scaled *s, size_t curve, size_t format, size_t scale);
double plot_scaled_overflow(const plot_scaled *s, size_t curve, size_t format, size_t scale);
double plot_scaled_sqnr(const plot_scaled *s, size_t curve, size_t format, size_t scale);
