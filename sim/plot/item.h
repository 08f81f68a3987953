/* item.h -- items of a report of mpsim stat: objects with counts, of a tensor, or the sum of a kind, a step, the total. What a figure does
 * not ask for may be missing: it is 0, NULL, NaN or -1. */
#pragma once

#include "select.h"

/* A histogram, of elements or of scales: bins of a factor of two. */
typedef struct plot_bins {
    int first; /* the exponent of the first */
    uint64_t zero, nonfinite;
    const uint64_t *counts; /* NULL: there is no histogram */
    size_t n;
} plot_bins;

/* What a cast to a format, or by a block recipe, does to an item. */
typedef struct plot_cast {
    const char *format, *recipe, *axis; /* a recipe has an axis */
    double scale, sqnr, mse;
    uint64_t underflow, overflow;
    int64_t elements, compared, spoilt;
    uint64_t blocks, zero_blocks, saturated_blocks, lost_blocks, least_scales, largest_scales;
    plot_bins scales;
} plot_cast;

typedef struct plot_item {
    const char *name, *kind;
    int64_t step;
    uint64_t count, zero, nan, inf, finite;
    double amin, amax, l2;
    plot_cast *formats, *blocks;
    size_t n_formats, n_blocks;
    plot_bins histogram;
} plot_item;

/* plot_item_read -- with all that `needs` names (record_read), counts among it. 0, or an exit code after a message; to be cleared in both
 * cases. */
int plot_item_read(plot_item *item, const plot_report *r, record_source v, const char *needs);
void plot_item_clear(plot_item *item);

/* plot_item_cast -- what an item has of a format at a scale, or of a block recipe; NULL: nothing. */
const plot_cast *plot_item_cast(const plot_item *item, int scaled, const char *target, double scale);

/* plot_count -- n more. plot_add_bins -- those of a histogram, of exponents from `least` to `most`: to[0] and also[0] (or NULL) count `least`.
 * Both 0, or an exit code after a message. */
int plot_count(const plot_report *r, uint64_t *to, uint64_t n);
int plot_add_bins(const plot_report *r, const plot_bins *histogram, int least, int most, uint64_t *to, uint64_t *also);

/* What is being added up: what `selection` takes of a report. */
typedef struct plot_walk {
    const plot_report *report;
    const plot_settings *settings;
    const plot_selection *selection;
    plot_visit *visit;
    void *context;
    int scaled; /* only what the report's scales multiply */
    uint64_t step;
    int only_steps; /* the counts come from another list */
    size_t selected;
    plot_steps *steps;
} plot_walk;

/* plot_walk_items -- visit the tensors, or the items of the member `sums` of the report, where it is not NULL; steps are those of all
 * selected tensors. 0, or an exit code after a message. */
int plot_walk_items(plot_walk *w, const char *sums);

/* What a report of mpsim stat is in memory (record_keep): settings, and lists of plot_item. */
typedef struct plot_stat {
    plot_settings settings;
    const plot_item *tensors, *kinds, *steps;
    size_t n_tensors, n_kinds, n_steps;
    plot_item total;
} plot_stat;

extern const record_kind plot_stat_record;
