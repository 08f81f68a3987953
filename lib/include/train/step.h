/* step.h -- what a training and a replay have in common: the plain types of a plan, the bytes that a plan needs. A step from its gradients
 * on is mpsim/update.h's.
 *
 * A step is modelled once for replays and trainings: the format of each tensor of a layer, who divides by the loss
 * scale, when gradients are clipped, how much memory that takes. */
#ifndef MPSIM_TRAIN_STEP_H
#define MPSIM_TRAIN_STEP_H

#include <mpsim/mpsim.h>
#include <mpsim/update.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- where tensors are kept ---- */

/* Role of a tensor in its layer. */
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

/* Source of an overflow in the norm of all scaled gradients (mpsim_norm_overflows). */
extern const char train_norm_name[];

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
