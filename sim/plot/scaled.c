/* scaled.c -- see scaled.h. A report is untrusted: every member is checked. */
#include "scaled.h"

#include "../array/need.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static plot_scaled_cast *cast_of(const plot_scaled *s, const plot_curve *c, size_t format, size_t scale)
{
    return &c->casts[format * s->scales.count + scale];
}

/* ---- what is selected ---- */

static int compare_scales(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int choose(plot_scaled *s, const plot_selection *selection)
{
    int code = plot_choose_formats(&s->formats, s->report, &selection->formats);
    if (!code)
        code = plot_choose_scales(&s->scales, s->report, &selection->scales);
    if (!code && s->scales.count < 2)
        code = fail(EXIT_DATA, "%s: a single scale: run mpsim stat --json -s 2^0..2^32", s->report->path);
    qsort(s->scales.items, s->scales.count, sizeof *s->scales.items, compare_scales);
    s->limit = 1;
    if (!code && selection->underflow &&
        (parse_number(&s->limit, selection->underflow) || !(s->limit >= 0 && s->limit <= 100)))
        code = fail(EXIT_USAGE, "plot: --underflow: '%s' is not per cent, 0 to 100", selection->underflow);
    return code;
}

typedef enum grouping { BY_KIND, BY_TENSOR, BY_NOTHING } grouping;

static int choose_grouping(grouping *by, const plot_selection *selection)
{
    static const char *const words[] = {"kind", "tensor", "total"};
    *by = selection->match.count ? BY_TENSOR : BY_KIND;
    for (int i = 0; selection->by && i < 3; i++)
        if (strcmp(selection->by, words[i]) == 0) {
            *by = (grouping)i;
            return 0;
        }
    return selection->by ? fail(EXIT_USAGE, "plot: --by: '%s' is not one of kind, tensor, total", selection->by) : 0;
}

/* ---- items ---- */

static int curve_named(plot_scaled *s, const char *name, plot_curve **c)
{
    for (size_t i = 0; i < s->n_curves; i++)
        if (strcmp(s->curves[i].name, name) == 0) {
            *c = &s->curves[i];
            return 0;
        }
    if (s->n_curves == PLOT_CURVES_MAX)
        return fail(EXIT_USAGE,
                    "plot: more than %d curves: select fewer tensors with --match GLOB, "
                    "or take them together with --by kind or --by total",
                    PLOT_CURVES_MAX);
    *c = &s->curves[s->n_curves++];
    memset(*c, 0, sizeof **c);
    (*c)->name = need_text(name);
    (*c)->casts = need_memory(s->formats.count * s->scales.count, sizeof *(*c)->casts);
    return 0;
}

static int add_cast(const plot_scaled *s, plot_scaled_cast *c, const plot_cast *cast, const plot_item *of)
{
    if (cast->underflow > of->finite || cast->overflow > of->finite - cast->underflow)
        return plot_malformed(s->report, "counts contradict each other");
    plot_noise_add(&c->noise, cast, of);
    const int code = plot_count(s->report, &c->underflow, cast->underflow);
    return code ? code : plot_count(s->report, &c->overflow, cast->overflow);
}

static int add_casts(const plot_scaled *s, plot_curve *c, const plot_item *item)
{
    int code = 0;
    for (size_t i = 0; i < item->n_formats; i++)
        for (size_t f = 0; !code && f < s->formats.count; f++)
            for (size_t k = 0; !code && k < s->scales.count; k++)
                if (s->scales.items[k] == item->formats[i].scale &&
                    strcmp(s->formats.items[f].name, item->formats[i].format) == 0)
                    code = add_cast(s, cast_of(s, c, f, k), &item->formats[i], item);
    for (size_t k = 0; !code && k < s->formats.count * s->scales.count; k++)
        if (c->casts[k].noise.items != c->items)
            code = plot_malformed(s->report, "a cast is missing, or there twice");
    return code;
}

static int add_item(const plot_scaled *s, plot_curve *c, const plot_item *item)
{
    int code = plot_count(s->report, &c->count, item->count);
    code = code ? code : plot_count(s->report, &c->zero, item->zero);
    code = code ? code : plot_count(s->report, &c->not_finite, item->count - item->finite);
    c->items++;
    return code ? code : add_casts(s, c, item);
}

/* ---- the report ---- */

typedef struct adding {
    plot_scaled *s;
    grouping by;
} adding;

static int visit(void *context, const json_t *v)
{
    const adding *a = context;
    plot_curve *c = NULL;
    plot_item item;
    int code =
        plot_item_read(&item, a->s->report, v,
                       "count zero nan inf formats formats.format formats.scale formats.underflow formats.overflow "
                       "formats.sqnr_db");
    const char *const names[] = {[BY_KIND] = item.kind ? item.kind : "no kind",
                                 [BY_TENSOR] = item.name ? item.name : "no name",
                                 [BY_NOTHING] = "all gradients"};
    code = code ? code : curve_named(a->s, names[a->by], &c);
    code = code ? code : add_item(a->s, c, &item);
    plot_item_clear(&item);
    return code;
}

/* Sums over kinds answer where neither steps nor names are chosen. */
static int add_all(plot_scaled *s, const plot_selection *selection)
{
    adding a = {.s = s};
    plot_walk w = {
        .report = s->report, .selection = selection, .visit = visit, .context = &a, .scaled = 1, .steps = &s->steps};
    const json_t *kinds = json_object_get(s->report->json, "kinds");
    int code = choose_grouping(&a.by, selection);
    const int sums = !json_is_null(kinds) && a.by != BY_TENSOR && !selection->step && !selection->match.count;
    code = code ? code : plot_walk_items(&w, sums ? kinds : NULL, "kinds");
    if (!code && s->n_curves == 0)
        code = fail(EXIT_DATA, "%s: its scales multiply none of the selected tensors: see mpsim stat --scale-kinds",
                    s->report->path);
    return code;
}

/* ---- shares ---- */

static double share(const plot_curve *c, uint64_t n)
{
    return c->count ? 100 * (double)n / (double)c->count : 0;
}

double plot_scaled_underflow(const plot_scaled *s, size_t curve, size_t format, size_t scale)
{
    const plot_curve *c = &s->curves[curve];
    return share(c, cast_of(s, c, format, scale)->underflow);
}

double plot_scaled_overflow(const plot_scaled *s, size_t curve, size_t format, size_t scale)
{
    const plot_curve *c = &s->curves[curve];
    return share(c, cast_of(s, c, format, scale)->overflow);
}

double plot_scaled_sqnr(const plot_scaled *s, size_t curve, size_t format, size_t scale)
{
    return plot_noise_decibels(&cast_of(s, &s->curves[curve], format, scale)->noise);
}

/* The largest share of underflow at a scale; < 0 if something overflows. */
static double judge(const plot_scaled *s, size_t format, size_t scale)
{
    double most = 0;
    for (size_t i = 0; i < s->n_curves; i++) {
        if (cast_of(s, &s->curves[i], format, scale)->overflow)
            return -1;
        most = fmax(most, plot_scaled_underflow(s, i, format, scale));
    }
    return most;
}

static void find_window(plot_scaled *s, size_t format)
{
    plot_window *w = &s->windows[format];
    *w = (plot_window){.run = {.first = 1}, .lost = -1};
    for (size_t k = 0; k < s->scales.count; k++) {
        const double lost = judge(s, format, k);
        if (lost >= 0) {
            w->lost = lost;
            w->best = k;
        }
        scale_run_see(&w->run, k, lost >= 0 && lost <= s->limit);
    }
}

/* ---- the whole ---- */

int plot_scaled_read(plot_scaled *s, const plot_report *report, const plot_selection *selection)
{
    memset(s, 0, sizeof *s);
    s->report = report;
    int code = choose(s, selection);
    if (!code)
        code = add_all(s, selection);
    for (size_t f = 0; !code && f < s->formats.count; f++)
        find_window(s, f);
    return code;
}

void plot_scaled_clear(plot_scaled *s)
{
    for (size_t i = 0; i < s->n_curves; i++) {
        free(s->curves[i].name);
        free(s->curves[i].casts);
    }
    memset(s, 0, sizeof *s);
}
