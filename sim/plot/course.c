/* course.c -- see course.h. A report is untrusted: every member is checked. */
#include "impl.h"

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

/* ---- loss scales ---- */

/* Words of a list. */
typedef struct words {
    const char *const *at;
    size_t n;
} words;

static int has_word(const words *w, const char *word)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->at[i], word) == 0)
            return 1;
    return 0;
}

/* Steps of equal scale and outcome, as mpsim scaler tells them; -1: a log may leave a number out. */
typedef struct span {
    int64_t from, to, index, steps;
    double scale, next; /* NaN: not known */
    words events;
} span;

#define AT(member) offsetof(span, member)
static const record_field span_fields[] = {FIELD(STEP, "from", IN_JSON, AT(from), NULL),
                                           FIELD(STEP, "to", IN_JSON, AT(to), NULL),
                                           FIELD(STEP, "index", IN_JSON, AT(index), NULL),
                                           FIELD(STEP, "steps", IN_JSON, AT(steps), NULL),
                                           FIELD(REAL, "scale", IN_JSON | FIELD_NULL, AT(scale), NULL),
                                           FIELD(REAL, "next", IN_JSON | FIELD_NULL, AT(next), NULL),
                                           FIELD(TEXTS, "events", IN_JSON, AT(events.at), NULL, .of = AT(events.n)),
                                           {0}};
#undef AT
static const record_kind span_record = {"span", NULL, sizeof(span), span_fields};

/* A step of mpsim train or mpsim replay. */
typedef struct scaled_step {
    uint64_t step;
    double scale, norm; /* NaN: nothing has measured it */
    int skipped;
    words events;
} scaled_step;

#define AT(member) offsetof(scaled_step, member)
static const record_field scaled_fields[] = {FIELD(COUNT, "step", IN_JSON, AT(step), NULL),
                                             FIELD(REAL, "scale", IN_JSON | FIELD_NULL, AT(scale), NULL),
                                             FIELD(REAL, "norm", IN_JSON, AT(norm), NULL),
                                             FIELD(BOOLEAN, "skipped", IN_JSON, AT(skipped), NULL),
                                             FIELD(TEXTS, "events", IN_JSON, AT(events.at), NULL, .of = AT(events.n)),
                                             {0}};
#undef AT
static const record_kind scaled_record = {"step", NULL, sizeof(scaled_step), scaled_fields};

/* The logarithm; NaN: 0, infinite, or not known. */
static int log_of(const plot_courses *c, const char *key, const char *what, double x, double *to)
{
    *to = log2_of(x);
    return x < 0 ? plot_wrong_member(c->report, key, what) : 0;
}

static int scale_of(const plot_courses *c, const char *key, double x, double *to)
{
    return log_of(c, key, "a scale", x, to);
}

/* A log may number its steps, or some of them; what has no numbers is counted. */
static int find_numbers(void *context, record_source item)
{
    reading *p = context;
    span s;
    const int code = plot_read(p->c->report, &span_record, item, &s, "");
    if (p->numbers == BY_STEP && s.from < 0)
        p->numbers = BY_INDEX;
    p->lacks_index |= s.index < 0;
    record_forget(&span_record, &s);
    return code;
}

static int read_norm(void *context, record_source item)
{
    reading *p = context;
    plot_moment m = {.values = {(double)NAN}};
    scaled_step s;
    int code = plot_read(p->c->report, &scaled_record, item, &s, "step norm");
    code = code ? code : log_of(p->c, "norm", "a norm", s.norm, &m.values[1]);
    record_forget(&scaled_record, &s);
    if (code || isnan(m.values[1]))
        return code;
    m.step = (double)s.step;
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

/* Where a span begins: by its number, or behind the one before. Several share the steps of a line, one after the other. */
static double begin_of(reading *p, const span *s, int mixed)
{
    const double behind = (double)p->step + 1;
    const double from = p->numbers == BY_STEP && s->from >= 0     ? (double)s->from
                        : p->numbers == BY_INDEX && s->index >= 0 ? (double)s->index + 1
                                                                  : behind;
    const int same = mixed && p->curve->n && from == p->line;
    p->line = mixed ? from : p->line;
    return same ? behind : from;
}

static int add_span(reading *p, const span *s)
{
    const int mixed = p->numbers == BY_STEP && has_word(&s->events, "mixed");
    double scale = 0, next = 0;
    int code = scale_of(p->c, "scale", s->scale, &scale);
    code = code ? code : scale_of(p->c, "next", s->next, &next);
    if (code)
        return code;
    p->c->axis = axes[p->numbers];
    const double from = begin_of(p, s, mixed), steps = s->steps < 0 ? 1 : (double)s->steps;
    const double to = p->numbers == BY_STEP && !mixed && s->to >= 0 ? (double)s->to : from + fmax(steps, 1) - 1;
    if (p->curve->n && p->curve->moments[p->curve->n - 1].step >= from) /* where the one before it led to */
        p->curve->n--;
    code = add_moment(p->c, p->curve, (plot_moment){from, {scale, (double)NAN}, has_word(&s->events, "skipped")});
    if (!code)
        code = add_norms(p, to);
    if (!code)
        code = add_moment(p->c, p->curve, (plot_moment){fmax(from, to) + 1, {next, (double)NAN}, 0});
    p->step = (uint64_t)fmax(from, to);
    return code;
}

static int read_trajectory(void *context, record_source item)
{
    reading *p = context;
    span s;
    int code = plot_read(p->c->report, &span_record, item, &s, "scale next");
    code = code ? code : add_span(p, &s);
    record_forget(&span_record, &s);
    return code;
}

static int read_scale(void *context, record_source item)
{
    reading *p = context;
    scaled_step s;
    double scale = 0, norm = 0;
    int code = plot_read(p->c->report, &scaled_record, item, &s, "step scale");
    code = code ? code : scale_of(p->c, "scale", s.scale, &scale);
    code = code ? code : log_of(p->c, "norm", "a norm", s.norm, &norm);
    const int skipped = s.skipped > 0 || has_word(&s.events, "skipped");
    record_forget(&scaled_record, &s);
    return code ? code : add_moment(p->c, p->curve, (plot_moment){(double)s.step, {scale, norm}, skipped});
}

/* ---- updates ---- */

/* Of the step, or of each of its weights. */
typedef struct updated {
    uint64_t step, of, lost;
    const struct updated *weights;
    size_t n;
} updated;

#define AT(member) offsetof(updated, member)
#define LOST FIELD(COUNT, "updates", IN_JSON, AT(of), NULL), FIELD(COUNT, "lost", IN_JSON, AT(lost), NULL)
static const record_field weight_fields[] = {LOST, {0}};
static const record_kind weight_record = {"weight", NULL, sizeof(updated), weight_fields};
static const record_field updated_fields[] = {
    FIELD(COUNT, "step", IN_JSON, AT(step), NULL),
    LOST,
    FIELD(LIST, "weights", IN_JSON, AT(weights), NULL, .of = AT(n), .record = &weight_record),
    {0}};
#undef AT
static const record_kind updated_record = {"step", NULL, sizeof(updated), updated_fields};

static int add_updates(const plot_report *r, const updated *u, uint64_t *of, uint64_t *lost)
{
    if (u->lost > u->of || *of > UINT64_MAX - u->of)
        return plot_malformed(r, "more are lost than there are");
    *of += u->of;
    *lost += u->lost;
    return 0;
}

static int read_updates(void *context, record_source item)
{
    reading *p = context;
    const plot_report *r = p->c->report;
    uint64_t of = 0, lost = 0;
    updated u;
    const char *needs = record_has(item, "weights") ? "step weights.updates weights.lost" : "step updates lost";
    int code = plot_read(r, &updated_record, item, &u, needs);
    if (!code && !u.weights)
        code = add_updates(r, &u, &of, &lost);
    for (size_t i = 0; i < u.n && !code; i++)
        code = add_updates(r, &u.weights[i], &of, &lost);
    record_forget(&updated_record, &u);
    if (code || of == 0)
        return code;
    return add_moment(p->c, p->curve, (plot_moment){(double)u.step, {100 * (double)lost / (double)of, (double)NAN}, 0});
}

/* ---- amaxes ---- */

typedef struct cast {
    const char *name;
    double amax, scale;
    uint64_t stale;
} cast;

#define AT(member) offsetof(cast, member)
static const record_field cast_fields[] = {FIELD(TEXT, "name", IN_JSON, AT(name), NULL),
                                           FIELD(REAL, "amax", IN_JSON | FIELD_FINITE, AT(amax), NULL),
                                           FIELD(REAL, "scale", IN_JSON | FIELD_NULL, AT(scale), NULL),
                                           FIELD(COUNT, "stale", IN_JSON, AT(stale), NULL),
                                           {0}};
#undef AT
static const record_kind cast_record = {"cast", NULL, sizeof(cast), cast_fields};

/* A tensor of a step: of stat any, of a replay one that has an FP8 scale. */
static int read_tensor(void *context, record_source item)
{
    reading *p = context;
    const plot_courses *c = p->c;
    const plot_label l = plot_label_of(item);
    plot_curve_of_steps *curve;
    char text[512];
    double scale = (double)NAN;
    cast t;
    if (!plot_item_selected(&l, p->selection, 0) || (p->policy ? !record_has(item, "amax_history") : l.step < 0))
        return 0;
    int code = plot_read(c->report, &cast_record, item, &t, p->policy ? "name amax scale stale" : "name amax");
    if (!code && p->policy)
        code = scale_of(c, "scale", t.scale, &scale);
    if (code)
        return code;
    snprintf(text, sizeof text, "%.200s%s%.300s", p->policy ? p->policy : "", p->policy && *p->policy ? ", " : "",
             t.name);
    code = curve_named(p->c, text, &curve);
    const double step = p->policy ? (double)p->step : (double)l.step;
    return code ? code : add_moment(c, curve, (plot_moment){step, {log2_of(t.amax), scale}, t.stale > 0});
}

static int read_tensors(void *context, record_source item)
{
    reading *p = context;
    scaled_step s;
    const int code = plot_read(p->c->report, &scaled_record, item, &s, "step");
    p->step = s.step;
    record_forget(&scaled_record, &s);
    return code ? code : plot_each(p->c->report, item, "tensors", read_tensor, p);
}

/* ---- reports: a list of runs, each a name and a list of steps ---- */

static const struct {
    const char *command, *runs, *name, *steps;
} layouts[] = {
    {"scaler", "scalers", "scaler", "trajectory"},
    {"train", "runs", "policy.name", "steps"},
    {"replay", "policies", "policy.name", "steps"},
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

/* Of a scaler, or of a policy; its spans where it is in memory. */
typedef struct named_run {
    const char *scaler, *policy;
    const span *spans;
    size_t n;
} named_run;

#define AT(member) offsetof(named_run, member)
#define SCALER FIELD(TEXT, "scaler", IN_JSON, AT(scaler), NULL)
static const record_field policy_fields[] = {FIELD(TEXT, "name", IN_JSON, AT(policy), NULL), {0}};
static const record_kind policy_record = {"policy", NULL, sizeof(named_run), policy_fields};
static const record_field run_fields[] = {
    SCALER, FIELD(RECORD, "policy", IN_JSON, 0, NULL, .record = &policy_record), {0}};
static const record_kind run_record = {"run", NULL, sizeof(named_run), run_fields};
static const record_field kept_fields[] = {
    SCALER, FIELD(LIST, "trajectory", IN_JSON, AT(spans), NULL, .of = AT(n), .record = &span_record), {0}};
static const record_kind kept_record = {"scaler", NULL, sizeof(named_run), kept_fields};
#undef AT

typedef struct scalers {
    const named_run *runs;
    size_t n;
} scalers;

static const record_field scalers_fields[] = {
    FIELD(LIST, "scalers", IN_JSON, offsetof(scalers, runs), NULL, .of = offsetof(scalers, n), .record = &kept_record),
    {0}};
const record_kind plot_scalers_record = {"scalers", NULL, sizeof(scalers), scalers_fields};

/* What reads the runs of a report: `visit` sees each step of each. */
typedef struct running {
    plot_courses *c;
    const plot_selection *selection;
    plot_visit *visit;
    size_t layout, n;
} running;

static int count_run(void *context, record_source run)
{
    running *w = context;
    (void)run;
    w->n++;
    return 0;
}

/* What there is to know of a trajectory before it is read. */
static int prepare(reading *p, record_source run, const char *name)
{
    const plot_report *r = p->c->report;
    const record_source log = record_part(r->root, "log");
    const int code = plot_each(r, run, "trajectory", find_numbers, p);
    p->numbers = p->numbers == BY_INDEX && p->lacks_index ? BY_ORDER : p->numbers;
    return code || !record_has(log, "norms") || p->numbers != BY_STEP || strcmp(name, "recorded") != 0
               ? code
               : plot_each(r, log, "norms", read_norm, p);
}

static int read_run(void *context, record_source run)
{
    const running *w = context;
    plot_courses *c = w->c;
    named_run names;
    reading p = {.c = c, .selection = w->selection};
    int code = plot_read(c->report, &run_record, run, &names, layouts[w->layout].name);
    const char *name = names.scaler && w->layout == 0 ? names.scaler : names.policy;
    if (code)
        return code;
    if (c->kind == &amaxes)
        p.policy = w->n > 1 ? name : "";
    else if (!plot_listed(&w->selection->match, name, 1))
        return 0;
    else
        code = curve_named(c, name, &p.curve);
    if (!code && w->visit == read_trajectory)
        code = prepare(&p, run, name);
    code = code ? code : plot_each(c->report, run, layouts[w->layout].steps, w->visit, &p);
    free(p.norms);
    return code;
}

static int read_runs(plot_courses *c, const plot_selection *selection, plot_visit *visit)
{
    running w = {c, selection, visit, 0, 0};
    while (w.layout + 1 < LAYOUTS && strcmp(layouts[w.layout].command, c->report->command) != 0)
        w.layout++;
    const char *runs = layouts[w.layout].runs;
    const int code = plot_each(c->report, c->report->root, runs, count_run, &w);
    return code ? code : plot_each(c->report, c->report->root, runs, read_run, &w);
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

int plot_lossscale_read(plot_input *in, const plot_selection *selection)
{
    plot_courses *c = &in->courses;
    const plot_report *report = &in->report;
    begin(c, report, &lossscale);
    const int is_scaler = strcmp(report->command, "scaler") == 0;
    const int code = read_runs(c, selection, is_scaler ? read_trajectory : read_scale);
    return code ? code : finish(c, "no run of it, or none that --match selects, has a step with a loss scale above 0");
}

int plot_updates_read(plot_input *in, const plot_selection *selection)
{
    plot_courses *c = &in->courses;
    const plot_report *report = &in->report;
    begin(c, report, &updates);
    const int code = read_runs(c, selection, read_updates);
    return code ? code : finish(c, "no run of it, or none that --match selects, has a step that updates weights");
}

int plot_amax_read(plot_input *in, const plot_selection *selection)
{
    plot_courses *c = &in->courses;
    const plot_report *report = &in->report;
    reading p = {.c = c, .selection = selection};
    begin(c, report, &amaxes);
    const int code = strcmp(report->command, "stat") == 0 ? plot_each(report, report->root, "tensors", read_tensor, &p)
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
