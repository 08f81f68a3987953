/* data.c -- the advice as JSON (mpsim.advise/1) and CSV; see advise.h. */
#include "advise.h"

#include "../report/jsonout.h"
#include "../report/report.h"
#include "../trace/roundoff.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- JSON ---- */

static void put_step(jsonout *o, const char *key, int64_t step)
{
    if (step < 0)
        jsonout_null(o, key);
    else
        jsonout_integer(o, key, step);
}

static void put_worst(jsonout *o, const char *key, const advise_worst *w)
{
    jsonout_begin(o, key, '{');
    jsonout_real(o, "value", w->value);
    put_step(o, "step", w->step);
    jsonout_end(o, '}');
}

static void put_formats(jsonout *o, const advise *a, const advise_tensor *t)
{
    char reason[128];
    jsonout_begin(o, "formats", '[');
    for (size_t c = 0; c + 1 < a->candidates.count; c++) {
        jsonout_begin(o, NULL, '{');
        jsonout_text(o, "format", a->candidates.items[c].name);
        jsonout_text(o, "recipe", a->candidates.items[c].casts[t->role]);
        jsonout_boolean(o, "fits", t->fits >> c & 1);
        jsonout_text(o, "why_not", t->fits >> c & 1 ? NULL : advise_reason(reason, sizeof reason, a, t, c));
        put_worst(o, "underflow", &t->of[c].underflow);
        put_worst(o, "overflow", &t->of[c].overflow);
        put_worst(o, "sqnr_db", &t->of[c].sqnr);
        jsonout_end(o, '}');
    }
    jsonout_end(o, ']');
}

static void put_window(jsonout *o, const char *key, int is, int low, int high)
{
    if (!is) {
        jsonout_null(o, key);
        return;
    }
    jsonout_begin(o, key, '{');
    jsonout_integer(o, "low_exponent", low);
    jsonout_integer(o, "high_exponent", high);
    jsonout_end(o, '}');
}

static void put_tensor(jsonout *o, const advise *a, const advise_tensor *t)
{
    jsonout_begin(o, NULL, '{');
    jsonout_text(o, "name", t->name);
    jsonout_text(o, "kind", *t->kind ? t->kind : NULL);
    jsonout_text(o, "layer", t->layer);
    jsonout_count(o, "elements", t->count);
    jsonout_text(o, "recorded", t->stored->name);
    jsonout_count(o, "steps", t->steps);
    jsonout_count(o, "steps_left_out", t->broken);
    jsonout_count(o, "roundoff", t->roundoff);
    jsonout_text(o, "roundoff_evidence", t->roundoff ? trace_roundoff_evidence(t->evidence) : NULL);
    jsonout_text(o, "narrowest", t->steps ? a->candidates.items[t->choice].name : NULL);
    jsonout_real(o, "bits", a->candidates.items[t->choice].bits);
    put_window(o, "fp16_scales", t->gradient && t->scales && !a->bad_scale && t->steps, t->low.exponent,
               t->high.exponent);
    jsonout_boolean(o, "in_recipe", t->in_recipe);
    if (t->steps)
        put_formats(o, a, t);
    jsonout_end(o, '}');
}

static void put_layers(jsonout *o, const advise *a)
{
    jsonout_begin(o, "layers", '[');
    for (size_t i = 0; i < a->n_layers; i++) {
        const advise_layer *l = &a->layers[i];
        jsonout_begin(o, NULL, '{');
        jsonout_text(o, "name", l->name);
        jsonout_text(o, "kind", layer_kind_name(l->kind));
        jsonout_boolean(o, "keep_fp32", l->kept);
        jsonout_boolean(o, "fp8_exclude", a->recipe && l->excluded);
        jsonout_end(o, '}');
    }
    jsonout_end(o, ']');
}

static void put_weights(jsonout *o, const advise_stall *s)
{
    jsonout_begin(o, "bf16_weights", '{');
    jsonout_boolean(o, "known", !s->unknown);
    jsonout_text(o, "why_not_known", s->unknown ? s->unknown : s->no_lr);
    if (!s->unknown) {
        put_step(o, "step", s->step);
        jsonout_count(o, "updates", s->updates);
        jsonout_count(o, "lost", s->lost);
        jsonout_real(o, "moved", s->moved);
        jsonout_real(o, "lr", s->lr);
        jsonout_real(o, "lr_enough", s->enough);
        jsonout_text(o, "worst", *s->worst ? s->worst : NULL);
    }
    jsonout_boolean(o, "masters", s->keep);
    jsonout_end(o, '}');
}

static void put_scale(jsonout *o, const advise *a)
{
    const int is = a->scale_low <= a->scale_high;
    jsonout_begin(o, "loss_scale", '{');
    put_window(o, "window", is, a->scale_low, a->scale_high);
    if (is)
        jsonout_integer(o, "exponent", a->scale);
    else
        jsonout_null(o, "exponent");
    jsonout_count(o, "gradients", a->gradients);
    jsonout_count(o, "fit", is ? a->scale_fits : 0);
    jsonout_end(o, '}');
}

static void put_kept(jsonout *o, const char *key, const advise *a, const advise_kept *k)
{
    jsonout_begin(o, key, '{');
    jsonout_count(o, "judged", k->judged);
    jsonout_count(o, "kept", k->kept);
    if (k->kept < k->judged) {
        jsonout_text(o, "first_broken", a->tensors[k->tensor].name);
        put_step(o, "step", k->step);
    }
    jsonout_end(o, '}');
}

static void put_config(jsonout *o, const advise *a, const input *in)
{
    jsonout_begin(o, "config", '{');
    jsonout_real(o, "max_underflow", a->bounds.underflow);
    jsonout_real(o, "max_overflow", a->bounds.overflow);
    jsonout_real(o, "min_sqnr_db", a->bounds.sqnr);
    jsonout_real(o, "max_lost", a->bounds.lost);
    jsonout_count(o, "hold_back", a->hold_back);
    jsonout_begin(o, "inputs", '[');
    for (size_t i = 0; i < in->tree.count; i++) {
        json_t *path = json_of_path(in->tree.paths[i]);
        jsonout_value(o, NULL, path);
        json_decref(path);
    }
    jsonout_end(o, ']');
    jsonout_end(o, '}');
}

void advise_print_json(const advise *a, const input *in, FILE *to)
{
    jsonout o = {.to = to};
    jsonout_begin(&o, NULL, '{');
    jsonout_text(&o, "schema", "mpsim.advise/1");
    jsonout_text(&o, "mpsim", mpsim_version());
    put_config(&o, a, in);
    jsonout_count(&o, "steps", a->steps - a->held_steps);
    jsonout_text(&o, "compute", a->compute);
    jsonout_text(&o, "recipe", a->recipe ? a->recipe->name : NULL);
    jsonout_text(&o, "no_recipe", a->no_recipe);
    put_weights(&o, &a->stall);
    put_scale(&o, a);
    put_layers(&o, a);
    jsonout_begin(&o, "tensors", '[');
    for (size_t i = 0; i < a->n_tensors; i++)
        put_tensor(&o, a, &a->tensors[i]);
    jsonout_end(&o, ']');
    unread_put(&o, &in->unread);
    if (a->hold_back) {
        jsonout_begin(&o, "held_back", '{');
        jsonout_count(&o, "steps", a->held_steps);
        put_kept(&o, "narrowest", a, &a->kept_choice);
        put_kept(&o, "loss_scale", a, &a->kept_scale);
        put_kept(&o, "recipe", a, &a->kept_recipe);
        jsonout_end(&o, '}');
    }
    jsonout_end(&o, '}');
    fputc('\n', to);
}

/* ---- CSV ---- */

static void put_number(FILE *to, double x)
{
    fputc(',', to);
    if (!isnan(x))
        csv_double(to, x);
}

static void put_row(const advise *a, const advise_tensor *t, FILE *to)
{
    const advise_evidence *e = &t->of[t->choice];
    char reason[200] = "", full[260] = "";
    csv_text(to, t->name);
    fprintf(to, ",%s,", t->kind);
    csv_text(to, t->layer);
    fprintf(to, ",%" PRIu64 ",%" PRIu64 ",%s,%.10g", t->count, t->steps,
            t->steps ? a->candidates.items[t->choice].name : "", a->candidates.items[t->choice].bits);
    put_number(to, e->underflow.value);
    put_number(to, e->overflow.value);
    put_number(to, e->sqnr.value);
    fputc(',', to);
    if (e->sqnr.step >= 0)
        fprintf(to, "%" PRId64, e->sqnr.step);
    if (t->gradient && t->scales && !a->bad_scale && t->steps)
        fprintf(to, ",%d,%d,", t->low.exponent, t->high.exponent);
    else
        fputs(",,,", to);
    if (t->steps && t->choice)
        snprintf(full, sizeof full, "%s: %s", a->candidates.items[t->choice - 1].name,
                 advise_reason(reason, sizeof reason, a, t, t->choice - 1));
    csv_text(to, full);
    fputc('\n', to);
}

void advise_print_csv(const advise *a, FILE *to)
{
    fputs(
        "tensor,kind,layer,elements,steps,narrowest,bits,underflow,overflow,sqnr_db,worst_step,scale_low,scale_high,why_not_narrower\n",
        to);
    for (size_t i = 0; i < a->n_tensors; i++)
        put_row(a, &a->tensors[i], to);
}
