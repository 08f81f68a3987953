/* policy.c -- see policy.h. */
#include "policy.h"

#include "decoder.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../text/words.h"

#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an optimizer has where neither policy nor command line says it; NaN, and others: mpsim_optim_init's. */
typedef struct optimizer_defaults {
    double number[MPSIM_OPTIM_NUMBERS]; /* by mpsim_optim_setting */
} optimizer_defaults;

typedef struct network_default {
    mpsim_optim_algorithm algorithm;
    mpsim_optim_setting setting;
    double number;
} network_default;

static const struct network_defaults {
    mpsim_optim_algorithm algorithm;
    double max_norm; /* of clipping by torch's rule; 0: none */
    size_t n;
    network_default of[7];
} of_images = {MPSIM_OPTIM_SGD,
               0,
               2,
               {{MPSIM_OPTIM_SGD, MPSIM_OPTIM_LR, 0.1}, {MPSIM_OPTIM_SGD, MPSIM_OPTIM_MOMENTUM, 0.9}}},
  of_text = {MPSIM_OPTIM_ADAMW,
             1,
             7,
             {{MPSIM_OPTIM_SGD, MPSIM_OPTIM_LR, 0.1},
              {MPSIM_OPTIM_SGD, MPSIM_OPTIM_MOMENTUM, 0.9},
              {MPSIM_OPTIM_ADAM, MPSIM_OPTIM_BETA1, 0.9},
              {MPSIM_OPTIM_ADAM, MPSIM_OPTIM_BETA2, 0.95},
              {MPSIM_OPTIM_ADAMW, MPSIM_OPTIM_WEIGHT_DECAY, 0.1},
              {MPSIM_OPTIM_ADAMW, MPSIM_OPTIM_BETA1, 0.9},
              {MPSIM_OPTIM_ADAMW, MPSIM_OPTIM_BETA2, 0.95}}};

static optimizer_defaults optimizer_defaults_of(const struct network_defaults *n, int algorithm)
{
    optimizer_defaults d;
    for (int i = 0; i < MPSIM_OPTIM_NUMBERS; i++)
        d.number[i] = (double)NAN;
    for (size_t i = 0; i < n->n; i++)
        if ((int)n->of[i].algorithm == algorithm)
            d.number[n->of[i].setting] = n->of[i].number;
    return d;
}

static const struct network_defaults *defaults_of(const train_settings *s)
{
    return train_is_decoder(s) ? &of_text : &of_images;
}

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static int
bad(char *error, const char *message, ...)
{
    va_list arguments;
    va_start(arguments, message);
    vsnprintf(error, TRAIN_ERROR, message, arguments);
    va_end(arguments);
    return -1;
}

void train_overrides_init(train_overrides *o)
{
    const double unset = (double)NAN;
    *o = (train_overrides){.max_norm = unset};
    for (int i = 0; i < MPSIM_OPTIM_NUMBERS; i++)
        o->number[i] = unset;
}

uint64_t train_steps_per_pass(const train_settings *s, uint64_t trained)
{
    const train_decoder *d = &s->decoder;
    const uint64_t tokens = (uint64_t)s->batch * d->context * d->accumulate * d->ranks;
    const uint64_t n = train_is_decoder(s) ? (tokens ? trained / tokens : 0) : s->batch ? TRAIN_IMAGES / s->batch : 0;
    return n ? n : 1;
}

/* ---- layers ---- */

/* A layer's weight: its rank tells the layer's kind where the name does not; -1: it has none. Products of
 * attention are such of a linear layer, whose weight another layer has made. */
static const struct type_row {
    int rank, weighs, multiplies;
} types[TRAIN_TYPES] = {
    [TRAIN_LINEAR] = {2, 1, 1},
    [TRAIN_CONV] = {4, 1, 1},
    [TRAIN_BATCHNORM] = {1, 1, 0},
    [TRAIN_RELU] = {-1, 0, 0},
    [TRAIN_MAXPOOL] = {-1, 0, 0},
    [TRAIN_FLATTEN] = {-1, 0, 0},
    [TRAIN_LOSS] = {-1, 0, 0},
    [TRAIN_NORM] = {1, 1, 0},
    [TRAIN_EMBED] = {POLICY_TABLE, 1, 0},
    [TRAIN_POSITIONS] = {POLICY_TABLE, 1, 0},
    [TRAIN_HEADS] = {-1, 0, 0},
    [TRAIN_SCORES] = {2, 0, 1},
    [TRAIN_SOFTMAX] = {-1, 0, 0},
    [TRAIN_CONTEXT] = {2, 0, 1},
    [TRAIN_ACTIVATION] = {-1, 0, 0},
    [TRAIN_ADD] = {-1, 0, 0},
};

static int is_product(const train_layer *l)
{
    return types[l->type].multiplies;
}

static int is_attention(const train_layer *l)
{
    return l->type == TRAIN_SCORES || l->type == TRAIN_CONTEXT;
}

static void place(const plan *p, const policy_depth *d, const train_layer *l, train_placement *to)
{
    const struct type_row *t = &types[l->type];
    const plan_layer layer = {.name = l->name,
                              .kind = -1,
                              .rank = t->rank,
                              .weighs = t->weighs,
                              .multiplies = t->multiplies,
                              .attends = is_attention(l)};
    policy_plan_place_layer(p, d, &layer, to);
}

/* The promoted format of two operands, as torch has it: theirs if it is one, else binary32. */
static const mpsim_format *promoted(const mpsim_format *a, const mpsim_format *b)
{
    return mpsim_format_same(a, b) ? a : mpsim_format_find("binary32");
}

/* Residuals under an autocast that says nothing of them take what comes: the stream, whose format this
 * follows from layer to layer, and the branch that ends before them. */
static void place_residuals(const plan *p, const train_run *r, train_placement *places)
{
    const mpsim_format *stream = NULL;
    for (size_t i = 0; i < r->n_layers; i++) {
        const train_layer *l = &r->layers[i];
        train_placement *to = &places[i];
        if (l->type == TRAIN_ADD && !policy_plan_casts_all(p) && !policy_plan_is_kept(p, l->name)) {
            const mpsim_format f = *promoted(stream, &places[i - 1].format[TRAIN_OUT]);
            to->format[TRAIN_OUT] = to->format[TRAIN_AGRAD] = to->format[TRAIN_DGRAD] = f;
        }
        if (l->type == TRAIN_EMBED || l->type == TRAIN_POSITIONS || l->type == TRAIN_ADD)
            stream = &to->format[TRAIN_OUT];
    }
}

/* The numbers of layers that multiply: "fc1" to "fcN", or of convolutions. */
static policy_depth depth_of(const train_run *r)
{
    policy_depth d = {0, 0, 0};
    for (size_t i = 0; i < r->n_layers; i++)
        if (is_product(&r->layers[i]))
            policy_depth_add(&d, r->layers[i].name);
    return d;
}

/* ---- the optimizer ---- */

static double pick(double given, double of_policy, double otherwise)
{
    return !isnan(given) ? given : !isnan(of_policy) ? of_policy : otherwise;
}

/* The policy's optimizer with the variant and the algorithm of the overrides in it. */
static int override_optimizer(const train_overrides *v, const struct network_defaults *n, plan_optimizer *c,
                              char *error)
{
    mpsim_optim_algorithm a = n->algorithm;
    char list[128];
    if (v->optimizer && mpsim_optim_parse(&a, v->optimizer))
        return bad(error, "optimizer: '%.60s' is not one of %s", v->optimizer,
                   policy_plan_optimizers(list, sizeof list, ", "));
    if (v->optimizer && c->algorithm >= 0 && c->algorithm != (int)a) {
        for (int i = 0; i < MPSIM_OPTIM_NUMBERS; i++)
            c->number[i] = (double)NAN;
        c->nesterov = c->amsgrad = -1;
    }
    if (v->optimizer || c->algorithm < 0)
        c->algorithm = (int)a;
    if (!v->variant)
        return 0;
    c->variants[0] = mpsim_optim_variant_find(v->variant);
    c->n_variants = 1;
    return c->variants[0] ? 0 : bad(error, "variant: '%.60s' is not known", v->variant);
}

/* Numbers of the policy, the overrides and the defaults. */
static void set_numbers(const train_overrides *v, const struct network_defaults *n, const plan_optimizer *c,
                        mpsim_optim *o)
{
    const optimizer_defaults d = optimizer_defaults_of(n, c->algorithm);
    for (int i = 0; i < MPSIM_OPTIM_NUMBERS; i++) {
        const mpsim_optim_setting s = (mpsim_optim_setting)i;
        const double otherwise = isnan(d.number[i]) ? mpsim_optim_value(o, s) : d.number[i];
        mpsim_optim_set(o, s, pick(v->number[i], c->number[i], otherwise));
    }
    o->nesterov = c->nesterov > 0;
    o->amsgrad = c->amsgrad > 0;
    o->maximize = c->maximize > 0;
    o->store = (uint8_t)c->store;
}

/* Settings of some algorithms only, given by the command line for another. */
static int check_given(const train_overrides *v, int algorithm, char *error)
{
    for (int i = 0; i < MPSIM_OPTIM_NUMBERS; i++)
        if (!isnan(v->number[i]) && !mpsim_optim_has(algorithm, (mpsim_optim_setting)i))
            return bad(error, "%s: %s has none", mpsim_optim_setting_name((mpsim_optim_setting)i),
                       mpsim_optim_name((mpsim_optim_algorithm)algorithm));
    return 0;
}

/* Which part of a step that mpsim_optim_check refuses is to blame. */
static int blame(const mpsim_optim *o, mpsim_status s, char *error)
{
    const char *name = mpsim_optim_name((mpsim_optim_algorithm)o->algorithm);
    if (o->nesterov && (o->momentum == 0 || o->dampening != 0))
        return bad(error, "optimizer: nesterov needs momentum and dampening 0, not %g and %g", o->momentum,
                   o->dampening);
    if (s == MPSIM_EINVAL)
        return bad(error,
                   "optimizer: no %s has such settings: lr %g, momentum %g, dampening %g, "
                   "weight_decay %g, betas %g and %g, eps %g",
                   name, o->lr, o->momentum, o->dampening, o->weight_decay, o->beta1, o->beta2, o->eps);
    if (s == MPSIM_EUNAVAILABLE)
        return bad(error, "optimizer: variant %s of %s has no such %s", o->variant->name, name,
                   o->amsgrad    ? "amsgrad"
                   : o->nesterov ? "nesterov"
                   : o->maximize ? "maximize"
                                 : "dampening or storing");
    return bad(error, "optimizer: %s with parameters in %s and state in %s: %s", o->variant->name, o->param.name,
               o->state.name, mpsim_status_string(s));
}

/* Every layer with parameters can be stepped: storing by a rule applies below binary32 only. */
static int check_steps(const train_run *r, const train_plan *t, char *error)
{
    for (size_t i = 0; i < r->n_layers; i++) {
        if (!types[r->layers[i].type].weighs)
            continue;
        const mpsim_optim o = mpsim_optim_placed(&t->optimizer, &t->layers[i]);
        const mpsim_status s = mpsim_optim_check(&o);
        if (s)
            return blame(&o, s, error);
    }
    return 0;
}

static int choose_optimizer(const plan *p, const train_overrides *v, const struct network_defaults *n, mpsim_optim *o,
                            char *error)
{
    plan_optimizer c = p->optimizer;
    if (override_optimizer(v, n, &c, error) || check_given(v, c.algorithm, error))
        return -1;
    const mpsim_optim_variant *variant = policy_variant(&c, c.algorithm);
    if (!variant)
        return bad(error, "optimizer: variant %s has no %s that stores as the policy says", c.variants[0]->name,
                   mpsim_optim_name((mpsim_optim_algorithm)c.algorithm));
    mpsim_optim_init(o, (mpsim_optim_algorithm)c.algorithm, variant);
    set_numbers(v, n, &c, o);
    return 0;
}

/* ---- plans ---- */

static int set_clip(const plan *p, const train_overrides *v, const struct network_defaults *n, train_plan *t,
                    char *error)
{
    t->clip = p->clip;
    t->max_norm = p->max_norm;
    t->clip_scaled = (uint32_t)p->clip_scaled;
    if (!p->clip_given && n->max_norm > 0) {
        t->clip = MPSIM_CLIP_TORCH;
        t->max_norm = n->max_norm;
    }
    if (v->clip_rule && mpsim_clip_parse(&t->clip, v->clip_rule))
        return bad(error, "clip: '%.60s' is not a rule", v->clip_rule);
    if (!isnan(v->max_norm)) {
        t->max_norm = v->max_norm;
        if (t->clip == MPSIM_CLIP_NONE && !v->clip_rule)
            t->clip = MPSIM_CLIP_TORCH;
    }
    if (t->clip == MPSIM_CLIP_NONE)
        t->clip_scaled = 0;
    if (t->clip_scaled && mpsim_clip_unscales(t->clip))
        return bad(error, "clip: rule %s unscales itself, so before_unscale has no meaning", mpsim_clip_name(t->clip));
    if (t->clip != MPSIM_CLIP_NONE && !(t->max_norm > 0))
        return bad(error, "clip: the largest norm must be above 0");
    return 0;
}

/* Whether there is a loss scale that --loss-scaling can replace. */
static int plan_scales(const plan *p)
{
    return strcmp(p->scaler.name, "none") != 0;
}

int train_policy_scales(const policy *p)
{
    int scales = 0;
    for (size_t i = 0; i < p->count; i++)
        scales |= plan_scales(&p->plans[i]);
    return scales;
}

static int make_plan(const train_run *r, const plan *p, const train_overrides *v, train_plan *t, char *error)
{
    const policy_depth depth = depth_of(r);
    const struct network_defaults *n = defaults_of(&r->settings);
    memset(t, 0, sizeof *t);
    t->from = p->from ? p->from - 1 : 0;
    snprintf(t->precision, sizeof t->precision, "%s", p->precision);
    for (size_t i = 0; i < r->n_layers; i++)
        place(p, &depth, &r->layers[i], &t->layers[i]);
    place_residuals(p, r, t->layers);
    t->master = p->master;
    t->muon = p->optimizer.muon;
    if (p->optimizer.has_muon && t->muon.products)
        return bad(error,
                   "muon: model: torch's kernels on CPUs are for replays: name a model (mpsim formats --models)");
    t->scaler = p->scaler;
    if (v->scaler && plan_scales(p) && mpsim_scaler_parse(&t->scaler, v->scaler))
        return bad(error, "loss_scaling: '%.100s' is not a scaler, or has a parameter outside its domain", v->scaler);
    t->delayed = p->recipe && p->recipe->delayed;
    t->history = p->delayed;
    return set_clip(p, v, n, t, error) || choose_optimizer(p, v, n, &t->optimizer, error) || check_steps(r, t, error)
               ? -1
               : 0;
}

static int make_plans(train_run *r, const policy *p, const train_overrides *v, char *error)
{
    for (size_t i = 0; i < p->count; i++) {
        /* an entry from the first step on leaves nothing to the plan before it */
        const size_t at = r->n_plans && p->plans[i].from <= 1 ? 0 : r->n_plans;
        if (at == TRAIN_PLANS)
            return bad(error, "schedule: at most %d plans are possible", (int)TRAIN_PLANS);
        if (make_plan(r, &p->plans[i], v, &r->plans[at], error))
            return -1;
        r->n_plans = at + 1;
    }
    return 0;
}

int train_run_of_policy(train_run *r, const policy *p, const train_settings *s, const train_overrides *overrides,
                        char *error)
{
    train_overrides none;
    train_overrides_init(&none);
    memset(r, 0, sizeof *r);
    r->settings = *s;
    r->n_layers = train_network(s, r->layers, error);
    if (r->n_layers == 0)
        return -1;
    r->plans = need_memory(TRAIN_PLANS, sizeof *r->plans);
    if (make_plans(r, p, overrides ? overrides : &none, error) == 0)
        return 0;
    train_run_clear(r);
    return -1;
}

/* ---- what a policy says in vain ---- */

static void add_note(char *out, size_t size, const char *line)
{
    if (!strstr(out, line) && strlen(out) + strlen(line) + 2 <= size)
        text_add(out, size, "%s\n", line);
}

static int fits_a_layer(const train_run *r, const char *glob)
{
    for (size_t i = 0; i < r->n_layers; i++)
        if (fnmatch(glob, r->layers[i].name, 0) == 0)
            return 1;
    return 0;
}

static void note_globs(const train_run *r, const char *key, const policy_patterns *list, char *out, size_t size)
{
    for (size_t i = 0; list && i < list->count; i++) {
        const char *glob = list->items[i].glob;
        char escaped[128], line[256];
        if (fits_a_layer(r, glob))
            continue;
        snprintf(line, sizeof line, "%s: '%s' fits no layer", key, escape_text(escaped, sizeof escaped, glob));
        add_note(out, size, line);
    }
}

/* Whether one of the layers of a plan goes through a recipe. */
static int has_recipe(const train_run *r, const train_plan *p)
{
    for (size_t i = 0; i < r->n_layers; i++)
        for (int role = 0; role < TRAIN_ROLES; role++)
            if (p->layers[i].recipe[role])
                return 1;
    return 0;
}

const char *train_policy_notes(const policy *p, const train_run *r, char *out, size_t size)
{
    out[0] = '\0';
    for (size_t i = 0; i < p->count; i++) {
        const plan *q = &p->plans[i];
        if (q->reduce_given)
            add_note(out, size,
                     r->settings.decoder.ranks > 1
                         ? "grad_reduce: here --reduce, --wire and --wire-sum say how ranks are added"
                         : "grad_reduce: there is one rank, nothing is reduced");
        if (q->fp8_attention && !train_is_decoder(&r->settings))
            add_note(out, size, "fp8_attention: there is no attention");
        else if (q->fp8_attention && !policy_plan_attends(q))
            add_note(out, size, "fp8_attention: the recipe has a scale for each block, attention stays as it is");
        if (train_is_decoder(&r->settings) && q->recipe && i < r->n_plans && !has_recipe(r, &r->plans[i]))
            add_note(out, size, "fp8_recipe: no layer is left for it, all stay in compute");
        if (q->recorded_norm)
            add_note(out, size, "clip: norm: trace: there is none, the run's own norm is taken");
        if (q->fp8_params)
            add_note(out, size, "fp8_params: counts as bytes in replays only");
        note_globs(r, "keep_fp32", q->keep_fp32, out, size);
        note_globs(r, "fp8_exclude", q->fp8_exclude, out, size);
        note_globs(r, "layer_kinds", q->layer_kinds, out, size);
    }
    return out;
}
