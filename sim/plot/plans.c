/* plans.c -- what each figure shows of a report of mpsim stat; see groups.h. */
#include "groups.h"

#include <stdlib.h>
#include <string.h>

/* ---- histogram, ruler: formats, and the scale 1, which is the data as recorded, before the others ---- */

static int has_one(const scale_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i] == 1)
            return 1;
    return 0;
}

static int choose_recorded(plot_groups *g, const plot_selection *s)
{
    scale_list chosen;
    const option_list any = {0};
    int code = plot_choose_formats(&g->formats, g->report, &g->settings, &s->formats);
    code = code ? code : plot_choose_scales(&chosen, g->report, &g->settings, &any);
    g->cast_unscaled = !code && has_one(&chosen);
    code = code ? code : plot_choose_scales(&chosen, g->report, &g->settings, &s->scales);
    g->scales.items[g->scales.count++] = 1;
    for (size_t i = 0; !code && i < chosen.count; i++)
        if (chosen.items[i] == 1)
            continue;
        else if (g->scales.count == PLOT_SCALES_MAX)
            code = fail(EXIT_USAGE, "plot: at most %d scales fit, 1 included: choose with --scale", PLOT_SCALES_MAX);
        else
            g->scales.items[g->scales.count++] = chosen.items[i];
    return code;
}

/* Where nothing is scaled all scales are the scale 1. */
static int check_recorded(plot_groups *g, const plot_selection *s)
{
    uint64_t scaled = 0;
    (void)s;
    for (size_t i = 0; i < g->n_groups; i++)
        scaled += g->groups[i].scaled;
    if (!scaled)
        g->scales.count = 1;
    g->cast_unscaled |= !scaled;
    return 0;
}

/* ---- sweep: formats over growing scales ---- */

static int compare_scales(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int choose_growing(plot_groups *g, const plot_selection *s)
{
    int code = plot_choose_formats(&g->formats, g->report, &g->settings, &s->formats);
    code = code ? code : plot_choose_scales(&g->scales, g->report, &g->settings, &s->scales);
    if (!code && g->scales.count < 2)
        code = fail(EXIT_DATA, "%s: a single scale: run mpsim stat --json -s 2^0..2^32", g->report->path);
    qsort(g->scales.items, g->scales.count, sizeof *g->scales.items, compare_scales);
    g->limit = 1;
    if (!code && s->underflow && (parse_number(&g->limit, s->underflow) || !(g->limit >= 0 && g->limit <= 100)))
        code = fail(EXIT_USAGE, "plot: --underflow: '%s' is not per cent, 0 to 100", s->underflow);
    return code;
}

static int check_growing(plot_groups *g, const plot_selection *s)
{
    (void)s;
    return g->n_groups
               ? 0
               : fail(EXIT_DATA, "%s: its scales multiply none of the selected tensors: see mpsim stat --scale-kinds",
                      g->report->path);
}

/* ---- scales: block recipes ---- */

static int choose_recipes(plot_groups *g, const plot_selection *s)
{
    (void)s;
    return g->settings.n_recipes == 0
               ? fail(EXIT_DATA, "%s: no block recipes: run mpsim stat --json -f mxfp8,nvfp4", g->report->path)
               : 0;
}

static int check_targets(plot_groups *g, const plot_selection *s, const char *lacks)
{
    return g->n_targets       ? 0
           : s->formats.count ? fail(EXIT_USAGE, "plot: --format: the report has none of these")
                              : plot_malformed(g->report, lacks);
}

/* What is drawn: recipes in groups that have blocks. */
static int check_recipes(plot_groups *g, const plot_selection *s)
{
    const int code = check_targets(g, s, "\"blocks\" are missing");
    size_t n = 0;
    for (size_t i = 0; i < g->n_groups; i++)
        for (size_t k = 0; k < g->n_targets; k++)
            n += g->groups[i].effects[k].blocks > 0;
    return !code && n > PLOT_GROUPS_MAX
               ? fail(EXIT_USAGE, "plot: more than %d recipes and groups: choose with --format, --kind or --match",
                      PLOT_GROUPS_MAX)
               : code;
}

/* ---- sqnr, ranking: formats and block recipes ---- */

/* Without --scale: the data as recorded, if the report has casts of them. */
static int choose_all(plot_groups *g, const plot_selection *s)
{
    const int code = plot_choose_scales(&g->scales, g->report, &g->settings, &s->scales);
    if (!code && s->scales.count == 0 && has_one(&g->scales)) {
        g->scales.items[0] = 1;
        g->scales.count = 1;
    }
    return code;
}

static int check_all(plot_groups *g, const plot_selection *s)
{
    return check_targets(g, s, "it has no formats");
}

/* ---- the plans ---- */

#define COUNTS "count zero nan inf "
#define MAGNITUDES "amin amax "
#define FORMATS "formats formats.format formats.scale formats.underflow formats.overflow "
#define BLOCKS                                                                                                 \
    "blocks.recipe blocks.axis blocks.overflow blocks.blocks blocks.zero_blocks blocks.saturated_blocks "      \
    "blocks.lost_blocks blocks.least_scales blocks.largest_scales blocks.scales.zero blocks.scales.nonfinite " \
    "blocks.scales.counts "
#define ERRORS "formats.sqnr_db blocks.sqnr_db blocks.underflow "
#define FEWER "rows: select fewer tensors with --match GLOB, --kind KIND or --step N"
#define TOGETHER ", or take them together with --by"
enum { BY_ANY = 1 << PLOT_KIND | 1 << PLOT_TENSOR | 1 << PLOT_LAYER | 1 << PLOT_STEP | 1 << PLOT_TOTAL };

const plot_plan plot_of_histogram = {
    .needs = COUNTS MAGNITUDES FORMATS,
    .usual = PLOT_TOTAL,
    .all = "total",
    .most = PLOT_GROUPS_MAX,
    .fewer = FEWER,
    .has_bins = 1,
    .has_total = 1,
    .choose = choose_recorded,
    .check = check_recorded,
};

const plot_plan plot_of_ruler = {
    .needs = COUNTS MAGNITUDES FORMATS,
    .usual = PLOT_KIND,
    .most = PLOT_GROUPS_MAX,
    .fewer = FEWER,
    .choose = choose_recorded,
    .check = check_recorded,
};

const plot_plan plot_of_sweep = {
    .needs = COUNTS FORMATS "formats.sqnr_db",
    .usual = PLOT_KIND,
    .by = 1 << PLOT_KIND | 1 << PLOT_TENSOR | 1 << PLOT_TOTAL,
    .all = "all gradients",
    .most = PLOT_CURVES_MAX,
    .fewer = "curves: select fewer tensors with --match GLOB" TOGETHER " kind or --by total",
    .has_errors = 1,
    .only_scaled = 1,
    .choose = choose_growing,
    .check = check_growing,
};

const plot_plan plot_of_scales = {
    .needs = COUNTS BLOCKS,
    .usual = PLOT_TOTAL,
    .by = BY_ANY,
    .all = "all",
    .most = PLOT_GROUPS_MAX,
    .fewer = FEWER TOGETHER,
    .choose = choose_recipes,
    .check = check_recipes,
};

/* Errors of casts: the same for both figures, but for what they show of themselves. */
#define OF_ERRORS(USUAL)                                                                                            \
    {                                                                                                               \
        .needs = COUNTS FORMATS BLOCKS ERRORS, .usual = USUAL, .by = BY_ANY, .all = "all", .most = PLOT_GROUPS_MAX, \
        .fewer = FEWER TOGETHER, .has_errors = 1, .choose = choose_all, .check = check_all,                         \
    }
const plot_plan plot_of_sqnr = OF_ERRORS(PLOT_KIND), plot_of_ranking = OF_ERRORS(PLOT_EACH);
