/* conditions.c -- see conditions.h. */
#include "conditions.h"

#include "../array/array.h"

#include "blockreport.h"
#include "limit.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what can be judged ---- */

/* Counts are of elements, or of blocks, and a per cent of all of them; numbers need a value to compare with. */
typedef enum measure_kind { COUNT, NUMBER, CAST_COUNT, CAST_NUMBER, RECIPE_COUNT, BLOCK_COUNT } measure_kind;

/* clang-format off */
typedef enum measure {
    NAN_COUNT, INF_COUNT, ZERO_COUNT, AMAX, AMIN,
    UNDERFLOWS, SUBNORMALS, OVERFLOWS, SATURATED, INEXACT, SQNR, MSE, MAX_REL_ERR,
    SPOILT, SATURATED_BLOCKS, LOST_BLOCKS, NONFINITE_BLOCKS,
    MEASURES
} measure;
/* clang-format on */

static const struct {
    const char *name;
    measure_kind kind;
} measures[MEASURES] = {
    [NAN_COUNT] = {"nan", COUNT},
    [INF_COUNT] = {"inf", COUNT},
    [ZERO_COUNT] = {"zero", COUNT},
    [AMAX] = {"amax", NUMBER},
    [AMIN] = {"amin", NUMBER},
    [UNDERFLOWS] = {"underflow", CAST_COUNT},
    [SUBNORMALS] = {"subnormal", CAST_COUNT},
    [OVERFLOWS] = {"overflow", CAST_COUNT},
    [SATURATED] = {"saturated", CAST_COUNT},
    [INEXACT] = {"inexact", CAST_COUNT},
    [SQNR] = {"sqnr", CAST_NUMBER},
    [MSE] = {"mse", CAST_NUMBER},
    [MAX_REL_ERR] = {"max_rel_err", CAST_NUMBER},
    [SPOILT] = {"spoilt", RECIPE_COUNT},
    [SATURATED_BLOCKS] = {"saturated_blocks", BLOCK_COUNT},
    [LOST_BLOCKS] = {"lost_blocks", BLOCK_COUNT},
    [NONFINITE_BLOCKS] = {"nonfinite_blocks", BLOCK_COUNT},
};

static const char *const levels[] = {"tensor", "kind", "step", "total"};
enum { LEVELS = sizeof levels / sizeof levels[0] };

struct condition {
    char *text; /* as typed */
    measure what;
    int level;
    limit than;
    uint64_t times; /* that it held */
    double worst;   /* value there */
    char where[640];
};

static int is_count(measure m)
{
    return measures[m].kind != NUMBER && measures[m].kind != CAST_NUMBER;
}

/* ---- reading ---- */

static int unknown(const char *verb, const char *name)
{
    suggestion s;
    suggestion_init(&s, name);
    for (int i = 0; i < MEASURES; i++)
        suggestion_consider(&s, measures[i].name);
    return fail(EXIT_USAGE, "%s: --fail-if: '%s' is not a condition%s", verb, name,
                suggestion_end(&s, ": nan, inf, zero, amax, amin, underflow, subnormal, overflow, "
                                   "saturated, inexact, sqnr, mse, max_rel_err, spoilt, saturated_blocks, "
                                   "lost_blocks, nonfinite_blocks"));
}

/* "total:underflow" -> the level, and what follows it. */
static const char *read_level(condition *c, const char *text)
{
    for (int i = 0; i < LEVELS; i++) {
        const size_t n = strlen(levels[i]);
        if (strncmp(text, levels[i], n) == 0 && text[n] == ':') {
            c->level = i;
            return text + n + 1;
        }
    }
    return text;
}

/* ">1%" behind the name. */
static int read_limit(const char *verb, condition *c, const char *text)
{
    const int bad = limit_read(&c->than, &text);
    if (bad == LIMIT_NO_COMPARISON)
        return fail(EXIT_USAGE, "%s: --fail-if: '%s': > < >= or <= and a value are needed", verb, c->text);
    if (bad)
        return fail(EXIT_USAGE, "%s: --fail-if: '%s': '%s' is not a number", verb, c->text, text);
    if (c->than.per_cent && !is_count(c->what))
        return fail(EXIT_USAGE, "%s: --fail-if: '%s': %s is not a share of the elements", verb, c->text,
                    measures[c->what].name);
    return 0;
}

static int read_condition(const char *verb, condition *c)
{
    char name[64];
    const char *text = read_level(c, c->text);
    const size_t n = strcspn(text, " <>=");
    int m = 0;
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), text);
    while (m < MEASURES && strcmp(measures[m].name, name) != 0)
        m++;
    if (m == MEASURES)
        return unknown(verb, name);
    c->what = (measure)m;
    text += n;
    text += strspn(text, " ");
    if (*text)
        return read_limit(verb, c, text);
    return is_count(c->what) ? 0
                             : fail(EXIT_USAGE, "%s: --fail-if: '%s' needs a value, as %s%s", verb, c->text, name,
                                    c->what == SQNR ? "<20" : ">1e-3");
}

int conditions_make(conditions *g, const char *verb, const option_list *words, const target_list *targets, int counts)
{
    size_t n = 0;
    for (size_t i = 0; i < words->count; i++)
        for (const char *p = words->items[i]; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
            n++;
    memset(g, 0, sizeof *g);
    g->verb = verb;
    g->targets = targets;
    g->items = array_zeros(n, sizeof *g->items);
    if (!g->items)
        return host_no_memory();
    for (size_t i = 0; i < words->count; i++)
        for (const char *p = words->items[i]; p;) {
            condition *c = &g->items[g->count];
            const char *comma = strchr(p, ',');
            p += strspn(p, " ");
            c->text = strndup(p, comma ? (size_t)(comma - p) : strlen(p));
            if (!c->text)
                return host_no_memory();
            g->count++;
            const int code = read_condition(verb, c);
            if (code)
                return code;
            if (counts && measures[c->what].kind == CAST_NUMBER)
                return fail(EXIT_USAGE, "%s: --fail-if: '%s': --counts leaves %s out", verb, c->text,
                            measures[c->what].name);
            if (measures[c->what].kind == BLOCK_COUNT && targets->blocks.count == 0)
                return fail(EXIT_USAGE, "%s: --fail-if: '%s': %s is of block recipes, and none is given", verb, c->text,
                            measures[c->what].name);
            p = comma ? comma + 1 : NULL;
        }
    return 0;
}

void conditions_clear(conditions *g)
{
    for (size_t i = 0; i < g->count; i++)
        free(g->items[i].text);
    free(g->items);
    memset(g, 0, sizeof *g);
}

/* ---- judging ---- */

static double of_group(measure m, const mpsim_stats *s)
{
    return m == NAN_COUNT    ? (double)s->nan
           : m == INF_COUNT  ? (double)s->inf
           : m == ZERO_COUNT ? (double)s->zero
           : m == AMAX       ? s->amax
                             : s->amin;
}

/* Whether what is too large becomes the largest number. */
static int saturates(const target *t)
{
    return isfinite(mpsim_decode(&t->format, mpsim_encode_f64(&t->format, &t->rounding, DBL_MAX, 0, NULL)));
}

/* Where all finite elements became Inf or NaN, nothing of the signal is left. */
static double of_cast(measure m, const target *t, const mpsim_cast_stats *c, const mpsim_stats *s)
{
    const int all_lost = c->compared == 0 && s->count > s->nan + s->inf;
    switch (m) {
    case UNDERFLOWS:
        return (double)c->counts.underflow;
    case SUBNORMALS:
        return (double)c->counts.subnormal;
    case OVERFLOWS:
        return (double)c->counts.overflow;
    case SATURATED:
        return saturates(t) ? (double)c->counts.overflow : 0;
    case INEXACT:
        return (double)c->counts.inexact;
    case SQNR:
        return all_lost ? -(double)INFINITY : mpsim_cast_stats_sqnr_db(c, s);
    case MSE:
        return all_lost ? (double)INFINITY : mpsim_cast_stats_mse(c);
    default:
        return all_lost ? (double)INFINITY : c->compared ? c->max_rel_err : (double)NAN;
    }
}

/* The same of a recipe, all of which saturate. */
static double of_recipe(measure m, const block_sums *b, const group *g)
{
    const mpsim_cast_stats *c = &b->stats.casts;
    const int all_lost = c->compared == 0 && b->elements > g->stats.nan + g->stats.inf;
    switch (m) {
    case UNDERFLOWS:
        return (double)b->stats.underflow;
    case SUBNORMALS:
        return (double)c->counts.subnormal;
    case OVERFLOWS:
    case SATURATED:
        return (double)b->stats.saturated;
    case INEXACT:
        return (double)c->counts.inexact;
    case SPOILT:
        return (double)b->stats.spoilt;
    case SATURATED_BLOCKS:
        return (double)b->stats.saturated_blocks;
    case LOST_BLOCKS:
        return (double)b->stats.lost_blocks;
    case NONFINITE_BLOCKS:
        return (double)b->stats.nonfinite_blocks;
    case SQNR:
        return all_lost ? -(double)INFINITY : block_sqnr_db(b, g);
    case MSE:
        return all_lost ? (double)INFINITY : block_mse(b);
    default:
        return all_lost ? (double)INFINITY : block_max_rel_err(b);
    }
}

static void put_value(char *out, size_t size, const condition *c, double x, uint64_t all)
{
    char a[32], b[32];
    if (is_count(c->what))
        snprintf(out, size, "%s %s%s, %s", text_count(a, (uint64_t)x),
                 measures[c->what].kind == BLOCK_COUNT ? "block" : "element", x == 1 ? "" : "s",
                 text_share(b, (uint64_t)x, all));
    else
        snprintf(out, size, "%s%s", text_number(a, x), c->what == SQNR ? " dB" : "");
}

static void put_place(char *out, size_t size, const group_label *l)
{
    char name[400] = "", step[32] = "";
    if (l->step >= 0)
        snprintf(step, sizeof step, "%sstep %" PRId64, strcmp(l->level, "step") ? ", " : "", l->step);
    if (strcmp(l->level, "tensor") == 0)
        escape_text(name, sizeof name, l->name[0] ? l->name : l->file);
    else if (strcmp(l->level, "step") != 0)
        snprintf(name, sizeof name, "%s",
                 strcmp(l->level, "kind") ? "in total"
                 : l->kind                ? l->kind
                                          : "tensors without a kind");
    snprintf(out, size, "%s%s", name, step[0] ? step : name[0] ? "" : "files without a step");
}

/* A number, or a count of `all`. */
static void judge(condition *c, const group_label *l, const char *cast, double x, uint64_t all)
{
    const double value = c->than.per_cent ? 100 * x / (double)all : x;
    const int larger = limit_is_upper(&c->than);
    char place[480], shown[96];
    if (isnan(value) || !limit_holds(&c->than, value))
        return;
    if (c->times++ && (larger ? value <= c->worst : value >= c->worst))
        return;
    c->worst = value;
    put_place(place, sizeof place, l);
    put_value(shown, sizeof shown, c, x, all);
    snprintf(c->where, sizeof c->where, "%s%s: %s", place, cast, shown);
}

static void judge_casts(const conditions *g, condition *c, const group_label *l, const group *of)
{
    group_cast k;
    for (size_t i = 0; i < group_casts(of); i++) {
        char cast[160], a[32], at[64] = "";
        group_cast_at(of, g->targets, i, &k);
        if (k.scale != 1)
            snprintf(at, sizeof at, " times %s", text_scale(a, k.scale));
        snprintf(cast, sizeof cast, "%s as %.80s", at, k.to->label);
        judge(c, l, cast, of_cast(c->what, k.to, &k.stats, &of->stats), of->stats.count);
    }
}

static void judge_recipes(const conditions *g, condition *c, const group_label *l, const group *of)
{
    const block_list *blocks = &g->targets->blocks;
    for (size_t i = 0; i < of->n_blocks; i++) {
        const block_target *t = &blocks->items[i];
        const block_sums *b = &of->blocks[i];
        char as[160];
        if (!b->elements)
            continue;
        snprintf(as, sizeof as, " as %.80s%s%s", t->label, t->axis == BLOCK_ROWS ? "" : ", ",
                 t->axis == BLOCK_ROWS ? "" : block_axis_name(t->axis));
        judge(c, l, as, of_recipe(c->what, b, of),
              measures[c->what].kind == BLOCK_COUNT ? b->stats.blocks : b->elements);
    }
}

void conditions_judge(conditions *g, const group_label *label, const group *of)
{
    for (size_t i = 0; i < g->count && of->stats.count > 0; i++) {
        condition *c = &g->items[i];
        const measure_kind kind = measures[c->what].kind;
        if (strcmp(levels[c->level], label->level) != 0)
            continue;
        if (kind == CAST_COUNT || kind == CAST_NUMBER)
            judge_casts(g, c, label, of);
        if (kind == COUNT || kind == NUMBER)
            judge(c, label, "", of_group(c->what, &of->stats), of->stats.count);
        else
            judge_recipes(g, c, label, of);
    }
}

int conditions_tell(const conditions *g)
{
    int code = 0;
    for (size_t i = 0; i < g->count; i++) {
        const condition *c = &g->items[i];
        char more[64] = "", n[32];
        if (!c->times)
            continue;
        if (c->times > 1)
            snprintf(more, sizeof more, ", the worst of %s", text_count(n, c->times));
        code = fail(EXIT_CHECK, "%s: --fail-if %s: %s%s", g->verb, c->text, c->where, more);
    }
    return code;
}
