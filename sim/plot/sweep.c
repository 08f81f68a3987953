/* sweep.c -- see sweep.h. A report is untrusted: every member is checked. */
#include "impl.h"

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
            s->at = i;
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

/* A model at a depth, as mpsim dot tells it. */
typedef struct result {
    const char *model, *format;
    uint64_t k, count, not_finite;
    double errors[COLUMNS];
} result;

#define AT(member) offsetof(result, member)
static const record_field result_fields[] = {FIELD(TEXT, "model", IN_JSON, AT(model), NULL),
                                             FIELD(TEXT, "result_format", IN_JSON, AT(format), NULL),
                                             FIELD(COUNT, "k", IN_JSON, AT(k), NULL),
                                             FIELD(COUNT, "count", IN_JSON, AT(count), NULL),
                                             FIELD(COUNT, "not_finite", IN_JSON, AT(not_finite), NULL),
                                             FIELD(REAL, "rel_err", IN_JSON, AT(errors[0]), NULL),
                                             FIELD(REAL, "max_rel_err", IN_JSON, AT(errors[1]), NULL),
                                             FIELD(REAL, "bias", IN_JSON, AT(errors[2]), NULL),
                                             {0}};
#undef AT
static const record_kind result_record = {"result", NULL, sizeof(result), result_fields};

#define AT(member) offsetof(plot_operand, member)
static const record_field operand_fields[] = {FIELD(TEXT, "format", IN_JSON, AT(format), NULL),
                                              FIELD(TEXT, "values", IN_JSON, AT(values), NULL),
                                              FIELD(REAL, "scale", IN_JSON, AT(scale), NULL),
                                              {0}};
#undef AT
static const record_kind operand_record = {"operand", NULL, sizeof(plot_operand), operand_fields};
static const record_field operands_fields[] = {
    FIELD(RECORD, "a", IN_JSON, 0, NULL, .record = &operand_record),
    FIELD(RECORD, "b", IN_JSON, sizeof(plot_operand), NULL, .record = &operand_record),
    {0}};
static const record_kind operands_record = {"operands", NULL, 2 * sizeof(plot_operand), operands_fields};

/* The error of a result. */
static int error_of(const plot_sweep *s, const result *r, double *error)
{
    const double x = r->errors[s->at];
    if (r->not_finite > r->count)
        return plot_malformed(s->report, "more results are not finite than there are");
    if (s->relative && isfinite(x) && x < 0)
        return plot_wrong_member(s->report, s->column, "an error");
    *error = !isfinite(x) || r->not_finite ? PLOT_NOT_FINITE : fabs(x);
    return r->k ? 0 : plot_malformed(s->report, "a dot product of no elements");
}

/* What is being read: first all lengths and models, then the errors, since the report may have any
 * order. */
typedef struct reading {
    plot_sweep *s;
    const option_list *match;
    int second;
    size_t items;
} reading;

static int read_item(void *context, record_source item)
{
    reading *p = context;
    plot_sweep *s = p->s;
    char needs[96];
    result r;
    double error = 0;
    snprintf(needs, sizeof needs, "model result_format k count not_finite %s", s->column);
    int code = plot_read(s->report, &result_record, item, &r, needs);
    code = code ? code : error_of(s, &r, &error);
    p->items++;
    if (code || !plot_listed(p->match, r.model, 1))
        return code;
    if (!p->second) {
        code = add_length(s, r.k);
        return code ? code : add_model(s, r.model, r.format);
    }
    for (size_t i = 0; i < s->n_models; i++)
        for (size_t j = 0; j < s->n_lengths; j++)
            if (s->lengths[j] == r.k && strcmp(s->models[i].name, r.model) == 0)
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

int plot_sweep_read(plot_input *in, const plot_selection *selection)
{
    plot_sweep *s = &in->sweep;
    const plot_report *report = &in->report;
    memset(s, 0, sizeof *s);
    s->report = report;
    reading p = {s, &selection->match, 0, 0};
    int code = choose_column(s, selection->column);
    code = code ? code : plot_read(report, &operands_record, record_part(report->root, "operands"), s->operands, "");
    for (; p.second < 2 && !code; p.second++)
        code = plot_each(report, report->root, "results", read_item, &p);
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
