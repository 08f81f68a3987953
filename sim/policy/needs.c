/* needs.c -- what a key of a policy works on: without it the key would do nothing, which is an error. */
#include "impl.h"

static int has_recipe(const policy_draft *d)
{
    return d->plan->recipe != NULL;
}

static int has_delayed(const policy_draft *d)
{
    return d->plan->recipe && d->plan->recipe->delayed;
}

static int has_hadamard(const policy_draft *d)
{
    return d->plan->recipe && d->plan->recipe->hadamard;
}

static int keeps_ends(const policy_draft *d)
{
    return d->plan->ends_kept;
}

static int has_muon(const policy_draft *d)
{
    return d->plan->optimizer.has_muon;
}

static int has_epochs(const policy_draft *d)
{
    return d->epoch != 0;
}

static const struct need {
    const char *says, *missing; /* missing: the end of the error */
    int (*is_met)(const policy_draft *d);
    int names_recipe; /* the error also says which recipe there is */
} needs[POLICY_NEEDS] = {
    [NEED_RECIPE] = {"works on an FP8 recipe", ", and the policy has none", has_recipe, 0},
    [NEED_DELAYED] = {"works on delayed scaling", ", which the policy does not have: ", has_delayed, 1},
    [NEED_NVFP4] = {"works on TransformerEngine's NVFP4 recipe", ", which the policy does not have", has_hadamard, 0},
    [NEED_ENDS] = {"needs first_last_layers_bf16: true", "", keeps_ends, 0},
    [NEED_MUON] = {"works on the optimizer muon", ", which the policy does not have", has_muon, 0},
    [NEED_EPOCHS] = {"needs the key steps_per_epoch", "", has_epochs, 0},
};

int policy_need_met(const policy_draft *d, policy_need n)
{
    return n == NEED_NOTHING || needs[n].is_met(d);
}

int policy_need_missing(policy_draft *d, policy_need n)
{
    const recipe_row *recipe = d->plan->recipe;
    const char *there = recipe ? recipe->name : d->plan->precision;
    const int names = needs[n].names_recipe;
    return policy_bad(&d->r, d->at, "%s: %s%s%s%s", d->name, needs[n].says, needs[n].missing,
                      !names   ? ""
                      : recipe ? "the recipe is "
                               : "precision is ",
                      names ? there : "");
}

const char *policy_need_say(policy_need n)
{
    return needs[n].says;
}
