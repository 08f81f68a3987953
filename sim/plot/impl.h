/* impl.h -- what the files of sim/plot have of one another. */
#pragma once

#include "plot.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

/* ---- what figures read of in->report: each fills the member of `in` that is named after its header. 0, or an exit code after a message;
 * to be cleared in both cases. ---- */

/* The models that `selection` takes, from the largest error at their last K to the smallest, those of one curve together. */
int plot_sweep_read(plot_input *in, const plot_selection *selection);
/* The runs of the report, and of those that joined it, that `selection` takes by the names of their policies, in their order, without
 * those that have no steps; of several reports each is called "POLICY, FILE", or FILE if only one policy is shown. */
int plot_runs_read(plot_input *in, const plot_selection *selection);
/* The tensors that `selection` takes, or the layers they belong to. */
int plot_grid_read(plot_input *in, const plot_selection *selection);
/* The policies that `selection` takes. */
int plot_ledger_read(plot_input *in, const plot_selection *selection);
/* Ranges: recipes and formats by their median SQNR, the best first, from in->groups read by PLOT_EACH; models of reports of mpsim attention,
 * each with its tile where they differ. */
int plot_ranking_make(plot_input *in, const plot_selection *selection);
int plot_attention_read(plot_input *in, const plot_selection *selection);
/* The curves of a figure. */
int plot_lossscale_read(plot_input *in, const plot_selection *selection);
int plot_updates_read(plot_input *in, const plot_selection *selection);
int plot_amax_read(plot_input *in, const plot_selection *selection);

/* ---- accumulation.c: data and variables of the figure accumulation. ---- */

void plot_put_accumulation(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_accumulation_variables(FILE *to, const plot_input *in, const plot_request *r);

/* ---- bars.c: data and variables of the figure memory: a bar for each policy, of its components. ---- */

void plot_put_bars(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_bars_variables(FILE *to, const plot_input *in, const plot_request *r);

/* ---- comparison.c: data and variables of the figure sqnr: SQNR of formats and block recipes side by side. ---- */

void plot_put_comparison(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_comparison_variables(FILE *to, const plot_input *in, const plot_request *r);

/* ---- distribution.c: data and variables of the figure scales: scales of blocks by recipe, and what saturates. ---- */

void plot_put_distribution(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_distribution_variables(FILE *to, const plot_input *in, const plot_request *r);

/* ---- dots.c: data and variables of the figures ranking and attention: a row for each recipe or model, in panels. ---- */

void plot_put_dots(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_dots_variables(FILE *to, const plot_input *in, const plot_request *r);

/* ---- heatmap.c: data and variables of the figure diff. ---- */

void plot_put_heatmap(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_heatmap_variables(FILE *to, const plot_input *in, const plot_request *r);

/* ---- lines.c: a report of stat as JSON lines (stat --ndjson, mpsim.watch of Python), put together as the report that
 * stat --json writes, which figures read. ---- */

/* plot_lines_are -- whether a text begins with the first of such lines. */
int plot_lines_are(const char *text, size_t n);

/* plot_lines_joined -- the report, to be freed; the text is, in any case. Records of levels that stat does not write are passed over; so is, with a
 * note, a last line that is cut off, as a training leaves it that was killed. NULL with `error`: "line 3: ..." */
char *plot_lines_joined(char *text, size_t n, const char *path, char error[160]);

/* ---- range.c: the least and the largest of the finite numbers that a figure shows; of the module. ---- */

typedef struct range {
    double low, high; /* HUGE_VAL and -HUGE_VAL before the first number */
} range;

static inline void plot_widen(range *r, double x)
{
    if (isfinite(x)) {
        r->low = fmin(r->low, x);
        r->high = fmax(r->high, x);
    }
}

/* ---- steps.c: data and variables of the figures lossscale, updates and amax: curves over the steps. ---- */

void plot_put_courses(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_courses_variables(FILE *to, const plot_input *in, const plot_request *r);

/* ---- text.c: strings in figures.
 * Strings from a report or the command line enter data and script only through the functions
 * plot_put_*: what they write is one inert string whatever it was,
 * with controls, invisible and direction-changing characters escaped as everywhere (escape_text). ---- */

/* plot_base -- the last component of a path. */
const char *plot_base(const char *path);

enum { PLOT_LABEL_MAX = 64 };

/* plot_characters -- how many characters a text has, as it is shown. */
size_t plot_characters(const char *text);

/* plot_fit -- how many characters of the small font fit in so many inches, `most` at most. */
size_t plot_fit(double inches, size_t most);

void plot_put_data(FILE *to, const char *text);            /* "text" for data */
void plot_put_label(FILE *to, const char *text, size_t n); /* the same, shortened to n characters */

/* What all names of a figure begin and end with, in bytes: labels are shortened there first, so that they still differ. */
typedef struct plot_common {
    const char *name; /* one of them; NULL: none */
    size_t prefix, suffix, names;
} plot_common;

void plot_common_add(plot_common *c, const char *name); /* which lives as long as c */

/* plot_put_label_of -- plot_put_label of one of these names. */
void plot_put_label_of(FILE *to, const char *name, size_t n, const plot_common *c);

void plot_put_comment(FILE *to, const char *text); /* letters, digits and harmless others  */

/* plot_put_variable -- NAME = 'text' for a script, whose every other character is printable ASCII or '?'. */
void plot_put_variable(FILE *to, const char *name, const char *text);

/* plot_quote -- 'text' for a script, its bytes kept as they are (a file name; other text comes from
 * escape_all), in memory of its own. */
char *plot_quote(const char *text);

/* ---- training.c: data and variables of the figure training. ---- */

void plot_put_training(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_training_variables(FILE *to, const plot_input *in, const plot_request *r);

/* ---- window.c: data and variables of the figure sweep: underflow, overflow and SQNR over the loss scale. ---- */

void plot_put_window(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_window_variables(FILE *to, const plot_input *in, const plot_request *r);
