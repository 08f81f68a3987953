/* weights.c -- a parameter's numbers: from the record, carried on, compared. */
#include "state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void parameter_forget(parameter *p)
{
    free(p->weight);
    free(p->master);
    free(p->m);
    free(p->v);
    for (size_t i = 0; i < p->ranks; i++)
        free(p->grads[i]);
    free(p->grads);
    p->weight = p->master = p->m = p->v = NULL;
    p->grads = NULL;
    p->ranks = 0;
}

void parameter_free(parameter *p)
{
    float *narrow[] = {p->p,     p->model, p->g,   p->pm,  p->pv, p->vmax,
                       p->kahan, p->p32,   p->m32, p->v32, p->x32};
    double *wide[] = {p->p64, p->m64, p->v64, p->x64};
    parameter_forget(p);
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        free(narrow[i]);
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        free(wide[i]);
    free(p->name);
    free(p->layer);
}

/* ---- arrays ---- */

static int allocate(parameter *p, int references)
{
    float **narrow[] = {&p->p, &p->model, &p->pm, &p->pv, &p->vmax, &p->kahan};
    float **narrow_reference[] = {&p->p32, &p->m32, &p->v32, &p->x32};
    double **wide[] = {&p->p64, &p->m64, &p->v64, &p->x64};
    const size_t n = p->n ? p->n : 1;
    int bad = 0;
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        bad |= (*narrow[i] = calloc(n, sizeof(float))) == NULL;
    for (size_t i = 0; references && i < 4; i++) {
        bad |= (*narrow_reference[i] = calloc(n, sizeof(float))) == NULL;
        bad |= (*wide[i] = calloc(n, sizeof(double))) == NULL;
    }
    return bad ? replay_no_memory() : 0;
}

/* The same of numbers that the record may lack: zeros then. */
static void round_from(const mpsim_format *f, float *y, const double *x, size_t n)
{
    if (x)
        replay_round(f, 1, y, x, n);
    else
        memset(y, 0, n * sizeof *y);
}

static void round_to(const mpsim_format *f, float *y, const float *x, size_t n)
{
    mpsim_rounding nearest;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
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

void parameter_refresh(const replay *r, parameter *p)
{
    if (r->plan->master == TRAIN_SPLIT_MASTER && p->place.kept.mbits != p->place.storage.mbits)
        for (size_t i = 0; i < p->n; i++)
            p->model[i] = split_value(p->p[i]);
    else
        round_to(&p->place.storage, p->model, p->p, p->n);
}

/* ---- begin of a step ---- */

/* Momentum is no first moment: the record's state is used by the record's optimizer only. */
static void drop_foreign_state(const replay *r, parameter *p)
{
    const int chosen = r->plan->optimizer.algorithm, recorded = r->record.optimizer;
    const int adam = chosen > MPSIM_OPTIM_SGD, recorded_adam = recorded > MPSIM_OPTIM_SGD;
    if (chosen < 0 || recorded < 0 || adam == recorded_adam)
        return;
    free(p->m);
    free(p->v);
    p->m = p->v = NULL;
}

static void from_record(replay *r, parameter *p)
{
    const double *start = p->master ? p->master : p->weight;
    drop_foreign_state(r, p);
    const uint64_t done = r->record.steps_known ? r->record.optimizer_steps
                          : (p->m || r->step == 1) && r->step > 0 ? (uint64_t)r->step - 1 : 0;
    round_from(&p->place.kept, p->p, start, p->n);
    round_from(&p->place.state, p->pm, p->m, p->n);
    round_from(&p->place.state, p->pv, p->v, p->n);
    memset(p->vmax, 0, p->n * sizeof *p->vmax);
    memset(p->kahan, 0, p->n * sizeof *p->kahan);
    p->t = p->t_reference = done;
    if (p->p64) {
        const mpsim_format *fp32 = mpsim_format_find("binary32");
        const size_t bytes = p->n * sizeof *p->p64;
        round_from(fp32, p->p32, start, p->n);
        round_from(fp32, p->m32, p->m, p->n);
        round_from(fp32, p->v32, p->v, p->n);
        memset(p->x32, 0, p->n * sizeof *p->x32);
        memcpy(p->p64, start, bytes);
        memset(p->m64, 0, bytes);
        memset(p->v64, 0, bytes);
        memset(p->x64, 0, bytes);
        if (p->m)
            memcpy(p->m64, p->m, bytes);
        if (p->v)
            memcpy(p->v64, p->v, bytes);
    }
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
}

static void compare_array(replay_weight *w, const float *own, const double *record, size_t n)
{
    for (size_t i = 0; record && i < n; i++) {
        const double a = (double)own[i], b = record[i];
        const double larger = isnan(a) || isnan(b) ? (double)NAN : fmax(fabs(a), fabs(b));
        w->compared++;
        if (a == b ? signbit(a) == signbit(b) : isnan(a) && isnan(b))
            continue;
        w->differ++;
        const double d = !isfinite(larger) ? (double)INFINITY
                         : larger > 0      ? fabs(a - b) / larger
                                           : 0;
        if (d > w->max_difference)
            w->max_difference = d;
    }
}

/* What was carried to here and what was recorded here, where both have the same format. */
static void compare(const replay *r, const parameter *p, replay_weight *w)
{
    if (p->weight && p->weight_format && p->weight_format->mbits == p->place.storage.mbits &&
        p->weight_format->ebits == p->place.storage.ebits) {
        compare_array(w, p->model, p->weight, p->n);
        compare_array(w, p->pm, p->m, p->n);
        compare_array(w, p->pv, p->v, p->n);
    }
    if (r->plan->master != TRAIN_NO_MASTER)
        compare_array(w, p->p, p->master, p->n);
}

static int begin_parameter(replay *r, parameter *p, replay_weight *w)
{
    const replay_weights from = r->options->weights;
    const int consecutive = r->stepped && r->step == r->last_step + 1;
    const int carry = p->alive && from != REPLAY_RECORDED && (consecutive || from == REPLAY_CARRY);
    memset(w, 0, sizeof *w);
    w->name = p->name;
    w->count = p->n;
    w->distance_fp32 = w->distance_f64 = w->kept_fp32 = (double)NAN;
    if (!p->g && (p->g = calloc(p->n ? p->n : 1, sizeof *p->g)) == NULL)
        return replay_no_memory();
    if (!p->alive && !p->weight && !p->master)
        return 0;
    if (!p->p) {
        const int code = allocate(p, r->options->references);
        if (code)
            return code;
    }
    w->storage = p->place.storage.name;
    w->master = p->place.kept.mbits != p->place.storage.mbits;
    if (carry || (!p->weight && !p->master)) {
        if (r->new_plan)
            convert(p);
        parameter_refresh(r, p);
        compare(r, p, w);
    } else {
        from_record(r, p);
        parameter_refresh(r, p);
        r->from_record = 1;
    }
    return 0;
}

int replay_begin_weights(replay *r)
{
    replay_weight *w = realloc(r->weights, (r->n_parameters + 1) * sizeof *w);
    if (!w)
        return replay_no_memory();
    r->weights = w;
    for (size_t i = 0; i < r->n_parameters; i++) {
        const int code = begin_parameter(r, &r->parameters[i], &w[i]);
        if (code)
            return code;
    }
    return 0;
}
