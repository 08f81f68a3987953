/* policy.h -- a policy: what is kept in which precision, with which scaler, optimizer and recipe.
 *
 * A policy is a YAML file in the words of the guides. It has one plan, or several that a schedule
 * puts in force one after the other. A plan has no open questions but those that the trace
 * answers: optimizer settings marked as "from the trace". */
#ifndef MPSIM_SIM_POLICY_POLICY_H
#define MPSIM_SIM_POLICY_POLICY_H

#include "yaml.h"

#include <mpsim/mpsim.h>

/* What a layer does, as autocast's lists see it. */
typedef enum layer_kind {
    LAYER_LINEAR,
    LAYER_CONV,
    LAYER_BATCHNORM,
    LAYER_NORM, /* layer norm, group norm, RMS norm */
    LAYER_SOFTMAX,
    LAYER_EMBEDDING,
    LAYER_LOSS,
    LAYER_OTHER,
    LAYER_KINDS
} layer_kind;

/* What a tensor is to its layer. */
typedef enum tensor_role {
    ROLE_ACT,
    ROLE_OUT,
    ROLE_WEIGHT,
    ROLE_AGRAD,
    ROLE_DGRAD,
    ROLE_WGRAD,
    ROLES
} tensor_role;

typedef struct autocast_row {
    const char *name;
    uint8_t low[LAYER_KINDS]; /* bit r: role r is in the compute format */
} autocast_row;

typedef enum master_kind {
    MASTER_NONE,
    MASTER_FP32, /* an fp32 copy beside low-precision parameters        */
    MASTER_SPLIT /* bf16 parameters and the other 16 bits of the master */
} master_kind;

/* How linear layers quantise their inputs. */
typedef struct recipe_row {
    const char *name;
    const char *act, *weight;               /* rows of mpsim_block_find; GIVEN if delayed       */
    const char *agrad_e4m3, *agrad_hybrid;  /* of gradients, hybrid in E5M2; NULL: no such form */
    uint8_t default_e4m3;
    uint8_t delayed;
} recipe_row;

typedef struct optimizer_choice {
    int algorithm; /* mpsim_optim_algorithm; -1: from the trace */
    const mpsim_optim_variant *variants[4]; /* the first that has algorithm and store counts */
    size_t n_variants;
    mpsim_store store;
    int state_given;
    mpsim_format state;
    double lr, momentum, dampening, weight_decay, beta1, beta2, eps; /* NaN: from the trace */
    int nesterov, amsgrad, maximize;                                 /* -1: from the trace  */
} optimizer_choice;

typedef struct plan {
    uint64_t from;        /* the first step that it is in force for                              */
    const char *precision; /* the word of the policy: "fp16", "O2", ...                          */
    mpsim_format compute; /* of matrix products and what autocast sends there                    */
    mpsim_format params;  /* of the model's parameters                                           */
    mpsim_format grads;   /* of weight gradients as backward leaves them                         */
    const autocast_row *autocast;
    master_kind master;
    mpsim_scaler_config scaler;
    optimizer_choice optimizer;
    mpsim_clip_rule clip;
    double max_norm;
    int recorded_norm;    /* the norm that the trace says (mpsim.grad_norm), not our own         */
    int reduce_given;
    mpsim_reduce reduce;  /* if reduce_given; else ranks are added in the format of grads        */
    const recipe_row *recipe; /* or NULL                                                         */
    int fp8_e4m3;         /* e4m3 for all roles, not hybrid                                      */
    int fp8_params;       /* the model's copy of linear weights is kept in FP8                   */
    mpsim_delayed_config delayed; /* margin, history, algorithm                                  */
    const yaml_value *keep_fp32, *fp8_exclude, *layer_kinds; /* lists of globs, a map; or NULL   */
} plan;

typedef struct policy {
    char *path;
    const char *name, *source, *note; /* note and source may be NULL; belong to the tree or path */
    plan *plans; /* in the order of `from`; the first has 0 */
    size_t count;
    yaml_value *tree;
    char *base;  /* storage of a name made from the path */
} policy;

/* policy_load -- a file, or the name of a bundled one: "pytorch-amp-fp16". 0, or an exit code with
 * *error filled; the line names the file, the line and the key. */
int policy_load(policy *p, const char *path, trace_error *error);
/* policy_load_epochs -- the same; epochs of a policy without steps_per_epoch have so many steps. */
int policy_load_epochs(policy *p, const char *path, uint64_t steps_per_epoch, trace_error *error);
void policy_clear(policy *p);

/* policy_plan -- the plan in force at a step. */
const plan *policy_plan(const policy *p, uint64_t step);

/* policy_layer -- the kind of a layer named `layer`: from the policy's layer_kinds, else from its
 * name, else from the rank of its weight (-1: not known). */
layer_kind policy_layer(const plan *p, const char *layer, int weight_rank);
const char *layer_kind_name(layer_kind k);

/* plan_low -- whether a role of a layer is in the compute format: autocast's list, and not kept in
 * fp32. */
int plan_low(const plan *p, layer_kind k, const char *layer, tensor_role role);

/* plan_recipe -- the block recipe of a role of a layer, or NULL: linear layers only, neither kept
 * nor excluded. */
const mpsim_block_recipe *plan_recipe(const plan *p, layer_kind k, const char *layer,
                                      tensor_role role);

/* plan_storage -- the format in which a layer's parameter is stored. */
const mpsim_format *plan_storage(const plan *p, layer_kind k, const char *layer);

/* policy_variant -- the first variant of the list that has the algorithm and stores as the choice
 * says, or NULL. */
const mpsim_optim_variant *policy_variant(const optimizer_choice *c, int algorithm);

/* plan_describe -- one line: "fp16 autocast=torch, fp32 parameters, scaler torch, ...". */
const char *plan_describe(const plan *p, char *out, size_t size);

/* The tables, for policy.c and --help. */
const autocast_row *autocast_find(const char *name);
const recipe_row *recipe_find(const char *name);

typedef struct precision_row {
    const char *word;       /* "fp16"; aliases of other tools follow in their own rows */
    const char *compute, *params, *grads;
    const char *autocast, *scaler, *recipe, *opt_level;
    master_kind master;
} precision_row;

const precision_row *precision_find(const char *word, int opt_level);
/* precision_words -- all of them, for error lines. */
const char *precision_words(int opt_level);

const char *layer_kind_of_name(const char *layer, layer_kind *kind); /* the pattern, or NULL */
int layer_kind_find(layer_kind *k, const char *word);

#endif
