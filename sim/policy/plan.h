/* plan.h -- a plan: a policy at a step, and what it says of a layer.
 *
 * It has no open questions but those that the trace answers: optimizer settings marked as "from the
 * trace".
 *
 * `mpsim train` and Python (mpsim/policy.h) ask the same function for the formats of a layer's tensors,
 * policy_plan_place_layer. */
#pragma once

#include "table.h"

/* Patterns of layer names (fnmatch), in the order of the file. Plans that inherit a list share it. */
typedef struct policy_pattern {
    char *glob;
    layer_kind kind; /* of layer_kinds: what such a layer is */
} policy_pattern;

typedef struct policy_patterns {
    policy_pattern *items;
    size_t count;
    struct policy_patterns *next; /* of all that a policy has */
} policy_patterns;

/* What a policy may say of Muon itself, or leave to the trace. */
typedef enum muon_key {
    MUON_LR,
    MUON_MOMENTUM,
    MUON_DECAY,
    MUON_EPS,
    MUON_NESTEROV,
    MUON_STEPS,
    MUON_SCALE,
    MUON_CUBIC,
    MUON_VARIANT,
    MUON_MODEL,
    MUON_KEYS
} muon_key;

typedef struct plan_optimizer {
    int algorithm;                          /* mpsim_optim_algorithm; -1: from the trace */
    const mpsim_optim_variant *variants[4]; /* the first that has algorithm and store counts */
    size_t n_variants;
    int variant_given; /* 0: mpsim's own, or what the trace says */
    uint8_t store;     /* mpsim_store */
    int state_given;
    mpsim_format state;
    const mpsim_states *states; /* moments in few bits, or NULL */
    int has_muon;               /* for matrices of layers that muon_exclude does not name */
    mpsim_muon muon;
    unsigned muon_given;                    /* set of muon_key */
    union {                                 /* NaN: from the trace */
        double number[MPSIM_OPTIM_NUMBERS]; /* by mpsim_optim_setting */
        struct {
            double lr, momentum, dampening, weight_decay, beta1, beta2, eps, beta2_decay, eps2, d;
        };
    };
    int nesterov, amsgrad, maximize; /* -1: from the trace */
} plan_optimizer;

/* A number of layers, or a share of all in percent, rounded up; the other is 0. */
typedef struct plan_count {
    uint64_t n;
    double share;
} plan_count;

typedef struct plan {
    uint64_t from;                 /* the first step that it is in force for                              */
    char precision[32];            /* the word of the policy: "fp16", "O2", ...                          */
    mpsim_format compute;          /* of matrix products and what autocast sends there                    */
    mpsim_format params;           /* of the model's parameters                                           */
    mpsim_format grads;            /* of weight gradients as backward leaves them                         */
    int params_given, grads_given; /* the policy says so itself                                  */
    const autocast_row *autocast;
    train_master master;
    mpsim_scaler_config scaler;
    plan_optimizer optimizer;
    mpsim_clip_rule clip;
    double max_norm;
    int clip_scaled;       /* clipped before unscaling: clip's before_unscale                     */
    int clip_given;        /* the policy speaks of clipping; else the trace's counts in a replay  */
    uint8_t recorded_norm; /* the norm that the trace says (mpsim.grad_norm), not our own         */
    int norm_given;        /* the policy says which; else the trace's where gradients are its own */
    int reduce_given;
    mpsim_reduce reduce;          /* if reduce_given; else ranks are added in the format of grads        */
    const recipe_row *recipe;     /* or NULL                                                         */
    int fp8_e4m3;                 /* e4m3 for all roles, not hybrid                                      */
    int fp8_params;               /* the model's copy of linear weights is kept in FP8                   */
    int fp8_attention;            /* the products of attention go through the recipe, too, if it has one scale
                             a tensor                                                            */
    mpsim_delayed_config delayed; /* margin, history, algorithm                                  */
    int without_rht, without_2d, without_sr; /* of NVFP4's recipe: random Hadamard transforms, weights
                             in square blocks, stochastic rounding of gradients are left out     */
    int ends_kept;                           /* the first and last numbered layers stay in the compute format       */
    plan_count at_start, at_end;             /* how many                                                     */
    const policy_patterns *keep_fp32, *fp8_exclude, *layer_kinds, *muon_exclude; /* or NULL; the policy's */
} plan;

/* policy_layer -- the kind of a layer named `layer`: from the policy's layer_kinds, else from its
 * name, else from the rank of its weight (-1: not known; POLICY_TABLE: it is known to be the table of an
 * embedding). */
enum { POLICY_TABLE = 1 << 16 };
layer_kind policy_layer(const plan *p, const char *layer, int weight_rank);

/* policy_plan_place -- where the tensors of a layer are. A role is in the compute format (WGRAD: in that of
 * gradients) if autocast's list says so and the layer is not kept in fp32, else in binary32;
 * parameters are stored in `params` where WEIGHT is. A recipe has what enters the products of linear
 * layers, neither kept nor excluded. */
void policy_plan_place(const plan *p, layer_kind k, const char *layer, train_placement *to);

/* The numbers of a network's layers, as their names have them. */
typedef struct policy_depth {
    int known; /* 0: no name has one */
    uint64_t first, last;
} policy_depth;

/* policy_plan_is_kept -- whether a layer is kept in fp32. policy_plan_casts_all -- whether autocast has a format for what
 * no list of ATen's speaks of: all rows but "none" and "torch". */
int policy_plan_is_kept(const plan *p, const char *layer);
int policy_plan_casts_all(const plan *p);

/* policy_plan_place_attention -- takes the recipe from a product of attention, which policy_plan_place takes for a linear
 * layer, unless the plan has one for it. */
void policy_plan_place_attention(const plan *p, train_placement *to);
/* policy_plan_attends -- whether the recipe of a plan is one for the products of attention. */
int policy_plan_attends(const plan *p);

/* policy_depth_add -- a layer's name: its number is the first component of digits only, or the digits at
 * the end of the last one ("model.layers.3.mlp.up": 3, "fc1": 1), or those of a block of ours
 * ("h3.attn.qkv": 3). 1: it has widened the depth. */
int policy_depth_add(policy_depth *d, const char *layer);

/* A layer of a network: its weight's rank tells the kind where kind is -1 and neither layer_kinds nor the name does. */
typedef struct plan_layer {
    const char *name;
    int kind;       /* layer_kind, which layer_kinds of the policy may replace; -1: see policy_layer */
    int rank;       /* of its weight; -1: it has none, POLICY_TABLE: an embedding's table            */
    int weighs;     /* it has parameters                                                             */
    int multiplies; /* it is a product: a recipe is for what enters one, whatever layer_kinds call the layer */
    int attends;    /* a product of attention                                                        */
} plan_layer;

/* policy_plan_place_layer -- all that a plan says of a layer; d: the numbers of the network's layers that multiply. */
void policy_plan_place_layer(const plan *p, const policy_depth *d, const plan_layer *l, train_placement *to);

/* policy_plan_keep_ends -- takes the recipes from a placement if the layer is one of those at the ends that the
 * plan keeps. */
void policy_plan_keep_ends(const plan *p, const policy_depth *d, const char *layer, train_placement *to);

/* policy_plan_is_muon -- whether Muon has the parameter of such a layer, of `rank` dimensions. */
int policy_plan_is_muon(const plan *p, layer_kind k, const char *layer, uint64_t rank);

/* policy_plan_optimizers -- the names of all algorithms: "sgd, adam", `last` and the last one. */
const char *policy_plan_optimizers(char *out, size_t size, const char *last);

/* policy_variant -- the first variant of the list that has the algorithm and stores as the policy
 * says, or NULL. */
const mpsim_optim_variant *policy_variant(const plan_optimizer *c, int algorithm);

/* policy_plan_amax_algorithm -- of delayed scaling: max, most_recent. */
const char *policy_plan_amax_algorithm(const plan *p);

/* policy_plan_describe -- one line: "fp16 autocast=torch, fp32 parameters, scaler torch, ...". */
const char *policy_plan_describe(const plan *p, char *out, size_t size);
