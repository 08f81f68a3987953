/* runs.c -- see runs.h. A report is untrusted: every member is checked. */
#include "../array/need.h"
#include "../text/escape.h"
#include "impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns ---- */

static const struct {
    const char *name, *axis, *needs;
} columns[] = {
    {"wgrad", "weight gradients rounded to zero (%)", "step loss scale wgrad wgrad.*"},
    {"agrad", "activation gradients rounded to zero (%)", "step loss scale agrad agrad.*"},
    {"act", "activations rounded to zero (%)", "step loss scale act act.*"},
    {"updates", "weight updates lost (%)", "step loss scale updates lost"},
};
enum { COLUMNS = sizeof columns / sizeof columns[0], UPDATES = 3 };

static int set_column(plot_runs *s, size_t i)
{
    s->column = columns[i].name;
    s->axis = columns[i].axis;
    s->at = i;
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

/* What is lost out of so many. */
typedef struct counts {
    uint64_t of, lost;
} counts;

/* A step, as mpsim train tells it: what is rounded of each column, the last that of the step itself. */
typedef struct trained {
    uint64_t step;
    double loss, scale;
    int skipped;
    counts columns[COLUMNS];
} trained;

#define AT(member) offsetof(counts, member)
static const record_field counts_fields[] = {
    FIELD(COUNT, "nonzero", IN_JSON, AT(of), NULL), FIELD(COUNT, "lost", IN_JSON, AT(lost), NULL), {0}};
#undef AT
static const record_kind counts_record = {"counts", NULL, sizeof(counts), counts_fields};

#define AT(member) offsetof(trained, member)
static const record_field trained_fields[] = {
    FIELD(COUNT, "step", IN_JSON, AT(step), NULL),
    FIELD(REAL, "loss", IN_JSON, AT(loss), NULL),
    FIELD(REAL, "scale", IN_JSON | FIELD_FINITE, AT(scale), NULL),
    FIELD(BOOLEAN, "skipped", IN_JSON, AT(skipped), NULL),
    FIELD(RECORD, "wgrad", IN_JSON, AT(columns[0]), NULL, .record = &counts_record),
    FIELD(RECORD, "agrad", IN_JSON, AT(columns[1]), NULL, .record = &counts_record),
    FIELD(RECORD, "act", IN_JSON, AT(columns[2]), NULL, .record = &counts_record),
    FIELD(COUNT, "updates", IN_JSON, AT(columns[UPDATES].of), NULL),
    FIELD(COUNT, "lost", IN_JSON, AT(columns[UPDATES].lost), NULL),
    {0}};
#undef AT
static const record_kind trained_record = {"step", NULL, sizeof(trained), trained_fields};

static int read_point(const plot_runs *s, const plot_report *r, record_source step, plot_point *p)
{
    trained t;
    const int code = plot_read(r, &trained_record, step, &t, columns[s->at].needs);
    const counts *c = &t.columns[s->at];
    *p = (plot_point){t.step, t.loss, t.scale, t.skipped > 0, c->of, c->lost};
    if (!code && !(t.scale > 0))
        return plot_wrong_member(r, "scale", "above 0");
    return code || c->lost <= c->of ? code : plot_malformed(r, "more are lost than there are");
}

/* ---- one run ---- */

/* What is read: the runs of the report, a run, and the room for its steps. */
typedef struct reading {
    plot_runs *s;
    const plot_report *report;
    const option_list *match;
    plot_training *run;
} reading;

static int read_step(void *context, record_source step)
{
    const reading *p = context;
    plot_training *r = p->run;
    need_room(&r->points, r->n, sizeof *r->points);
    plot_point *at = &r->points[r->n];
    const int code = read_point(p->s, p->report, step, at);
    if (code)
        return code;
    if (at->step < 1 || (r->n && at->step <= at[-1].step))
        return plot_malformed(p->report, "steps that do not follow one another");
    r->n++;
    if (isfinite(at->loss))
        r->finite = r->n;
    r->scaled |= at->scale < 1 || at->scale > 1 || at->skipped;
    return 0;
}

static const record_field name_fields[] = {FIELD(TEXT, "name", IN_JSON, offsetof(plot_training, name), NULL), {0}};
static const record_kind name_record = {"policy", NULL, sizeof(plot_training), name_fields};

static int read_run(void *context, record_source item)
{
    reading *p = context;
    plot_runs *s = p->s;
    plot_training run;
    int code = plot_read(p->report, &name_record, record_part(item, "policy"), &run, "name");
    if (code || !plot_listed(p->match, run.name, 1))
        return code;
    run.report = p->report;
    p->run = &run;
    code = plot_each(p->report, item, "steps", read_step, p);
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
    reading p = {.s = s, .match = &selection->match};
    int code = 0;
    for (size_t k = 0; k < s->n_runs; k++)
        free(s->runs[k].points);
    memset(s->runs, 0, sizeof s->runs);
    s->n_runs = 0;
    for (p.report = s->report; p.report && !code; p.report = p.report->next)
        code = plot_each(p.report, p.report->root, "runs", read_run, &p);
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

/* A file without its folder and ".json". */
static void name_file(char name[201], const char *path)
{
    const char *base = plot_base(path);
    const size_t n = strlen(base), suffix = strlen(".json");
    const size_t kept = n > suffix && strcmp(base + n - suffix, ".json") == 0 ? n - suffix : n;
    snprintf(name, 201, "%.*s", (int)(kept < 200 ? kept : 200), base);
}

/* Of several reports: the policy and the file, or the file if all policies are one. */
static void make_names(plot_runs *s)
{
    int differ = 0;
    for (size_t i = 1; i < s->n_runs; i++)
        differ |= strcmp(s->runs[i].name, s->runs[0].name) != 0;
    for (size_t i = 0; i < s->n_runs && s->report->next; i++) {
        plot_training *r = &s->runs[i];
        char file[201], label[512];
        name_file(file, r->report->path);
        snprintf(label, sizeof label, "%.200s, %s", r->name, file);
        r->label = need_memory(512, 1);
        escape_text(r->label, 512, differ ? label : file);
        r->name = r->label;
    }
}

int plot_runs_read(plot_input *in, const plot_selection *selection)
{
    plot_runs *s = &in->runs;
    const plot_report *report = &in->report;
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
    for (size_t i = 0; i < s->n_runs; i++) {
        free(s->runs[i].points);
        free(s->runs[i].label);
    }
    memset(s, 0, sizeof *s);
}
