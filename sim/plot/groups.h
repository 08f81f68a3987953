/* groups.h -- what figures show of a report of mpsim stat: what targets do to groups of its items.
 *
 * A target is a format at a scale, or a recipe along an axis; a group is what is added up: a kind, a
 * tensor, a layer, a step, or all that is selected; by PLOT_EACH each tensor of each step keeps its own numbers. */
#pragma once

#include "noise.h"

#include <mpsim/blockstats.h>

enum {
    PLOT_EXPONENT_MIN = -1074, /* of binary64, as in mpsim/stats.h */
    PLOT_EXPONENT_MAX = 1023,
    PLOT_BINS = PLOT_EXPONENT_MAX - PLOT_EXPONENT_MIN + 1,
    PLOT_SCALES_MAX = 6, /* of a histogram */
    PLOT_CURVES_MAX = 12,
    PLOT_TARGETS_MAX = 40, /* of a report, not those that are chosen */
    PLOT_GROUPS_MAX = 60
};

typedef struct plot_target {
    char *name;     /* of the format or the recipe */
    char axis[16];  /* "rows", "columns", "requantised"; "" of a format */
    double scale;   /* of a format */
    char label[96]; /* name, and what of the others has to be said */
} plot_target;

/* What a target does to a group. */
typedef struct plot_effect {
    plot_noise noise; /* its items: those of the group that have this target */
    uint64_t elements, underflow;
    uint64_t overflow; /* saturated, of a recipe */
    uint64_t lost;     /* plot_lost; of the elements */
    double *each[2];   /* by PLOT_EACH: SQNR of each item, and its lost elements in per cent */
    size_t n;
    /* of recipes */
    uint64_t blocks, zero_blocks, saturated_blocks, lost_blocks;
    uint64_t least_scales, largest_scales, scale_zero, scale_nonfinite;
    uint64_t *scales; /* MPSIM_SCALE_BINS: [floor(log2 s) - MPSIM_SCALE_MIN] */
} plot_effect;

typedef struct plot_group {
    char *name;
    uint64_t items;  /* of the report that were added up */
    uint64_t scaled; /* of them, those that the report's scales multiply */
    uint64_t count, zero, nan, inf;
    double amin, amax;               /* of the finite non-zero elements; 0 if there are none */
    double l2;                       /* infinite: not known */
    plot_effect *effects;            /* of each target */
    uint64_t bins[PLOT_BINS];        /* bins[e - PLOT_EXPONENT_MIN]: elements with exponent e */
    uint64_t scaled_bins[PLOT_BINS]; /* those of scaled items */
} plot_group;

typedef enum plot_by { PLOT_KIND, PLOT_TENSOR, PLOT_LAYER, PLOT_STEP, PLOT_TOTAL, PLOT_EACH } plot_by;

typedef struct plot_groups plot_groups;

/* What a figure shows of a report. */
typedef struct plot_plan {
    const char *needs; /* members of items, as plot_item_read has them */
    plot_by usual;     /* what a group is where --by does not say */
    unsigned by;       /* what --by may say: 1 << PLOT_KIND and others */
    const char *all;   /* the name of a group of all */
    size_t most;       /* groups */
    const char *fewer; /* "rows: select fewer" */
    int has_bins;      /* elements by exponent */
    int has_errors;    /* SQNR of casts, and what of the elements is lost */
    int has_total;     /* sums of steps and of all answer, too */
    int only_scaled;   /* items that the report's scales multiply, and each has every target once */
    /* Formats and scales, before items are read; and what must not be so behind them. */
    int (*choose)(plot_groups *g, const plot_selection *selection);
    int (*check)(plot_groups *g, const plot_selection *selection);
} plot_plan;

extern const plot_plan plot_of_histogram, plot_of_ruler, plot_of_sweep, plot_of_scales, plot_of_sqnr, plot_of_ranking;

struct plot_groups {
    const plot_report *report;
    const plot_plan *plan;
    plot_settings settings;
    plot_by by;
    plot_formats
        formats; /* of a histogram, a ruler, a sweep: then targets are formats by scales, formats varying fastest */
    scale_list scales; /* of a histogram: the first is 1, the data as recorded; of a sweep growing, at least two */
    int cast_unscaled; /* the report has casts of the recorded data */
    plot_target *targets;
    size_t n_targets;
    plot_group *groups;
    size_t n_groups;
    int has_columns, has_requantised; /* some target is along that axis */
    double limit;                     /* of a sweep: per cent of underflow that is safe */
    plot_steps steps;
};

/* plot_groups_read -- add up what `selection` takes of the report, in groups, in the order of the report. 0, or an exit code after a
 * message; to be cleared in both cases. */
int plot_groups_read(plot_groups *g, const plot_report *report, const plot_selection *selection, const plot_plan *plan);
void plot_groups_clear(plot_groups *g);

/* plot_effect_of -- of a group, in a chosen format at a chosen scale. */
const plot_effect *plot_effect_of(const plot_groups *g, size_t group, size_t format, size_t scale);

/* plot_groups_put_note -- the variable `note`: which steps are taken together, and what was broken when it was recorded, which a figure
 * does not show. plot_groups_put_axes -- the variable `axes`: what the arrows of labels mean. */
void plot_groups_put_note(FILE *to, const plot_groups *g);
void plot_groups_put_axes(FILE *to, const plot_groups *g);
