/* json.c -- see json.h. */
#include "json.h"

#include "../record/step.h"
#include "../text/words.h"
#include "table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Names of what a log shows beside the scaler's own events, in JSON and CSV. */
static const struct {
    unsigned bit;
    const char *name;
} seen[] = {
    {RECORDED_JUMP, "jump"},         {RECORDED_RESTART, "restart"}, {RECORDED_MIXED, "mixed"},
    {RECORDED_INFERRED, "inferred"}, {RECORDED_GAP, "gap"},
};
enum { SEEN = sizeof seen / sizeof seen[0] };

static json_t *number_or_null(int64_t n)
{
    return n >= 0 ? json_integer(n) : json_null();
}

static json_t *span_json(const track *t, const span *s)
{
    json_t *v = json_object(), *names = step_events_json(s->events);
    for (int i = 0; i < SEEN; i++)
        if (s->events & seen[i].bit)
            json_array_append_new(names, json_string(seen[i].name));
    json_object_set_new(v, "from", number_or_null(s->from));
    json_object_set_new(v, "to", number_or_null(s->to));
    json_object_set_new(v, "index", t->unknown_steps ? json_null() : json_of_count(s->first));
    json_object_set_new(v, "steps", json_of_count(s->steps));
    json_object_set_new(v, "scale", json_of_double(s->scale));
    json_object_set_new(v, "next", json_of_double(s->next));
    json_object_set_new(v, "events", names);
    if (s->loss.elements) {
        json_object_set_new(v, "elements", json_of_count(s->loss.elements));
        json_object_set_new(v, "lost", json_of_count(s->loss.lost));
        json_object_set_new(v, "overflowed", json_of_count(s->loss.overflowed));
        json_object_set_new(v, "not_finite", json_of_count(s->loss.not_finite));
    }
    if (!isnan(s->fits))
        json_object_set_new(v, "fits", json_of_double(s->fits));
    return v;
}

/* What the verdict on a log rests on. */
static void add_judgement(json_t *v, const log_judgement *j)
{
    json_t *evidence = json_array();
    for (size_t i = 0; i < j->n_evidence; i++) {
        json_t *e = json_object();
        json_object_set_new(e, "line", json_of_count(j->evidence[i].line));
        json_object_set_new(e, "last_line", json_of_count(j->evidence[i].last_line));
        json_object_set_new(e, "says", json_string(j->evidence[i].says));
        json_array_append_new(evidence, e);
    }
    json_object_set_new(v, "class", json_string(log_class(j->verdict)));
    json_object_set_new(v, "confidence", json_string(confidence_names[j->sure]));
    json_object_set_new(v, "evidence", evidence);
    json_object_set_new(v, "missing", j->missing[0] ? json_string(j->missing) : json_null());
    json_object_set_new(v, "advice", json_string(j->advice));
}

static json_t *track_json(const scaler_report *r, const track *t)
{
    char text[1280];
    json_t *v = json_object(), *spans = json_array();
    const verdict kind = scaler_verdict(r, t, text, sizeof text);
    for (size_t i = 0; i < t->count; i++)
        json_array_append_new(spans, span_json(t, &t->spans[i]));
    json_object_set_new(v, "scaler", json_string(t->label));
    if (!t->recorded)
        json_object_set_new(v, "config", scaler_config_json(&t->scaler.config));
    json_object_set_new(v, "steps", t->unknown_steps ? json_null() : json_of_count(t->steps));
    json_object_set_new(v, "overflows", json_of_count(t->overflows));
    json_object_set_new(v, "skipped", json_of_count(t->skipped));
    json_object_set_new(v, "taken", json_of_count(t->taken));
    json_object_set_new(v, "growths", json_of_count(t->growths));
    json_object_set_new(v, "backoffs", json_of_count(t->backoffs));
    json_object_set_new(v, "tolerated", json_of_count(t->tolerated));
    json_object_set_new(v, "floored", json_of_count(t->floored));
    json_object_set_new(v, "refused", json_of_count(t->refused));
    json_object_set_new(v, "stopped_at", number_or_null(t->stop));
    json_object_set_new(v, "smallest_scale", json_of_double(t->least));
    json_object_set_new(v, "largest_scale", json_of_double(t->most));
    json_object_set_new(v, "last_scale", json_of_double(t->last));
    json_object_set_new(v, "elements", json_of_count(t->loss.elements));
    json_object_set_new(v, "lost", json_of_count(t->loss.lost));
    json_object_set_new(v, "overflowed", json_of_count(t->loss.overflowed));
    json_object_set_new(v, "not_finite", json_of_count(t->loss.not_finite));
    json_object_set_new(v, "recorded_steps", json_of_count(t->compared));
    json_object_set_new(v, "recorded_agreed", json_of_count(t->agreed));
    json_object_set_new(v, "verdict", json_string(verdict_name(kind)));
    json_object_set_new(v, "why", json_string(text));
    if (t->recorded)
        add_judgement(v, r->judgement);
    json_object_set_new(v, "truncated", json_boolean(t->truncated));
    json_object_set_new(v, "trajectory", spans);
    return v;
}

/* The finite ones of which the step is told. */
static json_t *norms_json(const training_log *l)
{
    json_t *all = json_array();
    series norms;
    series_find(&norms, l, SERIES_NORM);
    for (size_t i = 0; i < norms.n; i++)
        if (norms.at[i].step >= 0)
            json_array_append_new(all, json_pack("{s:I, s:o}", "step", (json_int_t)norms.at[i].step, "norm",
                                                 json_of_double(norms.at[i].value)));
    series_clear(&norms);
    return all;
}

/* The first step at which two ranks tell other numbers. */
static json_t *apart_json(const log_apart *a)
{
    return a->lines == 0 ? json_null()
                         : json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "lines", (json_int_t)a->lines, "line",
                                     (json_int_t)a->line, "step", (json_int_t)a->step, "rank", (json_int_t)a->rank,
                                     "other_rank", (json_int_t)a->other, "value", json_of_double(a->scale),
                                     "other_value", json_of_double(a->other_scale));
}

/* Names of the numbers that were not read. */
static json_t *unread_json(const training_log *l)
{
    json_t *all = json_array();
    const char *name;
    for (size_t i = 0; (name = metric_unread(&l->metrics, i)) != NULL; i++)
        json_array_append_new(all, json_string(name));
    return all;
}

static json_t *log_json(const scaler_report *r)
{
    const training_log *l = r->log;
    json_t *v = json_object(), *lines = json_object(), *jumps = json_array(), *matches = json_array();
    for (int d = 0; d < LOG_DIALECTS; d++)
        json_object_set_new(lines, log_dialect_name((log_dialect)d), json_of_count(l->recognised[d]));
    for (size_t i = 0; i < l->n_jumps; i++) {
        json_t *j = json_object();
        json_object_set_new(j, "line", json_of_count(l->jumps[i].line));
        json_object_set_new(j, "step", number_or_null(l->jumps[i].step));
        json_object_set_new(j, "from", json_of_double(l->jumps[i].from));
        json_object_set_new(j, "to", json_of_double(l->jumps[i].to));
        json_object_set_new(j, "restart", json_boolean(l->jumps[i].restart));
        json_array_append_new(jumps, j);
    }
    for (size_t i = 0; i < r->n_matches; i++) {
        const log_match *m = &r->matches[i];
        json_t *j = json_object();
        json_object_set_new(j, "scaler", json_string(m->label));
        json_object_set_new(j, "compared", json_of_count(m->compared));
        json_object_set_new(j, "agreed", json_of_count(m->agreed));
        json_object_set_new(j, "step", number_or_null(m->at ? m->step : -1));
        json_object_set_new(j, "recorded", m->at ? json_of_double(m->recorded) : json_null());
        json_object_set_new(j, "computed", m->at ? json_of_double(m->computed) : json_null());
        json_array_append_new(matches, j);
    }
    json_object_set_new(v, "file", json_of_path(r->log_path));
    json_object_set_new(v, "lines", json_of_count(l->reader.lines));
    json_object_set_new(v, "recognised", json_of_count(l->total));
    json_object_set_new(v, "dialects", lines);
    json_object_set_new(v, "copies", json_of_count(l->copies));
    json_object_set_new(v, "other_ranks", json_of_count(l->other_ranks));
    json_object_set_new(v, "without_scale", json_of_count(l->bad));
    json_object_set_new(v, "averages", json_of_count(l->averages));
    json_object_set_new(v, "cut", json_of_count(l->reader.cut));
    json_object_set_new(v, "unread", unread_json(l));
    json_object_set_new(v, "scales_apart", apart_json(&l->apart));
    json_object_set_new(v, "losses_apart", apart_json(&l->losses_apart));
    json_object_set_new(v, "loss_not_finite", json_of_count(l->lost_lines));
    json_object_set_new(v, "loss_not_finite_since", l->lost_since ? json_of_count(l->lost) : json_null());
    json_object_set_new(v, "restarts", json_of_count(l->restarts));
    json_object_set_new(v, "jumps", jumps);
    json_object_set_new(v, "matches", matches);
    json_object_set_new(v, "norms", norms_json(l));
    return v;
}

/* The gradients that the run had in binary32. */
static json_t *wide_json(const wide_gradients *w)
{
    json_t *all = json_array();
    for (size_t i = 0; i < w->count; i++)
        json_array_append_new(all, json_string(w->items[i].name));
    return all;
}

static json_t *steps_json(const scalerrun *run)
{
    json_t *all = json_array();
    for (size_t i = 0; i < run->n_steps; i++) {
        const recorded_step *s = &run->steps[i];
        json_t *v = json_object();
        json_object_set_new(v, "step", number_or_null(s->number));
        json_object_set_new(v, "files", json_of_count(s->files));
        json_object_set_new(v, "elements", json_of_count(s->counts.elements));
        json_object_set_new(v, "not_finite", json_of_count(s->counts.not_finite));
        json_object_set_new(v, "recorded_scale", isnan(s->scale) ? json_null() : json_of_double(s->scale));
        json_object_set_new(v, "amax", json_of_double(s->amax));
        json_object_set_new(v, "fits", json_of_double(s->fits));
        json_object_set_new(v, "largest_in", json_string(s->worst));
        json_object_set_new(v, "record_contradicts", json_boolean(s->contradicts));
        json_array_append_new(all, v);
    }
    return all;
}

/* The files that the numbers come from. */
static json_t *inputs_json(const scaler_report *r)
{
    json_t *inputs = json_array();
    if (r->log)
        json_array_append_new(inputs, json_of_path(r->log_path));
    else if (r->pattern && r->pattern[0] == '@')
        json_array_append_new(inputs, json_of_path(r->pattern + 1));
    else if (!r->pattern)
        for (size_t i = 0; i < r->run->in->tree.count; i++)
            json_array_append_new(inputs, json_of_path(r->run->in->tree.paths[i]));
    return inputs;
}

void scaler_report_json(FILE *to, const scaler_report *r)
{
    json_t *v = json_report("mpsim.scaler/1"), *config = json_object(), *scalers = json_array();
    json_object_set_new(config, "input", json_string(r->log ? "log" : r->pattern ? "pattern" : "trace"));
    json_object_set_new(config, "inputs", inputs_json(r));
    if (r->pattern)
        json_object_set_new(config, "pattern", json_of_path(r->pattern));
    if (!r->log && !r->pattern) {
        json_object_set_new(config, "format", json_string(r->format));
        json_object_set_new(config, "binary32_tensors", json_of_count(r->run->in_wide));
        json_object_set_new(config, "roundoff", json_of_count(r->run->roundoff));
        json_object_set_new(config, "binary32_names", wide_json(&r->run->wide));
        json_object_set_new(config, "repeat", json_of_count(r->run->repeat));
        json_object_set_new(config, "failed_files", json_integer(r->run->in->failed));
    }
    json_object_set_new(v, "config", config);
    if (r->log) {
        json_object_set_new(v, "log", log_json(r));
        json_array_append_new(scalers, track_json(r, &r->log->recorded));
    } else {
        if (r->run->n_steps)
            json_object_set_new(v, "steps", steps_json(r->run));
        for (size_t i = 0; i < r->run->count; i++)
            json_array_append_new(scalers, track_json(r, &r->run->tracks[i]));
    }
    json_object_set_new(v, "scalers", scalers);
    if (!r->log && !r->pattern)
        json_object_set_new(v, "unread", unread_list_json(&r->run->in->unread));
    json_write(to, v);
    fputc('\n', to);
}

/* ---- CSV: a row for each run of steps ---- */

static void csv_optional(FILE *to, int64_t n)
{
    if (n >= 0)
        fprintf(to, "%" PRId64, n);
    fputc(',', to);
}

static void track_csv(FILE *to, const track *t)
{
    for (size_t i = 0; i < t->count; i++) {
        const span *s = &t->spans[i];
        char names[256];
        step_events_text(names, sizeof names, "+", s->events);
        for (int k = 0; k < SEEN; k++)
            if (s->events & seen[k].bit)
                text_add(names, sizeof names, "%s%s", *names ? "+" : "", seen[k].name);
        csv_text(to, t->label);
        fputc(',', to);
        csv_optional(to, t->unknown_steps ? -1 : (int64_t)s->first);
        csv_optional(to, s->from);
        csv_optional(to, s->to);
        fprintf(to, "%" PRIu64 ",", s->steps);
        csv_double(to, s->scale);
        fputc(',', to);
        csv_double(to, s->next);
        fprintf(to, ",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", names, s->loss.elements, s->loss.lost,
                s->loss.overflowed, s->loss.not_finite);
        csv_double(to, s->fits);
        fputc('\n', to);
    }
}

void scaler_report_csv(FILE *to, const scaler_report *r)
{
    fputs("scaler,index,from,to,steps,scale,next,events,elements,lost,overflowed,not_finite,fits\n", to);
    if (r->log)
        track_csv(to, &r->log->recorded);
    for (size_t i = 0; !r->log && i < r->run->count; i++)
        track_csv(to, &r->run->tracks[i]);
}
