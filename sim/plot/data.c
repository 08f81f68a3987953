/* data.c -- see data.h. A report is untrusted: every member is checked. */
#include "data.h"

#include "../array/need.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add_count(const plot_data *d, uint64_t *to, uint64_t n)
{
    if (*to > UINT64_MAX - n)
        return plot_malformed(d->report, "counts are too large");
    *to += n;
    return 0;
}

/* ---- scales ---- */

static int add_scale(plot_data *d, double x)
{
    for (size_t i = 0; i < d->n_scales; i++)
        if (d->scales[i] == x)
            return 0;
    if (d->n_scales == PLOT_SCALES_MAX)
        return fail(EXIT_USAGE, "plot: at most %d scales fit, 1 included: choose with --scale", PLOT_SCALES_MAX);
    d->scales[d->n_scales++] = x;
    return 0;
}

/* The scale 1 comes first and is always there: it is the data as recorded. */
static int choose_scales(plot_data *d, const option_list *wanted)
{
    scale_list all, chosen;
    const option_list any = {0};
    int code = plot_choose_scales(&all, d->report, &any);
    if (!code)
        code = plot_choose_scales(&chosen, d->report, wanted);
    if (code)
        return code;
    for (size_t i = 0; i < all.count; i++)
        d->cast_unscaled |= all.items[i] == 1;
    code = add_scale(d, 1);
    for (size_t i = 0; !code && i < chosen.count; i++)
        code = add_scale(d, chosen.items[i]);
    return code;
}

/* ---- groups ---- */

static int group_named(plot_data *d, const char *name, plot_group **g)
{
    for (size_t i = 0; i < d->n_groups; i++)
        if (strcmp(d->groups[i].name, name) == 0) {
            *g = &d->groups[i];
            return 0;
        }
    if (d->n_groups == PLOT_GROUPS_MAX)
        return fail(EXIT_USAGE,
                    "plot: more than %d rows: select fewer tensors with --match GLOB, --kind KIND or --step N",
                    PLOT_GROUPS_MAX);
    plot_group *all = need_more(d->groups, d->n_groups + 1, sizeof *all);
    d->groups = all;
    *g = &all[d->n_groups];
    memset(*g, 0, sizeof **g);
    (*g)->name = need_text(name);
    d->n_groups++;
    return 0;
}

/* The casts of what is not scaled are the same at every scale. */
static int add_casts(const plot_data *d, plot_group *g, const json_t *item)
{
    const int scaled = plot_item_scaled(item, d->report);
    const json_t *casts;
    size_t i;
    json_t *cast;
    int code = plot_get_array(d->report, item, "formats", &casts);
    json_array_foreach(casts, i, cast)
    {
        const char *name;
        double scale;
        uint64_t underflow, overflow;
        code = code ? code : plot_get_string(d->report, cast, "format", &name);
        code = code ? code : plot_get_magnitude(d->report, cast, "scale", &scale);
        code = code ? code : plot_get_count(d->report, cast, "underflow", &underflow);
        code = code ? code : plot_get_count(d->report, cast, "overflow", &overflow);
        for (size_t f = 0; !code && f < d->n_formats; f++)
            for (size_t s = 0; !code && s < d->n_scales; s++)
                if ((d->scales[s] == scale || !scaled) && strcmp(d->formats[f].name, name) == 0) {
                    plot_cast *c = &g->casts[f][s];
                    c->tensors++;
                    code = add_count(d, &c->underflow, underflow);
                    if (!code)
                        code = add_count(d, &c->overflow, overflow);
                }
    }
    return code;
}

static int add_histogram(const plot_data *d, plot_group *g, const json_t *item)
{
    const json_t *h = json_object_get(item, "histogram");
    if (!h || json_is_null(h))
        return fail(EXIT_DATA, "%s: made without --histogram: run mpsim stat --json --histogram", d->report->path);
    const json_t *counts, *first = json_object_get(h, "first");
    const int scaled = plot_item_scaled(item, d->report);
    int code = plot_get_array(d->report, h, "counts", &counts);
    const size_t n = json_array_size(counts);
    if (code || n == 0)
        return code;
    const json_int_t e = json_integer_value(first);
    if (!json_is_integer(first) || e < PLOT_EXPONENT_MIN || e > PLOT_EXPONENT_MAX ||
        n > (size_t)(PLOT_EXPONENT_MAX - e) + 1)
        return plot_malformed(d->report, "a histogram has exponents beyond those of binary64");
    for (size_t i = 0; !code && i < n; i++) {
        const json_t *v = json_array_get(counts, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return plot_malformed(d->report, "a bin of a histogram is not a count");
        const size_t at = (size_t)(e - PLOT_EXPONENT_MIN) + i;
        code = add_count(d, &g->bins[at], (uint64_t)json_integer_value(v));
        if (!code && scaled)
            code = add_count(d, &g->scaled_bins[at], (uint64_t)json_integer_value(v));
    }
    return code;
}

static int add_item(const plot_data *d, plot_group *g, const json_t *item, int need_histogram)
{
    static const char *const counts[] = {"count", "zero", "nan", "inf"};
    uint64_t n[4];
    double amin, amax, l2;
    int code = 0;
    for (size_t i = 0; !code && i < 4; i++)
        code = plot_get_count(d->report, item, counts[i], &n[i]);
    code = code ? code : plot_get_magnitude(d->report, item, "amin", &amin);
    code = code ? code : plot_get_magnitude(d->report, item, "amax", &amax);
    if (code)
        return code;
    if (n[1] > n[0] || n[2] > n[0] - n[1] || n[3] > n[0] - n[1] - n[2] || amin > amax)
        return plot_malformed(d->report, "counts or magnitudes contradict each other");
    const json_t *v = json_object_get(item, "l2"); /* may be "Infinity": then no rms is shown */
    l2 = json_is_number(v) && json_number_value(v) >= 0 ? json_number_value(v) : HUGE_VAL;
    if (amin > 0 && (g->amin == 0 || amin < g->amin))
        g->amin = amin;
    g->amax = fmax(g->amax, amax);
    g->l2 = hypot(g->l2, l2);
    g->tensors++;
    g->scaled += (uint64_t)plot_item_scaled(item, d->report);
    uint64_t *const sums[] = {&g->count, &g->zero, &g->nan, &g->inf};
    for (size_t i = 0; !code && i < 4; i++)
        code = add_count(d, sums[i], n[i]);
    if (!code)
        code = add_casts(d, g, item);
    if (!code && need_histogram)
        code = add_histogram(d, g, item);
    return code;
}

/* ---- selection ---- */

/* The sums of the report that answer the selection, else its tensors. Sums over kinds do not tell what
 * of them is scaled: where it matters, kinds and tensors do. */
static const json_t *source(const plot_data *d, const plot_selection *selection, plot_grouping grouping)
{
    const json_t *v = NULL;
    const int mixed = d->n_scales > 1 && json_object_get(json_object_get(d->report->json, "config"), "scaled_kinds");
    if (grouping != PLOT_BY_TENSOR && !selection->match.count) {
        if (!selection->step && (selection->kinds.count || grouping == PLOT_BY_KIND || mixed))
            v = json_object_get(d->report->json, "kinds");
        else if (selection->step && !selection->kinds.count && grouping == PLOT_BY_NOTHING && !mixed)
            v = json_object_get(d->report->json, "steps");
        else if (!selection->step && !selection->kinds.count)
            v = json_object_get(d->report->json, "total");
    }
    return v && !json_is_null(v) ? v : json_object_get(d->report->json, "tensors");
}

/* What is being added up. */
typedef struct adding {
    plot_data *d;
    const plot_selection *selection;
    uint64_t step;
    plot_grouping grouping;
    int need_histogram;
} adding;

/* The steps of the selected tensors, whichever sums are shown. */
static int find_step(void *context, const json_t *item)
{
    const adding *a = context;
    plot_data *d = a->d;
    uint64_t s;
    if (plot_item_selected(item, a->selection, a->step) && plot_item_step(item, &s)) {
        d->first_step = d->has_steps && d->first_step < s ? d->first_step : s;
        d->last_step = d->has_steps && d->last_step > s ? d->last_step : s;
        d->has_steps = 1;
    }
    return 0;
}

static int add_if_selected(void *context, const json_t *item)
{
    const adding *a = context;
    plot_group *g;
    if (!plot_item_selected(item, a->selection, a->step))
        return 0;
    (void)find_step(context, item);
    const int by_kind = a->grouping == PLOT_BY_KIND;
    const char *name = json_string_value(json_object_get(item, by_kind ? "kind" : "name"));
    if (!name)
        name = by_kind ? "no kind" : "no name";
    const int code = group_named(a->d, a->grouping == PLOT_BY_NOTHING ? "total" : name, &g);
    return code ? code : add_item(a->d, g, item, a->need_histogram);
}

static int add_selected(plot_data *d, const plot_selection *selection, plot_grouping grouping, int need_histogram)
{
    adding a = {d, selection, 0, grouping, need_histogram};
    plot_group *g;
    if (selection->step && parse_count(&a.step, selection->step) != 0)
        return fail(EXIT_USAGE, "plot: --step: '%s' is not a number of a step", selection->step);
    const json_t *tensors = json_object_get(d->report->json, "tensors");
    const json_t *list = source(d, selection, grouping);
    int code = 0;
    if (tensors && list != tensors)
        code = plot_each(d->report, tensors, "tensors", find_step, &a);
    if (!code && json_is_object(list)) {
        code = group_named(d, "total", &g);
        return code ? code : add_item(d, g, list, need_histogram);
    }
    if (!code)
        code = plot_each(d->report, list, "tensors", add_if_selected, &a);
    if (!code && d->n_groups == 0)
        code = fail(EXIT_USAGE, "plot: --match, --kind, --step select no tensor of the report");
    return code;
}

/* ---- the whole ---- */

int plot_data_read(plot_data *d, const plot_report *report, const plot_selection *selection, plot_grouping grouping,
                   int need_histogram)
{
    memset(d, 0, sizeof *d);
    d->report = report;
    plot_formats formats;
    int code = plot_choose_formats(&formats, report, &selection->formats);
    d->n_formats = code ? 0 : formats.count;
    memcpy(d->formats, formats.items, d->n_formats * sizeof *d->formats);
    if (!code)
        code = choose_scales(d, &selection->scales);
    if (!code)
        code = add_selected(d, selection, grouping, need_histogram);
    uint64_t scaled = 0;
    for (size_t i = 0; i < d->n_groups; i++)
        scaled += d->groups[i].scaled;
    if (!code && !scaled) { /* all scales are the scale 1 */
        d->n_scales = 1;
        d->cast_unscaled = 1;
    }
    return code;
}

void plot_data_clear(plot_data *d)
{
    for (size_t i = 0; i < d->n_groups; i++)
        free(d->groups[i].name);
    free(d->groups);
    memset(d, 0, sizeof *d);
}
