/* muon.c -- Muon's parameters: a step under the plan's model, the references, updates that are lost; see state.h.
 *
 * The buffer is the parameter's first moment, in the format of what is kept; it begins at zero, where weights are
 * taken from a record, too. Matrices that would take too long are refused. */
#include "impl.h"

#include "../array/array.h"
#include "../array/need.h"
#include "../text/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Multiply-adds of a matrix in a step: half a minute in binary64. */
static const double most_work = 0x1p36;

static int given(const replay *r, muon_key key)
{
    return r->plan->optimizer.muon_given >> key & 1;
}

/* What a run of Muon says of itself, where the policy does not. */
static void take_recorded(const replay *r, const record_settings *s, mpsim_muon *o)
{
    const struct {
        double *to, recorded;
        muon_key key;
    } numbers[] = {{&o->lr, s->lr, MUON_LR},         {&o->momentum, s->momentum, MUON_MOMENTUM},
                   {&o->eps, s->eps, MUON_EPS},      {&o->weight_decay, s->weight_decay, MUON_DECAY},
                   {&o->a, s->cubic[0], MUON_CUBIC}, {&o->b, s->cubic[1], MUON_CUBIC},
                   {&o->c, s->cubic[2], MUON_CUBIC}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!given(r, numbers[i].key) && !isnan(numbers[i].recorded))
            *numbers[i].to = numbers[i].recorded;
    if (!given(r, MUON_NESTEROV) && s->nesterov >= 0)
        o->nesterov = (uint8_t)s->nesterov;
    if (!given(r, MUON_SCALE) && s->adjust_lr >= 0)
        o->scale = (uint8_t)s->adjust_lr;
    if (!given(r, MUON_STEPS) && !isnan(s->ns_steps)) /* others than 0 to 99 are refused when it steps */
        o->steps = s->ns_steps >= 0 && s->ns_steps < UINT8_MAX ? (uint8_t)s->ns_steps : UINT8_MAX;
    const mpsim_optim_variant *variant = replay_recorded_variant(r, s);
    if (!given(r, MUON_VARIANT) && variant)
        o->variant = variant;
    if (!given(r, MUON_MODEL) && r->record.device == DEVICE_CPU && o->form == MPSIM_MUON_TORCH &&
        strcmp(o->format.name, "bf16") == 0)
        o->products = r->record.contracts == 0   ? MPSIM_MUON_ATEN
                      : r->record.contracts == 2 ? MPSIM_MUON_ONEDNN
                                                 : MPSIM_MUON_ATEN_AVX2;
}

/* KELLER's scale of a kernel is that of its last two dimensions. */
mpsim_muon replay_muon_of(const replay *r, const parameter *p)
{
    const record_settings *s = replay_group_settings(r, p);
    mpsim_muon o = r->plan->optimizer.muon;
    o.param = p->place.kept;
    o.lr *= isnan(r->record.lr_factor) ? 1 : r->record.lr_factor;
    if (s->by_muon)
        take_recorded(r, s, &o);
    if (o.form == MPSIM_MUON_KELLER && p->shape_rank > 2)
        o.factor = mpsim_muon_factor(&o, p->kernel, p->cols);
    return o;
}

void replay_say_muon(replay *r, const parameter *p)
{
    const record_settings *s = replay_group_settings(r, p);
    const mpsim_muon o = replay_muon_of(r, p);
    const struct {
        const char *word;
        double own, recorded;
    } numbers[] = {{"lr", o.lr, s->lr},
                   {"momentum", o.momentum, s->momentum},
                   {"weight decay", o.weight_decay, s->weight_decay},
                   {"eps", o.eps, s->eps}};
    char text[280] = "";
    for (size_t i = 0; s->by_muon && i < sizeof numbers / sizeof *numbers; i++)
        if (!isnan(numbers[i].recorded) && numbers[i].own != numbers[i].recorded)
            text_add(text, sizeof text, "%s%s %.9g (recorded %.9g)", *text ? ", " : "muon's ", numbers[i].word,
                     numbers[i].own, numbers[i].recorded);
    if (text[0])
        replay_say(r, NOTE_MUON, "%s", text);
    if (o.products == MPSIM_MUON_ONEDNN)
        replay_say(
            r, NOTE_VARIANT,
            "whether the CPU has AVX512-BF16 or AMX (mpsim.cpu_capability): Muon's products are summed as oneDNN "
            "does with the former, so that its weights may differ");
    else if (o.products && r->record.contracts < 0)
        replay_say(
            r, NOTE_VARIANT,
            "the CPU's instructions (mpsim.cpu_capability): Muon's products are summed as with AVX2, so that its "
            "weights may differ");
    if (!r->out.muon) {
        r->muon = o;
        r->out.muon = &r->muon;
    }
}

static size_t columns_of(const parameter *p)
{
    return p->rows ? p->n / p->rows : 0;
}

static int refused(parameter *p, const mpsim_muon *o)
{
    const double work = mpsim_muon_work(o, p->rows, columns_of(p));
    if (!(work > most_work))
        return 0;
    replay_fails(&p->problem, EXIT_DATA,
                 "replay: muon: %s of %zu x %zu takes %.2g multiply-adds a step, more than %.2g: "
                 "muon_exclude leaves it to the other optimizer",
                 p->name, p->rows, columns_of(p), work, most_work);
    return 1;
}

static int failed(parameter *p, mpsim_status s)
{
    if (s == MPSIM_ENOMEM)
        (void)need(NULL);
    if (s)
        replay_fails(&p->problem, EXIT_DATA, "replay: muon: %s cannot be stepped: %s", p->name, mpsim_status_string(s));
    return s != MPSIM_OK;
}

/* ---- what is lost ---- */

/* Elements that would move with the update of binary64, and do not. */
static void count_lost(const mpsim_muon *o, const parameter *p, const float *before, const float *model_before,
                       const double *update, replay_weight *w)
{
    const double step = o->lr * mpsim_muon_factor(o, p->rows, columns_of(p)), kept = 1 - o->lr * o->weight_decay;
    for (size_t i = 0; i < p->n; i++) {
        const double x = (double)before[i];
        const double y = x * kept - step * update[i];
        double nearest;
        if (!(y != x))
            continue;
        replay_nearest(&p->place.kept, &nearest, &y, 1);
        w->updates++;
        replay_move(&w->movement, x, y, nearest, (double)p->p[i]);
        w->lost += p->p[i] == before[i];
        w->lost_model += p->model[i] == model_before[i];
    }
}

/* ---- the step ---- */

/* Room for a step: all of n elements. */
typedef struct room {
    float *u, *before, *model;
    double *wide, *update;
} room;

static void open_room(room *m, size_t n)
{
    *m = (room){need(array_memory(n, sizeof(float))), need(array_memory(n, sizeof(float))),
                need(array_memory(n, sizeof(float))), need(array_memory(n, sizeof(double))),
                need(array_memory(n, sizeof(double)))};
}

static void close_room(room *m)
{
    free(m->u);
    free(m->before);
    free(m->model);
    free(m->wide);
    free(m->update);
}

static mpsim_status step(const replay *r, const mpsim_muon *o, parameter *p, room *m, replay_weight *w)
{
    const size_t n = p->n, columns = columns_of(p);
    const double scale = r->of[replay_owner(r, p)].grad_scale;
    for (size_t i = 0; i < n; i++)
        m->u[i] = scale != 1 ? p->g[i] / (float)scale : p->g[i];
    const record_values g = {.narrow = m->u};
    replay_round(&o->param, 1, m->u, &g, 0, n); /* torch's gradients have the parameter's format */
    mpsim_status s = mpsim_muon_momentum(o, p->pm, m->u, m->u, n);
    for (size_t i = 0; i < n && !s; i++)
        m->wide[i] = (double)m->u[i];
    if (!s)
        s = mpsim_muon_reference(o, m->update, m->wide, p->rows, columns);
    if (!s)
        s = mpsim_muon_orthogonalise(o, m->u, m->u, p->rows, columns, NULL);
    if (!s) {
        w->moments.arrays = 1;
        replay_error_measure(m->update, m->u, n, &w->moments.muon);
        s = mpsim_muon_apply(o, p->p, m->u, p->rows, columns);
    }
    return s;
}

void replay_muon_step(replay *r, parameter *p, replay_weight *w)
{
    const mpsim_muon o = replay_muon_of(r, p);
    room m;
    p->t++;
    if (p->n == 0 || refused(p, &o))
        return;
    open_room(&m, p->n);
    memcpy(m.before, p->p, p->n * sizeof *m.before);
    memcpy(m.model, p->model, p->n * sizeof *m.model);
    if (!failed(p, step(r, &o, p, &m, w))) {
        replay_parameter_refresh(r, p);
        count_lost(&o, p, m.before, m.model, m.update, w);
    }
    close_room(&m);
}

/* ---- references ---- */

/* In binary32, every operation rounded; products are chains. */
static mpsim_status step_narrow(const mpsim_muon *o, parameter *p, float *u, double factor)
{
    mpsim_muon plain = *o;
    plain.param = plain.format = *mpsim_format_find("binary32");
    plain.variant = mpsim_optim_variant_find("torch-cpu-default");
    plain.products = MPSIM_MUON_MODEL;
    mpsim_model_parse(&plain.model, "sequential");
    for (size_t i = 0; i < p->n; i++)
        u[i] = (float)replay_mean_gradient(p, i, factor);
    mpsim_status s = mpsim_muon_momentum(&plain, p->m32, u, u, p->n);
    if (!s)
        s = mpsim_muon_orthogonalise(&plain, u, u, p->rows, columns_of(p), NULL);
    return s ? s : mpsim_muon_apply(&plain, p->p32, u, p->rows, columns_of(p));
}

static mpsim_status step_wide(const mpsim_muon *o, parameter *p, double *u, double *y, double factor)
{
    const double step = o->lr * mpsim_muon_factor(o, p->rows, columns_of(p)), kept = 1 - o->lr * o->weight_decay;
    for (size_t i = 0; i < p->n; i++) {
        const double g = replay_mean_gradient(p, i, factor);
        p->m64[i] += (1 - o->momentum) * (g - p->m64[i]);
        u[i] = o->nesterov ? g + o->momentum * (p->m64[i] - g) : p->m64[i];
    }
    const mpsim_status s = mpsim_muon_reference(o, y, u, p->rows, columns_of(p));
    for (size_t i = 0; i < p->n && !s; i++)
        p->p64[i] = p->p64[i] * kept - step * y[i];
    return s;
}

void replay_muon_references(const replay *r, parameter *p, double factor)
{
    const mpsim_muon o = replay_muon_of(r, p);
    room m;
    p->t_reference++;
    if (p->n == 0 || refused(p, &o))
        return;
    open_room(&m, p->n);
    if (!failed(p, step_narrow(&o, p, m.u, factor)))
        (void)failed(p, step_wide(&o, p, m.wide, m.update, factor));
    close_room(&m);
}
