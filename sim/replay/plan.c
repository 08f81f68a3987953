/* plan.c -- what a plan means for the trace at hand: bytes, patterns that fit no layer; see
 * run.h. */
#include "run.h"

#include <fnmatch.h>
#include <string.h>

/* ---- bytes ---- */

void replay_count_bytes(replay *r)
{
    replay_bytes *b = &r->out.bytes;
    const mpsim_optim *o = r->has_optimizer ? &r->optimizer : NULL;
    const size_t states = !o ? 0
                          : o->algorithm == MPSIM_OPTIM_SGD ? o->momentum > 0
                                                            : (size_t)(2 + (o->amsgrad != 0));
    for (size_t i = 0; i < r->n_parameters; i++) {
        const parameter *p = &r->parameters[i];
        const mpsim_block_recipe *recipe = plan_recipe(r->plan, p->kind, p->layer, ROLE_WEIGHT);
        if (!p->p)
            continue;
        const size_t stored = mpsim_format_code_bytes(&p->storage);
        const int fp8 = r->plan->fp8_params && recipe && p->shape_rank == 2;
        const int master = p->kept.mbits != p->storage.mbits || (fp8 && stored == 4);
        const int low = plan_low(r->plan, p->kind, p->layer, ROLE_WGRAD);
        b->weights += fp8 ? mpsim_block_bytes(recipe, p->cols ? p->n / p->cols : 0, p->cols)
                          : p->n * stored;
        b->master += !master ? 0 : p->n * (r->plan->master == MASTER_SPLIT ? 2 : 4);
        b->gradients += p->n * (low && stored < 4 ? mpsim_format_code_bytes(&r->plan->grads) : 4);
        b->state += p->n * mpsim_format_code_bytes(&p->state) * states;
        if (r->plan->optimizer.store == MPSIM_STORE_KAHAN && p->kept.mbits < 23)
            b->state += p->n * stored;
    }
}

/* ---- patterns that fit nothing ---- */

static int fits_a_layer(const replay *r, const char *glob)
{
    for (size_t i = 0; i < r->n_parameters; i++)
        if (fnmatch(glob, r->parameters[i].layer, 0) == 0)
            return 1;
    for (size_t i = 0; i < r->n_states; i++) {
        const char *colon = strchr(r->states[i].name, ':');
        if (colon && fnmatch(glob, colon + 1, 0) == 0)
            return 1;
    }
    return 0;
}

static void list_unmatched(const replay *r, const char *key, const yaml_value *v, char *out,
                           size_t size)
{
    int first = 1;
    for (size_t i = 0; v && i < v->count; i++) {
        const char *glob = v->type == YAML_MAP ? v->items[i].key : v->items[i].value->text;
        const size_t n = strlen(out);
        char escaped[128];
        if (fits_a_layer(r, glob))
            continue;
        if (size - n < sizeof escaped + 32) {
            snprintf(out + n, size - n, ", ...");
            return;
        }
        snprintf(out + n, size - n, "%s%s '%s'", n && first ? "; " : first ? "" : ",",
                 first ? key : "", escape_text(escaped, sizeof escaped, glob));
        first = 0;
    }
}

void replay_find_unmatched(const replay *r, char *out, size_t size)
{
    out[0] = '\0';
    for (size_t i = 0; i < r->policy->count; i++) {
        const plan *p = &r->policy->plans[i], *before = i ? p - 1 : NULL;
        if (!before || before->keep_fp32 != p->keep_fp32)
            list_unmatched(r, "keep_fp32", p->keep_fp32, out, size);
        if (!before || before->fp8_exclude != p->fp8_exclude)
            list_unmatched(r, "fp8_exclude", p->fp8_exclude, out, size);
        if (!before || before->layer_kinds != p->layer_kinds)
            list_unmatched(r, "layer_kinds", p->layer_kinds, out, size);
    }
}
