/* several.c -- what the record says of several optimizers under one loss scaler (mpsim.optimizers); see state.h. */
#include "impl.h"

#include "../array/need.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- from JSON ---- */

/* A number, or the text of one that is not finite; NaN where none is said. */
static double number_in(const json_t *v, const char *key, double otherwise)
{
    const json_t *x = json_object_get(v, key);
    const char *text = json_string_value(x);
    if (text)
        return strcmp(text, "inf") == 0 ? (double)INFINITY : parse_number(&otherwise, text) ? (double)NAN : otherwise;
    return json_is_number(x) ? json_number_value(x) : otherwise;
}

static int count_in(const json_t *v, const char *key)
{
    const json_t *x = json_object_get(v, key);
    return json_is_integer(x) ? json_integer_value(x) != 0 : -1;
}

static void read_optimizer(const json_t *v, record_optimizer *o)
{
    o->skipped = count_in(v, "skipped");
    o->found_inf = count_in(v, "found_inf");
    o->grad_clip = number_in(v, "grad_clip", (double)NAN);
    o->grad_clip_value = number_in(v, "grad_clip_value", (double)NAN);
    o->grad_norm = number_in(v, "grad_norm", (double)NAN);
    o->grad_norm_type = number_in(v, "grad_norm_type", 2);
}

/* The groups of an optimizer; those of another, and what is no group, are errors. */
static int own_groups(record_groups *g, const trace *t, const json_t *v, size_t which)
{
    const json_t *groups = json_object_get(v, "groups");
    if (!json_is_array(groups))
        return replay_bad_file(t, "mpsim.optimizers: optimizer %zu has no list \"groups\"", which + 1);
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *k = json_array_get(groups, i);
        const json_int_t at = json_is_integer(k) ? json_integer_value(k) : -1;
        if (at < 0 || (uint64_t)at >= g->n || g->optimizer_of[at] != SIZE_MAX)
            return replay_bad_file(t,
                                   "mpsim.optimizers: optimizer %zu: \"groups\" are not groups of its own, of %zu in "
                                   "mpsim.groups",
                                   which + 1, g->n);
        g->optimizer_of[at] = which;
    }
    return 0;
}

int replay_read_optimizers(record_groups *g, const trace *t)
{
    const size_t n = json_array_size(g->said);
    int code = 0;
    if (!g->said)
        return 0;
    if (!json_is_array(g->said) || n == 0 || n > REPLAY_OPTIMIZERS || !g->json)
        return replay_bad_file(t, "mpsim.optimizers is not a JSON array of at most %d optimizers of mpsim.groups",
                               REPLAY_OPTIMIZERS);
    g->optimizer_of = need_memory(g->n, sizeof *g->optimizer_of);
    for (size_t i = 0; i < g->n; i++)
        g->optimizer_of[i] = SIZE_MAX;
    for (size_t k = 0; k < n && !code; k++) {
        read_optimizer(json_array_get(g->said, k), &g->optimizers[k]);
        code = own_groups(g, t, json_array_get(g->said, k), k);
    }
    for (size_t i = 0; i < g->n && !code; i++)
        if (g->optimizer_of[i] == SIZE_MAX)
            code = replay_bad_file(t, "mpsim.optimizers: group %zu of mpsim.groups is of no optimizer", i + 1);
    g->n_optimizers = code ? 0 : n;
    return code;
}

/* ---- for parameters ---- */

size_t replay_optimizers(const replay *r)
{
    return r->groups.n_optimizers ? r->groups.n_optimizers : 1;
}

size_t replay_owner(const replay *r, const parameter *p)
{
    return r->groups.n_optimizers && p->group >= 0 ? r->groups.optimizer_of[p->group] : 0;
}
