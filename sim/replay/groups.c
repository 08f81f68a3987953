/* groups.c -- the parameter groups of a step, and names that stand for others; see state.h. */
#include "impl.h"

#include "../array/need.h"
#include "../policy/muon.h"
#include "../text/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- from JSON ---- */

static double number_in(const json_t *group, const char *key)
{
    const json_t *v = json_object_get(group, key);
    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

static int flag_in(const json_t *group, const char *key)
{
    const json_t *v = json_object_get(group, key);
    return json_is_boolean(v) ? json_is_true(v) : -1;
}

static const char *text_in(const json_t *group, const char *key)
{
    const json_t *v = json_object_get(group, key);
    return json_is_string(v) ? json_string_value(v) : "";
}

/* Whether a list of texts has one. */
static int has_word(const json_t *group, const char *key, const char *word)
{
    const json_t *list = json_object_get(group, key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (text && strcmp(text, word) == 0)
            return 1;
    }
    return 0;
}

static void read_group(const json_t *group, record_settings *s)
{
    mpsim_optim_algorithm a;
    replay_no_settings(s);
    snprintf(s->optimizer_name, sizeof s->optimizer_name, "%.30s", text_in(group, "optimizer"));
    snprintf(s->class, sizeof s->class, "%.62s", text_in(group, "class"));
    snprintf(s->impl, sizeof s->impl, "%.15s", text_in(group, "impl"));
    if (mpsim_optim_parse(&a, text_in(group, "optimizer")) == MPSIM_OK)
        s->optimizer = (int)a;
    /* torch's AdamW is its Adam with a switch */
    if (s->optimizer == MPSIM_OPTIM_ADAM && flag_in(group, "decoupled_weight_decay") == 1)
        s->optimizer = MPSIM_OPTIM_ADAMW;
    for (int i = 0; i < MPSIM_OPTIM_NUMBERS; i++)
        s->number[i] = number_in(group, mpsim_optim_setting_name((mpsim_optim_setting)i));
    s->by_muon = strcmp(s->optimizer_name, "muon") == 0;
    s->ns_steps = number_in(group, "ns_steps");
    for (size_t i = 0; i < 3; i++) {
        const json_t *v = json_array_get(json_object_get(group, "ns_coefficients"), i);
        s->cubic[i] = json_is_number(v) ? json_number_value(v) : (double)NAN;
    }
    s->adjust_lr = policy_muon_scale_of(text_in(group, "adjust_lr_fn"));
    s->tensor_lr = has_word(group, "tensors", "lr");
    s->tensor_betas = has_word(group, "tensors", "betas");
    s->nesterov = flag_in(group, "nesterov");
    s->amsgrad = flag_in(group, "amsgrad");
    s->maximize = flag_in(group, "maximize");
}

enum { NUMBER, FLAG, TEXT };

static int check_type(const trace *t, const json_t *group, size_t which, const char *key, int type)
{
    static const char *const what[] = {"a number", "true or false", "a text"};
    const json_t *v = json_object_get(group, key);
    const int is[] = {json_is_number(v), json_is_boolean(v), json_is_string(v)};
    return v && !is[type] ? replay_bad_file(t, "mpsim.groups: group %zu: \"%s\" is not %s", which + 1, key, what[type])
                          : 0;
}

/* What is said of a group is of the type that it has; a key may be missing. */
static int check_types(const trace *t, const json_t *group, size_t which)
{
    static const struct {
        const char *key;
        int type;
    } keys[] = {{"optimizer", TEXT}, {"class", TEXT}, {"impl", TEXT}, {"decoupled_weight_decay", FLAG}};
    int code = 0;
    for (int s = 0; s < MPSIM_OPTIM_SETTINGS && !code; s++)
        code = check_type(t, group, which, mpsim_optim_setting_name((mpsim_optim_setting)s),
                          s < MPSIM_OPTIM_NUMBERS ? NUMBER : FLAG);
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !code; i++)
        code = check_type(t, group, which, keys[i].key, keys[i].type);
    return code;
}

/* "steps": a number, or one for each of n parameters. */
static int read_steps(const json_t *group, size_t i, size_t n, record_member *m)
{
    const json_t *steps = json_object_get(group, "steps");
    const json_t *v = json_is_array(steps) ? json_array_get(steps, i) : steps;
    if (json_is_array(steps) && json_array_size(steps) != n)
        return -1;
    m->steps_known = v && !json_is_null(v);
    if (!m->steps_known)
        return 0;
    if (!json_is_number(v) || !(json_number_value(v) >= 0) || json_number_value(v) > 0x1p53 ||
        json_number_value(v) != floor(json_number_value(v)))
        return -1;
    m->steps = (uint64_t)json_number_value(v);
    return 0;
}

static int read_members(record_groups *g, const trace *t, size_t which)
{
    const json_t *group = json_array_get(g->json, which);
    const json_t *params = json_object_get(group, "params");
    if (!json_is_array(params))
        return replay_bad_file(t, "mpsim.groups: group %zu has no list \"params\"", which + 1);
    const size_t n = json_array_size(params);
    g->members = need_more(g->members, g->n_members + n, sizeof *g->members);
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(params, i));
        record_member *m = &g->members[g->n_members];
        *m = (record_member){.group = which};
        if (!name)
            return replay_bad_file(t, "mpsim.groups: group %zu: a parameter has no name", which + 1);
        if (nameindex_find(&g->names, name) >= 0)
            return replay_bad_file(t, "mpsim.groups: %.200s a second time", name);
        if (read_steps(group, i, n, m))
            return replay_bad_file(t, "mpsim.groups: group %zu: \"steps\" is not a number of steps", which + 1);
        nameindex_add(&g->names, name, g->n_members++);
    }
    return 0;
}

static int read_tied(record_groups *g, const trace *t)
{
    const char *alias;
    json_t *name;
    if (!json_is_object(g->tied))
        return replay_bad_file(t, "mpsim.tied is not a JSON object of names");
    json_object_foreach(g->tied, alias, name)
    {
        const char *to = json_string_value(name);
        if (!to)
            return replay_bad_file(t, "mpsim.tied is not a JSON object of names");
        if (nameindex_find(&g->tied_names, to) < 0)
            nameindex_add(&g->tied_names, to, 0);
    }
    return 0;
}

/* The JSON value of a key. 0 with *v NULL where there is none. */
static int load(const trace *t, const char *key, json_t **v)
{
    const char *text = trace_metadata(t, key);
    json_error_t e;
    *v = text ? json_loads(text, JSON_REJECT_DUPLICATES, &e) : NULL;
    return !text || *v ? 0 : replay_bad_file(t, "%s is not valid JSON: %s", key, e.text);
}

int replay_read_groups(record_groups *g, const trace *t)
{
    replay_groups_clear(g);
    int code = load(t, "mpsim.groups", &g->json);
    if (!code)
        code = load(t, "mpsim.tied", &g->tied);
    if (!code && g->tied)
        code = read_tied(g, t);
    if (!code)
        code = load(t, "mpsim.optimizers", &g->said);
    if (code || !g->json)
        return code ? code : replay_read_optimizers(g, t);
    if (!json_is_array(g->json))
        return replay_bad_file(t, "mpsim.groups is not a JSON array of groups");
    g->n = json_array_size(g->json);
    g->list = need_memory(g->n, sizeof *g->list);
    for (size_t i = 0; i < g->n && !code; i++) {
        read_group(json_array_get(g->json, i), &g->list[i]);
        if (!(code = check_types(t, json_array_get(g->json, i), i)))
            code = read_members(g, t, i);
    }
    return code ? code : replay_read_optimizers(g, t);
}

static int same_json(const trace *t, const char *key, const json_t *known)
{
    const char *text = trace_metadata(t, key);
    json_error_t e;
    json_t *v = text ? json_loads(text, 0, &e) : NULL;
    const int same = known && v ? json_equal(known, v) : !known && !text;
    json_decref(v);
    return same;
}

int replay_same_groups(const record_groups *g, const trace *t)
{
    return same_json(t, "mpsim.groups", g->json) && same_json(t, "mpsim.tied", g->tied) &&
           same_json(t, "mpsim.optimizers", g->said);
}

void replay_groups_clear(record_groups *g)
{
    nameindex_clear(&g->names);
    nameindex_clear(&g->tied_names);
    json_decref(g->json);
    json_decref(g->tied);
    json_decref(g->said);
    free(g->optimizer_of);
    free(g->list);
    free(g->members);
    memset(g, 0, sizeof *g);
}

/* ---- for parameters ---- */

const record_settings *replay_group_settings(const replay *r, const parameter *p)
{
    return r->groups.json && p->group >= 0 ? &r->groups.list[p->group] : &r->record.whole;
}

/* Names of parameters that are updated by none, as many as fit. */
static void say_ungrouped(replay *r)
{
    char list[200] = "";
    size_t n = 0;
    for (size_t i = 0; i < r->n_parameters; i++) {
        const parameter *p = &r->parameters[i];
        if (p->group >= 0 || !p->ranks)
            continue;
        n++;
        if (n <= 3)
            text_add(list, sizeof list, "%s%.50s", n > 1 ? ", " : "", p->name);
    }
    if (n)
        replay_say(r, NOTE_UNGROUPED,
                   "a parameter group of %s%s: not updated here, so that weights and "
                   "moments may differ if another optimizer has them",
                   list, n > 3 ? ", ..." : "");
}

void replay_find_groups(replay *r)
{
    const record_groups *g = &r->groups;
    for (size_t i = 0; i < r->n_parameters; i++) {
        parameter *p = &r->parameters[i];
        const ptrdiff_t at = g->json ? nameindex_find(&g->names, p->name) : -1;
        p->group = at >= 0 ? (ptrdiff_t)g->members[at].group : g->json ? -1 : 0;
        p->steps_known = at >= 0 ? g->members[at].steps_known : r->record.steps_known;
        p->steps = at >= 0 ? g->members[at].steps : r->record.optimizer_steps;
        p->tied = g->tied && nameindex_find(&g->tied_names, p->name) >= 0;
    }
    say_ungrouped(r);
}
