/* step.h -- what a training and a replay have in common: the plain types of a plan, who divides
 * gradients by the loss scale and when they are clipped, the bytes that a plan needs.
 *
 * A step from its gradients on: they are checked for overflow; the scaler moves and says the scale
 * S and whether the step is skipped; they are unscaled and clipped (train_ready); the optimizer
 * moves what is kept. */
#ifndef MPSIM_TRAIN_STEP_H
#define MPSIM_TRAIN_STEP_H

#include <mpsim/mpsim.h>
#include <mpsim/placement.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- where tensors are kept ---- */

/* What a tensor is to its layer. */
typedef enum train_role {
    TRAIN_ACT = MPSIM_ROLE_ACT,
    TRAIN_OUT = MPSIM_ROLE_OUT,
    TRAIN_WEIGHT = MPSIM_ROLE_WEIGHT,
    TRAIN_AGRAD = MPSIM_ROLE_AGRAD,
    TRAIN_DGRAD = MPSIM_ROLE_DGRAD,
    TRAIN_WGRAD = MPSIM_ROLE_WGRAD,
    TRAIN_ROLES = MPSIM_ROLES
} train_role;

typedef enum train_master {
    TRAIN_NO_MASTER = MPSIM_NO_MASTER,
    TRAIN_MASTER = MPSIM_MASTER,
    TRAIN_SPLIT_MASTER = MPSIM_SPLIT_MASTER
} train_master;

typedef mpsim_placement train_placement; /* of one layer */

/* ---- from gradients to the optimizer ---- */

/* What a plan says of it. */
typedef struct train_rules {
    mpsim_unscale_rule unscale;
    mpsim_clip_rule clip;
    double max_norm; /* of clip, unless it is NONE */
    const mpsim_optim_variant *variant;
    int clip_scaled; /* gradients are clipped before they are unscaled: a common mistake, by which they become as many times too small
                        as the scale is large. Not of rules that unscale */
} train_rules;

/* Who divides by S: one of these is S, the other 1; both are 1 where the factor of clipping contains
 * 1 / S (mpsim_clip_unscales). */
typedef struct train_unscaling {
    double before;       /* gradients are, before their norm is taken */
    double in_optimizer; /* a fused optimizer does                    */
} train_unscaling;

train_unscaling train_unscaling_of(const train_rules *r, double scale);

/* The gradients of a step, wherever they are. The functions work on all of them, and return 0 or stop
 * with what they return. */
typedef struct train_gradients {
    void *context;
    size_t n;
    float *norms; /* room for n */
    /* the format that the optimizer gets gradient i in */
    const mpsim_format *(*format)(void *context, size_t i);
    /* what backward left, divided by `scale`, rounded to that format */
    int (*unscale)(void *context, mpsim_unscale_rule rule, double scale);
    /* norms, as in mpsim_norm, rounded to that format, with own = 0: to binary32; those that are known
     * elsewhere are added */
    int (*norm)(void *context, int own, float *norms);
    /* times factor, rounded to that format, as in mpsim_scale_array */
    int (*scale)(void *context, float factor);
} train_gradients;

typedef struct train_readied {
    double norm; /* of all gradients, unscaled, before clipping; NaN: nothing clips */
    int clipped;
    double in_optimizer; /* the optimizer divides by this                              */
} train_readied;

/* train_ready -- gradients as the optimizer gets them: unscaled, then clipped. scale: S, by which
 * they are unscaled. unscaled: what they have been divided by already, NaN: by nothing. norm: the
 * norm of all of them, unscaled, that counts instead of their own; NaN: their own. 0, or what one of
 * the functions returned. */
int train_ready(const train_rules *r, const train_gradients *g, double scale, double unscaled, double norm,
                train_readied *out);

/* train_norm_overflows -- the check of scalers that look at the norm of all scaled gradients
 * (MPSIM_CHECK_NORM); norms: of each, in binary32. What is then to blame is train_norm_name. */
int train_norm_overflows(const float *norms, size_t n);
extern const char train_norm_name[];

/* train_optim_of -- a plan's optimizer for the parameters of a layer: what has 23 bits of mantissa
 * is stored to nearest, whatever the plan says. */
mpsim_optim train_optim_of(const mpsim_optim *o, const train_placement *l);

/* train_state_format -- of the moments of a parameter of n elements while a step runs. */
const mpsim_format *train_state_format(const train_placement *l, uint64_t n);

/* train_needs -- the arrays that an optimizer has beside a parameter of format `kept`. */
enum {
    TRAIN_NEEDS_M = MPSIM_OPTIM_M,
    TRAIN_NEEDS_V = MPSIM_OPTIM_V,
    TRAIN_NEEDS_VMAX = MPSIM_OPTIM_VMAX,
    TRAIN_NEEDS_KAHAN = 8
};
unsigned train_needs(const mpsim_optim *o, const mpsim_format *kept);

/* ---- memory ---- */

typedef struct train_bytes {
    uint64_t weights, master, gradients, state, activations;
} train_bytes;

/* train_bytes_add -- adds what a parameter of n elements needs. quantised: bytes of an FP8 copy
 * that stands for the model's; 0: there is none. */
void train_bytes_add(train_bytes *b, const train_placement *l, train_master master, const mpsim_optim *o, uint64_t n,
                     uint64_t quantised);

/* ---- from plan to plan ---- */

/* Another plan: a scaler goes on, and a history of FP8 scales, if its settings are the same. */
int train_same_scaler(const mpsim_scaler_config *a, const mpsim_scaler_config *b);
int train_same_history(const mpsim_delayed_config *a, const mpsim_delayed_config *b);

#ifdef __cplusplus
}
#endif

#endif
