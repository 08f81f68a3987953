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
static int row_of(plot_targets *t, const plot_item *item, plot_row **row)
{
    const char *name = item->name ? item->name : "no name";
    char text[32] = "no step", *layer;
    int code;
    switch (t->by) {
    case PLOT_KIND:
        return row_named(t, item->kind ? item->kind : "no kind", row);
    case PLOT_TENSOR:
        return row_named(t, name, row);
    case PLOT_LAYER:
        layer = plot_layer_name(name, item->kind);
        code = row_named(t, layer, row);
        free(layer);
        return code;
    case PLOT_STEP:
        if (item->step >= 0)
            snprintf(text, sizeof text, "step %" PRId64, item->step);
        return row_named(t, text, row);
    default:
        return row_named(t, "all", row);
    }
}

/* ---- one item ---- */

/* What of the elements is lost, and by PLOT_EACH the numbers of this item. */
static int add_lost(const plot_targets *t, plot_effect *e, const plot_cast *cast, const plot_item *of,
                    uint64_t elements)
{
    uint64_t lost = 0;
    int code = plot_lost(&lost, t->report, cast, of);
    if (!code && lost > elements)
        code = plot_malformed(t->report, "counts contradict each other");
    code = code ? code : plot_count(t->report, &e->lost, lost);
    if (code || t->by != PLOT_EACH || elements == 0)
        return code;
    need_room(&e->each[0], e->n, sizeof *e->each[0]);
    need_room(&e->each[1], e->n, sizeof *e->each[1]);
    e->each[0][e->n] = cast->sqnr;
    e->each[1][e->n++] = 100 * (double)lost / (double)elements;
    return 0;
}

static int add_format(plot_targets *t, plot_row *row, const plot_cast *cast, const plot_item *of, double scale)
{
    size_t at;
    int code = target_of(t, cast->format, "", scale, &at);
    if (code)
        return code;
    plot_effect *e = &row->effects[at];
    plot_noise_add(&e->noise, cast, of);
    code = plot_count(t->report, &e->elements, of->count);
    code = code ? code : plot_count(t->report, &e->overflow, cast->overflow);
    return code ? code : add_lost(t, e, cast, of, of->count);
}

static int add_formats(plot_targets *t, plot_row *row, const plot_item *item, int scaled,
                       const plot_selection *selection, const scale_list *scales)
{
    int code = 0;
    for (size_t i = 0; i < item->n_formats; i++) {
        const plot_cast *c = &item->formats[i];
        for (size_t k = 0; !code && wanted(&selection->formats, c->format) && k < scales->count; k++)
            if (scales->items[k] == c->scale || (!scaled && c->scale == scales->items[0]))
                code = add_format(t, row, c, item, scales->items[k]);
    }
    return code;
}

static int add_scales(const plot_targets *t, plot_effect *e, const json_t *scales)
{
    uint64_t zero, nonfinite;
    int code = plot_get_count(t->report, scales, "zero", &zero);
    code = code ? code : plot_get_count(t->report, scales, "nonfinite", &nonfinite);
    code = code ? code : plot_count(t->report, &e->scale_zero, zero);
    code = code ? code : plot_count(t->report, &e->scale_nonfinite, nonfinite);
    return code ? code : plot_bins(t->report, scales, MPSIM_SCALE_MIN, MPSIM_SCALE_MAX, e->scales, NULL);
}

/* What of an item was quantised: all, where the report does not say. */
static int add_block(const plot_targets *t, plot_effect *e, const plot_cast *c, const plot_item *of)
{
    const uint64_t elements = c->elements < 0 ? of->count : (uint64_t)c->elements;
    const struct {
        uint64_t *to, n;
    } sums[] = {{&e->elements, elements},
                {&e->overflow, c->overflow},
                {&e->blocks, c->blocks},
                {&e->zero_blocks, c->zero_blocks},
                {&e->saturated_blocks, c->saturated_blocks},
                {&e->lost_blocks, c->lost_blocks},
                {&e->least_scales, c->least_scales},
                {&e->largest_scales, c->largest_scales}};
    int code = 0;
    if (elements > of->count || c->overflow > elements || c->zero_blocks > c->blocks ||
        c->saturated_blocks > c->blocks || c->lost_blocks > c->blocks)
        return plot_malformed(t->report, "counts contradict each other");
    for (size_t i = 0; !code && i < sizeof sums / sizeof *sums; i++)
        code = plot_count(t->report, sums[i].to, sums[i].n);
    if (!code && t->sqnr) {
        plot_noise_add(&e->noise, c, of);
        code = add_lost(t, e, c, of, elements);
    }
    return code ? code : add_scales(t, e, c->scales);
}

static int add_blocks(plot_targets *t, plot_row *row, const plot_item *item, const plot_selection *selection)
{
    int code = 0;
    for (size_t i = 0, at; i < item->n_blocks && !code; i++) {
        const plot_cast *c = &item->blocks[i];
        if (!wanted(&selection->formats, c->recipe))
            continue;
        code = target_of(t, c->recipe, c->axis, 1, &at);
        code = code ? code : add_block(t, &row->effects[at], c, item);
    }
    return code;
}

/* ---- the report ---- */

typedef struct adding {
    plot_targets *t;
    const plot_selection *selection;
    const scale_list *scales; /* of formats; NULL: recipes only */
} adding;

#define COUNTS "count zero nan inf "
#define FORMATS "formats formats.format formats.scale formats.overflow formats.sqnr_db formats.underflow "
#define BLOCKS                                                                                            \
    "blocks.recipe blocks.axis blocks.overflow blocks.blocks blocks.zero_blocks blocks.saturated_blocks " \
    "blocks.lost_blocks blocks.least_scales blocks.largest_scales "

static int visit(void *context, const json_t *v)
{
    const adding *a = context;
    plot_targets *t = a->t;
    plot_row *row;
    plot_item item;
    int code = plot_item_read(&item, t->report, v,
                              t->sqnr ? COUNTS FORMATS BLOCKS "blocks.sqnr_db blocks.underflow" : COUNTS BLOCKS);
    code = code ? code : plot_count(t->report, &t->not_finite, item.count - item.finite);
    code = code ? code : row_of(t, &item, &row);
    if (!code && a->scales)
        code = add_formats(t, row, &item, plot_item_scaled(v, t->report), a->selection, a->scales);
    code = code ? code : add_blocks(t, row, &item, a->selection);
    plot_item_clear(&item);
    return code;
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
    adding a = {t, selection, scales};
    plot_walk w = {.report = t->report, .selection = selection, .visit = visit, .context = &a, .steps = &t->steps};
    const char *key;
    const json_t *list = sums(t, selection, &key);
    return plot_walk_items(&w, list, key);
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
    if (t->by != PLOT_STEP && plot_put_steps(to, &t->steps))
        comma = "; ";
    if (t->not_finite)
        fprintf(to, "%s%" PRIu64 " element%s recorded as Inf or NaN", comma, t->not_finite, text_plural(t->not_finite));
    fprintf(to, "'\naxes = '%s%s%s'\n", t->has_columns ? "\xe2\x86\x93 along columns" : "",
            t->has_columns && t->has_requantised ? "; " : "",
            t->has_requantised ? "\xe2\x86\x92\xe2\x86\x93 along rows, then columns" : "");
}
