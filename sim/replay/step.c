/* step.c -- from gradients to new weights; see state.h. */
#include "state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- gradients ---- */

/* Whether the recorded run computed in format f. */
static int computed_in(const replay *r, const mpsim_format *f)
{
    static const char *const names[] = {[COMPUTED_FP16] = "fp16", [COMPUTED_BF16] = "bf16"};
    const record_precision c = r->record.computed;
    return c >= COMPUTED_FP16 && strcmp(f->name, names[c]) == 0;
}

/* A sum of gradients (over micro-batches, or over the uses of a tied weight) is formed in the format of
 * the parameter: it is no number of the format that backward computes in. A policy may say otherwise. */
static int is_sum(const replay *r, const parameter *p)
{
    return (r->record.accumulation > 1 || p->tied) && !r->plan->grads_given &&
           p->place.storage.mbits == 23 && computed_in(r, &p->place.format[TRAIN_WGRAD]);
}

/* Recorded gradients that a run in format f would not have: counted, unless the run is known to have
 * computed in another one. */
static void count_unheld(replay *r, const parameter *p, const mpsim_format *f)
{
    const double scale = r->record.scale_known && !r->record.grads_scaled ? r->record.loss_scale : 1;
    float block[256];
    if (f->mbits >= 23 || (r->record.computed != COMPUTED_UNKNOWN && !computed_in(r, f)))
        return;
    r->out.gradient_format = p->place.format[TRAIN_WGRAD].name;
    const uint64_t before = r->out.unheld;
    for (size_t k = 0; k < p->ranks; k++)
        for (size_t i = 0; i < p->n; i += 256) {
            const size_t n = p->n - i < 256 ? p->n - i : 256;
            const double *x = p->grads[k] + i;
            replay_round(f, scale, block, x, n);
            for (size_t j = 0; j < n; j++)
                r->out.unheld += isfinite(x[j]) && (double)block[j] != x[j] * scale;
            r->out.gradients += n;
        }
    if (r->out.unheld > before && !r->out.unheld_in)
        r->out.unheld_in = p->name;
}

/* A gradient in the plan's format, times the loss scale, summed over ranks, in p->g. */
static int make_gradient(replay *r, parameter *p, double factor)
{
    train_placement place = p->place;
    const mpsim_format *f = &place.format[TRAIN_WGRAD];
    char name[512];
    int code = 0;
    if (is_sum(r, p))
        place.format[TRAIN_WGRAD] = place.storage;
    count_unheld(r, p, f);
    snprintf(name, sizeof name, "wgrad:%s", p->name);
    float **wire = calloc(p->ranks, sizeof *wire);
    for (size_t k = 0; wire && k < p->ranks && !code; k++) {
        wire[k] = k == 0 ? p->g : malloc((p->n ? p->n : 1) * sizeof **wire);
        if (!wire[k]) {
            code = replay_no_memory();
            break;
        }
        code = replay_cast_tensor(r, name, TRAIN_WGRAD, p->kind, &place, 0, p->grads[k], p->n,
                                  p->cols, factor);
        if (!code)
            replay_round(f, factor, wire[k], p->grads[k], p->n);
    }
    if (!wire)
        code = replay_no_memory();
    if (!code && p->ranks > 1) {
        mpsim_reduce d = r->plan->reduce;
        if (!r->plan->reduce_given)
            d.wire = d.accumulator = d.result = *f;
        if (mpsim_reduce_array(&d, p->g, (const float *const *)wire, p->ranks, p->n))
            code = fail(EXIT_DATA, "replay: %s: the gradients of its ranks cannot be reduced",
                        p->name);
    }
    for (size_t k = 1; wire && k < p->ranks; k++)
        free(wire[k]);
    free(wire);
    return code;
}

static int not_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return 1;
    return 0;
}

/* The name that the casts have: "wgrad:...". */
static const char *gradient_name(replay *r, const parameter *p)
{
    char name[512];
    snprintf(name, sizeof name, "wgrad:%s", p->name);
    const cast_state *s = replay_state(r, name);
    return s ? s->name : p->name;
}

/* Does the step overflow, as the scaler's check sees it? */
static int overflows(replay *r)
{
    float *norms = calloc(r->n_parameters ? r->n_parameters : 1, sizeof *norms);
    int found = r->overflow;
    size_t used = 0;
    if (!norms)
        return -1;
    for (size_t i = 0; i < r->n_parameters; i++) {
        const parameter *p = &r->parameters[i];
        if (!p->ranks || p->group < 0) /* the optimizer does not have it */
            continue;
        if (!found && r->plan->scaler.check == MPSIM_CHECK_ELEMENTS && not_finite(p->g, p->n)) {
            found = 1;
            r->cause = gradient_name(r, p);
        }
        norms[used++] = mpsim_norm(NULL, p->g, p->n);
    }
    if (!found && r->plan->scaler.check == MPSIM_CHECK_NORM &&
        train_norm_overflows(norms, used)) {
        found = 1;
        r->cause = train_norm_name;
    }
    free(norms);
    return found;
}

/* ---- one parameter ---- */

static int step_parameter(replay *r, double grad_scale, parameter *p, replay_weight *w)
{
    mpsim_optim o = *replay_optimizer_of(r, p);
    o.store = (uint8_t)r->plan->optimizer.store;
    o.grad_scale = grad_scale;
    o = train_optim_of(&o, &p->place);
    const mpsim_rng rng = replay_rng(r, p->name);
    const size_t bytes = (p->n ? p->n : 1) * sizeof(float);
    const float *from[6] = {p->p, p->model, p->pm, p->pv, p->vmax, p->kahan};
    float *old[6];
    int bad = 0, code = 0;
    for (int i = 0; i < 6; i++) {
        bad |= (old[i] = malloc(bytes)) == NULL;
        if (old[i])
            memcpy(old[i], from[i], p->n * sizeof(float));
    }
    p->t++;
    if (!bad) {
        const mpsim_optim_tensor t = {.param = p->p, .grad = p->g, .m = p->pm, .v = p->pv,
                                      .vmax = p->vmax, .kahan = p->kahan, .n = p->n};
        const mpsim_status s = mpsim_optim_check(&o);
        if (s || mpsim_optim_step(&o, p->t, &t, &rng))
            code = fail(EXIT_DATA, "replay: %s cannot be stepped: variant %s of %s in %s: %s",
                        p->name, o.variant->name, mpsim_optim_name((mpsim_optim_algorithm)o.algorithm),
                        o.param.name, mpsim_status_string(s ? s : MPSIM_EINVAL));
    }
    parameter_refresh(r, p);
    if (!bad && !code)
        code = replay_count_lost(&o, p, old[0], old[1], old[2], old[3], old[4], old[5], w);
    for (int i = 0; i < 6; i++)
        free(old[i]);
    return bad ? replay_no_memory() : code;
}

/* ---- the step ---- */

static int step_all(replay *r, double grad_scale, int skip, int finite)
{
    replay_distance all[4];
    const double factor = r->options->references ? replay_reference_factor(r) : 1;
    for (int i = 0; i < 4; i++)
        replay_distance_init(&all[i]);
    for (size_t i = 0; i < r->n_parameters; i++) {
        parameter *p = &r->parameters[i];
        replay_weight *w = &r->weights[i];
        int code = 0;
        if (!replay_is_updated(p))
            continue;
        if (!skip)
            code = step_parameter(r, grad_scale, p, w);
        if (!code && p->p64 && finite)
            code = replay_references(replay_optimizer_of(r, p), p, factor);
        if (code)
            return code;
        if (p->p64)
            replay_measure(p, w, all);
    }
    if (r->options->references) {
        r->out.distance_fp32 = replay_distance_value(&all[0]);
        r->out.distance_f64 = replay_distance_value(&all[1]);
        r->out.fp32_f64 = replay_distance_value(&all[2]);
        r->out.kept_fp32 = replay_distance_value(&all[3]);
    }
    return 0;
}

static int any_update(const replay *r)
{
    for (size_t i = 0; i < r->n_parameters; i++)
        if (replay_is_updated(&r->parameters[i]))
            return 1;
    return 0;
}

/* A file of weights only, after the last step, is no step. */
static int is_training(const replay *r)
{
    for (size_t i = 0; i < r->n_casts; i++)
        if (strcmp(r->casts[i].kind, "weight") != 0)
            return 1;
    for (size_t i = 0; i < r->n_parameters; i++)
        if (r->parameters[i].ranks)
            return 1;
    return 0;
}

/* What the step's reader gets to know of its groups. */
static void say_settings(replay *r)
{
    r->out.settings = r->settings;
    r->out.n_settings = r->n_settings;
    for (size_t i = r->n_settings; i-- > 0;)
        if (r->settings[i].parameters)
            r->out.optimizer = &r->settings[i].optimizer;
}

int replay_update(replay *r)
{
    const double from = r->record.grads_scaled ? r->record.loss_scale : 1;
    const double factor = r->scaler.scale / from;
    double grad_scale = 1;
    r->out.scale = r->out.unscale = r->out.next_scale = r->scaler.scale;
    r->out.tracker = r->scaler.clean;
    r->out.trains = is_training(r);
    if (!r->out.trains)
        return 0;
    if (!(factor > 0 && isfinite(factor)))
        return fail(EXIT_DATA, "replay: step %lld: gradients recorded at a loss scale of %g cannot "
                               "be brought to %g", (long long)r->step, from, r->scaler.scale);
    for (size_t i = 0; i < r->n_parameters; i++) {
        parameter *p = &r->parameters[i];
        const int code = p->ranks ? make_gradient(r, p, factor) : 0;
        if (code)
            return code;
    }
    /* a gradient that overflowed when it was recorded is not known at smaller scales */
    const int finite = replay_record_finite(r);
    r->out.unknown = r->record.grads_scaled && r->scaler.scale < r->record.loss_scale && !finite;
    const int found = r->out.unknown ? r->overflow : overflows(r);
    if (found < 0)
        return replay_no_memory();
    const mpsim_scaler_result s = mpsim_scaler_update(&r->scaler, found);
    r->out.scale = s.scale;
    r->out.unscale = s.unscale;
    r->out.next_scale = s.next;
    r->out.events = s.events;
    r->out.tracker = r->scaler.clean;
    r->out.cause = found ? r->cause : NULL;
    const int skip =
        r->out.unknown || (s.events & (MPSIM_SCALER_SKIP | MPSIM_SCALER_RAISED)) != 0;
    if (!any_update(r))
        return 0;
    int code = replay_choose_optimizers(r);
    replay_choose_clip(r);
    if (!code && !skip) {
        say_settings(r);
        code = replay_unscale_and_clip(r, s.unscale, &grad_scale);
    }
    return code ? code : step_all(r, grad_scale, skip, finite);
}
