/* report.c -- see report.h: JSON, CSV; text is table.c. */
#include "report.h"

#include "../cli/input.h"
#include "decoder.h"
#include "describe.h"
#include "operations.h"
#include "table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- JSON ---- */

static json_t *json_counts(const train_counts *c)
{
    return json_pack("{s:o,s:o,s:o,s:o}", "nonzero", json_of_count(c->nonzero), "lost", json_of_count(c->lost),
                     "overflow", json_of_count(c->overflow), "nonfinite", json_of_count(c->nonfinite));
}

/* What a transformer's evaluation found. */
static void json_validation(json_t *v, double loss, double accuracy)
{
    json_object_set_new(v, "validation_loss", json_of_double(loss));
    json_object_set_new(v, "perplexity", json_of_double(train_perplexity(loss)));
    json_object_set_new(v, "validation_accuracy", json_of_double(accuracy));
}

static json_t *json_step(const train_row *r, int decoder)
{
    const train_step *s = &r->step;
    json_t *v = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:s?,s:o,s:b,s:o,s:o,s:o,s:o,s:o}", "step",
                          json_of_count(s->step + 1), "loss", json_of_double((double)s->loss), "accuracy",
                          json_of_double(s->accuracy), "scale", json_of_double(s->scale), "next_scale",
                          json_of_double(s->next_scale), "events", step_events_json(s->events), "skipped", s->skipped,
                          "cause", s->cause, "norm", json_of_double(s->norm), "clipped", s->clipped, "act",
                          json_counts(&s->act), "agrad", json_counts(&s->agrad), "wgrad", json_counts(&s->wgrad),
                          "updates", json_of_count(s->updates), "lost", json_of_count(s->lost));
    if (decoder)
        json_object_set_new(v, "lr", json_of_double(s->lr));
    if (r->evaluated && decoder) {
        json_validation(v, r->test_loss, r->test_accuracy);
    } else if (r->evaluated) {
        json_object_set_new(v, "test_loss", json_of_double(r->test_loss));
        json_object_set_new(v, "test_accuracy", json_of_double(r->test_accuracy));
    }
    return v;
}

static json_t *json_operations(const train_run *r, const train_total *t)
{
    train_operations o;
    json_t *list = json_array();
    train_operations_count(&o, r, train_last_plan(r, t));
    for (size_t i = 0; i < o.count; i++)
        json_array_append_new(
            list, json_pack("{s:s,s:o}", "operands", o.rows[i].name, "multiply_adds", json_of_count(o.rows[i].n)));
    return list;
}

static json_t *json_total(const train_total *t, const train_run *r)
{
    char status[96];
    json_t *v = json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "status",
                          train_status(status, sizeof status, t), "parameters", json_of_count(t->parameters), "first",
                          json_of_count(t->first), "steps", json_of_count(t->done), "initial_loss",
                          json_of_double(t->initial_loss), "final_loss", json_of_double(t->final_loss), "test_loss",
                          json_of_double(t->test_loss), "test_accuracy", json_of_double(t->test_accuracy), "skipped",
                          json_of_count(t->skipped), "overflows", json_of_count(t->overflows), "backoffs",
                          json_of_count(t->backoffs), "growths", json_of_count(t->growths), "clipped",
                          json_of_count(t->clipped), "first_skipped", json_of_count(t->first_skipped), "final_scale",
                          json_of_double(t->final_scale));
    json_object_set_new(v, "cause", t->cause[0] ? json_string(t->cause) : json_null());
    json_object_set_new(v, "act", json_counts(&t->act));
    json_object_set_new(v, "agrad", json_counts(&t->agrad));
    json_object_set_new(v, "wgrad", json_counts(&t->wgrad));
    json_object_set_new(v, "updates", json_of_count(t->updates));
    json_object_set_new(v, "lost", json_of_count(t->lost));
    json_object_set_new(v, "multiply_adds", json_of_count(t->products));
    json_object_set_new(v, "bytes", step_bytes_json(&t->bytes));
    if (!isnan(t->ms_per_step))
        json_object_set_new(v, "ms_per_step", json_of_double(t->ms_per_step));
    if (is_decoder(&r->settings)) {
        json_object_del(v, "test_loss");
        json_object_del(v, "test_accuracy");
        json_validation(v, t->test_loss, t->test_accuracy);
        json_object_set_new(v, "tokens_per_step", json_of_count(train_tokens_per_step(&r->settings)));
        json_object_set_new(v, "operations_per_step", json_operations(r, t));
        if (!isnan(t->ms_per_step))
            json_object_set_new(v, "tokens_per_second", json_of_double(t->tokens_per_second));
    }
    if (t->compared)
        json_object_set_new(v, "digests",
                            json_pack("{s:o,s:s?}", "steps", json_of_count(t->compared), "difference",
                                      t->difference[0] ? t->difference : NULL));
    return v;
}

static json_t *json_run(const train_job *j)
{
    const policy *p = j->policy;
    char line[1024], clip[128];
    json_t *plans = json_array();
    for (size_t i = 0; i < j->run.n_plans; i++) {
        const train_plan *t = &j->run.plans[i];
        json_array_append_new(plans, json_pack("{s:o,s:s,s:o}", "from", json_of_count(t->from + 1), "plan",
                                               train_plan_text(line, sizeof line, j, i), "optimizer",
                                               step_optimizer_json(&t->optimizer)));
    }
    return json_pack("{s:s,s:o,s:s?,s:s?,s:o,s:s,s:s}", "name", j->name, "file",
                     p ? json_of_path(p->path) : json_null(), "source", p ? p->source : NULL, "note",
                     p ? p->note : NULL, "plans", plans, "products", train_products_text(line, sizeof line, &j->run),
                     "clip", train_clip_text(clip, sizeof clip, &j->run));
}

json_t *train_decoder_json(const train_settings *s)
{
    const train_decoder *d = &s->decoder;
    const train_decoder_words w = train_decoder_say(d);
    char digest[24];
    snprintf(digest, sizeof digest, "%016" PRIx64, d->text_digest);
    json_t *v = json_pack("{s:o,s:o,s:o,s:o,s:o,s:s,s:s,s:s,s:b,s:b,s:o,s:s,s:s}", "heads", json_of_count(d->heads),
                          "kv_heads", json_of_count(d->kv_heads), "hidden", json_of_count(d->hidden), "context",
                          json_of_count(d->context), "vocabulary", json_of_count(d->vocabulary), "norm", w.norm,
                          "activation", w.activation, "positions", d->rotary ? "rotary" : "learned", "biases",
                          (int)d->biases, "tied", (int)d->tied, "tile", json_of_count(d->tile), "math_norm",
                          d->math_norm[0] ? d->math_norm : s->math, "math_softmax",
                          d->math_softmax[0] ? d->math_softmax : s->math);
    json_t *how = json_pack(
        "{s:o,s:s,s:o,s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:b,s:o,s:s,s:s}", "accumulate", json_of_count(d->accumulate),
        "accumulate_format", d->accumulate_format, "ranks", json_of_count(d->ranks), "reduce", w.reduce, "wire",
        d->wire, "wire_sum", d->sum, "schedule", w.decay, "warmup", json_of_count(d->warmup), "cooldown",
        json_of_count(d->cooldown), "min_lr", json_of_double(d->min_lr), "decay_all", (int)d->decay_all, "validation",
        json_of_count(d->validation), "text", d->text, "text_digest", digest);
    json_object_update(v, how);
    json_decref(how);
    return v;
}

/* ---- CSV ---- */

static void csv_counts(FILE *f, const train_counts *c)
{
    fprintf(f, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, c->nonzero, c->lost, c->overflow, c->nonfinite);
}

#define COUNTS(kind) kind "_nonzero," kind "_lost," kind "_overflow," kind "_nonfinite,"

#define CASTS COUNTS("act") COUNTS("agrad") COUNTS("wgrad") "updates,lost"

static void csv_header(const train_report *r)
{
    static const char *const headers[2][2] = {
        {"policy,step,loss,accuracy,scale,next_scale,events,norm,clipped," CASTS ",test_loss,test_accuracy\n",
         "policy,step,loss,accuracy,scale,next_scale,events,norm,clipped," CASTS
         ",validation_loss,validation_accuracy,perplexity,lr\n"},
        {"policy,status,first,steps,initial_loss,final_loss,test_loss,test_accuracy,skipped,final_scale," CASTS
         ",weights,master,gradients,state,activations,ms_per_step,clip\n",
         "policy,status,first,steps,initial_loss,final_loss,validation_loss,validation_accuracy,skipped,final_scale," CASTS
         ",weights,master,gradients,state,activations,ms_per_step,clip,perplexity,tokens_per_second,operations\n"}};
    fputs(headers[r->compare != 0][r->decoder != 0], r->file);
}

static void csv_cell(FILE *f, double x, int there)
{
    fputc(',', f);
    if (there)
        csv_double(f, x);
}

static void csv_step(const train_report *r, const train_row *row)
{
    const train_step *s = &row->step;
    FILE *f = r->file;
    char text[128];
    csv_text(f, r->job->name);
    fprintf(f, ",%" PRIu64, s->step + 1);
    csv_cell(f, (double)s->loss, 1);
    csv_cell(f, s->accuracy, 1);
    csv_cell(f, s->scale, 1);
    csv_cell(f, s->next_scale, 1);
    fputc(',', f);
    csv_text(f, step_events_text(text, sizeof text, "+", s->events));
    csv_cell(f, s->norm, 1);
    fprintf(f, ",%d", s->clipped);
    csv_counts(f, &s->act);
    csv_counts(f, &s->agrad);
    csv_counts(f, &s->wgrad);
    fprintf(f, ",%" PRIu64 ",%" PRIu64, s->updates, s->lost);
    csv_cell(f, row->test_loss, row->evaluated);
    csv_cell(f, row->test_accuracy, row->evaluated);
    if (r->decoder) {
        csv_cell(f, row->evaluated ? train_perplexity(row->test_loss) : 0, row->evaluated);
        csv_cell(f, s->lr, 1);
    }
    fputc('\n', f);
}

/* The columns of transformers alone; operations: "bf16 x bf16=1234;...". */
static void csv_decoder(FILE *f, const train_run *run, const train_total *t)
{
    train_operations o;
    train_operations_count(&o, run, train_last_plan(run, t));
    csv_cell(f, train_perplexity(t->test_loss), 1);
    csv_cell(f, t->tokens_per_second, !isnan(t->ms_per_step));
    for (size_t i = 0; i < o.count; i++)
        fprintf(f, "%c%s=%" PRIu64, i ? ';' : ',', o.rows[i].name, o.rows[i].n);
}

static void csv_compare(const train_report *r, const train_job *jobs, const train_total *totals, size_t n)
{
    FILE *f = r->file;
    char status[96];
    for (size_t i = 0; i < n; i++) {
        const train_total *t = &totals[i];
        csv_text(f, jobs[i].name);
        fputc(',', f);
        csv_text(f, train_status(status, sizeof status, t));
        fprintf(f, ",%" PRIu64 ",%" PRIu64, t->first, t->done);
        csv_cell(f, t->initial_loss, 1);
        csv_cell(f, t->final_loss, 1);
        csv_cell(f, t->test_loss, 1);
        csv_cell(f, t->test_accuracy, 1);
        fprintf(f, ",%" PRIu64, t->skipped);
        csv_cell(f, t->final_scale, 1);
        csv_counts(f, &t->act);
        csv_counts(f, &t->agrad);
        csv_counts(f, &t->wgrad);
        fprintf(f, ",%" PRIu64 ",%" PRIu64, t->updates, t->lost);
        fprintf(f, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, t->bytes.weights, t->bytes.master,
                t->bytes.gradients, t->bytes.state, t->bytes.activations);
        csv_cell(f, t->ms_per_step, !isnan(t->ms_per_step));
        fputc(',', f);
        csv_text(f, train_clip_text(status, sizeof status, &jobs[i].run));
        if (r->decoder)
            csv_decoder(f, &jobs[i].run, t);
        fputc('\n', f);
    }
}

/* ---- the report ---- */

void train_report_begin(train_report *r, json_t *config)
{
    if (r->style == REPORT_JSON) {
        json_begin(r->file, "mpsim.train/1");
        fputs("\"config\": ", r->file);
        json_write(r->file, config);
        fputs(",\n\"runs\": [", r->file);
        return;
    }
    json_decref(config);
    if (r->style == REPORT_CSV)
        csv_header(r);
}

void train_report_run(train_report *r, const train_job *j)
{
    r->job = j;
    r->entries = 0;
    if (r->style == REPORT_JSON) {
        fputs(r->runs ? ",\n{\"policy\": " : "\n{\"policy\": ", r->file);
        json_write(r->file, json_run(j));
        fputs(",\n\"steps\": [", r->file);
    } else if (r->style == REPORT_TEXT && !r->compare) {
        train_text_run(r, j);
    }
    r->runs++;
}

void train_report_step(const train_row *step, void *report)
{
    train_report *r = report;
    if (r->style == REPORT_JSON) {
        fputs(r->entries++ ? ",\n" : "\n", r->file);
        json_write(r->file, json_step(step, is_decoder(&r->job->run.settings)));
    } else if (r->style == REPORT_CSV && !r->compare) {
        csv_step(r, step);
    }
}

void train_report_row(const train_row *row, void *report)
{
    train_report *r = report;
    if (r->style == REPORT_TEXT && !r->compare)
        train_text_row(r, row);
}

void train_report_total(train_report *r, const train_total *t)
{
    if (r->style == REPORT_JSON) {
        fputs("],\n\"total\": ", r->file);
        json_write(r->file, json_total(t, &r->job->run));
        fputs("}", r->file);
    } else if (r->style == REPORT_TEXT && !r->compare) {
        train_text_total(r, t);
    }
}

void train_report_compare(train_report *r, const train_job *jobs, const train_total *totals, size_t n)
{
    if (r->style == REPORT_CSV)
        csv_compare(r, jobs, totals, n);
    else if (r->style == REPORT_TEXT)
        train_text_compare(r, jobs, totals, n);
}

void train_report_abandon(train_report *r)
{
    table_free(r->rows);
    r->rows = NULL;
}

void train_report_end(train_report *r)
{
    if (r->style == REPORT_JSON)
        fputs("\n]}\n", r->file);
}
