/* sweep.c -- see sweep.h. A report is untrusted: every member is checked. */
#include "sweep.h"

#include "../array/need.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *axis;
    int relative;
} columns[] = {
    {"rel_err", "relative error", 1},
    {"max_rel_err", "largest relative error", 1},
    {"bias", "magnitude of the bias", 0},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static int choose_column(plot_sweep *s, const char *wanted)
{
    for (size_t i = 0; i < COLUMNS; i++)
        if (!wanted || strcmp(wanted, columns[i].name) == 0) {
            s->column = columns[i].name;
            s->axis = columns[i].axis;
            s->relative = columns[i].relative;
            return 0;
        }
    return fail(EXIT_USAGE, "plot: --column: '%s' is not one of rel_err, max_rel_err, bias", wanted);
}

/* ---- one result ---- */

/* Its place among the lengths, where it is put if it is new. */
static int add_length(plot_sweep *s, uint64_t k)
{
    size_t i = 0;
    while (i < s->n_lengths && s->lengths[i] < k)
        i++;
    if (i < s->n_lengths && s->lengths[i] == k)
        return 0;
    if (s->n_lengths == PLOT_LENGTHS_MAX)
        return plot_malformed(s->report, "it has too many K");
    memmove(&s->lengths[i + 1], &s->lengths[i], (s->n_lengths - i) * sizeof s->lengths[0]);
    s->lengths[i] = k;
    s->n_lengths++;
    return 0;
}

static int add_model(plot_sweep *s, const char *name, const char *format)
{
    for (size_t i = 0; i < s->n_models; i++)
        if (strcmp(s->models[i].name, name) == 0)
            return 0;
    if (s->n_models == PLOT_MODELS_MAX)
        return fail(EXIT_USAGE, "plot: more than %d models: select fewer with --match GLOB", PLOT_MODELS_MAX);
    plot_model *m = &s->models[s->n_models++];
    m->name = need_text(name);
    m->format = need_text(format);
    for (size_t i = 0; i < PLOT_LENGTHS_MAX; i++)
        m->errors[i] = PLOT_MISSING;
    return 0;
}

/* The error of an item. */
static int get_error(const plot_sweep *s, const json_t *item, double *error)
{
    uint64_t count = 0, not_finite = 0;
    int code = plot_get_count(s->report, item, "count", &count);
    if (!code)
        code = plot_get_count(s->report, item, "not_finite", &not_finite);
    if (!code && not_finite > count)
        code = plot_malformed(s->report, "more results are not finite than there are");
    if (code)
        return code;
    double x;
    if (!record_is_real(json_object_get(item, s->column), &x) || (s->relative && isfinite(x) && x < 0))
        return plot_wrong_member(s->report, s->column, "an error");
    *error = !isfinite(x) || not_finite ? PLOT_NOT_FINITE : fabs(x);
    return 0;
}

/* What is being read: first all lengths and models, then the errors, since the report may have any
 * order. */
typedef struct reading {
    plot_sweep *s;
    const option_list *match;
    int second;
    size_t items;
} reading;

static int read_item(void *context, const json_t *item)
{
    reading *p = context;
    plot_sweep *s = p->s;
    uint64_t k = 0;
    const char *name = NULL, *format = NULL;
    double error = 0;
    int code = plot_get_string(s->report, item, "model", &name);
    code = code ? code : plot_get_string(s->report, item, "result_format", &format);
    code = code ? code : plot_get_count(s->report, item, "k", &k);
    code = code ? code : get_error(s, item, &error);
    if (!code && k == 0)
        code = plot_malformed(s->report, "a dot product of no elements");
    p->items++;
    if (code || !plot_listed(p->match, name, 1))
        return code;
    if (!p->second) {
        code = add_length(s, k);
        return code ? code : add_model(s, name, format);
    }
    for (size_t i = 0; i < s->n_models; i++)
        for (size_t j = 0; j < s->n_lengths; j++)
            if (s->lengths[j] == k && strcmp(s->models[i].name, name) == 0)
                s->models[i].errors[j] = error;
    return 0;
}

/* ---- order ---- */

size_t plot_sweep_end(const plot_sweep *s, const plot_model *m)
{
    size_t last = 0;
    for (size_t i = 0; i < s->n_lengths; i++)
        if (m->errors[i] != PLOT_MISSING)
            last = i;
    return last;
}

/* Where a curve ends: not finite above all errors. */
static double height(const plot_sweep *s, const plot_model *m)
{
    const double x = m->errors[plot_sweep_end(s, m)];
    return x == PLOT_NOT_FINITE ? HUGE_VAL : x;
}

/* Sort by insertion, which keeps the order of the report among equals: models with the same
 * errors come together, then one number counts the curves. */
static void make_curves(plot_sweep *s)
{
    const size_t bytes = s->n_lengths * sizeof s->models[0].errors[0];
    for (size_t i = 1; i < s->n_models; i++) {
        const plot_model m = s->models[i];
        size_t to = i;
        while (to > 0 && height(s, &s->models[to - 1]) < height(s, &m))
            to--;
        for (size_t j = 0; j < i; j++)
            if (memcmp(s->models[j].errors, m.errors, bytes) == 0)
                to = j + 1;
        memmove(&s->models[to + 1], &s->models[to], (i - to) * sizeof m);
        s->models[to] = m;
    }
    for (size_t i = 0; i < s->n_models; i++) {
        plot_model *m = &s->models[i];
        if (i == 0 || memcmp(m[-1].errors, m->errors, bytes) != 0)
            s->n_curves++;
        m->curve = s->n_curves;
    }
}

int plot_sweep_read(plot_sweep *s, const plot_report *report, const plot_selection *selection)
{
    memset(s, 0, sizeof *s);
    s->report = report;
    reading p = {s, &selection->match, 0, 0};
    const json_t *results = json_object_get(report->json, "results");
    int code = choose_column(s, selection->column);
    for (; p.second < 2 && !code; p.second++)
        code = plot_each(report, results, "results", read_item, &p);
    if (code)
        return code;
    if (p.items == 0)
        return plot_malformed(report, "it has no results");
    if (s->n_models == 0)
        return fail(EXIT_USAGE, "plot: --match selects no model of the report");
    if (s->n_lengths == 1)
        return fail(EXIT_DATA,
                    "%s: has a single K (%" PRIu64 "): run mpsim dot --json with several, as -K 64,256,1024,4096",
                    report->path, s->lengths[0]);
    make_curves(s);
    return 0;
}

void plot_sweep_clear(plot_sweep *s)
{
    for (size_t i = 0; i < s->n_models; i++) {
        free(s->models[i].name);
        free(s->models[i].format);
    }
    memset(s, 0, sizeof *s);
}
