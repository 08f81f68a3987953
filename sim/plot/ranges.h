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

/* plot_ranking_make -- recipes and formats by their median SQNR, the best first, from `groups` read by PLOT_EACH.
 * plot_attention_read -- models of reports of mpsim attention, each with its tile where they differ. 0, or an exit code after a message; to be cleared in both
 * cases. */
int plot_ranking_make(plot_ranges *s, const plot_groups *groups);
int plot_attention_read(plot_ranges *s, const plot_report *report, const plot_selection *selection);
void plot_ranges_clear(plot_ranges *s);
