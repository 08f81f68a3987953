/* policy.h -- policies, as `mpsim train --policy` reads them, and the placement of a layer: in libmpsim-trace.
 *
 * data/policies/README.md has the keys. A policy has one plan or several, each in force from a step on. What trace.h says of errors, the
 * locale and the floating-point environment holds here, too. Nothing prints, and nothing ends the program. Reading a policy changes nothing, so
 * several threads may read one. */
#ifndef MPSIM_POLICY_H
#define MPSIM_POLICY_H

#include <mpsim/gradient.h>
#include <mpsim/muon.h>
#include <mpsim/optim.h>
#include <mpsim/placement.h>
#include <mpsim/recipe.h>
#include <mpsim/scaler.h>

MPSIM_BEGIN

typedef struct mpsim_policy mpsim_policy;

/* mpsim_policy_open -- a file, or the name of a bundled policy ("pytorch-amp-fp16"), which is looked for in `folder`; NULL: where they are
 * installed, or MPSIM_POLICIES. mpsim_policy_read -- n bytes of YAML (so also of JSON) in memory, which errors call `name`. steps_per_epoch: for
 * schedules by epoch, of a policy that does not say it; 0: a schedule must not speak of epochs then.
 *
 * MPSIM_EDATA: no policy; MPSIM_EIO: it cannot be found or read; MPSIM_ENOMEM; *p is NULL then, and `error` (of `size` bytes, or NULL) one
 * line that names the file, the line and the key. */
MPSIM_API mpsim_status mpsim_policy_open(mpsim_policy **p, const char *path, const char *folder,
                                         uint64_t steps_per_epoch, char *error, size_t size);
MPSIM_API mpsim_status mpsim_policy_read(mpsim_policy **p, const char *name, const char *text, size_t n,
                                         uint64_t steps_per_epoch, char *error, size_t size);
/* mpsim_policy_free -- accepts NULL, which the others do not. What they point to belongs to the policy. */
MPSIM_API void mpsim_policy_free(mpsim_policy *p);

/* Description of a policy. */
typedef enum mpsim_policy_text {
    MPSIM_POLICY_NAME,
    MPSIM_POLICY_PATH,
    MPSIM_POLICY_NOTE,
    MPSIM_POLICY_SOURCE,
    MPSIM_POLICY_REMARKS /* lines about what of the file does not count */
} mpsim_policy_text;

/* mpsim_policy_say -- NULL: nothing of that kind. mpsim_policy_plans -- how many plans; mpsim_policy_plan_at -- number of the plan in force at
 * a step; steps count from 1. */
MPSIM_API const char *mpsim_policy_say(const mpsim_policy *p, mpsim_policy_text what);
MPSIM_API size_t mpsim_policy_plans(const mpsim_policy *p);
MPSIM_API size_t mpsim_policy_plan_at(const mpsim_policy *p, uint64_t step);

/* Optimizer settings in a plan; the user sets the others. */
typedef struct mpsim_plan_optimizer {
    int32_t algorithm;                   /* mpsim_optim_algorithm; -1: not said                        */
    int32_t store;                       /* mpsim_store                                                */
    int32_t variant_given;               /* 0: the variant is mpsim's own                              */
    int32_t state_given;                 /* 0: moments are in the format of what accumulates updates   */
    int32_t has_muon;                    /* for matrices of layers that muon_exclude does not name     */
    int32_t nesterov, amsgrad, maximize; /* -1: not said                                      */
    mpsim_format state;
    const mpsim_states *states;         /* moments in few bits, or NULL                       */
    double number[MPSIM_OPTIM_NUMBERS]; /* by mpsim_optim_setting; NaN: not said              */
    mpsim_muon muon;
} mpsim_plan_optimizer;

typedef struct mpsim_plan {
    uint64_t from;        /* the first step that it is in force for                                   */
    char precision[32];   /* the word of the policy: "fp16", "O2", ...                               */
    const char *autocast; /* the row: "torch", "all", ...                                            */
    const char *recipe;   /* the word of fp8_recipe, or NULL                                         */
    mpsim_format compute; /* of matrix products and what autocast sends there                         */
    mpsim_format params;  /* of the model's parameters                                                */
    mpsim_format grads;   /* of weight gradients as backward leaves them                              */
    int32_t master;       /* mpsim_master                                                            */
    int32_t casts_all; /* autocast has a format for what no list of ATen's speaks of: all rows but "none" and "torch" */
    int32_t attends;   /* the recipe has the products of attention, too                           */
    int32_t delayed_given; /* the recipe has scales from the steps before: `delayed` counts          */
    mpsim_delayed_config delayed;
    mpsim_scaler_config scaler;
    int32_t clip;        /* mpsim_clip_rule                                                         */
    int32_t clip_given;  /* the policy speaks of clipping                                           */
    int32_t clip_scaled; /* gradients are clipped before they are unscaled                          */
    double max_norm;
    mpsim_plan_optimizer optimizer;
} mpsim_plan;

/* mpsim_policy_plan -- plan i of a policy. MPSIM_EINVAL: there is none. mpsim_policy_describe -- one line of it, cut where there is no room. */
MPSIM_API mpsim_status mpsim_policy_plan(const mpsim_policy *p, size_t i, mpsim_plan *plan);
MPSIM_API mpsim_status mpsim_policy_describe(const mpsim_policy *p, size_t i, char *out, size_t size);
/* mpsim_policy_variant -- the variant of plan i for an algorithm: the first of the plan's that has the algorithm and stores as the plan says;
 * NULL: none. */
MPSIM_API const mpsim_optim_variant *mpsim_policy_variant(const mpsim_policy *p, size_t i, int algorithm);

/* Kind of a layer in autocast's lists. */
typedef enum mpsim_layer_kind {
    MPSIM_LAYER_LINEAR,
    MPSIM_LAYER_CONV,
    MPSIM_LAYER_BATCHNORM,
    MPSIM_LAYER_NORM, /* layer norm, group norm, RMS norm */
    MPSIM_LAYER_SOFTMAX,
    MPSIM_LAYER_EMBEDDING,
    MPSIM_LAYER_LOSS,
    MPSIM_LAYER_OTHER,
    MPSIM_LAYER_KINDS
} mpsim_layer_kind;

MPSIM_API const char *mpsim_layer_kind_name(mpsim_layer_kind k); /* "linear"; NULL for none */

/* The numbers of a network's layers, as their names have them: all zero before the first. */
typedef struct mpsim_depth {
    int32_t known; /* 0: no name has one */
    uint64_t first, last;
} mpsim_depth;

/* mpsim_depth_add -- the name of a layer that multiplies. Its number is the first component of digits only, or the digits at the end of the
 * last one ("model.layers.3.mlp.up": 3, "fc1": 1), or those of "h3.attn.qkv". */
MPSIM_API void mpsim_depth_add(mpsim_depth *d, const char *layer);

/* The layer whose placement is wanted. */
enum { MPSIM_RANK_NONE = -1, MPSIM_RANK_TABLE = 1 << 16 /* of an embedding */ };
typedef struct mpsim_layer_place {
    const char *name;
    int32_t
        kind; /* mpsim_layer_kind, unless layer_kinds names another for the layer; -1: layer_kinds, the name and the rank tell */
    int32_t rank;       /* dimensions of its weight                                       */
    int32_t weighs;     /* 1: it has parameters                                           */
    int32_t multiplies; /* 1: it is a product: without one no recipe applies              */
    int32_t attends;    /* 1: it is a product of attention                                */
} mpsim_layer_place;

/* mpsim_policy_kind -- the kind of a layer under plan i. mpsim_policy_place -- where the tensors of a layer are, as a training places them.
 * depth: of the network; NULL: not known, so no layer is at an end. MPSIM_EINVAL: there is no such plan, or kind. */
MPSIM_API mpsim_layer_kind mpsim_policy_kind(const mpsim_policy *p, size_t i, const char *layer, int rank);
MPSIM_API mpsim_status mpsim_policy_place(const mpsim_policy *p, size_t i, const mpsim_layer_place *layer,
                                          const mpsim_depth *depth, mpsim_placement *to);

MPSIM_END

#endif
