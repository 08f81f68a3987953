/* ranges.h -- what figures show as a row for each recipe or model, in panels side by side: a value, or the median of several
 * with their range. */
#pragma once

#include "groups.h"

enum { PLOT_RANGES_MAX = 60, PLOT_RANGE_PANELS = 3 };

/* NaN: there is none. Infinite decibels: no error. */
typedef struct plot_spread {
    double low, quarter, middle, three_quarters, high;
    int negative; /* the sign, where magnitudes are shown */
} plot_spread;

typedef struct plot_range_row {
    char *name;
    plot_spread panels[PLOT_RANGE_PANELS];
} plot_range_row;

typedef struct plot_ranges {
    const char *const *headings; /* of panels; ends with NULL */
    int logarithmic;             /* bits: of panels; 0 stands apart */
    size_t n_panels, n_rows;
    int spread; /* rows have a range, of so many values at most */
    size_t values;
    plot_range_row rows[PLOT_RANGES_MAX];
} plot_ranges;

void plot_ranges_clear(plot_ranges *s);
