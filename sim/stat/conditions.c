/* conditions.c -- see conditions.h. */
#include "conditions.h"

#include "../array/array.h"

#include "limit.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what can be judged ---- */

/* Counts are of elements, or of blocks, and a per cent of all of them; numbers need a value to compare with. */
typedef enum measure_kind { COUNT, NUMBER, CAST_COUNT, CAST_NUMBER, RECIPE_COUNT, BLOCK_COUNT } measure_kind;

/* By their names, which are keys of the report, but for `saturated`. */
typedef struct measure {
    const char *name;
    measure_kind kind;
    const char *key; /* NULL: the name */
} measure;

static const measure measures[] = {{"nan", COUNT, NULL},
                                   {"inf", COUNT, NULL},
                                   {"zero", COUNT, NULL},
                                   {"amax", NUMBER, NULL},
                                   {"amin", NUMBER, NULL},
                                   {"underflow", CAST_COUNT, NULL},
                                   {"subnormal", CAST_COUNT, NULL},
                                   {"overflow", CAST_COUNT, NULL},
                                   {"saturated", CAST_COUNT, "overflow"},
                                   {"inexact", CAST_COUNT, NULL},
                                   {"sqnr", CAST_NUMBER, "sqnr_db"},
                                   {"mse", CAST_NUMBER, NULL},
                                   {"max_rel_err", CAST_NUMBER, NULL},
                                   {"spoilt", RECIPE_COUNT, NULL},
                                   {"saturated_blocks", BLOCK_COUNT, NULL},
                                   {"lost_blocks", BLOCK_COUNT, NULL},
                                   {"nonfinite_blocks", BLOCK_COUNT, NULL}};
enum { MEASURES = sizeof measures / sizeof measures[0] };

struct condition {
    char *text; /* as typed */
    const measure *what;
    int level;
    limit than;
    uint64_t times; /* that it held */
    double worst;   /* value there */
    char where[640];
};

static int is_count(const measure *m)
{
    return m->kind != NUMBER && m->kind != CAST_NUMBER;
}

static int is_sqnr(const measure *m)
{
    return strcmp(m->name, "sqnr") == 0;
}

/* ---- reading ---- */

static int unknown(const char *verb, const char *name)
{
    suggestion s;
    suggestion_init(&s, name);
    for (size_t i = 0; i < MEASURES; i++)
        suggestion_consider(&s, measures[i].name);
    return fail(EXIT_USAGE, "%s: --fail-if: '%s' is not a condition%s", verb, name,
                suggestion_end(&s, ": nan, inf, zero, amax, amin, underflow, subnormal, overflow, "
                                   "saturated, inexact, sqnr, mse, max_rel_err, spoilt, saturated_blocks, "
                                   "lost_blocks, nonfinite_blocks"));
}

/* "total:underflow" -> the level, and what follows it. */
static const char *read_level(condition *c, const char *text)
{
    for (int i = 0; i < STAT_LEVELS; i++) {
        const size_t n = strlen(stat_levels[i]);
        if (strncmp(text, stat_levels[i], n) == 0 && text[n] == ':') {
            c->level = i;
            return text + n + 1;
        }
    }
    return text;
}

/* ">1%" behind the name. */
static int read_limit(const char *verb, condition *c, const char *text)
{
    const int bad = stat_limit_read(&c->than, &text);
    if (bad == LIMIT_NO_COMPARISON)
        return fail(EXIT_USAGE, "%s: --fail-if: '%s': > < >= or <= and a value are needed", verb, c->text);
    if (bad)
        return fail(EXIT_USAGE, "%s: --fail-if: '%s': '%s' is not a number", verb, c->text, text);
    if (c->than.per_cent && !is_count(c->what))
        return fail(EXIT_USAGE, "%s: --fail-if: '%s': %s is not a share of the elements", verb, c->text, c->what->name);
    return 0;
}

static int read_condition(const char *verb, condition *c)
{
    char name[64];
    const char *text = read_level(c, c->text);
    const size_t n = strcspn(text, " <>=");
    size_t m = 0;
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), text);
    while (m < MEASURES && strcmp(measures[m].name, name) != 0)
        m++;
    if (m == MEASURES)
        return unknown(verb, name);
    c->what = &measures[m];
    text += n;
    text += strspn(text, " ");
    if (*text)
        return read_limit(verb, c, text);
    return is_count(c->what) ? 0
                             : fail(EXIT_USAGE, "%s: --fail-if: '%s' needs a value, as %s%s", verb, c->text, name,
                                    is_sqnr(c->what) ? "<20" : ">1e-3");
}

int stat_conditions_make(conditions *g, const char *verb, const option_list *words, const target_list *targets,
                         int counts)
{
    size_t n = 0;
    for (size_t i = 0; i < words->count; i++)
        for (const char *p = words->items[i]; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
            n++;
    memset(g, 0, sizeof *g);
    g->verb = verb;
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
            if (counts && c->what->kind == CAST_NUMBER)
                return fail(EXIT_USAGE, "%s: --fail-if: '%s': %s is not computed with --counts", verb, c->text,
                            c->what->name);
            if (c->what->kind == BLOCK_COUNT && targets->blocks.count == 0)
                return fail(EXIT_USAGE, "%s: --fail-if: '%s': %s needs a block recipe in -f", verb, c->text,
                            c->what->name);
            p = comma ? comma + 1 : NULL;
        }
    return 0;
}

void stat_conditions_clear(conditions *g)
{
    for (size_t i = 0; i < g->count; i++)
        free(g->items[i].text);
    free(g->items);
    memset(g, 0, sizeof *g);
}

/* ---- judging ---- */

/* Whether what is too large becomes the largest number. */
static int saturates(const target *t)
{
    return isfinite(mpsim_decode(&t->format, mpsim_encode_f64(&t->format, &t->rounding, DBL_MAX, 0, NULL)));
}

/* Where all finite elements became Inf or NaN, nothing of the signal is left. Recipes saturate. */
static double number_of(const measure *m, const stat_loss *k)
{
    if (k->all_lost && m->kind == CAST_NUMBER)
        return is_sqnr(m) ? -(double)INFINITY : (double)INFINITY;
    if (k->to && strcmp(m->name, "saturated") == 0 && !saturates(k->to))
        return 0;
    return record_number(k->to ? &stat_cast_record : &stat_recipe_record, k, m->key ? m->key : m->name);
}

static void put_value(char *out, size_t size, const condition *c, double x, uint64_t all)
{
    char a[32], b[32];
    if (is_count(c->what))
        snprintf(out, size, "%s %s%s, %s", text_count(a, (uint64_t)x),
                 c->what->kind == BLOCK_COUNT ? "block" : "element", x == 1 ? "" : "s",
                 text_share(b, (uint64_t)x, all));
    else
        snprintf(out, size, "%s%s", text_number(a, x), is_sqnr(c->what) ? " dB" : "");
}

static void put_place(char *out, size_t size, const stat_row *row)
{
    char name[400] = "", step[32] = "";
    if (row->step >= 0)
        snprintf(step, sizeof step, "%sstep %" PRId64, row->level == STAT_STEP ? "" : ", ", row->step);
    if (row->level == STAT_TENSOR)
        escape_text(name, sizeof name, row->name[0] ? row->name : row->file);
    else if (row->level != STAT_STEP)
        snprintf(name, sizeof name, "%s",
                 row->level == STAT_TOTAL ? "in total"
                 : row->kind              ? row->kind
                                          : "tensors without a kind");
    snprintf(out, size, "%s%s", name, step[0] ? step : name[0] ? "" : "files without a step");
}

/* A number, or a count of `all`. */
static void judge(condition *c, const stat_row *row, const char *cast, double x, uint64_t all)
{
    const double value = c->than.per_cent ? 100 * x / (double)all : x;
    const int larger = stat_limit_is_upper(&c->than);
    char place[480], shown[96];
    if (isnan(value) || !stat_limit_holds(&c->than, value))
        return;
    if (c->times++ && (larger ? value <= c->worst : value >= c->worst))
        return;
    c->worst = value;
    put_place(place, sizeof place, row);
    put_value(shown, sizeof shown, c, x, all);
    snprintf(c->where, sizeof c->where, "%s%s: %s", place, cast, shown);
}

static void judge_cast(condition *c, const stat_row *row, const stat_loss *k)
{
    char as[160], a[32], at[64] = "";
    if (k->scale != 1)
        snprintf(at, sizeof at, " times %s", text_scale(a, k->scale));
    snprintf(as, sizeof as, "%s as %.80s", at, k->name);
    judge(c, row, as, number_of(c->what, k), k->of);
}

static void judge_recipe(condition *c, const stat_row *row, const stat_loss *k)
{
    char as[160];
    const int rows = k->axis == BLOCK_ROWS;
    snprintf(as, sizeof as, " as %.80s%s%s", k->name, rows ? "" : ", ", rows ? "" : block_axes[k->axis]);
    judge(c, row, as, number_of(c->what, k), c->what->kind == BLOCK_COUNT ? k->blocks->stats.blocks : k->of);
}

static void judge_row(condition *c, const stat_row *row)
{
    const measure *m = c->what;
    const int of_casts = m->kind == CAST_COUNT || m->kind == CAST_NUMBER;
    if (m->kind == COUNT || m->kind == NUMBER) {
        judge(c, row, "", record_number(stat_level_records[row->level], row, m->name), row->stats->count);
        return;
    }
    for (size_t i = 0; of_casts && i < row->n_casts; i++)
        judge_cast(c, row, &row->casts[i]);
    for (size_t i = 0; i < row->n_recipes; i++)
        if (row->recipes[i].of)
            judge_recipe(c, row, &row->recipes[i]);
}

void stat_conditions_judge(conditions *g, const stat_row *row)
{
    for (size_t i = 0; i < g->count && row->stats->count > 0; i++)
        if (g->items[i].level == (int)row->level)
            judge_row(&g->items[i], row);
}

int stat_conditions_tell(const conditions *g)
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
