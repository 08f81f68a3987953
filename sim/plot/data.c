/* data.c -- see data.h. A report is untrusted: every member is checked. */
#include "data.h"

#include "../array/need.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
static int add_cast(const plot_data *d, plot_group *g, const plot_cast *cast, int scaled)
{
    int code = 0;
    for (size_t f = 0; !code && f < d->n_formats; f++)
        for (size_t s = 0; !code && s < d->n_scales; s++)
            if ((d->scales[s] == cast->scale || !scaled) && strcmp(d->formats[f].name, cast->format) == 0) {
                plot_losses *c = &g->casts[f][s];
                c->tensors++;
                code = plot_count(d->report, &c->underflow, cast->underflow);
                code = code ? code : plot_count(d->report, &c->overflow, cast->overflow);
            }
    return code;
}

static int add_item(const plot_data *d, plot_group *g, const plot_item *item, int scaled)
{
    if (item->amin > item->amax)
        return plot_malformed(d->report, "counts or magnitudes contradict each other");
    if (item->amin > 0 && (g->amin == 0 || item->amin < g->amin))
        g->amin = item->amin;
    g->amax = fmax(g->amax, item->amax);
    g->l2 = hypot(g->l2, item->l2 >= 0 ? item->l2 : HUGE_VAL); /* not known: then no rms is shown */
    g->tensors++;
    g->scaled += (uint64_t)scaled;
    int code = plot_count(d->report, &g->count, item->count);
    code = code ? code : plot_count(d->report, &g->zero, item->zero);
    code = code ? code : plot_count(d->report, &g->nan, item->nan);
    code = code ? code : plot_count(d->report, &g->inf, item->inf);
    for (size_t i = 0; i < item->n_formats && !code; i++)
        code = add_cast(d, g, &item->formats[i], scaled);
    return code;
}

static int add_histogram(const plot_data *d, plot_group *g, const plot_item *item, int scaled)
{
    if (!item->histogram)
        return fail(EXIT_DATA, "%s: made without --histogram: run mpsim stat --json --histogram", d->report->path);
    return plot_bins(d->report, item->histogram, PLOT_EXPONENT_MIN, PLOT_EXPONENT_MAX, g->bins,
                     scaled ? g->scaled_bins : NULL);
}

/* ---- selection ---- */

/* The sums of the report that answer the selection, else its tensors. Sums over kinds do not tell what
 * of them is scaled: where it matters, kinds and tensors do. */
static const json_t *sums(const plot_data *d, const plot_selection *selection, plot_grouping grouping)
{
    const char *key = NULL;
    const int mixed = d->n_scales > 1 && json_object_get(json_object_get(d->report->json, "config"), "scaled_kinds");
    if (grouping != PLOT_BY_TENSOR && !selection->match.count) {
        if (!selection->step && (selection->kinds.count || grouping == PLOT_BY_KIND || mixed))
            key = "kinds";
        else if (selection->step && !selection->kinds.count && grouping == PLOT_BY_NOTHING && !mixed)
            key = "steps";
        else if (!selection->step && !selection->kinds.count)
            key = "total";
    }
    const json_t *v = key ? json_object_get(d->report->json, key) : NULL;
    return json_is_null(v) ? NULL : v;
}

/* What is being added up. */
typedef struct adding {
    plot_data *d;
    plot_grouping grouping;
    int need_histogram;
} adding;

static const char *group_of(const adding *a, const plot_item *item)
{
    switch (a->grouping) {
    case PLOT_BY_KIND:
        return item->kind ? item->kind : "no kind";
    case PLOT_BY_TENSOR:
        return item->name ? item->name : "no name";
    default:
        return "total";
    }
}

static int visit(void *context, const json_t *v)
{
    const adding *a = context;
    const plot_report *r = a->d->report;
    const int scaled = plot_item_scaled(v, r);
    plot_group *g = NULL;
    plot_item item;
    int code = plot_item_read(&item, r, v,
                              "count zero nan inf amin amax formats formats.format formats.scale formats.underflow "
                              "formats.overflow");
    code = code ? code : group_named(a->d, group_of(a, &item), &g);
    code = code ? code : add_item(a->d, g, &item, scaled);
    if (!code && a->need_histogram)
        code = add_histogram(a->d, g, &item, scaled);
    plot_item_clear(&item);
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
    adding a = {d, grouping, need_histogram};
    plot_walk w = {.report = report, .selection = selection, .visit = visit, .context = &a, .steps = &d->steps};
    if (!code)
        code = plot_walk_items(&w, sums(d, selection, grouping), "kinds");
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
