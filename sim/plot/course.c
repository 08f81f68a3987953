/* course.c -- see course.h. A report is untrusted: every member is checked. */
#include "course.h"

#include "../array/need.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const plot_course_kind lossscale = {{"loss scale", "gradient norm"}, 0, 1, "skipped step", 0},
                              updates = {{"weight updates lost (%)", NULL}, 1, 0, "", 1},
                              amaxes = {{"largest magnitude", "FP8 scale"}, 0, 2, "a stale scale saturates", 2};

/* ---- curves ---- */

static int curve_named(plot_courses *c, const char *name, plot_curve_of_steps **curve)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->items[i].name, name) == 0) {
            *curve = &c->items[i];
            return 0;
        }
    if (c->n == PLOT_COURSES_MAX)
        return fail(EXIT_USAGE, "plot: more than %d curves: select fewer with --match GLOB%s", PLOT_COURSES_MAX,
                    c->kind == &amaxes ? " or --kind" : "");
    *curve = &c->items[c->n];
    (*curve)->name = need_text(name);
    c->n++;
    return 0;
}

/* A step once more, as of another file of a trace: the larger values. */
static int add_moment(const plot_courses *c, plot_curve_of_steps *curve, plot_moment m)
{
    plot_moment *last = curve->n ? &curve->moments[curve->n - 1] : NULL;
    if (last && m.step < last->step && c->kind != &lossscale) /* a log may begin again */
        return plot_malformed(c->report, "steps that do not follow one another");
    if (last && m.step == last->step && c->kind == &amaxes) {
        for (int i = 0; i < PLOT_PANELS; i++)
            last->values[i] = fmax(last->values[i], m.values[i]);
        last->marked |= m.marked;
        return 0;
    }
    need_room(&curve->moments, curve->n, sizeof *curve->moments);
    curve->moments[curve->n++] = m;
    return 0;
}

static double log2_of(double x)
{
    return x > 0 && isfinite(x) ? log2(x) : (double)NAN;
}

/* What the steps of a scaler are numbered by: as the report has them, counted from the first, or counted as a log tells them. */
typedef enum numbering { BY_STEP, BY_INDEX, BY_ORDER } numbering;
static const char *const axes[] = {"step", "step, from the first on", "step told by the log"};

/* A curve whose steps are being read. */
typedef struct reading {
    plot_courses *c;
    const plot_selection *selection;
    const char *policy;         /* in front of names; NULL: none */
    plot_curve_of_steps *curve; /* NULL: each tensor has its own */
    numbering numbers;          /* of scalers */
    int lacks_index;
    double line;        /* of a log: where the steps of the line begin that was read last */
    uint64_t step;      /* of amaxes: the one that is read; of scalers: how many came before */
    plot_moment *norms; /* of a log, in its order: a step, and the norm in the second panel */
    size_t n_norms, at_norm;
} reading;

static int has_event(const json_t *item, const char *event)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(item, "events"), i,
                       v) if (json_string_value(v) && strcmp(json_string_value(v), event) == 0) return 1;
    return 0;
}

/* ---- loss scales ---- */

/* NaN: 0, infinite, or null, as a log may leave it. */
static int get_scale(const plot_courses *c, const json_t *item, const char *key, double *scale)
{
    const json_t *v = json_object_get(item, key);
    const int known = record_is_real(v, scale);
    if (!known && !json_is_null(v))
        return plot_wrong_member(c->report, key, "a scale");
    if (known && *scale < 0)
        return plot_wrong_member(c->report, key, "a scale");
    *scale = known ? log2_of(*scale) : (double)NAN;
    return 0;
}

/* NaN: nothing has measured it, or it is 0 or infinite. */
static int get_norm(const plot_courses *c, const json_t *item, double *norm)
{
    const json_t *v = json_object_get(item, "norm");
    if (v && (!record_is_real(v, norm) || *norm < 0))
        return plot_wrong_member(c->report, "norm", "a norm");
    *norm = v ? log2_of(*norm) : (double)NAN;
    return 0;
}

/* A number of a member that may be null. */
static int has_number(const json_t *item, const char *key, double *x)
{
    const json_t *v = json_object_get(item, key);
    if (json_is_integer(v) && json_integer_value(v) >= 0)
        *x = (double)json_integer_value(v);
    return json_is_integer(v) && json_integer_value(v) >= 0;
}

/* A log may number its steps, or some of them; what has no numbers is counted. */
static int find_numbers(void *context, const json_t *item)
{
    reading *p = context;
    double x;
    if (p->numbers == BY_STEP && !has_number(item, "from", &x))
        p->numbers = BY_INDEX;
    if (!has_number(item, "index", &x))
        p->lacks_index = 1;
    return 0;
}

static int read_norm(void *context, const json_t *item)
{
    reading *p = context;
    plot_moment m = {.values = {(double)NAN}};
    uint64_t step;
    int code = plot_get_count(p->c->report, item, "step", &step);
    code = code ? code : get_norm(p->c, item, &m.values[1]);
    if (code || isnan(m.values[1]))
        return code;
    m.step = (double)step;
    need_room(&p->norms, p->n_norms, sizeof *p->norms);
    p->norms[p->n_norms++] = m;
    return 0;
}

/* Where norms of the log are among the steps of equal scale and outcome that were read last: from the step of the last moment
 * to `to`. */
static int add_norms(reading *p, double to)
{
    const double from = p->curve->moments[p->curve->n - 1].step, scale = p->curve->moments[p->curve->n - 1].values[0];
    int code = 0;
    for (; !code && p->at_norm < p->n_norms && p->norms[p->at_norm].step <= to; p->at_norm++) {
        const plot_moment *norm = &p->norms[p->at_norm];
        plot_moment *last = &p->curve->moments[p->curve->n - 1];
        if (norm->step >= from && norm->step == last->step)
            last->values[1] = norm->values[1];
        else if (norm->step > last->step)
            code = add_moment(p->c, p->curve, (plot_moment){norm->step, {scale, norm->values[1]}, 0});
    }
    return code;
}

/* Steps of equal scale and outcome. */
static int read_trajectory(void *context, const json_t *item)
{
    reading *p = context;
    double scale = 0, next = 0, from = (double)p->step + 1, steps = 1, to;
    int code = get_scale(p->c, item, "scale", &scale);
    code = code ? code : get_scale(p->c, item, "next", &next);
    if (code)
        return code;
    has_number(item, "steps", &steps);
    if (p->numbers == BY_STEP)
        has_number(item, "from", &from);
    else if (p->numbers == BY_INDEX && has_number(item, "index", &from))
        from++;
    p->c->axis = axes[p->numbers];
    if (p->numbers == BY_STEP &&
        has_event(item, "mixed")) { /* several share the steps of a line, one after the other */
        const double line = from;
        if (p->curve->n && line == p->line)
            from = (double)p->step + 1;
        p->line = line;
    }
    to = from + fmax(steps, 1) - 1;
    if (p->numbers == BY_STEP && !has_event(item, "mixed"))
        has_number(item, "to", &to);
    if (p->curve->n && p->curve->moments[p->curve->n - 1].step >= from) /* where the one before it led to */
        p->curve->n--;
    code = add_moment(p->c, p->curve, (plot_moment){from, {scale, (double)NAN}, has_event(item, "skipped")});
    if (!code)
        code = add_norms(p, to);
    if (!code)
        code = add_moment(p->c, p->curve, (plot_moment){fmax(from, to) + 1, {next, (double)NAN}, 0});
    p->step = (uint64_t)fmax(from, to);
    return code;
}

static int read_scale(void *context, const json_t *item)
{
    reading *p = context;
    uint64_t step;
    double scale = 0, norm = 0;
    int code = plot_get_count(p->c->report, item, "step", &step);
    code = code ? code : get_scale(p->c, item, "scale", &scale);
    code = code ? code : get_norm(p->c, item, &norm);
    const int skipped = json_is_true(json_object_get(item, "skipped")) || has_event(item, "skipped");
    return code ? code : add_moment(p->c, p->curve, (plot_moment){(double)step, {scale, norm}, skipped});
}

/* ---- updates ---- */

static int add_updates(const plot_report *r, const json_t *item, uint64_t *of, uint64_t *lost)
{
    uint64_t n[2] = {0, 0};
    int code = plot_get_count(r, item, "updates", &n[0]);
    code = code ? code : plot_get_count(r, item, "lost", &n[1]);
    if (!code && (n[1] > n[0] || *of > UINT64_MAX - n[0]))
        code = plot_malformed(r, "more are lost than there are");
    *of += n[0];
    *lost += n[1];
    return code;
}

/* Of the step, or of each of its weights. */
static int read_updates(void *context, const json_t *item)
{
    reading *p = context;
    const plot_report *r = p->c->report;
    const json_t *weights = json_object_get(item, "weights");
    uint64_t step, of = 0, lost = 0;
    size_t i;
    json_t *v;
    int code = plot_get_count(r, item, "step", &step);
    if (!code && !json_is_array(weights))
        code = add_updates(r, item, &of, &lost);
    json_array_foreach(weights, i, v) if (!code) code = add_updates(r, v, &of, &lost);
    if (code || of == 0)
        return code;
    return add_moment(p->c, p->curve, (plot_moment){(double)step, {100 * (double)lost / (double)of, (double)NAN}, 0});
}

/* ---- amaxes ---- */

/* A tensor of a step: of stat any, of a replay one that has an FP8 scale. */
static int read_tensor(void *context, const json_t *item)
{
    reading *p = context;
    const plot_courses *c = p->c;
    plot_curve_of_steps *curve;
    const char *name = NULL;
    double amax = 0, scale = (double)NAN;
    uint64_t step = p->step, stale = 0, wanted = 0;
    char text[512];
    if (!plot_item_selected(item, p->selection, wanted) ||
        (p->policy ? !json_object_get(item, "amax_history") : !plot_item_step(item, &step)))
        return 0;
    int code = plot_get_string(c->report, item, "name", &name);
    code = code ? code : plot_get_magnitude(c->report, item, "amax", &amax);
    if (!code && p->policy) {
        code = get_scale(c, item, "scale", &scale);
        code = code ? code : plot_get_count(c->report, item, "stale", &stale);
    }
    if (code)
        return code;
    snprintf(text, sizeof text, "%.200s%s%.300s", p->policy ? p->policy : "", p->policy && *p->policy ? ", " : "",
             name);
    code = curve_named(p->c, text, &curve);
    return code ? code : add_moment(c, curve, (plot_moment){(double)step, {log2_of(amax), scale}, stale > 0});
}

static int read_tensors(void *context, const json_t *item)
{
    reading *p = context;
    const json_t *tensors;
    size_t i;
    json_t *v;
    int code = plot_get_count(p->c->report, item, "step", &p->step);
    code = code ? code : plot_get_array(p->c->report, item, "tensors", &tensors);
    if (code)
        return code;
    json_array_foreach(tensors, i, v) if (!code) code = read_tensor(p, v);
    return code;
}

/* ---- reports: a list of runs, each a name and a list of steps ---- */

static const struct {
    const char *command, *runs, *name, *steps;
} layouts[] = {
    {"scaler", "scalers", "scaler", "trajectory"},
    {"train", "runs", NULL, "steps"},
    {"replay", "policies", NULL, "steps"},
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static int read_run(plot_courses *c, const json_t *run, size_t layout, const plot_selection *selection, int several,
                    int (*visit)(void *context, const json_t *item))
{
    const char *name = NULL, *key = layouts[layout].name;
    reading p = {.c = c, .selection = selection};
    int code = plot_get_string(c->report, key ? run : json_object_get(run, "policy"), key ? key : "name", &name);
    if (code)
        return code;
    if (c->kind == &amaxes)
        p.policy = several ? name : "";
    else if (!plot_listed(&selection->match, name, 1))
        return 0;
    else
        code = curve_named(c, name, &p.curve);
    const json_t *steps = json_object_get(run, layouts[layout].steps);
    if (!code && visit == read_trajectory) {
        code = plot_each(c->report, steps, layouts[layout].steps, find_numbers, &p);
        p.numbers = p.numbers == BY_INDEX && p.lacks_index ? BY_ORDER : p.numbers;
        const json_t *norms = json_object_get(json_object_get(c->report->json, "log"), "norms");
        if (!code && norms && p.numbers == BY_STEP && strcmp(name, "recorded") == 0)
            code = plot_each(c->report, norms, "norms", read_norm, &p);
    }
    code = code ? code : plot_each(c->report, steps, layouts[layout].steps, visit, &p);
    free(p.norms);
    return code;
}

/* `visit` sees each step of each run. */
static int read_runs(plot_courses *c, const plot_selection *selection, int (*visit)(void *context, const json_t *item))
{
    size_t layout = 0, i;
    const json_t *runs;
    json_t *run;
    while (layout + 1 < LAYOUTS && strcmp(layouts[layout].command, c->report->command) != 0)
        layout++;
    int code = plot_get_array(c->report, c->report->json, layouts[layout].runs, &runs);
    if (code)
        return code;
    json_array_foreach(runs, i, run) if (!code)
        code = read_run(c, run, layout, selection, json_array_size(runs) > 1, visit);
    return code;
}

/* Whether a run has no loss scale: it is 1 all the time, and no step is skipped. */
static int is_unscaled(const plot_courses *c, const plot_curve_of_steps *curve)
{
    int plain = c->kind == &lossscale;
    for (size_t k = 0; k < curve->n && plain; k++)
        plain = !curve->moments[k].marked && fabs(curve->moments[k].values[0]) <= 0;
    return plain;
}

static int has_value(const plot_curve_of_steps *curve)
{
    for (size_t k = 0; k < curve->n; k++)
        if (!isnan(curve->moments[k].values[0]))
            return 1;
    return 0;
}

/* Curves without a value go; what is left is counted. */
static int finish(plot_courses *c, const char *nothing)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++) {
        plot_curve_of_steps *curve = &c->items[i];
        if (is_unscaled(c, curve) || !has_value(curve)) {
            free(curve->name);
            free(curve->moments);
            continue;
        }
        for (size_t k = 0; k < curve->n && c->panels < PLOT_PANELS; k++)
            for (int p = c->panels; p < PLOT_PANELS; p++)
                if (!isnan(curve->moments[k].values[p]))
                    c->panels = p + 1;
        c->items[kept++] = *curve;
    }
    c->n = kept;
    c->panels = c->panels ? c->panels : 1;
    c->axis = c->axis ? c->axis : "step";
    return kept ? 0 : fail(EXIT_USAGE, "%s: %s", c->report->path, nothing);
}

static void begin(plot_courses *c, const plot_report *report, const plot_course_kind *kind)
{
    memset(c, 0, sizeof *c);
    c->report = report;
    c->kind = kind;
}

int plot_lossscale_read(plot_courses *c, const plot_report *report, const plot_selection *selection)
{
    begin(c, report, &lossscale);
    const int scalers = strcmp(report->command, "scaler") == 0;
    const int code = read_runs(c, selection, scalers ? read_trajectory : read_scale);
    return code ? code : finish(c, "no run of it, or none that --match selects, has a step with a loss scale above 0");
}

int plot_updates_read(plot_courses *c, const plot_report *report, const plot_selection *selection)
{
    begin(c, report, &updates);
    const int code = read_runs(c, selection, read_updates);
    return code ? code : finish(c, "no run of it, or none that --match selects, has a step that updates weights");
}

int plot_amax_read(plot_courses *c, const plot_report *report, const plot_selection *selection)
{
    reading p = {.c = c, .selection = selection};
    begin(c, report, &amaxes);
    const int code = strcmp(report->command, "stat") == 0
                         ? plot_each(report, json_object_get(report->json, "tensors"), "tensors", read_tensor, &p)
                         : read_runs(c, selection, read_tensors);
    return code ? code
                : finish(c, "no tensor with a step, of a replay with an FP8 scale, is selected by --match and --kind");
}

void plot_courses_clear(plot_courses *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->items[i].name);
        free(c->items[i].moments);
    }
    memset(c, 0, sizeof *c);
}
