/* targets.h -- what figures show of formats and block recipes side by side, from a report of mpsim stat.
 *
 * A target is a format at a scale, or a recipe along an axis; a group is what is added up: a kind, a
 * tensor, a layer, a step, or all that is selected; by PLOT_EACH each tensor of each step keeps its own numbers. */
#pragma once

#include "noise.h"

#include <mpsim/blockstats.h>

enum { PLOT_TARGETS_MAX = 40, PLOT_GROUPED_MAX = 60 };

typedef struct plot_target {
    char *name;     /* of the format or the recipe */
    char axis[16];  /* "rows", "columns", "requantised"; "" of a format */
    double scale;   /* of a format */
    char label[96]; /* name, and what of the others has to be said */
} plot_target;

/* What a target does to a group. */
typedef struct plot_effect {
    plot_noise noise;
    uint64_t elements, overflow; /* saturated, of a recipe */
    uint64_t lost;               /* plot_lost; of the elements */
    double *each[2];             /* by PLOT_EACH: SQNR of each item, and its lost elements in per cent */
    size_t n;
    /* of recipes */
    uint64_t blocks, zero_blocks, saturated_blocks, lost_blocks;
    uint64_t least_scales, largest_scales, scale_zero, scale_nonfinite;
    uint64_t scales[MPSIM_SCALE_BINS]; /* [floor(log2 s) - MPSIM_SCALE_MIN] */
} plot_effect;

typedef struct plot_row {
    char *name;
    plot_effect *effects; /* PLOT_TARGETS_MAX */
} plot_row;

typedef enum plot_by { PLOT_KIND, PLOT_TENSOR, PLOT_LAYER, PLOT_STEP, PLOT_TOTAL, PLOT_EACH } plot_by;

typedef struct plot_targets {
    const plot_report *report;
    plot_target items[PLOT_TARGETS_MAX];
    plot_row rows[PLOT_GROUPED_MAX];
    size_t n_items, n_rows;
    plot_by by;
    int sqnr;                         /* is what the figure shows, of formats, too; else blocks */
    int has_columns, has_requantised; /* some target is along that axis */
    plot_steps steps;
    uint64_t not_finite; /* elements recorded as Inf or NaN */
} plot_targets;

/* plot_targets_read -- add up what `selection` takes of the report; `usual` is what a row is where it does not
 * say. With `sqnr` the SQNR of recipes and formats, which a report may have alone; else blocks and scales of
 * recipes. 0, or an exit code after a message; to be cleared in both cases. */
int plot_targets_read(plot_targets *t, const plot_report *report, const plot_selection *selection, plot_by usual,
                      int sqnr);
void plot_targets_clear(plot_targets *t);

/* plot_targets_put_note -- the variables `note`: which steps are taken together, and `axes`: what the arrows
 * of labels mean. */
void plot_targets_put_note(FILE *to, const plot_targets *t);
