/* update.h -- a step from its gradients on, over all parameters at once: they are checked for overflow; the scaler moves and says the scale S
 * and whether the step is skipped; they are unscaled and clipped; the optimizer moves what is kept.
 *
 * Arrays are the caller's, one element behind the other, and are read and written in place. Results do not depend on threads. Needs the
 * default floating-point environment. */
#ifndef MPSIM_UPDATE_H
#define MPSIM_UPDATE_H

#include <mpsim/gradient.h>
#include <mpsim/muon.h>
#include <mpsim/optim.h>
#include <mpsim/placement.h>

MPSIM_BEGIN

/* ---- from gradients to the optimizer ---- */

/* Its settings in a plan. */
typedef struct mpsim_step_rules {
    mpsim_unscale_rule unscale;
    mpsim_clip_rule clip;
    double max_norm; /* of clip, unless it is NONE */
    const mpsim_optim_variant *variant;
    int clip_scaled; /* gradients are clipped before they are unscaled: a common mistake, by which they become as many times too small
                        as the scale is large. Not of rules that unscale */
} mpsim_step_rules;

/* Who divides by S: one of these is S, the other 1; both are 1 where the factor of clipping contains
 * 1 / S (mpsim_clip_unscales). */
typedef struct mpsim_unscaling {
    double before;       /* gradients are, before their norm is taken */
    double in_optimizer; /* a fused optimizer does                    */
} mpsim_unscaling;

MPSIM_API mpsim_unscaling mpsim_unscaling_of(const mpsim_step_rules *r, double scale);

/* The gradients of a step, wherever they are. The functions work on all of them, and return 0 or stop
 * with what they return. */
typedef struct mpsim_gradients {
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
} mpsim_gradients;

typedef struct mpsim_readied {
    double norm; /* of all gradients, unscaled, before clipping; NaN: nothing clips */
    int clipped;
    double in_optimizer; /* the optimizer divides by this                              */
} mpsim_readied;

/* mpsim_gradients_ready -- gradients as the optimizer gets them: unscaled, then clipped. scale: S, by which
 * they are unscaled. unscaled: what they have been divided by already, NaN: by nothing. norm: the
 * norm of all of them, unscaled, that counts instead of their own; NaN: their own. 0, or what one of
 * the functions returned. */
MPSIM_API int mpsim_gradients_ready(const mpsim_step_rules *r, const mpsim_gradients *g, double scale, double unscaled,
                                    double norm, mpsim_readied *out);

/* mpsim_norm_overflows -- the check of scalers that look at the norm of all scaled gradients
 * (MPSIM_CHECK_NORM); norms: of each, in binary32. */
MPSIM_API int mpsim_norm_overflows(const float *norms, size_t n);

/* A gradient in memory. */
typedef struct mpsim_gradient {
    const mpsim_format *format; /* that the optimizer gets it in                            */
    const float *x;             /* as backward left it                                      */
    float *y;                   /* as the optimizer gets it; may be x where x is read once:
                                   mpsim_gradients_check and then ready with the same scale */
    size_t n;
    uint32_t found; /* set of MPSIM_FOUND_*: mpsim_gradients_check adds to it               */
} mpsim_gradient;

enum { MPSIM_CAUSE_NONE = -1, MPSIM_CAUSE_NORM = -2 };

/* mpsim_gradients_check -- all y are x divided by `scale`, rounded; *cause: the first whose x has an element that is not finite, or
 * MPSIM_CAUSE_NORM where `check` looks at the norm of all and that overflows, or MPSIM_CAUSE_NONE. mpsim_gradients_move -- mpsim_gradients_ready of
 * them. MPSIM_EINVAL for an array that is NULL, MPSIM_ENOMEM. */
MPSIM_API mpsim_status mpsim_gradients_check(mpsim_gradient *list, size_t n, mpsim_unscale_rule rule,
                                             mpsim_overflow_check check, double scale, const mpsim_pool *pool,
                                             int64_t *cause);
MPSIM_API mpsim_status mpsim_gradients_move(const mpsim_step_rules *r, mpsim_gradient *list, size_t n, double scale,
                                            double unscaled, const mpsim_pool *pool, mpsim_readied *out);

/* ---- the optimizer ---- */

/* mpsim_optim_placed -- an optimizer for the parameters of a layer: what has 23 bits of mantissa is stored to nearest, whatever it says. */
MPSIM_API mpsim_optim mpsim_optim_placed(const mpsim_optim *o, const mpsim_placement *l);
/* mpsim_placement_state -- of the moments of a parameter of n elements while a step runs. */
MPSIM_API const mpsim_format *mpsim_placement_state(const mpsim_placement *l, uint64_t n);
/* mpsim_optim_needs -- the arrays that an optimizer has beside a parameter of format `kept`: a set of MPSIM_OPTIM_M, V, VMAX and KAHAN. */
enum { MPSIM_OPTIM_KAHAN = 8 };
MPSIM_API unsigned mpsim_optim_needs(const mpsim_optim *o, const mpsim_format *kept);

/* mpsim_states_keep -- arrays of n values (NULL: none) as they are kept in few bits. */
MPSIM_API mpsim_status mpsim_states_keep(const mpsim_states *s, float *kept, float *m, float *v, float *vmax, size_t n);

/* A parameter that a step moves. */
typedef struct mpsim_update {
    const mpsim_optim *optim;   /* whose arrays t has; of Muon only its grad_scale counts            */
    const mpsim_muon *muon;     /* of a matrix of rows x cols, whose buffer is t.m; or NULL           */
    const mpsim_states *states; /* in which arrays are kept after the step, or NULL                  */
    const mpsim_rng *rng;       /* of stochastic rounding: element i takes index rng->index + i; or NULL */
    uint64_t step;              /* 1 for the first of this parameter                                 */
    size_t rows, cols;
    mpsim_optim_tensor t;
    /* of elements that the same step in binary64 moves: how many there are, and how many did not move; set if they are counted */
    uint64_t updates, lost;
} mpsim_update;

/* mpsim_update_run -- a step of n parameters, whose arrays do not overlap. count: updates and lost are counted, which takes twice the time of the
 * step of Adam, and more of others. *which (may be NULL) becomes the parameter that failed: as mpsim_optim_step and mpsim_muon_check. MPSIM_ENOMEM.
 * Others may have been moved then. */
MPSIM_API mpsim_status mpsim_update_run(mpsim_update *list, size_t n, int count, const mpsim_pool *pool, size_t *which);

MPSIM_END

#endif
