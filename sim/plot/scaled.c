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

static int add_count(const plot_scaled *s, uint64_t *to, uint64_t n)
{
    if (*to > UINT64_MAX - n)
        return plot_malformed(s->report, "counts are too large");
    *to += n;
    return 0;
}

static int add_cast(const plot_scaled *s, plot_scaled_cast *c, const json_t *cast, const plot_held *of)
{
    uint64_t underflow, overflow;
    int code = plot_get_count(s->report, cast, "underflow", &underflow);
    code = code ? code : plot_get_count(s->report, cast, "overflow", &overflow);
    if (!code && (underflow > of->finite || overflow > of->finite - underflow))
        code = plot_malformed(s->report, "counts contradict each other");
    code = code ? code : add_count(s, &c->underflow, underflow);
    code = code ? code : add_count(s, &c->overflow, overflow);
    return code ? code : plot_noise_add(&c->noise, s->report, cast, of);
}

static int add_casts(const plot_scaled *s, plot_curve *c, const json_t *item, const plot_held *of)
{
    const json_t *casts;
    size_t i;
    json_t *cast;
    int code = plot_get_array(s->report, item, "formats", &casts);
    json_array_foreach(casts, i, cast)
    {
        const char *name = NULL;
        double scale = 0;
        code = code ? code : plot_get_string(s->report, cast, "format", &name);
        code = code ? code : plot_get_magnitude(s->report, cast, "scale", &scale);
        for (size_t f = 0; !code && f < s->formats.count; f++)
            for (size_t k = 0; !code && k < s->scales.count; k++)
                if (s->scales.items[k] == scale && strcmp(s->formats.items[f].name, name) == 0)
                    code = add_cast(s, cast_of(s, c, f, k), cast, of);
    }
    for (size_t k = 0; !code && k < s->formats.count * s->scales.count; k++)
        if (c->casts[k].noise.items != c->items)
            code = plot_malformed(s->report, "a cast is missing, or there twice");
    return code;
}

static int add_item(const plot_scaled *s, plot_curve *c, const json_t *item)
{
    plot_held of;
    int code = plot_held_read(&of, s->report, item);
    if (code)
        return code;
    code = add_count(s, &c->count, of.count);
    code = code ? code : add_count(s, &c->zero, of.zero);
    code = code ? code : add_count(s, &c->not_finite, of.count - of.finite);
    c->items++;
    return code ? code : add_casts(s, c, item, &of);
}

/* ---- the report ---- */

typedef struct adding {
    plot_scaled *s;
    const plot_selection *selection;
    uint64_t step;
    grouping by;
    int only_steps; /* the counts come from another list */
    size_t selected;
} adding;

static int visit(void *context, const json_t *item)
{
    adding *a = context;
    plot_scaled *s = a->s;
    uint64_t step;
    plot_curve *c = NULL;
    if (!plot_item_selected(item, a->selection, a->step))
        return 0;
    a->selected++;
    if (!plot_item_scaled(item, s->report))
        return 0;
    if (plot_item_step(item, &step)) {
        s->first_step = s->has_steps && s->first_step < step ? s->first_step : step;
        s->last_step = s->has_steps && s->last_step > step ? s->last_step : step;
        s->has_steps = 1;
    }
    if (a->only_steps)
        return 0;
    const char *name = json_string_value(json_object_get(item, a->by == BY_KIND ? "kind" : "name"));
    if (a->by == BY_NOTHING)
        name = "all gradients";
    else if (!name)
        name = a->by == BY_KIND ? "no kind" : "no name";
    const int code = curve_named(s, name, &c);
    return code ? code : add_item(s, c, item);
}

/* Sums over kinds answer where neither steps nor names are chosen. */
static int add_all(plot_scaled *s, const plot_selection *selection)
{
    adding a = {.s = s, .selection = selection};
    const json_t *tensors = json_object_get(s->report->json, "tensors"),
                 *kinds = json_object_get(s->report->json, "kinds");
    int code = choose_grouping(&a.by, selection);
    if (code)
        return code;
    if (selection->step && parse_count(&a.step, selection->step) != 0)
        return fail(EXIT_USAGE, "plot: --step: '%s' is not a number of a step", selection->step);
    const int sums = kinds && !json_is_null(kinds) && a.by != BY_TENSOR && !selection->step && !selection->match.count;
    a.only_steps = sums;
    if (!sums || tensors)
        code = plot_each(s->report, tensors, "tensors", visit, &a);
    a.only_steps = 0;
    if (!code && sums)
        code = plot_each(s->report, kinds, "kinds", visit, &a);
    if (!code && a.selected == 0)
        code = fail(EXIT_USAGE, "plot: --match, --kind, --step select no tensor of the report");
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
