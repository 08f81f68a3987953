/* select.h -- what of a report of mpsim stat a figure takes: items, formats, scales.
 *
 * An item is an object with counts: a tensor, or the sum of a kind, a step, the total. */
#pragma once

#include "../operand/scalelist.h"
#include "report.h"

enum { PLOT_FORMATS_MAX = 24 };

typedef struct plot_format {
    const char *name;                     /* in the report */
    double min_positive, min_normal, max; /* 0 < min_positive <= min_normal <= max, once it is chosen */
} plot_format;

/* What a report says of all its items. Lists are NULL where it does not say. */
typedef struct plot_settings {
    const plot_format *formats, *recipes; /* recipes: names */
    size_t n_formats, n_recipes;
    const double *scales;
    size_t n_scales;
    const char *const *scaled_kinds;
    size_t n_kinds;
    int scaled; /* 1: gradients hold a loss scale */
} plot_settings;

extern const record_kind plot_settings_record;

/* plot_settings_read -- of a report. 0, or an exit code after a message; to be cleared in both cases. */
int plot_settings_read(plot_settings *s, const plot_report *r);
void plot_settings_clear(plot_settings *s);

typedef struct plot_formats {
    plot_format items[PLOT_FORMATS_MAX];
    size_t count;
} plot_formats;

/* The steps of what is selected; none where nothing has one. */
typedef struct plot_steps {
    int has;
    uint64_t first, last;
} plot_steps;

/* plot_put_steps -- that several are taken together, which a figure does not show; whether they are. */
int plot_put_steps(FILE *to, const plot_steps *s);

/* plot_choose_formats -- those of the report, or those of them that are wanted, in that order. 0, or
 * an exit code after a message. */
int plot_choose_formats(plot_formats *f, const plot_report *r, const plot_settings *s, const option_list *wanted);

/* plot_choose_scales -- the same for scales. */
int plot_choose_scales(scale_list *l, const plot_report *r, const plot_settings *s, const option_list *wanted);

/* plot_choose_target -- one format or block recipe: the first of the report, or the one that is wanted. In memory of its
 * own, or NULL with *code after a message. */
char *plot_choose_target(const plot_report *r, const plot_settings *s, const option_list *wanted, int *code);

/* What an item is; NULL, -1: the report does not say. */
typedef struct plot_label {
    const char *name, *kind;
    int64_t step;
} plot_label;

/* plot_label_of -- what an item is, whatever else it holds. */
plot_label plot_label_of(record_source item);

/* plot_item_selected -- whether kind, name and step of an item are selected; `step` is the number
 * of selection->step. */
int plot_item_selected(const plot_label *l, const plot_selection *selection, uint64_t step);

/* plot_item_scaled -- whether the report's scales multiply an item of a kind. A report that does not say which
 * kinds they multiply is of an mpsim that scaled all. */
int plot_item_scaled(const plot_settings *s, const char *kind);

/* plot_layer_name -- the layer of a tensor: its name without the kind and, of a parameter, without the last
 * part. In memory of its own. */
char *plot_layer_name(const char *name, const char *kind);
