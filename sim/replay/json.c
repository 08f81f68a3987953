/* json.c -- steps and totals of a replay as JSON; see json.h. */
#include "json.h"

#include "../policy/muon.h"
#include "../record/step.h"

#include <math.h>

static json_t *json_counts(const replay_counts *c)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "count", json_of_count(c->count), "nonzero",
                     json_of_count(c->nonzero), "nonfinite", json_of_count(c->nonfinite), "underflow",
                     json_of_count(c->underflow), "subnormal", json_of_count(c->subnormal), "overflow",
                     json_of_count(c->overflow), "stale", json_of_count(c->stale));
}

/* The newest amaxes, oldest first; those that no step has filled yet are left out. */
static json_t *json_history(const replay_cast *c)
{
    json_t *list = json_array();
    size_t first = c->n_history > REPLAY_HISTORY_SHOWN ? c->n_history - REPLAY_HISTORY_SHOWN : 0;
    while (first < c->n_history && c->history[first] == 0)
        first++;
    for (size_t i = first; i < c->n_history; i++)
        json_array_append_new(list, json_of_double((double)c->history[i]));
    return list;
}

static json_t *json_cast(const replay_cast *c)
{
    json_t *v = json_pack(
        "{s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "name", c->name, "kind", c->kind, "layer",
        layer_kind_name(c->layer), "format", c->format, "scale", json_of_double(c->scale), "next_scale",
        json_of_double(c->next), "count", json_of_count(c->count), "nonzero", json_of_count(c->nonzero), "nonfinite",
        json_of_count(c->nonfinite), "underflow", json_of_count(c->underflow), "subnormal", json_of_count(c->subnormal),
        "overflow", json_of_count(c->overflow), "stale", json_of_count(c->stale), "amax", json_of_double(c->amax),
        "sqnr_db", json_of_double(c->sqnr_db));
    if (c->history)
        json_object_set_new(v, "amax_history", json_history(c));
    return v;
}

static json_t *json_error(const replay_error *e)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o}", "count", json_of_count(e->count), "nonzero", json_of_count(e->nonzero),
                     "not_finite", json_of_count(e->not_finite), "become_zero", json_of_count(e->lost), "sqnr_db",
                     json_of_double(replay_error_db(e)));
}

static json_t *json_moments(const replay_moments *m)
{
    const struct {
        const char *key;
        const replay_error *e;
    } parts[] = {{"m", &m->m}, {"v", &m->v}, {"weights", &m->kept}, {"step", &m->step}, {"muon", &m->muon}};
    json_t *v = json_object();
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].e->count)
            json_object_set_new(v, parts[i].key, json_error(parts[i].e));
    if (m->step.count)
        json_object_set_new(v, "step_where_v_is_kept", json_error(&m->bounded));
    if (m->step.count)
        json_object_update_new(
            v, json_pack("{s:o,s:o,s:o}", "largest_step", json_of_double(replay_moments_largest(m, m->largest)),
                         "largest_step_stored", json_of_double(replay_moments_largest(m, m->largest_stored)),
                         "v_became_zero_m_not", json_of_count(m->unbounded)));
    return v;
}

static json_t *json_weight(const replay_weight *w)
{
    json_t *v = json_pack("{s:s,s:s?,s:s?,s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "name", w->name, "storage",
                          w->storage, "gradient", w->grads, "master", w->master, "count", json_of_count(w->count),
                          "updates", json_of_count(w->updates), "lost", json_of_count(w->lost), "lost_in_model",
                          json_of_count(w->lost_model), "distance_fp32", json_of_double(w->distance_fp32),
                          "distance_binary64", json_of_double(w->distance_f64), "kept_from_fp32",
                          json_of_double(w->kept_fp32), "compared", json_of_count(w->compared), "differ",
                          json_of_count(w->differ), "max_difference", json_of_double(w->max_difference));
    if (w->moments.arrays)
        json_object_set_new(v, "moments", json_moments(&w->moments));
    return v;
}

/* What each of several optimizers did. */
static json_t *json_doing(const replay_step *s)
{
    json_t *list = json_array();
    for (size_t k = 0; k < s->n_optimizers; k++)
        json_array_append_new(list,
                              json_pack("{s:b,s:o,s:b}", "skipped", s->optimizers[k].skipped, "norm",
                                        json_of_double(s->optimizers[k].norm), "clipped", s->optimizers[k].clipped));
    return list;
}

json_t *replay_json_step(const replay_step *s)
{
    json_t *v =
        json_pack("{s:I,s:b,s:b,s:o,s:o,s:o,s:o,s:o,s:s?,s:o,s:b,s:b,s:o,s:o,s:o,s:o,s:o,s:o}", "step",
                  (json_int_t)s->step, "trains", s->trains, "unknown", s->unknown, "scale", json_of_double(s->scale),
                  "unscale", json_of_double(s->unscale), "next_scale", json_of_double(s->next_scale), "events",
                  step_events_json(s->events), "growth_tracker", json_of_count(s->tracker), "cause", s->cause, "norm",
                  json_of_double(s->norm), "clipped", s->clipped, "from_record", s->from_record, "recorded_scale",
                  json_of_double(s->recorded_scale), "distance_fp32", json_of_double(s->distance_fp32),
                  "distance_binary64", json_of_double(s->distance_f64), "kept_from_fp32", json_of_double(s->kept_fp32),
                  "fp32_from_binary64", json_of_double(s->fp32_f64), "bytes", step_bytes_json(&s->bytes));
    json_t *tensors = json_array(), *weights = json_array();
    for (size_t i = 0; i < s->n_casts; i++)
        json_array_append_new(tensors, json_cast(&s->casts[i]));
    for (size_t i = 0; i < s->n_weights; i++)
        json_array_append_new(weights, json_weight(&s->weights[i]));
    if (s->n_optimizers)
        json_object_set_new(v, "optimizers", json_doing(s));
    json_object_set_new(v, "tensors", tensors);
    json_object_set_new(v, "weights", weights);
    return v;
}

static json_t *json_groups(const replay_total *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->n_settings; i++) {
        const replay_settings *s = &t->settings[i];
        if (!s->parameters)
            continue;
        const mpsim_optim *o = &s->optimizer;
        json_t *v = step_optimizer_json(o);
        json_object_update_new(v, json_pack("{s:o,s:b,s:b,s:b}", "dampening", json_of_double(o->dampening), "nesterov",
                                            o->nesterov, "amsgrad", o->amsgrad, "maximize", o->maximize));
        json_object_set_new(v, "parameters", json_of_count(s->parameters));
        json_array_append_new(list, v);
    }
    return list;
}

static json_t *json_differing(const replay_total *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->n_differing; i++) {
        const replay_difference *d = &t->differing[i];
        json_array_append_new(list, json_pack("{s:s,s:o,s:o,s:o}", "name", d->name, "compared",
                                              json_of_count(d->c.compared), "differ", json_of_count(d->c.differ),
                                              "max_difference", json_of_double(d->c.max_difference)));
    }
    return list;
}

static json_t *json_omitted(const replay_total *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->n_omitted; i++) {
        const replay_omission *o = &t->omitted[i];
        json_array_append_new(list, json_pack("{s:s,s:o,s:s,s:s}", "name", o->name, "count", json_of_count(o->count),
                                              "weight_recorded_in", o->recorded, "weight_here_in", o->here));
    }
    return list;
}

/* What the record lacks and which values may differ for that; nothing where all are equal. */
static json_t *json_lacks(const replay_total *t)
{
    json_t *list = json_array();
    for (int i = NOTE_POLICY + 1; i < NOTE_NOT_RECORDED && replay_total_doubts(t); i++)
        if (t->notes.text[i][0])
            json_array_append_new(list, json_string(t->notes.text[i]));
    return list;
}

/* How the run and its record belong together. */
static void add_record(json_t *v, const replay_total *t)
{
    json_object_set_new(v, "groups", json_groups(t));
    if (t->n_optimizers) {
        json_t *skips = json_array();
        for (size_t k = 0; k < t->n_optimizers; k++)
            json_array_append_new(skips, json_of_count(t->optimizer_skips[k]));
        json_object_set_new(v, "optimizer_skips", skips);
    }
    json_object_set_new(v, "equal_to_record",
                        !t->compared || (t->left_out && !t->differ) ? json_null() : json_boolean(t->differ == 0));
    json_object_set_new(v, "differing", json_differing(t));
    json_object_set_new(v, "not_compared", json_of_count(t->left_out));
    json_object_set_new(v, "not_compared_in", json_omitted(t));
    if (t->notes.text[NOTE_REFUSED][0])
        json_object_set_new(v, "refused", json_string(t->notes.text[NOTE_REFUSED]));
    if (t->notes.text[NOTE_FORMATS][0])
        json_object_set_new(v, "formats", json_string(t->notes.text[NOTE_FORMATS]));
    if (t->notes.text[NOTE_MUON][0])
        json_object_set_new(v, "policys_muon", json_string(t->notes.text[NOTE_MUON]));
    json_object_set_new(v, "policys_own", json_string(t->notes.text[NOTE_POLICY]));
    json_object_set_new(v, "lacks", json_lacks(t));
    json_object_set_new(v, "not_recorded", json_string(t->notes.text[NOTE_NOT_RECORDED]));
    json_object_set_new(v, "gradients_not_held",
                        json_pack("{s:o,s:o,s:s,s:s}", "count", json_of_count(t->unheld), "of",
                                  json_of_count(t->gradients), "format", t->gradient_format, "first_in", t->unheld_in));
}

/* Moments in few bits: which, in total, and of every parameter. */
static void add_moments(json_t *v, const replay_total *t)
{
    json_t *list = json_array(), *m = json_moments(&t->moments);
    for (size_t i = 0; i < t->n_stored; i++) {
        json_t *one = json_moments(&t->stored[i].sum);
        json_object_set_new(one, "name", json_string(t->stored[i].name));
        json_array_append_new(list, one);
    }
    char line[512];
    if (t->states) {
        json_object_set_new(m, "states", json_string(t->states->name));
        json_object_set_new(m, "source", json_string(t->states->source));
    }
    if (t->muon.model.name[0])
        json_object_set_new(m, "muon_settings", json_string(muon_describe(&t->muon, line, sizeof line)));
    json_object_set_new(m, "parameters", list);
    json_object_set_new(v, "moments", m);
}

static json_t *json_movement(const replay_movement *m)
{
    return json_pack("{s:o,s:o,s:o}", "share", json_of_double(replay_moved_share(m)), "standard_error",
                     json_of_double(replay_moved_error(m)), "drift",
                     json_of_double(m->size > 0 ? (m->moved - m->wanted) / m->size : (double)NAN));
}

/* How far parameters move in the mean, all and each. */
static json_t *json_moved(const replay_total *t)
{
    json_t *v = json_movement(&t->movement), *list = json_array();
    const replay_movement small = replay_small_movement(&t->movement);
    json_object_set_new(v, "lost_by_nearest", json_movement(&small));
    for (size_t i = 0; i < t->n_moved; i++) {
        json_t *one = json_movement(&t->moved[i].sum);
        json_object_set_new(one, "name", json_string(t->moved[i].name));
        json_object_set_new(one, "lost_in_the_mean", json_boolean(replay_lost_in_the_mean(&t->moved[i].sum)));
        json_array_append_new(list, one);
    }
    json_object_set_new(v, "parameters", list);
    return v;
}

json_t *replay_json_total(const replay_total *t)
{
    json_t *v = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "steps",
                          json_of_count(t->steps), "skipped", json_of_count(t->skipped), "overflows",
                          json_of_count(t->overflows), "growths", json_of_count(t->growths), "backoffs",
                          json_of_count(t->backoffs), "clipped", json_of_count(t->clipped), "final_scale",
                          json_of_double(t->final_scale), "updates", json_of_count(t->updates), "lost",
                          json_of_count(t->lost), "lost_in_model", json_of_count(t->lost_model), "compared",
                          json_of_count(t->compared), "differ", json_of_count(t->differ), "max_difference",
                          json_of_double(t->max_difference), "distance_fp32", json_of_double(t->distance_fp32),
                          "distance_binary64", json_of_double(t->distance_f64), "bytes", step_bytes_json(&t->bytes));
    static const char *const keys[REPLAY_GROUPS] = {"act", "weight", "agrad", "wgrad"};
    json_object_set_new(v, "moved", json_moved(t));
    json_object_set_new(v, "unmatched_patterns", json_string(t->unmatched));
    for (int g = 0; g < REPLAY_GROUPS; g++)
        json_object_set_new(v, keys[g], json_counts(&t->groups[g]));
    add_record(v, t);
    if (t->states || t->muon.model.name[0])
        add_moments(v, t);
    return v;
}
