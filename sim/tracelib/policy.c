/* policy.c -- see mpsim/policy.h: sim/policy for a caller. */
#include "../policy/policy.h"

#include "../cli/options.h"
#include "call.h"

#include <mpsim/policy.h>

#include <stdlib.h>
#include <string.h>

struct mpsim_policy {
    policy policy;
};

/* ---- opening ---- */

/* Where a policy comes from: text, or a file. */
typedef struct origin {
    const char *name, *folder;
    const char *text;
    size_t n;
    uint64_t epoch; /* steps of one */
} origin;

static int load(policy *p, const origin *o, trace_error *error)
{
    return o->text ? policy_read(p, o->name, o->text, o->n, o->epoch, error)
                   : policy_load_from(p, o->name, o->folder, o->epoch, error);
}

static mpsim_status say(mpsim_status status, const char *line, char *error, size_t size)
{
    if (error && size) {
        size_t n = strlen(line);
        if (n >= size)
            for (n = size - 1; n && ((unsigned char)line[n] & 0xc0) == 0x80;)
                n--;
        memcpy(error, line, n);
        error[n] = '\0';
    }
    return status;
}

/* What a load that failed is as a status. */
static mpsim_status refuse(const call *c, const trace_error *why, char *error, size_t size)
{
    if (atomic_load(&c->no_memory) || why->memory)
        return say(MPSIM_ENOMEM, "out of memory", error, size);
    return say(why->exit == EXIT_DATA ? MPSIM_EDATA : MPSIM_EIO, why->text, error, size);
}

static mpsim_status open_from(mpsim_policy **to, const origin *o, char *error, size_t size)
{
    call c = {.quiet = 1};
    trace_error why = {0};
    *to = NULL;
    mpsim_policy *p = calloc(1, sizeof *p);
    if (!p || tracelib_call_begin(&c, 1)) {
        free(p);
        return say(MPSIM_ENOMEM, "out of memory", error, size);
    }
    int code = load(&p->policy, o, &why);
    tracelib_call_end(&c);
    if (code == 0 && atomic_load(&c.no_memory)) {
        policy_clear(&p->policy);
        code = CALL_IO;
    }
    const mpsim_status s = code ? refuse(&c, &why, error, size) : MPSIM_OK;
    tracelib_call_clear(&c);
    if (s)
        free(p);
    else
        *to = p;
    return s;
}

mpsim_status mpsim_policy_open(mpsim_policy **p, const char *path, const char *folder, uint64_t steps_per_epoch,
                               char *error, size_t size)
{
    return open_from(p, &(origin){.name = path, .folder = folder, .epoch = steps_per_epoch}, error, size);
}

mpsim_status mpsim_policy_read(mpsim_policy **p, const char *name, const char *text, size_t n, uint64_t steps_per_epoch,
                               char *error, size_t size)
{
    return open_from(p, &(origin){.name = name, .text = text ? text : "", .n = text ? n : 0, .epoch = steps_per_epoch},
                     error, size);
}

void mpsim_policy_free(mpsim_policy *p)
{
    if (p)
        policy_clear(&p->policy);
    free(p);
}

/* ---- what it says ---- */

const char *mpsim_policy_say(const mpsim_policy *p, mpsim_policy_text what)
{
    const policy *q = &p->policy;
    const char *const texts[] = {q->name, q->path, q->note, q->source, q->remarks};
    return (size_t)what < sizeof texts / sizeof *texts ? texts[what] : NULL;
}

size_t mpsim_policy_plans(const mpsim_policy *p)
{
    return p->policy.count;
}

size_t mpsim_policy_plan_at(const mpsim_policy *p, uint64_t step)
{
    return (size_t)(policy_plan(&p->policy, step) - p->policy.plans);
}

static const plan *plan_of(const mpsim_policy *p, size_t i)
{
    return i < p->policy.count ? &p->policy.plans[i] : NULL;
}

static void fill_optimizer(mpsim_plan_optimizer *to, const plan_optimizer *o)
{
    to->algorithm = o->algorithm;
    to->store = (int32_t)o->store;
    to->variant_given = o->variant_given;
    to->state_given = o->state_given;
    to->has_muon = o->has_muon;
    to->nesterov = o->nesterov;
    to->amsgrad = o->amsgrad;
    to->maximize = o->maximize;
    to->state = o->state;
    to->states = o->states;
    memcpy(to->number, o->number, sizeof to->number);
    to->muon = o->muon;
}

mpsim_status mpsim_policy_plan(const mpsim_policy *p, size_t i, mpsim_plan *to)
{
    const plan *q = plan_of(p, i);
    if (!q)
        return MPSIM_EINVAL;
    memset(to, 0, sizeof *to);
    to->from = q->from;
    memcpy(to->precision, q->precision, sizeof to->precision);
    to->autocast = q->autocast->name;
    to->recipe = q->recipe ? q->recipe->name : NULL;
    to->compute = q->compute;
    to->params = q->params;
    to->grads = q->grads;
    to->master = (int32_t)q->master;
    to->casts_all = policy_plan_casts_all(q);
    to->attends = policy_plan_attends(q);
    to->delayed_given = q->recipe && q->recipe->delayed;
    to->delayed = q->delayed;
    to->scaler = q->scaler;
    to->clip = (int32_t)q->clip;
    to->clip_given = q->clip_given;
    to->clip_scaled = q->clip_scaled;
    to->max_norm = q->max_norm;
    fill_optimizer(&to->optimizer, &q->optimizer);
    return MPSIM_OK;
}

mpsim_status mpsim_policy_describe(const mpsim_policy *p, size_t i, char *out, size_t size)
{
    const plan *q = plan_of(p, i);
    if (!q || !size)
        return MPSIM_EINVAL;
    policy_plan_describe(q, out, size);
    return MPSIM_OK;
}

const mpsim_optim_variant *mpsim_policy_variant(const mpsim_policy *p, size_t i, int algorithm)
{
    const plan *q = plan_of(p, i);
    return q && algorithm >= 0 && algorithm < MPSIM_OPTIM_ALGORITHMS ? policy_variant(&q->optimizer, algorithm) : NULL;
}

/* ---- layers ---- */

const char *mpsim_layer_kind_name(mpsim_layer_kind k)
{
    return k < MPSIM_LAYER_KINDS ? policy_layer_kind_name((layer_kind)k) : NULL;
}

static policy_depth depth_of(const mpsim_depth *d)
{
    return d ? (policy_depth){d->known, d->first, d->last} : (policy_depth){0, 0, 0};
}

void mpsim_depth_add(mpsim_depth *d, const char *layer)
{
    policy_depth own = depth_of(d);
    policy_depth_add(&own, layer);
    *d = (mpsim_depth){own.known, own.first, own.last};
}

mpsim_layer_kind mpsim_policy_kind(const mpsim_policy *p, size_t i, const char *layer, int rank)
{
    const plan *q = plan_of(p, i);
    return q ? (mpsim_layer_kind)policy_layer(q, layer, rank) : MPSIM_LAYER_OTHER;
}

mpsim_status mpsim_policy_place(const mpsim_policy *p, size_t i, const mpsim_layer_place *layer,
                                const mpsim_depth *depth, mpsim_placement *to)
{
    const plan *q = plan_of(p, i);
    const policy_depth d = depth_of(depth);
    if (!q || !layer->name || layer->kind < -1 || layer->kind >= MPSIM_LAYER_KINDS)
        return MPSIM_EINVAL;
    const plan_layer l = {.name = layer->name,
                          .kind = layer->kind,
                          .rank = layer->rank,
                          .weighs = layer->weighs,
                          .multiplies = layer->multiplies,
                          .attends = layer->attends};
    policy_plan_place_layer(q, &d, &l, to);
    return MPSIM_OK;
}
