/* groups.c -- see groups.h. A report is untrusted: every member is checked. */
#include "groups.h"

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

/* ---- targets ---- */

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

static void set_label(plot_target *p, const char *mark)
{
    if (*p->axis)
        snprintf(p->label, sizeof p->label, "%.80s%s", p->name, mark);
    else if (p->scale == 1)
        snprintf(p->label, sizeof p->label, "%.80s", p->name);
    else
        snprintf(p->label, sizeof p->label, "%.60s \xc3\x97 %.6g", p->name, p->scale); /* × */
}

static void add_target(plot_groups *g, const char *name, const char *axis, double scale, const char *mark)
{
    need_room(&g->targets, g->n_targets, sizeof *g->targets);
    plot_target *p = &g->targets[g->n_targets++];
    *p = (plot_target){.name = need_text(name), .scale = scale};
    snprintf(p->axis, sizeof p->axis, "%s", axis);
    set_label(p, mark);
}

/* The effect of a target on a group; NULL: the target is not chosen. One that is new is put among the targets, where none were chosen. */
static int effect_of(plot_groups *g, const plot_group *to, const char *name, const char *axis, double scale,
                     plot_effect **effect)
{
    size_t a = 0, i = 0;
    while (a < AXES && strcmp(axes[a].name, axis) != 0)
        a++;
    if (*axis && a == AXES)
        return plot_malformed(g->report, "\"axis\" is not one of rows, columns, requantised");
    while (i < g->n_targets && (g->targets[i].scale != scale || strcmp(g->targets[i].name, name) != 0 ||
                                strcmp(g->targets[i].axis, axis) != 0))
        i++;
    *effect = i < g->n_targets || !g->formats.count ? &to->effects[i] : NULL;
    if (i < g->n_targets || g->formats.count)
        return 0;
    if (i == PLOT_TARGETS_MAX)
        return fail(EXIT_USAGE, "plot: more than %d formats and recipes: choose with --format", PLOT_TARGETS_MAX);
    add_target(g, name, axis, scale, *axis ? axes[a].mark : "");
    g->has_columns |= a == 1;
    g->has_requantised |= a == 2;
    return 0;
}

const plot_effect *plot_effect_of(const plot_groups *g, size_t group, size_t format, size_t scale)
{
    return &g->groups[group].effects[scale * g->formats.count + format];
}

/* ---- groups ---- */

static int choose_by(plot_groups *g, const plot_selection *selection)
{
    static const char *const words[] = {"kind", "tensor", "layer", "step", "total"};
    char known[64] = "";
    g->by = g->plan->usual == PLOT_KIND && selection->match.count ? PLOT_TENSOR : g->plan->usual;
    for (unsigned i = 0; selection->by && i < 5; i++)
        if (g->plan->by >> i & 1) {
            text_add(known, sizeof known, "%s%s", *known ? ", " : "", words[i]);
            if (strcmp(selection->by, words[i]) == 0) {
                g->by = (plot_by)i;
                return 0;
            }
        }
    return selection->by ? fail(EXIT_USAGE, "plot: --by: '%s' is not one of %s", selection->by, known) : 0;
}

static int group_named(plot_groups *g, const char *name, plot_group **group)
{
    for (size_t i = 0; i < g->n_groups; i++)
        if (strcmp(g->groups[i].name, name) == 0) {
            *group = &g->groups[i];
            return 0;
        }
    if (g->n_groups == g->plan->most)
        return fail(EXIT_USAGE, "plot: more than %zu %s", g->plan->most, g->plan->fewer);
    need_room(&g->groups, g->n_groups, sizeof *g->groups);
    *group = &g->groups[g->n_groups++];
    memset(*group, 0, sizeof **group);
    (*group)->name = need_text(name);
    (*group)->effects = need_memory(g->formats.count ? g->n_targets : PLOT_TARGETS_MAX, sizeof *(*group)->effects);
    return 0;
}

static int group_of(plot_groups *g, const plot_item *item, plot_group **group)
{
    const char *name = item->name ? item->name : "no name";
    char text[32] = "no step", *layer;
    int code;
    switch (g->by) {
    case PLOT_KIND:
        return group_named(g, item->kind ? item->kind : "no kind", group);
    case PLOT_TENSOR:
        return group_named(g, name, group);
    case PLOT_LAYER:
        layer = plot_layer_name(name, item->kind);
        code = group_named(g, layer, group);
        free(layer);
        return code;
    case PLOT_STEP:
        if (item->step >= 0)
            snprintf(text, sizeof text, "step %" PRId64, item->step);
        return group_named(g, text, group);
    default:
        return group_named(g, g->plan->all, group);
    }
}

/* ---- one item ---- */

typedef struct sum {
    uint64_t *to, n;
} sum;

static int add_sums(const plot_report *r, const sum *sums, size_t n)
{
    int code = 0;
    for (size_t i = 0; !code && i < n; i++)
        code = plot_count(r, sums[i].to, sums[i].n);
    return code;
}

static int add_item(const plot_groups *g, plot_group *to, const plot_item *item, int scaled)
{
    const sum sums[] = {
        {&to->count, item->count}, {&to->zero, item->zero}, {&to->nan, item->nan}, {&to->inf, item->inf}};
    if (item->amin > item->amax)
        return plot_malformed(g->report, "counts or magnitudes contradict each other");
    if (item->amin > 0 && (to->amin == 0 || item->amin < to->amin))
        to->amin = item->amin;
    to->amax = fmax(to->amax, item->amax);
    to->l2 = hypot(to->l2, item->l2 >= 0 ? item->l2 : HUGE_VAL); /* not known: then no rms is shown */
    to->items++;
    to->scaled += (uint64_t)scaled;
    if (g->plan->has_bins && !item->histogram.counts)
        return fail(EXIT_DATA, "%s: no histograms: run mpsim stat --json --histogram", g->report->path);
    const int code = add_sums(g->report, sums, sizeof sums / sizeof *sums);
    return code || !g->plan->has_bins ? code
                                      : plot_add_bins(g->report, &item->histogram, PLOT_EXPONENT_MIN, PLOT_EXPONENT_MAX,
                                                      to->bins, scaled ? to->scaled_bins : NULL);
}

/* What formats and recipes do alike. */
static int add_effect(const plot_groups *g, plot_effect *e, const plot_cast *cast, const plot_item *of,
                      uint64_t elements)
{
    uint64_t lost = 0;
    int code = g->plan->has_errors ? plot_lost(&lost, g->report, cast, of) : 0;
    const sum sums[] = {
        {&e->elements, elements}, {&e->underflow, cast->underflow}, {&e->overflow, cast->overflow}, {&e->lost, lost}};
    if (!code && lost > elements)
        code = plot_malformed(g->report, "counts contradict each other");
    code = code ? code : add_sums(g->report, sums, sizeof sums / sizeof *sums);
    plot_noise_add(&e->noise, cast, of);
    if (code || g->by != PLOT_EACH || elements == 0)
        return code;
    need_room(&e->each[0], e->n, sizeof *e->each[0]);
    need_room(&e->each[1], e->n, sizeof *e->each[1]);
    e->each[0][e->n] = cast->sqnr;
    e->each[1][e->n++] = 100 * (double)lost / (double)elements;
    return 0;
}

static int add_format(plot_groups *g, const plot_group *to, const plot_cast *cast, const plot_item *of, double scale)
{
    plot_effect *e;
    const int code = effect_of(g, to, cast->format, "", scale, &e);
    if (code || !e)
        return code;
    if (g->plan->has_errors && (cast->underflow > of->finite || cast->overflow > of->finite - cast->underflow))
        return plot_malformed(g->report, "counts contradict each other");
    return add_effect(g, e, cast, of, of->count);
}

/* The casts of what is not scaled are the same at every scale: where scales are compared they count at each of them, else at the first. */
static int add_formats(plot_groups *g, const plot_group *to, const plot_item *item, int scaled,
                       const option_list *words)
{
    int code = 0;
    for (size_t i = 0; i < item->n_formats; i++) {
        const plot_cast *c = &item->formats[i];
        const int is = g->formats.count || wanted(words, c->format);
        for (size_t k = 0; !code && is && k < g->scales.count; k++)
            if (g->scales.items[k] == c->scale || (!scaled && (g->formats.count || c->scale == g->scales.items[0])))
                code = add_format(g, to, c, item, g->scales.items[k]);
    }
    for (size_t k = 0; !code && g->plan->only_scaled && k < g->n_targets; k++)
        if (to->effects[k].noise.items != to->items)
            code = plot_malformed(g->report, "a cast is missing, or there twice");
    return code;
}

static int add_scales(const plot_groups *g, plot_effect *e, const plot_bins *scales)
{
    const sum sums[] = {{&e->scale_zero, scales->zero}, {&e->scale_nonfinite, scales->nonfinite}};
    e->scales = e->scales ? e->scales : need_memory(MPSIM_SCALE_BINS, sizeof *e->scales);
    const int code = add_sums(g->report, sums, sizeof sums / sizeof *sums);
    return code ? code : plot_add_bins(g->report, scales, MPSIM_SCALE_MIN, MPSIM_SCALE_MAX, e->scales, NULL);
}

/* What of an item was quantised: all, where the report does not say. */
static int add_block(const plot_groups *g, plot_effect *e, const plot_cast *c, const plot_item *of)
{
    const uint64_t elements = c->elements < 0 ? of->count : (uint64_t)c->elements;
    const sum sums[] = {{&e->blocks, c->blocks},
                        {&e->zero_blocks, c->zero_blocks},
                        {&e->saturated_blocks, c->saturated_blocks},
                        {&e->lost_blocks, c->lost_blocks},
                        {&e->least_scales, c->least_scales},
                        {&e->largest_scales, c->largest_scales}};
    if (elements > of->count || c->overflow > elements || c->zero_blocks > c->blocks ||
        c->saturated_blocks > c->blocks || c->lost_blocks > c->blocks)
        return plot_malformed(g->report, "counts contradict each other");
    int code = add_effect(g, e, c, of, elements);
    code = code ? code : add_sums(g->report, sums, sizeof sums / sizeof *sums);
    return code ? code : add_scales(g, e, &c->scales);
}

static int add_blocks(plot_groups *g, const plot_group *to, const plot_item *item, const option_list *words)
{
    plot_effect *e;
    int code = 0;
    for (size_t i = 0; i < item->n_blocks && !code && !g->formats.count; i++) {
        const plot_cast *c = &item->blocks[i];
        if (!wanted(words, c->recipe))
            continue;
        code = effect_of(g, to, c->recipe, c->axis, 1, &e);
        code = code ? code : add_block(g, e, c, item);
    }
    return code;
}

/* ---- the report ---- */

typedef struct adding {
    plot_groups *g;
    const plot_selection *selection;
} adding;

static int visit(void *context, record_source v)
{
    const adding *a = context;
    plot_groups *g = a->g;
    plot_group *to;
    plot_item item;
    int code = plot_item_read(&item, g->report, v, g->plan->needs);
    const int scaled = plot_item_scaled(&g->settings, item.kind);
    code = code ? code : group_of(g, &item, &to);
    code = code ? code : add_item(g, to, &item, scaled);
    code = code ? code : add_formats(g, to, &item, scaled, &a->selection->formats);
    code = code ? code : add_blocks(g, to, &item, &a->selection->formats);
    plot_item_clear(&item);
    return code;
}

/* The sums of the report that answer the selection; NULL: its tensors do. Sums of steps and of all do not tell what of them is scaled. */
static const char *find_sums(const plot_groups *g, const plot_selection *s)
{
    const int mixed = g->scales.count > 1 && g->settings.scaled_kinds;
    int fits = g->by == PLOT_STEP ? !s->kinds.count : g->by == PLOT_KIND || g->by == PLOT_TOTAL ? !s->step : 0;
    const char *key = g->by == PLOT_STEP ? "steps" : "kinds";
    if (g->plan->has_total && !s->kinds.count && !mixed) {
        key = s->step ? "steps" : "total";
        fits = 1;
    }
    return fits && !s->match.count && record_has(g->report->root, key) ? key : NULL;
}

int plot_groups_read(plot_groups *g, const plot_report *report, const plot_selection *selection, const plot_plan *plan)
{
    *g = (plot_groups){.report = report, .plan = plan};
    adding a = {g, selection};
    plot_walk w = {.report = report,
                   .settings = &g->settings,
                   .selection = selection,
                   .visit = visit,
                   .context = &a,
                   .scaled = plan->only_scaled,
                   .steps = &g->steps};
    int code = choose_by(g, selection);
    code = code ? code : plot_settings_read(&g->settings, report);
    code = code ? code : plan->choose(g, selection);
    for (size_t k = 0; !code && k < g->scales.count; k++)
        for (size_t f = 0; f < g->formats.count; f++)
            add_target(g, g->formats.items[f].name, "", g->scales.items[k], "");
    code = code ? code : plot_walk_items(&w, find_sums(g, selection));
    return code ? code : plan->check(g, selection);
}

static void clear_effects(plot_effect *effects, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        free(effects[k].each[0]);
        free(effects[k].each[1]);
        free(effects[k].scales);
    }
    free(effects);
}

void plot_groups_clear(plot_groups *g)
{
    for (size_t i = 0; i < g->n_groups; i++) {
        free(g->groups[i].name);
        clear_effects(g->groups[i].effects, g->n_targets);
    }
    for (size_t i = 0; i < g->n_targets; i++)
        free(g->targets[i].name);
    free(g->groups);
    free(g->targets);
    plot_settings_clear(&g->settings);
    memset(g, 0, sizeof *g);
}

void plot_groups_put_note(FILE *to, const plot_groups *g)
{
    const char *comma = "";
    uint64_t broken = 0;
    for (size_t i = 0; i < g->n_groups; i++)
        broken += g->groups[i].nan + g->groups[i].inf;
    fputs("note = '", to);
    if (g->by != PLOT_STEP && plot_put_steps(to, &g->steps))
        comma = "; ";
    if (broken)
        fprintf(to, "%s%" PRIu64 " element%s recorded as Inf or NaN", comma, broken, text_plural(broken));
    fputs("'\n", to);
}

void plot_groups_put_axes(FILE *to, const plot_groups *g)
{
    fprintf(to, "axes = '%s%s%s'\n", g->has_columns ? "\xe2\x86\x93 along columns" : "",
            g->has_columns && g->has_requantised ? "; " : "",
            g->has_requantised ? "\xe2\x86\x92\xe2\x86\x93 along rows, then columns" : "");
}
