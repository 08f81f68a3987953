/* weights.c -- a parameter's numbers: from the record, carried on, compared. */
#include "impl.h"

#include "../array/need.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void replay_values_free(record_values *v)
{
    free(v->narrow);
    free(v->wide);
    *v = (record_values){NULL, NULL};
}

/* What is compared and begun with; gradients are needed on. */
static void forget_weights(parameter *p)
{
    replay_values_free(&p->weight);
    replay_values_free(&p->master);
    replay_values_free(&p->m);
    replay_values_free(&p->v);
    replay_values_free(&p->vmax_recorded);
}

void replay_parameter_forget(parameter *p)
{
    forget_weights(p);
    for (size_t i = 0; i < p->ranks; i++)
        replay_values_free(&p->grads[i]);
    free(p->grads);
    p->grads = NULL;
    p->ranks = 0;
    free(p->g);
    p->g = NULL;
}

void replay_parameter_free(parameter *p)
{
    float *narrow[] = {p->p, p->model, p->pm, p->pv, p->vmax, p->kahan, p->p32, p->m32, p->v32, p->x32};
    double *wide[] = {p->p64, p->m64, p->v64, p->x64};
    replay_parameter_forget(p);
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        free(narrow[i]);
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        free(wide[i]);
    free(p->name);
    free(p->layer);
}

/* ---- arrays ---- */

static void allocate(parameter *p, int references)
{
    float **narrow[] = {&p->p, &p->model, &p->pm, &p->pv};
    float **narrow_reference[] = {&p->p32, &p->m32, &p->v32};
    double **wide[] = {&p->p64, &p->m64, &p->v64};
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        *narrow[i] = need_memory(p->n, sizeof(float));
    for (size_t i = 0; references && i < 3; i++) {
        *narrow_reference[i] = need_memory(p->n, sizeof(float));
        *wide[i] = need_memory(p->n, sizeof(double));
    }
}

/* What few optimizers have: the compensation of Kahan's method, the largest second moments. The latter
 * begin with the second moments, where nothing is known of them. */
static void allocate_rare(const replay *r, parameter *p)
{
    const plan_optimizer *c = &r->plan->optimizer;
    const int recorded = replay_group_settings(r, p)->amsgrad;
    if (c->store == MPSIM_STORE_KAHAN && !p->kahan)
        p->kahan = need_memory(p->n, sizeof *p->kahan);
    if (p->vmax || !(c->amsgrad > 0 || recorded > 0 || replay_values_there(&p->vmax_recorded)))
        return;
    p->vmax = need_memory(p->n, sizeof *p->vmax);
    p->x32 = p->p64 ? need_memory(p->n, sizeof *p->x32) : NULL;
    p->x64 = p->p64 ? need_memory(p->n, sizeof *p->x64) : NULL;
    memcpy(p->vmax, p->pv, p->n * sizeof *p->vmax);
    if (p->p64) {
        memcpy(p->x32, p->v32, p->n * sizeof *p->x32);
        memcpy(p->x64, p->v64, p->n * sizeof *p->x64);
    }
}

/* The same of numbers that the record may lack: zeros then. */
static void round_from(const mpsim_format *f, float *y, const record_values *x, size_t n)
{
    if (!y)
        return;
    if (replay_values_there(x))
        replay_round(f, 1, y, x, 0, n);
    else
        memset(y, 0, n * sizeof *y);
}

static void round_to(const mpsim_format *f, float *y, const float *x, size_t n)
{
    mpsim_rounding nearest;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    if (y)
        mpsim_round_array_f32(f, &nearest, NULL, y, x, n, NULL);
}

static float split_value(float master)
{
    uint16_t model;
    int16_t rest;
    uint32_t bits;
    float x;
    mpsim_master_split(&model, &rest, master);
    bits = (uint32_t)model << 16;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void replay_parameter_refresh(const replay *r, parameter *p)
{
    if (r->plan->master == TRAIN_SPLIT_MASTER && p->place.kept.mbits != p->place.storage.mbits)
        for (size_t i = 0; i < p->n; i++)
            p->model[i] = split_value(p->p[i]);
    else
        round_to(&p->place.storage, p->model, p->p, p->n);
}

/* ---- begin of a step ---- */

/* The algorithm that updates a parameter in this step; -1: not known. */
static int algorithm_of(const replay *r, const parameter *p)
{
    const int chosen = r->plan->optimizer.algorithm;
    return chosen >= 0 ? chosen : replay_group_settings(r, p)->optimizer;
}

static void drop_state(parameter *p)
{
    replay_values_free(&p->m);
    replay_values_free(&p->v);
    replay_values_free(&p->vmax_recorded);
}

/* Momentum is no first moment: the record's state is used by the record's optimizer only. */
static void drop_foreign_state(const replay *r, parameter *p)
{
    const int chosen = r->plan->optimizer.algorithm;
    const int recorded = replay_group_settings(r, p)->optimizer;
    if (chosen < 0 || recorded < 0 || mpsim_optim_traits_of(chosen)->family == mpsim_optim_traits_of(recorded)->family)
        return;
    drop_state(p);
}

/* Updates that were taken before this step. The first one that copies the gradient, in torch's SGD, is where there is no momentum
 * buffer yet: where others have one, a parameter without has had none. */
static uint64_t steps_done(const replay *r, const parameter *p)
{
    const uint64_t done = p->steps_known                                                ? p->steps
                          : (replay_values_there(&p->m) || r->step == 1) && r->step > 0 ? (uint64_t)r->step - 1
                                                                                        : 0;
    if (!mpsim_optim_traits_of(algorithm_of(r, p))->copies)
        return done;
    return replay_values_there(&p->m) ? (done ? done : 1) : r->state_recorded ? 0 : done;
}

/* The references begin with what is recorded, too. */
static void reference_from_record(parameter *p, const record_values *start)
{
    const mpsim_format *fp32 = mpsim_format_find("binary32");
    const struct {
        float *narrow;
        double *wide;
        const record_values *from;
    } all[] = {{p->p32, p->p64, start},
               {p->m32, p->m64, &p->m},
               {p->v32, p->v64, &p->v},
               {p->x32, p->x64, replay_values_there(&p->vmax_recorded) ? &p->vmax_recorded : &p->v}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        round_from(fp32, all[i].narrow, all[i].from, p->n);
        for (size_t k = 0; all[i].wide && k < p->n; k++)
            all[i].wide[k] = replay_values_there(all[i].from) ? replay_value_at(all[i].from, k) : 0;
    }
}

/* What begins is in few bits, too. */
static void store_moments(parameter *p)
{
    const replay_arrays a = replay_moments_arrays(p->place.states, p->count, p->pm, p->pv, p->p);
    replay_moments_store(p->place.states, &a, p->n);
}

static void from_record(const replay *r, parameter *p)
{
    const record_values *start = replay_values_there(&p->master) ? &p->master : &p->weight;
    if (replay_is_muon(r, p) && !replay_group_settings(r, p)->by_muon) /* no recorded moment is Muon's buffer */
        drop_state(p);
    drop_foreign_state(r, p);
    round_from(&p->place.kept, p->p, start, p->n);
    round_from(&p->place.state, p->pm, &p->m, p->n);
    round_from(&p->place.state, p->pv, &p->v, p->n);
    /* at least the second moment, if it is not known */
    round_from(&p->place.state, p->vmax, replay_values_there(&p->vmax_recorded) ? &p->vmax_recorded : &p->v, p->n);
    if (p->place.states && strcmp(p->place.states->name, r->record.states) != 0)
        store_moments(p);
    if (p->kahan)
        memset(p->kahan, 0, p->n * sizeof *p->kahan);
    p->t = p->t_reference = steps_done(r, p);
    p->lacks_state = p->t > 0 && !replay_values_there(&p->m);
    p->lacks_vmax = p->t > 0 && !replay_values_there(&p->vmax_recorded);
    if (p->p64)
        reference_from_record(p, start);
    p->alive = 1;
}

/* Carried numbers in the formats of a new plan. */
static void convert(parameter *p)
{
    round_to(&p->place.kept, p->p, p->p, p->n);
    round_to(&p->place.state, p->pm, p->pm, p->n);
    round_to(&p->place.state, p->pv, p->pv, p->n);
    round_to(&p->place.state, p->vmax, p->vmax, p->n);
    round_to(&p->place.kept, p->kahan, p->kahan, p->n);
    store_moments(p);
}

static const char *const carried_kinds[REPLAY_CARRIED] = {
    [CARRIED_WEIGHT] = "weight", [CARRIED_M] = "opt.m",       [CARRIED_V] = "opt.v",
    [CARRIED_VMAX] = "opt.vmax", [CARRIED_MASTER] = "master",
};

const char *replay_carried_kind(replay_carried c)
{
    return carried_kinds[c];
}

static void compare_array(replay_weight *w, replay_carried which, const float *own, const record_values *record,
                          size_t n)
{
    replay_comparison *c = &w->carried[which];
    for (size_t i = 0; replay_values_there(record) && i < n; i++) {
        const double a = (double)own[i], b = replay_value_at(record, i);
        const double larger = isnan(a) || isnan(b) ? (double)NAN : fmax(fabs(a), fabs(b));
        c->compared++;
        if (a == b ? signbit(a) == signbit(b) : isnan(a) && isnan(b))
            continue;
        c->differ++;
        const double d = !isfinite(larger) ? (double)INFINITY : larger > 0 ? fabs(a - b) / larger : 0;
        if (d > c->max_difference)
            c->max_difference = d;
    }
    w->compared += c->compared;
    w->differ += c->differ;
    w->max_difference = fmax(w->max_difference, c->max_difference);
}

/* What was carried to here and what was recorded here, where both have the same format; else how many numbers are
 * not compared. */
static void compare(const replay *r, const parameter *p, replay_weight *w)
{
    const int same = replay_values_there(&p->weight) && p->weight_format &&
                     p->weight_format->mbits == p->place.storage.mbits &&
                     p->weight_format->ebits == p->place.storage.ebits;
    const struct {
        const float *own;
        const record_values *record;
        int comparable;
    } all[REPLAY_CARRIED] = {
        [CARRIED_WEIGHT] = {p->model, &p->weight, same},
        [CARRIED_M] = {p->pm, &p->m, same},
        [CARRIED_V] = {p->pv, &p->v, same},
        [CARRIED_VMAX] = {p->vmax, &p->vmax_recorded, same},
        [CARRIED_MASTER] = {p->p, &p->master, r->plan->master != TRAIN_NO_MASTER},
    };
    for (int k = 0; k < REPLAY_CARRIED; k++) {
        if (all[k].comparable && all[k].own)
            compare_array(w, (replay_carried)k, all[k].own, all[k].record, p->n);
        else if (replay_values_there(all[k].record))
            w->left_out += w->carried[k].left_out = p->n;
    }
}

static void begin_parameter(replay *r, parameter *p, replay_weight *w)
{
    const replay_weights from = r->options->weights;
    const int consecutive = r->stepped && r->step == r->last_step + 1;
    const int carry = p->alive && from != REPLAY_RECORDED && (consecutive || from == REPLAY_CARRY);
    const int recorded = replay_values_there(&p->weight) || replay_values_there(&p->master);
    memset(w, 0, sizeof *w);
    memset(&p->problem, 0, sizeof p->problem);
    w->name = p->name;
    w->count = p->count;
    w->distance_fp32 = w->distance_f64 = w->kept_fp32 = (double)NAN;
    p->from_record = 0;
    if (!p->alive && !recorded)
        return;
    if (!p->p)
        allocate(p, r->options->references);
    allocate_rare(r, p);
    w->storage = p->place.storage.name;
    w->recorded = replay_values_there(&p->weight) && p->weight_format ? p->weight_format->name : NULL;
    w->master = p->place.kept.mbits != p->place.storage.mbits;
    if (carry || !recorded) {
        if (r->new_plan)
            convert(p);
        replay_parameter_refresh(r, p);
        compare(r, p, w);
    } else {
        from_record(r, p);
        replay_parameter_refresh(r, p);
        p->from_record = 1;
    }
    forget_weights(p);
}

int replay_begin_weights(replay *r)
{
    r->weights = need_more(r->weights, r->n_parameters, sizeof *r->weights);
    r->state_recorded = 0;
    for (size_t i = 0; i < r->n_parameters; i++)
        r->state_recorded |= replay_values_there(&r->parameters[i].m);
    const int code = replay_each(r, begin_parameter);
    for (size_t i = 0; i < r->n_parameters; i++)
        r->from_record |= r->parameters[i].from_record;
    return code;
}
