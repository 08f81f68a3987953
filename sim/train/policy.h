/* policy.h -- from a policy to a training run: every layer's formats, recipes, optimizer. */
#pragma once

#include "../policy/policy.h"

#include <train/train.h>

/* What a command line says instead of the policy, in all of its plans. */
typedef struct train_overrides {
    const char *optimizer;                  /* "sgd", "adam", "adamw"; NULL: not given                             */
    const char *variant;                    /* a name of mpsim_optim_variant_find; NULL                            */
    union {                                 /* NaN: not given */
        double number[MPSIM_OPTIM_NUMBERS]; /* by mpsim_optim_setting */
        struct {
            double lr, momentum, dampening, weight_decay, beta1, beta2, eps, beta2_decay, eps2, d;
        };
    };
    const char *clip_rule; /* "torch", ..., "none"; NULL                                          */
    double max_norm;       /* NaN: not given; without a rule anywhere the rule is torch           */
    const char *scaler;    /* as mpsim_scaler_parse: "torch:init=1024"; NULL; of no use where the
                              policy has no loss scale                                            */
} train_overrides;

void train_overrides_init(train_overrides *o); /* nothing given */

/* train_run_of_policy -- a run: settings *s, the layers of their network, a plan for each of the
 * policy's. Steps of a policy count from 1, those of a run from 0. What policy and overrides leave
 * open ("from the trace") is the default: SGD with learning rate 0.1 and momentum 0.9; Adam and
 * AdamW 0.001; the rest as mpsim_optim_init has it; of transformers AdamW, weight decay 0.1, betas 0.9 and
 * 0.95, norms clipped at 1 by torch's rule. An override that names another optimizer than
 * the policy drops the policy's numbers for its own. overrides may be NULL.
 *
 * 0, or -1 with one line in `error` (TRAIN_ERROR bytes) that names the key. The run is cleared with
 * train_run_clear and needs the policy no longer. */
int train_run_of_policy(train_run *r, const policy *p, const train_settings *s, const train_overrides *overrides,
                        char *error);

/* train_policy_scales -- whether a plan of the policy has a loss scale. */
int train_policy_scales(const policy *p);

/* train_policy_notes -- what the policy says that this run has no use for, one line each; "" if
 * nothing. */
const char *train_policy_notes(const policy *p, const train_run *r, char *out, size_t size);

/* train_steps_per_pass -- whole batches of a pass over the training images, or over the `trained` tokens of a
 * text, at least 1: the length of a policy's epochs if it has no steps_per_epoch (policy_load). */
uint64_t train_steps_per_pass(const train_settings *s, uint64_t trained);
