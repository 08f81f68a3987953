/* ranges.c -- see ranges.h. A report is untrusted: every member is checked. */
#include "impl.h"

#include "../array/need.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static plot_spread nothing(void)
{
    const double none = (double)NAN;
    return (plot_spread){none, none, none, none, none, 0};
}

/* ---- ranking ---- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The part q of n sorted values; between two of them their mean. */
static double quantile(const double *sorted, size_t n, double q)
{
    const double at = q * (double)(n - 1);
    const size_t i = (size_t)floor(at), k = (size_t)ceil(at);
    return i == k ? sorted[i] : (sorted[i] + sorted[k]) / 2;
}

/* Of those that are numbers. */
static plot_spread spread_of(double *values, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(values[i]))
            values[kept++] = values[i];
    if (kept == 0)
        return nothing();
    qsort(values, kept, sizeof *values, by_size);
    return (plot_spread){values[0],
                         quantile(values, kept, 0.25),
                         quantile(values, kept, 0.5),
                         quantile(values, kept, 0.75),
                         values[kept - 1],
                         0};
}

/* The higher median SQNR first, then the lower median of what is lost; what was not compared last. */
static int by_rank(const void *a, const void *b)
{
    const plot_range_row *x = a, *y = b;
    const double v = x->panels[0].middle, w = y->panels[0].middle;
    if (isnan(v) || isnan(w))
        return isnan(v) - isnan(w);
    if (v > w || v < w)
        return v < w ? 1 : -1;
    return (x->panels[1].middle > y->panels[1].middle) - (x->panels[1].middle < y->panels[1].middle);
}

int plot_ranking_make(plot_input *in, const plot_selection *selection)
{
    plot_ranges *s = &in->ranges;
    const plot_groups *g = &in->groups;
    (void)selection;
    static const char *const headings[] = {"SQNR (dB)", "lost (% of elements)", NULL};
    memset(s, 0, sizeof *s);
    s->headings = headings;
    s->logarithmic = 2;
    s->n_panels = 2;
    s->spread = 1;
    for (size_t i = 0; i < g->n_targets; i++) {
        plot_effect *e = &g->groups[0].effects[i];
        plot_range_row *row = &s->rows[s->n_rows++];
        row->name = need_text(g->targets[i].label);
        s->values = e->n > s->values ? e->n : s->values;
        for (int k = 0; k < 2; k++)
            row->panels[k] = spread_of(e->each[k], e->n);
    }
    qsort(s->rows, s->n_rows, sizeof *s->rows, by_rank);
    return 0;
}

/* ---- attention ---- */

/* A model, and what is computed, as mpsim attention tells them. */
typedef struct result {
    const char *model;
    uint64_t not_finite;
    double errors[3];
} result;

#define AT(member) offsetof(result, member)
static const record_field result_fields[] = {
    FIELD(TEXT, "model", IN_JSON, AT(model), NULL),       FIELD(COUNT, "not_finite", IN_JSON, AT(not_finite), NULL),
    FIELD(REAL, "rel_err", IN_JSON, AT(errors[0]), NULL), FIELD(REAL, "max_rel_err", IN_JSON, AT(errors[1]), NULL),
    FIELD(REAL, "bias", IN_JSON, AT(errors[2]), NULL),    {0}};
#undef AT
static const record_kind result_record = {"result", NULL, sizeof(result), result_fields};

typedef struct config {
    int64_t tile; /* -1: not told */
} config;

static const record_field config_fields[] = {FIELD(STEP, "tile", IN_JSON, offsetof(config, tile), NULL), {0}};
static const record_kind config_record = {"config", NULL, sizeof(config), config_fields};

static plot_spread error_of(double x)
{
    const double size = fabs(x);
    return isfinite(x) ? (plot_spread){size, size, size, size, size, x < 0} : nothing();
}

/* Of several reports one after the other. */
typedef struct reading {
    plot_ranges *s;
    const plot_report *report;
    const option_list *match;
    config config;
    int64_t tile; /* of the first result */
    size_t results;
    int several; /* tiles */
} reading;

/* Whether results have several tiles. */
static int see_result(void *context, record_source item)
{
    reading *p = context;
    (void)item;
    p->tile = p->results++ ? p->tile : p->config.tile;
    p->several |= p->config.tile != p->tile;
    return 0;
}

static int read_result(void *context, record_source item)
{
    const reading *p = context;
    plot_ranges *s = p->s;
    result r;
    char tile[48] = "", lost[48] = "";
    int code = plot_read(p->report, &result_record, item, &r, "model not_finite rel_err max_rel_err bias");
    if (code || !plot_listed(p->match, r.model, 1))
        return code;
    if (s->n_rows == PLOT_RANGES_MAX)
        return fail(EXIT_USAGE, "plot: more than %d rows: select fewer models with --match GLOB", PLOT_RANGES_MAX);
    if (p->several)
        snprintf(tile, sizeof tile, ", tile %" PRId64, p->config.tile < 0 ? 0 : p->config.tile);
    if (r.not_finite)
        snprintf(lost, sizeof lost, ", %" PRIu64 " NaN, Inf", r.not_finite);
    plot_range_row *row = &s->rows[s->n_rows++];
    row->name = need_format("%.200s%s%s", r.model, tile, lost);
    for (int k = 0; k < 3; k++)
        row->panels[k] = error_of(r.errors[k]);
    return 0;
}

/* `visit` sees each result of each report. */
static int each_result(reading *p, const plot_report *first, plot_visit *visit)
{
    int code = 0;
    for (p->report = first; p->report && !code; p->report = p->report->next) {
        code = plot_read(p->report, &config_record, record_part(p->report->root, "config"), &p->config, "");
        code = code ? code : plot_each(p->report, p->report->root, "results", visit, p);
    }
    return code;
}

int plot_attention_read(plot_input *in, const plot_selection *selection)
{
    plot_ranges *s = &in->ranges;
    const plot_report *report = &in->report;
    static const char *const headings[] = {"relative error", "largest error", "bias", NULL};
    reading p = {.s = s, .match = &selection->match};
    *s = (plot_ranges){.headings = headings, .logarithmic = 7, .n_panels = 3};
    int code = each_result(&p, report, see_result);
    code = code ? code : each_result(&p, report, read_result);
    return code || s->n_rows        ? code
           : selection->match.count ? fail(EXIT_USAGE, "plot: --match selects no model of the report")
                                    : plot_malformed(report, "it has no results");
}

void plot_ranges_clear(plot_ranges *s)
{
    for (size_t i = 0; i < s->n_rows; i++)
        free(s->rows[i].name);
    memset(s, 0, sizeof *s);
}
