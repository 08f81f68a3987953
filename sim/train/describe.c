/* describe.c -- see describe.h. */
#include "describe.h"

#include "../record/cells.h"
#include "../text/words.h"
#include "decoder.h"
#include "operations.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *train_loss_text(char *out, double x)
{
    if (isfinite(x) && fabs(x) < 1e4 && (x == 0 || fabs(x) >= 1e-3))
        snprintf(out, 32, "%.4f", x);
    else
        text_number(out, x);
    return out;
}

const char *train_status(char *out, size_t size, const train_total *t)
{
    out[0] = '\0';
    if (t->stopped)
        snprintf(out, size, "stopped at step %" PRIu64 " (the scaler's error)", t->done);
    else if (t->diverged)
        snprintf(out, size, "diverged (%s from step %" PRIu64 ")", t->infinite ? "Inf" : "NaN", t->diverged);
    else if (t->interrupted)
        snprintf(out, size, "interrupted at step %" PRIu64, t->done);
    else if (t->difference[0])
        snprintf(out, size, "digests differ at step %" PRIu64, t->done);
    return out;
}

const char *train_plan_text(char *out, size_t size, const train_job *j, size_t i)
{
    const train_plan *t = &j->run.plans[i];
    if (!j->policy || i >= j->policy->count) {
        snprintf(out, size, "precision %s, scaler %s", t->precision, t->scaler.name);
        return out;
    }
    plan shown = j->policy->plans[i];
    shown.scaler = t->scaler;
    shown.clip = t->clip;
    shown.max_norm = t->max_norm;
    shown.clip_scaled = (int)t->clip_scaled;
    return policy_plan_describe(&shown, out, size);
}

static void add_product(char *out, size_t size, const train_settings *s, const mpsim_format *a, const mpsim_format *b)
{
    mpsim_model m;
    char line[TRAIN_ERROR], text[256];
    if (!a || !b || train_model(s, a, b, &m, line))
        return;
    snprintf(text, sizeof text, "%s x %s: %s", a->name, b->name, m.name);
    if (!strstr(out, text))
        text_add(out, size, "%s%s", *out ? ", " : "", text);
}

const char *train_products_text(char *out, size_t size, const train_run *r)
{
    const train_settings *s = &r->settings;
    out[0] = '\0';
    for (size_t i = 0; i < r->n_plans; i++) {
        int first = !train_is_decoder(s); /* no gradient of the images */
        for (size_t k = 0; k < r->n_layers; k++) {
            const train_placement *p = &r->plans[i].layers[k];
            const uint8_t type = r->layers[k].type;
            if (type != TRAIN_LINEAR && type != TRAIN_CONV && type != TRAIN_SCORES && type != TRAIN_CONTEXT)
                continue;
            const mpsim_format *act = train_operand(s, p, TRAIN_ACT), *weight = train_operand(s, p, TRAIN_WEIGHT),
                               *agrad = train_operand(s, p, TRAIN_AGRAD);
            add_product(out, size, s, act, weight);
            if (!first)
                add_product(out, size, s, agrad, weight);
            add_product(out, size, s, agrad, act);
            first = 0;
        }
    }
    return out;
}

const char *train_clip_text(char *out, size_t size, const train_run *r)
{
    out[0] = '\0';
    for (size_t i = 0; i < r->n_plans; i++) {
        const train_plan *t = &r->plans[i], *before = i ? t - 1 : NULL;
        if (before && before->clip == t->clip && before->clip_scaled == t->clip_scaled &&
            (t->clip == MPSIM_CLIP_NONE || before->max_norm == t->max_norm))
            continue;
        if (t->clip == MPSIM_CLIP_NONE)
            text_add(out, size, "%snone", i ? ", " : "");
        else
            text_add(out, size, "%s%g (%s%s)", i ? ", " : "", t->max_norm, mpsim_clip_name(t->clip),
                     t->clip_scaled ? ", before unscaling" : "");
    }
    return out;
}

/* ---- transformers ---- */

double train_perplexity(double loss)
{
    const mpsim_format *f64 = mpsim_format_find("binary64");
    mpsim_rounding nearest;
    uint64_t code;
    double x;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    memcpy(&code, &loss, sizeof code);
    code = mpsim_function_apply(MPSIM_FUNCTION_EXP, f64, f64, &nearest, code, 0, NULL);
    memcpy(&x, &code, sizeof x);
    return x;
}

train_decoder_words train_decoder_say(const train_decoder *d)
{
    static const char *const norms[] = {"layernorm", "rmsnorm"}, *const activations[] = {"gelu-tanh", "gelu", "swiglu"},
                             *const orders[] = {"sequential", "ring", "tree"},
                             *const decays[] = {"constant", "linear", "cosine"};
    return (train_decoder_words){norms[d->norm], activations[d->activation], orders[d->reduce], decays[d->decay]};
}

const char *train_decoder_text(char *out, size_t size, const train_settings *s)
{
    const train_decoder *d = &s->decoder;
    const train_decoder_words w = train_decoder_say(d);
    snprintf(out, size, "%s: %" PRIu32 " block%s of width %" PRIu32 ", %" PRIu32 " head%s of %" PRIu32, s->net,
             s->depth, text_plural(s->depth), s->width, d->heads, text_plural(d->heads), s->width / d->heads);
    if (d->kv_heads != d->heads)
        text_add(out, size, " with keys and values of %" PRIu32, d->kv_heads);
    text_add(out, size, ", %s to %" PRIu32 ", %s, %s positions, %s, %s head", w.activation, d->hidden, w.norm,
             d->rotary ? "rotary" : "learned", d->biases ? "biases" : "no biases", d->tied ? "tied" : "own");
    if (d->tile)
        text_add(out, size, ", attention in tiles of %" PRIu32, d->tile);
    return out;
}

size_t train_last_plan(const train_run *r, const train_total *t)
{
    size_t i = 0;
    while (i + 1 < r->n_plans && r->plans[i + 1].from < t->done)
        i++;
    return i;
}
