/* ranges.c -- see ranges.h. A report is untrusted: every member is checked. */
#include "ranges.h"

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

int plot_ranking_make(plot_ranges *s, const plot_groups *g)
{
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

static int get_error(const plot_report *r, const json_t *result, const char *key, plot_spread *to)
{
    double x;
    if (!record_is_real(json_object_get(result, key), &x))
        return plot_wrong_member(r, key, "a number");
    *to = nothing();
    if (isfinite(x))
        *to = (plot_spread){fabs(x), fabs(x), fabs(x), fabs(x), fabs(x), x < 0};
    return 0;
}

/* Its own, which a join left, or that of the report. */
static json_int_t tile_of(const plot_report *r, const json_t *result)
{
    const json_t *own = json_object_get(result, "tile");
    return json_integer_value(own ? own : json_object_get(json_object_get(r->json, "config"), "tile"));
}

static int read_result(plot_ranges *s, const plot_report *r, const json_t *result, const option_list *match, int tiles)
{
    static const char *const keys[] = {"rel_err", "max_rel_err", "bias"};
    const char *model = NULL;
    char tile[48] = "", lost[48] = "";
    uint64_t not_finite = 0;
    int code = plot_get_string(r, result, "model", &model);
    code = code ? code : plot_get_count(r, result, "not_finite", &not_finite);
    if (code || !plot_listed(match, model, 1))
        return code;
    if (s->n_rows == PLOT_RANGES_MAX)
        return fail(EXIT_USAGE, "plot: more than %d rows: select fewer models with --match GLOB", PLOT_RANGES_MAX);
    if (tiles)
        snprintf(tile, sizeof tile, ", tile %" PRId64, (int64_t)tile_of(r, result));
    if (not_finite)
        snprintf(lost, sizeof lost, ", %" PRIu64 " NaN, Inf", not_finite);
    plot_range_row *row = &s->rows[s->n_rows++];
    row->name = need_format("%.200s%s%s", model, tile, lost);
    for (int k = 0; k < 3 && !code; k++)
        code = get_error(r, result, keys[k], &row->panels[k]);
    return code;
}

int plot_attention_read(plot_ranges *s, const plot_report *report, const plot_selection *selection)
{
    static const char *const headings[] = {"relative error", "largest error", "bias", NULL};
    const json_t *results;
    size_t i;
    json_t *v;
    int tiles = 0;
    memset(s, 0, sizeof *s);
    s->headings = headings;
    s->logarithmic = 7;
    s->n_panels = 3;
    int code = plot_get_array(report, report->json, "results", &results);
    if (code)
        return code;
    json_array_foreach(results, i, v) tiles |= tile_of(report, v) != tile_of(report, json_array_get(results, 0));
    json_array_foreach(results, i, v) if (!code) code = read_result(s, report, v, &selection->match, tiles);
    if (!code && s->n_rows == 0)
        code = selection->match.count ? fail(EXIT_USAGE, "plot: --match selects no model of the report")
                                      : plot_malformed(report, "it has no results");
    return code;
}

/* Each result says its tile from now on. */
static int tell_tiles(plot_report *r, json_t **results)
{
    size_t i;
    json_t *v;
    *results = json_object_get(r->json, "results");
    if (!json_is_array(*results))
        return plot_wrong_member(r, "results", "an array");
    json_array_foreach(*results, i, v) if (json_is_object(v))
        json_object_set_new(v, "tile", json_integer(tile_of(r, v)));
    return 0;
}

int plot_attention_join(plot_report *r, plot_report *other)
{
    json_t *results, *more;
    int code = tell_tiles(r, &results);
    code = code ? code : tell_tiles(other, &more);
    if (code)
        return code;
    json_array_extend(results, more);
    plot_report_join(r, other);
    return 0;
}

void plot_ranges_clear(plot_ranges *s)
{
    for (size_t i = 0; i < s->n_rows; i++)
        free(s->rows[i].name);
    memset(s, 0, sizeof *s);
}
