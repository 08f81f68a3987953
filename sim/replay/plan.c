/* plan.c -- what a plan means for the trace at hand: bytes, patterns that fit no layer; what the
 * framework would refuse; see state.h. */
#include "impl.h"

#include "../policy/unmatched.h"

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

static int fits_a_layer(const void *context, const char *glob)
{
    const replay *r = context;
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

void replay_find_unmatched(const replay *r, char *out, size_t size)
{
    policy_find_unmatched(r->policy, fits_a_layer, r, out, size);
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
