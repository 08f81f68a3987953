/* targets.c -- see targets.h. A report is untrusted: every member is checked. */
#include "targets.h"

#include "../array/need.h"
#include "../text/words.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *mark;
} axes[] = {
    {"rows", ""},
    {"columns", " \xe2\x86\x93"},                 /* ↓  */
    {"requantised", " \xe2\x86\x92\xe2\x86\x93"}, /* →↓ */
};
enum { AXES = sizeof axes / sizeof axes[0] };

static int add_count(const plot_targets *t, uint64_t *to, uint64_t n)
{
    if (*to > UINT64_MAX - n)
        return plot_malformed(t->report, "counts are too large");
    *to += n;
    return 0;
}

/* ---- what is selected ---- */

/* Each word of --format is a glob for formats and recipes. */
static int wanted(const option_list *words, const char *name)
{
    if (words->count == 0)
        return 1;
    for (size_t i = 0; i < words->count; i++)
        for (const char *s = words->items[i]; s;) {
            const size_t n = strcspn(s, ",");
            char word[96];
            snprintf(word, sizeof word, "%.*s", (int)n, s);
            if (n < sizeof word && fnmatch(word, name, 0) == 0)
                return 1;
            s = s[n] ? s + n + 1 : NULL;
        }
    return 0;
}

static int choose_rows(plot_targets *t, const plot_selection *selection, plot_by usual)
{
    static const char *const words[] = {"kind", "tensor", "layer", "step", "total"};
    t->by = usual == PLOT_KIND && selection->match.count ? PLOT_TENSOR : usual;
    for (int i = 0; selection->by && i < 5; i++)
        if (strcmp(selection->by, words[i]) == 0) {
            t->by = (plot_by)i;
            return 0;
        }
    return selection->by
               ? fail(EXIT_USAGE, "plot: --by: '%s' is not one of kind, tensor, layer, step, total", selection->by)
               : 0;
}

/* ---- targets and rows ---- */

static void set_label(plot_target *p, const char *mark)
{
    if (*p->axis)
        snprintf(p->label, sizeof p->label, "%.80s%s", p->name, mark);
    else if (p->scale == 1)
        snprintf(p->label, sizeof p->label, "%.80s", p->name);
    else
        snprintf(p->label, sizeof p->label, "%.60s \xc3\x97 %.6g", p->name, p->scale); /* × */
}

/* Its number among the targets, where it is put if it is new. */
static int target_of(plot_targets *t, const char *name, const char *axis, double scale, size_t *at)
{
    size_t a = 0;
    while (a < AXES && strcmp(axes[a].name, axis) != 0)
        a++;
    if (*axis && a == AXES)
        return plot_malformed(t->report, "\"axis\" is not one of rows, columns, requantised");
    for (*at = 0; *at < t->n_items; ++*at)
        if (t->items[*at].scale == scale && strcmp(t->items[*at].name, name) == 0 &&
            strcmp(t->items[*at].axis, axis) == 0)
            return 0;
    if (t->n_items == PLOT_TARGETS_MAX)
        return fail(EXIT_USAGE, "plot: more than %d formats and recipes: choose with --format", PLOT_TARGETS_MAX);
    plot_target *p = &t->items[t->n_items];
    p->name = need_text(name);
    t->n_items++;
    p->scale = scale;
    snprintf(p->axis, sizeof p->axis, "%s", axis);
    set_label(p, *axis ? axes[a].mark : "");
    t->has_columns |= a == 1;
    t->has_requantised |= a == 2;
    return 0;
}

static int row_named(plot_targets *t, const char *name, plot_row **row)
{
    for (size_t i = 0; i < t->n_rows; i++)
        if (strcmp(t->rows[i].name, name) == 0) {
            *row = &t->rows[i];
            return 0;
        }
    if (t->n_rows == PLOT_GROUPED_MAX)
        return fail(EXIT_USAGE,
                    "plot: more than %d rows: select fewer tensors with --match GLOB, --kind KIND or "
                    "--step N, or take them together with --by",
                    PLOT_GROUPED_MAX);
    *row = &t->rows[t->n_rows++];
    (*row)->name = need_text(name);
    (*row)->effects = need_memory(PLOT_TARGETS_MAX, sizeof *(*row)->effects);
    return 0;
}

/* The row of an item. */
static int row_of(plot_targets *t, const json_t *item, plot_row **row)
{
    const char *name = json_string_value(json_object_get(item, "name"));
    const char *kind = json_string_value(json_object_get(item, "kind"));
    char text[32] = "no step", *layer;
    uint64_t step;
    int code;
    switch (t->by) {
    case PLOT_KIND:
        return row_named(t, kind ? kind : "no kind", row);
    case PLOT_TENSOR:
        return row_named(t, name ? name : "no name", row);
    case PLOT_LAYER:
        layer = plot_layer_name(name ? name : "no name", kind);
        code = row_named(t, layer, row);
        free(layer);
        return code;
    case PLOT_STEP:
        if (plot_item_step(item, &step))
            snprintf(text, sizeof text, "step %" PRIu64, step);
        return row_named(t, text, row);
    default:
        return row_named(t, "all", row);
    }
}

/* ---- one item ---- */

/* What of the elements is lost, and by PLOT_EACH the numbers of this item. */
static int add_lost(const plot_targets *t, plot_effect *e, const json_t *cast, const plot_held *of, uint64_t elements)
{
    uint64_t lost = 0;
    double sqnr = (double)NAN;
    int code = plot_lost_read(&lost, t->report, cast, of);
    if (!code && lost > elements)
        code = plot_malformed(t->report, "counts contradict each other");
    code = code ? code : add_count(t, &e->lost, lost);
    if (code || t->by != PLOT_EACH || elements == 0)
        return code;
    (void)plot_is_number(json_object_get(cast, "sqnr_db"), &sqnr);
    need_room(&e->each[0], e->n, sizeof *e->each[0]);
    need_room(&e->each[1], e->n, sizeof *e->each[1]);
    e->each[0][e->n] = sqnr;
    e->each[1][e->n++] = 100 * (double)lost / (double)elements;
    return 0;
}

static int add_formats(plot_targets *t, plot_row *row, const json_t *item, const plot_held *of,
                       const plot_selection *selection, const scale_list *scales)
{
    const json_t *casts;
    const int scaled = plot_item_scaled(item, t->report);
    size_t i, at;
    json_t *cast;
    int code = plot_get_array(t->report, item, "formats", &casts);
    json_array_foreach(casts, i, cast)
    {
        const char *name = NULL;
        double scale = 0;
        uint64_t overflow = 0;
        code = code ? code : plot_get_string(t->report, cast, "format", &name);
        code = code ? code : plot_get_magnitude(t->report, cast, "scale", &scale);
        code = code ? code : plot_get_count(t->report, cast, "overflow", &overflow);
        for (size_t k = 0; !code && wanted(&selection->formats, name) && k < scales->count; k++)
            if (scales->items[k] == scale || (!scaled && scale == scales->items[0])) {
                code = target_of(t, name, "", scales->items[k], &at);
                plot_effect *e = code ? NULL : &row->effects[at];
                code = code ? code : add_count(t, &e->elements, of->count);
                code = code ? code : add_count(t, &e->overflow, overflow);
                code = code ? code : plot_noise_add(&e->noise, t->report, cast, of);
                code = code ? code : add_lost(t, e, cast, of, of->count);
            }
    }
    return code;
}

static int add_scales(const plot_targets *t, plot_effect *e, const json_t *block)
{
    const json_t *h = json_object_get(block, "scales");
    const json_t *counts, *first = json_object_get(h, "first");
    uint64_t zero, nonfinite;
    int code = plot_get_count(t->report, h, "zero", &zero);
    code = code ? code : plot_get_count(t->report, h, "nonfinite", &nonfinite);
    code = code ? code : add_count(t, &e->scale_zero, zero);
    code = code ? code : add_count(t, &e->scale_nonfinite, nonfinite);
    code = code ? code : plot_get_array(t->report, h, "counts", &counts);
    if (code)
        return code;
    const size_t n = json_array_size(counts);
    const json_int_t from = json_integer_value(first);
    if (n && (!json_is_integer(first) || from < MPSIM_SCALE_MIN || from > MPSIM_SCALE_MAX ||
              n > (size_t)(MPSIM_SCALE_MAX - from) + 1))
        return plot_malformed(t->report, "scales have exponents beyond those of binary32");
    for (size_t i = 0; !code && i < n; i++) {
        const json_t *v = json_array_get(counts, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return plot_malformed(t->report, "a number of scales is not a count");
        code = add_count(t, &e->scales[(size_t)(from - MPSIM_SCALE_MIN) + i], (uint64_t)json_integer_value(v));
    }
    return code;
}

/* What of an item was quantised: all, where the report does not say. */
static int add_block(const plot_targets *t, plot_effect *e, const json_t *block, const plot_held *of)
{
    static const char *const keys[] = {"elements",         "overflow",    "blocks",       "zero_blocks",
                                       "saturated_blocks", "lost_blocks", "least_scales", "largest_scales"};
    uint64_t *const to[] = {&e->elements,         &e->overflow,    &e->blocks,       &e->zero_blocks,
                            &e->saturated_blocks, &e->lost_blocks, &e->least_scales, &e->largest_scales};
    uint64_t n[8] = {of->count};
    int code = 0;
    for (size_t i = json_object_get(block, keys[0]) ? 0 : 1; !code && i < 8; i++)
        code = plot_get_count(t->report, block, keys[i], &n[i]);
    if (!code && (n[0] > of->count || n[1] > n[0] || n[3] > n[2] || n[4] > n[2] || n[5] > n[2]))
        code = plot_malformed(t->report, "counts contradict each other");
    for (size_t i = 0; !code && i < 8; i++)
        code = add_count(t, to[i], n[i]);
    if (!code && t->sqnr)
        code = plot_noise_add(&e->noise, t->report, block, of);
    if (!code && t->sqnr)
        code = add_lost(t, e, block, of, n[0]);
    return code ? code : add_scales(t, e, block);
}

static int add_blocks(plot_targets *t, plot_row *row, const json_t *item, const plot_held *of,
                      const plot_selection *selection)
{
    const json_t *blocks = NULL;
    size_t i, at;
    json_t *block;
    int code = json_object_get(item, "blocks") ? plot_get_array(t->report, item, "blocks", &blocks) : 0;
    json_array_foreach(blocks, i, block)
    {
        const char *name = NULL, *axis = NULL;
        code = code ? code : plot_get_string(t->report, block, "recipe", &name);
        code = code ? code : plot_get_string(t->report, block, "axis", &axis);
        if (!code && wanted(&selection->formats, name)) {
            code = target_of(t, name, axis, 1, &at);
            code = code ? code : add_block(t, &row->effects[at], block, of);
        }
    }
    return code;
}

/* ---- the report ---- */

typedef struct adding {
    plot_targets *t;
    const plot_selection *selection;
    const scale_list *scales; /* of formats; NULL: recipes only */
    uint64_t step;
    int only_steps; /* the counts come from another list */
    size_t selected;
} adding;

static int visit(void *context, const json_t *item)
{
    adding *a = context;
    plot_targets *t = a->t;
    uint64_t step;
    plot_row *row;
    plot_held of;
    if (!plot_item_selected(item, a->selection, a->step))
        return 0;
    a->selected++;
    if (plot_item_step(item, &step)) {
        t->first_step = t->has_steps && t->first_step < step ? t->first_step : step;
        t->last_step = t->has_steps && t->last_step > step ? t->last_step : step;
        t->has_steps = 1;
    }
    if (a->only_steps)
        return 0;
    int code = plot_held_read(&of, t->report, item);
    code = code ? code : add_count(t, &t->not_finite, of.count - of.finite);
    code = code ? code : row_of(t, item, &row);
    if (!code && a->scales)
        code = add_formats(t, row, item, &of, a->selection, a->scales);
    return code ? code : add_blocks(t, row, item, &of, a->selection);
}

/* Sums over kinds, or steps, answer where nothing else is chosen. */
static const json_t *sums(const plot_targets *t, const plot_selection *selection, const char **key)
{
    *key = t->by == PLOT_STEP ? "steps" : "kinds";
    const json_t *v = json_object_get(t->report->json, *key);
    const int fits = t->by == PLOT_STEP                          ? !selection->kinds.count
                     : t->by == PLOT_KIND || t->by == PLOT_TOTAL ? !selection->step
                                                                 : 0;
    return fits && !selection->match.count && v && !json_is_null(v) ? v : NULL;
}

static int add_all(plot_targets *t, const plot_selection *selection, const scale_list *scales)
{
    adding a = {.t = t, .selection = selection, .scales = scales};
    const json_t *tensors = json_object_get(t->report->json, "tensors");
    const char *key;
    int code = 0;
    if (selection->step && parse_count(&a.step, selection->step) != 0)
        return fail(EXIT_USAGE, "plot: --step: '%s' is not a number of a step", selection->step);
    const json_t *list = sums(t, selection, &key);
    a.only_steps = list != NULL;
    if (!list || tensors)
        code = plot_each(t->report, tensors, "tensors", visit, &a);
    a.only_steps = 0;
    if (!code && list)
        code = plot_each(t->report, list, key, visit, &a);
    if (!code && a.selected == 0)
        code = fail(EXIT_USAGE, "plot: --match, --kind, --step select no tensor of the report");
    return code;
}

/* Without --scale: the data as recorded, if the report has casts of them. */
static int choose_scales(scale_list *l, const plot_report *r, const option_list *words)
{
    const int code = plot_choose_scales(l, r, words);
    for (size_t i = 0; !code && words->count == 0 && i < l->count; i++)
        if (l->items[i] == 1) {
            l->items[0] = 1;
            l->count = 1;
        }
    return code;
}

/* What of a figure of blocks is drawn: recipes in groups that have blocks. */
static size_t count_lanes(const plot_targets *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_rows; i++)
        for (size_t k = 0; k < t->n_items; k++)
            n += t->rows[i].effects[k].blocks > 0;
    return n;
}

int plot_targets_read(plot_targets *t, const plot_report *report, const plot_selection *selection, plot_by usual,
                      int sqnr)
{
    const json_t *recipes = json_object_get(report->json, "recipes");
    scale_list scales;
    memset(t, 0, sizeof *t);
    t->report = report;
    t->sqnr = sqnr;
    int code = choose_rows(t, selection, usual);
    if (!code && !sqnr && (!recipes || (json_is_array(recipes) && json_array_size(recipes) == 0)))
        code = fail(EXIT_DATA, "%s: made without block recipes: run mpsim stat --json -f mxfp8,nvfp4", report->path);
    if (!code && sqnr)
        code = choose_scales(&scales, report, &selection->scales);
    if (!code)
        code = add_all(t, selection, sqnr ? &scales : NULL);
    if (!code && t->n_items == 0)
        code = selection->formats.count ? fail(EXIT_USAGE, "plot: --format: the report has none of these")
               : sqnr                   ? plot_malformed(report, "it has no formats")
                                        : plot_malformed(report, "\"blocks\" are missing");
    if (!code && !sqnr && count_lanes(t) > PLOT_GROUPED_MAX)
        code = fail(EXIT_USAGE, "plot: more than %d recipes and groups: choose with --format, --kind or --match",
                    PLOT_GROUPED_MAX);
    return code;
}

void plot_targets_clear(plot_targets *t)
{
    for (size_t i = 0; i < t->n_rows; i++) {
        free(t->rows[i].name);
        for (size_t k = 0; k < t->n_items; k++)
            for (int j = 0; j < 2; j++)
                free(t->rows[i].effects[k].each[j]);
        free(t->rows[i].effects);
    }
    for (size_t i = 0; i < t->n_items; i++)
        free(t->items[i].name);
    memset(t, 0, sizeof *t);
}

void plot_targets_put_note(FILE *to, const plot_targets *t)
{
    const char *comma = "";
    fputs("note = '", to);
    if (t->has_steps && t->first_step < t->last_step && t->by != PLOT_STEP) {
        fprintf(to, "steps %" PRIu64 " to %" PRIu64 " together", t->first_step, t->last_step);
        comma = "; ";
    }
    if (t->not_finite)
        fprintf(to, "%s%" PRIu64 " element%s recorded as Inf or NaN", comma, t->not_finite, text_plural(t->not_finite));
    fprintf(to, "'\naxes = '%s%s%s'\n", t->has_columns ? "\xe2\x86\x93 along columns" : "",
            t->has_columns && t->has_requantised ? "; " : "",
            t->has_requantised ? "\xe2\x86\x92\xe2\x86\x93 along rows, then columns" : "");
}
