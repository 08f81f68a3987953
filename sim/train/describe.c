/* describe.c -- see describe.h. */
#include "describe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *train_status(char *out, size_t size, const train_total *t)
{
    out[0] = '\0';
    if (t->stopped)
        snprintf(out, size, "stopped at step %" PRIu64 " (the scaler's error)", t->done);
    else if (t->diverged)
        snprintf(out, size, "diverged (%s from step %" PRIu64 ")", t->infinite ? "Inf" : "NaN",
                 t->diverged);
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
    return plan_describe(&shown, out, size);
}

/* What a layer multiplies: the format of a role, that of its quantised form, or tf32. */
static const mpsim_format *operand(const train_settings *s, const train_placement *p,
                                   train_role role)
{
    const mpsim_block_recipe *b = p->recipe[role];
    if (b)
        return mpsim_format_find((b->block_rows || b->block_cols) && !p->promote ? "bf16" : b->element);
    return s->tf32 && strcmp(p->format[role].name, "binary32") == 0 ? mpsim_format_find("tf32")
                                                                    : &p->format[role];
}

static void add_product(char *out, size_t size, const train_settings *s, const mpsim_format *a,
                        const mpsim_format *b)
{
    mpsim_model m;
    char line[TRAIN_ERROR], text[256];
    const size_t n = strlen(out);
    if (!a || !b || train_model(s, a, b, &m, line))
        return;
    snprintf(text, sizeof text, "%s x %s: %s", a->name, b->name, m.name);
    if (!strstr(out, text))
        snprintf(out + n, size - n, "%s%s", n ? ", " : "", text);
}

const char *train_products_text(char *out, size_t size, const train_run *r)
{
    const train_settings *s = &r->settings;
    out[0] = '\0';
    for (size_t i = 0; i < r->n_plans; i++) {
        int first = 1; /* no gradient of the images */
        for (size_t k = 0; k < r->n_layers; k++) {
            const train_placement *p = &r->plans[i].layers[k];
            const uint8_t type = r->layers[k].type;
            if (type != TRAIN_LINEAR && type != TRAIN_CONV)
                continue;
            const mpsim_format *act = operand(s, p, TRAIN_ACT),
                               *weight = operand(s, p, TRAIN_WEIGHT),
                               *agrad = operand(s, p, TRAIN_AGRAD);
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
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < r->n_plans && n < size; i++) {
        const train_plan *t = &r->plans[i], *before = i ? t - 1 : NULL;
        if (before && before->clip == t->clip &&
            (t->clip == MPSIM_CLIP_NONE || before->max_norm == t->max_norm))
            continue;
        if (t->clip == MPSIM_CLIP_NONE)
            n += (size_t)snprintf(out + n, size - n, "%snone", i ? ", " : "");
        else
            n += (size_t)snprintf(out + n, size - n, "%s%g (%s)", i ? ", " : "", t->max_norm,
                                  mpsim_clip_name(t->clip));
    }
    return out;
}
