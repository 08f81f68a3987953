/* run.c -- see run.h. */
#include "run.h"

#include "../array/need.h"
#include "../input/steps.h"
#include "../record/cells.h"
#include "../trace/roundoff.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 15 };

/* ---- patterns ---- */

static int visit_pattern(double limit, uint64_t n, void *context)
{
    scalerrun *r = context;
    for (size_t k = 0; k < r->count; k++) {
        track *t = &r->tracks[k];
        for (uint64_t i = 0; i < n && !t->scaler.stopped; i++) {
            const int overflow = t->scaler.scale > limit || limit < 0;
            const mpsim_scaler_result result = traininglog_track_step(t, -1, overflow, NULL,
                                                                      limit < 0 || isinf(limit) ? (double)NAN : limit);
            if (k == 0 && r->told)
                r->told(t, (int64_t)t->steps, &result, r->context);
        }
    }
    return 0;
}

void scaler_run_pattern(scalerrun *r, const char *text)
{
    uint64_t steps;
    size_t at;
    const char *reason;
    (void)scaler_pattern_each(text, visit_pattern, r, &steps, &at, &reason); /* it was checked */
}

/* ---- the steps of a trace ---- */

/* The files in order of their steps; those without a step come first and are a step each. */
static int find_steps(scalerrun *r)
{
    input_step *said;
    const int code = input_order_steps(r->in, &said);
    const size_t n = r->in->tree.count;
    if (code)
        return code;
    r->steps = need_memory(n, sizeof *r->steps);
    for (size_t i = 0; i < n; i++) {
        const int again = i > 0 && said[i].step >= 0 && said[i].step == said[i - 1].step;
        if (!again) {
            recorded_step *s = &r->steps[r->n_steps++];
            s->number = said[i].step;
            s->scale = (double)NAN;
            s->limit = (double)INFINITY;
            s->file = i;
        }
        r->steps[r->n_steps - 1].files++;
        r->twice |= again && said[i].rank >= 0 && said[i].rank == said[i - 1].rank;
    }
    free(said);
    return 0;
}

const recorded_step *scaler_run_step(const scalerrun *r, int64_t number)
{
    for (size_t i = 0; i < r->n_steps; i++)
        if (r->steps[i].number == number && number >= 0)
            return &r->steps[i];
    return NULL;
}

/* Append "KEY=VALUE" if the metadata have a value, and another one than the row has. */
static int add_key(char *spec, size_t size, const trace *t, const char *name, const char *key, double usual)
{
    char value[32];
    double x;
    const char *text = trace_metadata(t, name);
    if (!text || parse_number(&x, text) || x == usual)
        return 0;
    return text_add(spec, size, "%c%s=%s", strchr(spec, ':') ? ',' : ':', key, text_scale(value, x));
}

int scaler_run_own(input *in, char *spec, size_t size, int *own)
{
    trace_error error;
    const char *path = in->tree.count ? in->tree.paths[0] : NULL;
    *own = 0;
    if (!path || !input_is_file(path))
        return 0;
    trace *t = input_trace_open(in, path, &error);
    if (!t) /* what may be passed over is told when its turn comes */
        return in->options->keep_going || error.refused ? 0 : fail(error.exit, "%s", error.text);
    const char *name = trace_metadata(t, "mpsim.scaler");
    const mpsim_scaler_type *row = name ? mpsim_scaler_find(name) : NULL;
    if (row) {
        const mpsim_scaler_config *c = &row->config;
        mpsim_scaler_config parsed;
        snprintf(spec, size, "%s", c->name);
        if (add_key(spec, size, t, "mpsim.scaler_init", "init", c->init) ||
            add_key(spec, size, t, "mpsim.scaler_growth", "growth", c->growth) ||
            add_key(spec, size, t, "mpsim.scaler_backoff", "backoff", c->backoff) ||
            add_key(spec, size, t, "mpsim.scaler_interval", "window", (double)c->window) ||
            mpsim_scaler_parse(&parsed, spec) != MPSIM_OK)
            row = NULL;
    }
    trace_close(t);
    *own = row != NULL;
    return 0;
}

/* ---- measuring a step ---- */

/* One reading of a step: what is wanted at several scales. */
typedef struct reading {
    scalerrun *run;
    recorded_step *step;
    measured *wanted;
    mpsim_stats *norms; /* of the rounded gradients, one for each of wanted; NULL: not needed */
    size_t n;
    double *x, *y;
    const char *path;           /* of the file                              */
    double divisor;             /* the scale that its gradients were recorded at */
    const mpsim_format *format; /* that the tensor at hand is rounded to */
    int first;                  /* the step is read for the first time */
} reading;

/* Infinite and zero scales are no scales that rounding takes: inf * 0 is NaN, else all is Inf; 0
 * makes all zero. */
static void measure_limit(measured *m, uint64_t elements, uint64_t zeros, uint64_t bad)
{
    m->loss.elements += elements;
    if (m->scale > 0)
        m->loss.overflowed += elements - bad;
    else
        m->loss.lost += elements - bad - zeros;
}

static void measure_block(reading *g, size_t n, const mpsim_stats *s)
{
    for (size_t k = 0; k < g->n; k++) {
        measured *m = &g->wanted[k];
        mpsim_counts c = {0, 0, 0, 0, 0};
        mpsim_rounding rounding;
        if (g->divisor == 1)
            m->loss.not_finite += s->nan + s->inf;
        else if (m->scale >= g->divisor)
            m->loss.overflowed += s->nan + s->inf;
        if (!(m->scale > 0 && isfinite(m->scale))) {
            measure_limit(m, n, s->zero, s->nan + s->inf);
            continue;
        }
        mpsim_rounding_init(&rounding, MPSIM_ROUND_NEAREST_EVEN);
        rounding.scale = m->scale;
        /* format and rounding are valid */
        (void)mpsim_round_array_f64(g->format, &rounding, NULL, g->y, g->x, n, &c);
        m->loss.elements += n;
        m->loss.lost += c.underflow;
        m->loss.overflowed += c.overflow;
        if (g->norms)
            mpsim_stats_add(&g->norms[k], g->y, n);
    }
}

static void describe_block(reading *g, const trace_tensor *tensor, const mpsim_stats *s)
{
    recorded_step *step = g->step;
    const uint64_t bad = s->nan + s->inf;
    if (!g->first)
        return;
    const int found = step->counts.not_finite || isfinite(step->limit);
    if (!step->worst[0] || (!found && (bad || s->amax > step->amax)))
        escape_text(step->worst, sizeof step->worst, tensor->name[0] ? tensor->name : g->path);
    double *amax = g->format == &g->run->format ? &step->amax_narrow : &step->amax_wide;
    *amax = fmax(*amax, s->amax);
    step->amax = fmax(step->amax, s->amax);
    step->counts.not_finite += g->divisor == 1 ? bad : 0;
    if (bad && g->divisor != 1 && g->divisor < step->limit)
        step->limit = g->divisor;
    step->counts.elements += s->count;
}

static int read_tensor(reading *g, trace *t, size_t i, trace_error *error)
{
    const trace_tensor *tensor = trace_at(t, i);
    size_t n;
    if (trace_select(t, i, error))
        return -1;
    do {
        mpsim_stats s;
        if (trace_read(t, g->x, BLOCK, &n, error))
            return -1;
        for (size_t j = 0; g->divisor != 1 && j < n; j++)
            g->x[j] /= g->divisor;
        mpsim_stats_init(&s);
        mpsim_stats_add(&s, g->x, n);
        if (n)
            describe_block(g, tensor, &s);
        measure_block(g, n, &s);
    } while (n == BLOCK);
    return 0;
}

int scaler_run_recorded_scale(scalerrun *r, const trace *t, double *scale, trace_error *error)
{
    const char *scaled = trace_metadata(t, "mpsim.grads_scaled");
    const char *text = trace_metadata(t, "mpsim.loss_scale");
    int e;
    *scale = 1;
    r->unsaid |= !scaled && !text;
    if (!scaled || (strcmp(scaled, "true") != 0 && strcmp(scaled, "1") != 0))
        return 0;
    if (!text || parse_number(scale, text) || !(*scale > 0))
        return trace_error_set(error, EXIT_DATA, trace_path(t), UINT64_MAX,
                               "mpsim.grads_scaled is true, and mpsim.loss_scale says no scale");
    r->unscaled = 1;
    r->inexact |= frexp(*scale, &e) != 0.5;
    return 0;
}

/* What the run's own scaler found counts for its scale, and for larger ones. */
static void take_found(reading *g, const trace *t)
{
    const char *found = trace_metadata(t, "mpsim.found_inf");
    if (!found || (strcmp(found, "1") != 0 && strcmp(found, "true") != 0) || g->run->given)
        return;
    g->step->found = 1;
    if (g->divisor != 1)
        g->step->limit = fmin(g->step->limit, g->divisor);
}

/* Elements of selected gradients that are no gradients, of a step that is read for the first time. */
static int find_roundoff(reading *g, trace *t, trace_error *error)
{
    scalerrun *r = g->run;
    uint64_t bytes;
    if (trace_find_roundoff(t, &bytes, error))
        return -1;
    for (size_t i = 0; i < trace_count(t) && g->first; i++) {
        const trace_tensor *x = trace_at(t, i);
        if (!x->roundoff || !input_selects(r->in, x))
            continue;
        if (!r->first_rounded[0])
            escape_text(r->first_rounded, sizeof r->first_rounded, x->name);
        r->roundoff += x->roundoff->count;
    }
    return 0;
}

static int read_file(reading *g, trace *t, trace_error *error)
{
    scalerrun *r = g->run;
    const char *scaled = trace_metadata(t, "mpsim.grads_scaled");
    g->path = trace_path(t);
    if (scaler_run_recorded_scale(r, t, &g->divisor, error) || find_roundoff(g, t, error))
        return -1;
    if (g->first && scaled && g->divisor != 1)
        g->step->scale = g->divisor;
    if (g->first)
        take_found(g, t);
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *tensor = trace_at(t, i);
        if (!input_selects(r->in, tensor))
            continue;
        if (!tensor->format) {
            r->left_out += (uint64_t)g->first;
            continue;
        }
        r->tensors += (uint64_t)g->first;
        r->narrow |= tensor->format->ebits <= 5;
        g->format = scaler_wide_has(&r->wide, tensor->name) ? &r->wide_format : &r->format;
        r->in_wide += (uint64_t)(g->first && g->format != &r->format);
        if (read_tensor(g, t, i, error))
            return -1;
    }
    return 0;
}

/* The largest power of two that leaves amax finite. */
static double fitting_finite(const mpsim_format *f, const recorded_step *s, double amax)
{
    mpsim_rounding r;
    unsigned flags = 0;
    int e;
    if (s->counts.not_finite)
        return 0;
    if (!(amax > 0))
        return (double)INFINITY;
    (void)frexp(mpsim_format_max(f) / amax, &e);
    e = e > 1023 ? 1023 : e < -1073 ? -1073 : e;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.scale = ldexp(1, e);
    (void)mpsim_encode_f64(f, &r, amax, 0, &flags);
    return flags & MPSIM_FLAG_OVERFLOW ? ldexp(1, e - 1) : r.scale;
}

static double fitting_scale(const scalerrun *r, const recorded_step *s)
{
    int e = 0;
    (void)frexp(s->limit, &e);
    const double finite = fmin(fitting_finite(&r->format, s, s->amax_narrow),
                               fitting_finite(&r->wide_format, s, s->amax_wide));
    return fmin(finite, isfinite(s->limit) ? ldexp(1, e - 2) : s->limit);
}

/* Where the step was recorded clean, it is so at that scale and below; what was found counts at it and above. */
static void let_record_win(const scalerrun *r, recorded_step *s, measured *m)
{
    if (!r->given && s->found && m->scale >= s->scale)
        m->overflow = 1;
    if (r->given || s->found || isfinite(s->limit) || s->counts.not_finite || !(m->scale <= s->scale) || !m->overflow)
        return;
    s->contradicts = 1;
    m->overflow = 0;
    m->loss.overflowed = 0;
}

static int keep_measured(reading *g)
{
    recorded_step *s = g->step;
    measured *seen = need_more(s->seen, s->n_seen + g->n, sizeof *seen);
    s->seen = seen;
    for (size_t k = 0; k < g->n; k++) {
        measured *m = &g->wanted[k];
        m->overflow = m->loss.overflowed + m->loss.not_finite > 0;
        let_record_win(g->run, s, m);
        m->norm_overflow = m->overflow;
        if (g->norms && m->scale > 0 && isfinite(m->scale))
            m->norm_overflow |= isinf((float)mpsim_stats_l2(&g->norms[k]));
        seen[s->n_seen++] = *m;
    }
    return 0;
}

static int measure(reading *g)
{
    scalerrun *r = g->run;
    recorded_step *s = g->step;
    int code = 0;
    for (size_t k = 0; g->norms && k < g->n; k++)
        mpsim_stats_init(&g->norms[k]);
    g->first = s->n_seen == 0;
    for (size_t i = 0; i < s->files && !code; i++) {
        trace_error error;
        trace *t = input_trace_open(r->in, r->in->tree.paths[s->file + i], &error);
        if (!t || read_file(g, t, &error))
            code = input_failed(r->in, &error);
        trace_close(t);
    }
    if (!code && g->first) {
        s->fits = fitting_scale(r, s);
        r->bad_steps += isfinite(s->limit) ? 1 : 0;
    }
    return code ? code : keep_measured(g);
}

/* ---- the run ---- */

static const measured *find_measured(const recorded_step *s, double scale)
{
    for (size_t i = 0; i < s->n_seen; i++)
        if (s->seen[i].scale == scale)
            return &s->seen[i];
    return NULL;
}

/* The scales in force that were not measured yet, each once. */
static size_t wanted_scales(const scalerrun *r, const recorded_step *s, measured *wanted)
{
    size_t n = 0;
    for (size_t k = 0; k < r->count; k++) {
        const mpsim_scaler *scaler = &r->tracks[k].scaler;
        size_t i = 0;
        if (scaler->stopped || find_measured(s, scaler->scale))
            continue;
        while (i < n && wanted[i].scale != scaler->scale)
            i++;
        if (i == n)
            wanted[n++] = (measured){.scale = scaler->scale};
    }
    return n;
}

static void step_tracks(scalerrun *r, const recorded_step *s)
{
    for (size_t k = 0; k < r->count; k++) {
        track *t = &r->tracks[k];
        if (t->scaler.stopped)
            continue;
        const measured *m = find_measured(s, t->scaler.scale);
        t->compared += !isnan(s->scale) && r->repeat == 1;
        t->agreed += t->scaler.scale == s->scale && r->repeat == 1;
        const int norm = t->scaler.config.check == MPSIM_CHECK_NORM;
        const int64_t number = r->repeat > 1 ? -1 : s->number;
        const mpsim_scaler_result result = traininglog_track_step(t, number, norm ? m->norm_overflow : m->overflow,
                                                                  &m->loss, s->fits);
        if (k == 0 && r->told)
            r->told(t, number >= 0 ? number : (int64_t)t->steps, &result, r->context);
    }
}

static int run_steps(scalerrun *r, reading *g)
{
    for (uint64_t pass = 0; pass < r->repeat; pass++)
        for (size_t i = 0; i < r->n_steps; i++) {
            g->step = &r->steps[i];
            g->n = wanted_scales(r, g->step, g->wanted);
            const int code = g->n ? measure(g) : 0;
            if (code)
                return code;
            if (g->step->counts.elements) /* a file without gradients is no step */
                step_tracks(r, g->step);
        }
    return 0;
}

/* What --repeat cannot do. */
static int check_repeat(const scalerrun *r)
{
    char name[512];
    if (r->repeat == 1)
        return 0;
    for (size_t i = 0; i < r->in->tree.count; i++) {
        const char *path = r->in->tree.paths[i];
        if (strcmp(path, "-") == 0)
            return fail(EXIT_USAGE, "scaler: --repeat: standard input can be read once only");
        if (!input_is_file(path))
            return fail(EXIT_USAGE, "scaler: --repeat: '%s' is not a regular file: it can be read once only",
                        escape_text(name, sizeof name, path));
    }
    return r->n_steps && r->repeat > PATTERN_STEPS / r->n_steps
               ? fail(EXIT_USAGE, "scaler: --repeat: more than 10^8 steps")
               : 0;
}

/* No gradient is selected: why. */
static int no_gradient(const scalerrun *r)
{
    char names[600], kind[16], n[32];
    const int code = r->in->failed ? EXIT_PARTIAL : EXIT_DATA;
    input_names(r->in, names, sizeof names);
    if (r->in->without_kind && !r->left_out)
        return fail(code, "scaler: %s: no gradient is selected: %s tensor%s no kind; --map %s says what they are",
                    names, text_count(n, r->in->without_kind), r->in->without_kind == 1 ? " has" : "s have",
                    input_first_kind(r->in, kind));
    return fail(code, "scaler: %s: no gradient is selected: name tensors with --match or --kind%s", names,
                r->left_out ? " (what is selected is not floating-point)" : "");
}

int scaler_run_trace(scalerrun *r)
{
    reading g = {.run = r};
    int norm = 0;
    for (size_t k = 0; k < r->count; k++)
        norm |= r->tracks[k].scaler.config.check == MPSIM_CHECK_NORM;
    g.x = need_memory(BLOCK, sizeof *g.x);
    g.y = need_memory(BLOCK, sizeof *g.y);
    g.wanted = need_memory(r->count, sizeof *g.wanted);
    g.norms = norm ? need_memory(r->count, sizeof *g.norms) : NULL;
    int code = find_steps(r);
    if (!code)
        code = check_repeat(r);
    r->wide_format = *mpsim_format_find("binary32");
    if (!code && !r->given)
        code = scaler_wide_find(&r->wide, r->in, &r->format);
    if (!code)
        code = run_steps(r, &g);
    free(g.x);
    free(g.y);
    free(g.wanted);
    free(g.norms);
    if (!code && r->tensors == 0)
        code = no_gradient(r);
    return code;
}

void scaler_run_clear(scalerrun *r)
{
    for (size_t i = 0; i < r->n_steps; i++)
        free(r->steps[i].seen);
    free(r->steps);
    scaler_wide_clear(&r->wide);
}
