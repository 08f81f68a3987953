/* runs.c -- see runs.h. A report is untrusted: every member is checked. */
#include "runs.h"

#include "../array/need.h"
#include "../text/escape.h"
#include "impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns ---- */

static const struct {
    const char *name, *axis;
} columns[] = {
    {"wgrad", "weight gradients rounded to zero (%)"},
    {"agrad", "activation gradients rounded to zero (%)"},
    {"act", "activations rounded to zero (%)"},
    {"updates", "weight updates lost (%)"},
};
enum { COLUMNS = sizeof columns / sizeof columns[0], UPDATES = 3 };

static int set_column(plot_runs *s, size_t i)
{
    s->column = columns[i].name;
    s->axis = columns[i].axis;
    return 0;
}

static int find_column(plot_runs *s, const char *wanted)
{
    for (size_t i = 0; i < COLUMNS; i++)
        if (strcmp(wanted, columns[i].name) == 0)
            return set_column(s, i);
    return fail(EXIT_USAGE, "plot: --column: '%s' is not one of wgrad, agrad, act, updates", wanted);
}

/* ---- one step ---- */

/* A loss: any number, or not finite. */
static int get_loss(const plot_runs *s, const json_t *step, double *loss)
{
    return record_is_real(json_object_get(step, "loss"), loss) ? 0 : plot_wrong_member(s->report, "loss", "a loss");
}

/* What the column counts in a step: {"nonzero", "lost"} of a kind of tensor, or "updates" and
 * "lost" of the step itself. */
static int get_counts(const plot_runs *s, const json_t *step, plot_point *p)
{
    const int updates = strcmp(s->column, columns[UPDATES].name) == 0;
    const json_t *from = updates ? step : json_object_get(step, s->column);
    int code = json_is_object(from) ? 0 : plot_wrong_member(s->report, s->column, "an object");
    if (!code)
        code = plot_get_count(s->report, from, updates ? "updates" : "nonzero", &p->of);
    if (!code)
        code = plot_get_count(s->report, from, "lost", &p->lost);
    return code || p->lost <= p->of ? code : plot_malformed(s->report, "more are lost than there are");
}

static int read_point(const plot_runs *s, const json_t *step, plot_point *p)
{
    int code = plot_get_count(s->report, step, "step", &p->step);
    if (!code)
        code = get_loss(s, step, &p->loss);
    if (!code)
        code = plot_get_magnitude(s->report, step, "scale", &p->scale);
    if (!code && !(p->scale > 0))
        code = plot_wrong_member(s->report, "scale", "above 0");
    if (!code)
        code = get_counts(s, step, p);
    p->skipped = json_is_true(json_object_get(step, "skipped"));
    return code;
}

/* ---- one run ---- */

/* A run whose steps are being read, and the room for them. */
typedef struct reading {
    const plot_runs *s;
    plot_training *r;
} reading;

static int read_step(void *context, const json_t *step)
{
    reading *p = context;
    plot_training *r = p->r;
    need_room(&r->points, r->n, sizeof *r->points);
    plot_point *at = &r->points[r->n];
    const int code = read_point(p->s, step, at);
    if (code)
        return code;
    if (at->step < 1 || (r->n && at->step <= at[-1].step))
        return plot_malformed(p->s->report, "steps that do not follow one another");
    r->n++;
    if (isfinite(at->loss))
        r->finite = r->n;
    r->scaled |= at->scale < 1 || at->scale > 1 || at->skipped;
    return 0;
}

static int read_run(plot_runs *s, const json_t *item, const option_list *match)
{
    const char *name = NULL;
    int code = plot_get_string(s->report, json_object_get(item, "policy"), "name", &name);
    if (code || !plot_listed(match, name, 1))
        return code;
    plot_training run = {.name = name, .item = item};
    reading p = {s, &run};
    code = plot_each(s->report, json_object_get(item, "steps"), "steps", read_step, &p);
    if (!code && run.n && s->n_runs == PLOT_RUNS_MAX)
        code = fail(EXIT_USAGE, "plot: more than %d runs: select fewer with --match GLOB", PLOT_RUNS_MAX);
    if (code || run.n == 0)
        free(run.points);
    else
        s->runs[s->n_runs++] = run;
    return code;
}

/* ---- all ---- */

static int read_all(plot_runs *s, const plot_selection *selection)
{
    size_t i;
    json_t *item;
    const json_t *runs;
    int code = plot_get_array(s->report, s->report->json, "runs", &runs);
    for (size_t k = 0; k < s->n_runs; k++)
        free(s->runs[k].points);
    memset(s->runs, 0, sizeof s->runs);
    s->n_runs = 0;
    json_array_foreach(runs, i, item) if (!code) code = read_run(s, item, &selection->match);
    return code;
}

/* The largest share that a run loses of all its steps. */
static double most_lost(const plot_runs *s)
{
    double most = 0;
    for (size_t i = 0; i < s->n_runs; i++) {
        double lost = 0, of = 0;
        for (size_t k = 0; k < s->runs[i].n; k++) {
            lost += (double)s->runs[i].points[k].lost;
            of += (double)s->runs[i].points[k].of;
        }
        if (of > 0)
            most = fmax(most, lost / of);
    }
    return most;
}

/* Without a wish: weight gradients, or updates where no run loses a notable share of its weight
 * gradients. */
static const double NOTABLE = 0.001;

static int read_column(plot_runs *s, const plot_selection *selection)
{
    int code = selection->column ? find_column(s, selection->column) : set_column(s, 0);
    if (!code)
        code = read_all(s, selection);
    s->matters = !code && most_lost(s) >= NOTABLE;
    if (code || selection->column || s->matters)
        return code;
    set_column(s, UPDATES);
    code = read_all(s, selection);
    s->matters = !code && most_lost(s) >= NOTABLE;
    return code;
}

/* Of several reports: the policy and the file, or the file if all policies are one. */
static void make_names(plot_runs *s)
{
    const char *key = "file";
    for (size_t i = 1; i < s->n_runs; i++)
        if (strcmp(s->runs[i].name, s->runs[0].name) != 0)
            key = "label";
    for (size_t i = 0; i < s->n_runs; i++) {
        const char *text = json_string_value(json_object_get(s->runs[i].item, key));
        if (text)
            s->runs[i].name = text;
    }
}

int plot_runs_read(plot_runs *s, const plot_report *report, const plot_selection *selection)
{
    memset(s, 0, sizeof *s);
    s->report = report;
    const int code = read_column(s, selection);
    if (code)
        return code;
    if (s->n_runs == 0 && selection->match.count)
        return fail(EXIT_USAGE, "plot: --match selects no run of the report");
    if (s->n_runs == 0)
        return plot_malformed(report, "no run of it has a step");
    s->first = UINT64_MAX;
    for (size_t i = 0; i < s->n_runs; i++) {
        const plot_training *r = &s->runs[i];
        s->first = r->points[0].step < s->first ? r->points[0].step : s->first;
        s->last = r->points[r->n - 1].step > s->last ? r->points[r->n - 1].step : s->last;
    }
    make_names(s);
    return 0;
}

void plot_runs_clear(plot_runs *s)
{
    for (size_t i = 0; i < s->n_runs; i++)
        free(s->runs[i].points);
    memset(s, 0, sizeof *s);
}

/* ---- several reports ---- */

/* Text of a report or a path, escaped, as a member of a run. */
static void put_text(json_t *item, const char *key, const char *text)
{
    char clean[512];
    escape_text(clean, sizeof clean, text);
    json_object_set_new(item, key, json_string(clean));
}

/* "file", without its folder and ".json", and "label", the policy before it; of a run that has
 * none of them. */
static int label_runs(const plot_report *r, json_t *runs)
{
    size_t i;
    json_t *item;
    char file[256], label[512];
    const char *base = plot_base(r->path);
    const size_t n = strlen(base), suffix = strlen(".json");
    const size_t kept = n > suffix && strcmp(base + n - suffix, ".json") == 0 ? n - suffix : n;
    snprintf(file, sizeof file, "%.*s", (int)(kept < 200 ? kept : 200), base);
    json_array_foreach(runs, i, item)
    {
        const char *name = NULL;
        int code = plot_get_string(r, json_object_get(item, "policy"), "name", &name);
        if (!code && !json_object_get(item, "label")) {
            snprintf(label, sizeof label, "%.200s, %s", name, file);
            put_text(item, "label", label);
            put_text(item, "file", file);
        }
        if (code)
            return code;
    }
    return 0;
}

int plot_runs_merge(plot_report *r, plot_report *other)
{
    json_t *runs = json_object_get(r->json, "runs"), *more = json_object_get(other->json, "runs");
    if (!json_is_array(runs))
        return plot_wrong_member(r, "runs", "an array");
    if (!json_is_array(more))
        return plot_wrong_member(other, "runs", "an array");
    int code = label_runs(r, runs);
    if (!code)
        code = label_runs(other, more);
    if (!code) {
        json_array_extend(runs, more);
        plot_report_join(r, other);
    }
    return code;
}
