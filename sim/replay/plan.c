/* plan.c -- what a plan means for the trace at hand: bytes, patterns that fit no layer; what the
 * framework would refuse; see state.h. */
#include "state.h"

#include "../text/words.h"

#include <fnmatch.h>
#include <string.h>

/* ---- bytes ---- */

void replay_count_bytes(replay *r)
{
    for (size_t i = 0; i < r->n_parameters; i++) {
        const parameter *p = &r->parameters[i];
        const mpsim_optim *known = replay_optimizer_of(r, p);
        /* without an optimizer so far: one without moments */
        mpsim_optim o = known ? replay_shaped(known, p) : (mpsim_optim){.algorithm = MPSIM_OPTIM_SGD, .momentum = 0};
        o.store = (uint8_t)r->plan->optimizer.store;
        if (replay_is_muon(r, p))
            o = (mpsim_optim){.algorithm = MPSIM_OPTIM_SGD, .momentum = r->plan->optimizer.muon.momentum};
        const mpsim_block_recipe *recipe = p->place.recipe[TRAIN_WEIGHT];
        const int fp8 = r->plan->fp8_params && recipe && p->shape_rank == 2;
        if (p->p)
            train_bytes_add(&r->out.bytes, &p->place, r->plan->master, &o, p->count,
                            fp8 ? mpsim_block_bytes(recipe, p->cols ? p->count / p->cols : 0, p->cols) : 0);
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

static void list_unmatched(const replay *r, const char *key, const policy_patterns *list, char *out, size_t size)
{
    int first = 1;
    for (size_t i = 0; list && i < list->count; i++) {
        const char *glob = list->items[i].glob;
        const size_t n = strlen(out);
        char escaped[128];
        if (fits_a_layer(r, glob))
            continue;
        if (size - n < sizeof escaped + 32) {
            text_add(out, size, ", ...");
            return;
        }
        text_add(out, size, "%s%s '%s'",
                 n && first ? "; "
                 : first    ? ""
                            : ",",
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
        if (!before || before->muon_exclude != p->muon_exclude)
            list_unmatched(r, "muon_exclude", p->muon_exclude, out, size);
        if (!before || before->layer_kinds != p->layer_kinds)
            list_unmatched(r, "layer_kinds", p->layer_kinds, out, size);
    }
}

/* ---- what the framework would refuse ---- */

/* What torch's scalers do not unscale: gradients have the format of their parameter, which the optimizer holds where
 * there is no master. Sources are those of the rows of sim/explain. */
static const struct {
    const char *scaler, *params, *text;
} refusals[] = {
    {"torch", "fp16",
     "torch's GradScaler does not unscale fp16 gradients, which fp16 parameters without masters have: 'Attempting to unscale "
     "FP16 gradients', see mpsim explain torch-unscale-fp16; the numbers here are what it would compute"},
    {"torch-cpu", "fp16",
     "torch's GradScaler does not unscale fp16 gradients, which fp16 parameters without masters have: 'Attempting to unscale "
     "FP16 gradients', see mpsim explain torch-unscale-fp16; the numbers here are what it would compute"},
    {"torch", "bf16",
     "torch's GradScaler has no CUDA kernel that unscales bf16 gradients, which bf16 parameters without masters have, see mpsim "
     "explain torch-unscale-bf16; the numbers here are what it would compute"},
};

void replay_say_refused(replay *r)
{
    for (size_t i = 0; r->plan->master == TRAIN_NO_MASTER && i < sizeof refusals / sizeof refusals[0]; i++)
        if (strcmp(refusals[i].scaler, r->plan->scaler.name) == 0 &&
            strcmp(refusals[i].params, r->plan->params.name) == 0)
            replay_say(r, NOTE_REFUSED, "%s", refusals[i].text);
}
