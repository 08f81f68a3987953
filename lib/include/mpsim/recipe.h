/* recipe.h -- FP8 delayed scaling: a scale from the amax history of a tensor.
 *
 * TransformerEngine's DelayedScaling (common/recipe/delayed_scaling.cu @d0067d0d). A tensor is cast
 * with the scale that earlier steps left; its amax enters the history, and the update after the
 * step gives the next scale. Hybrid is e4m3 for activations and weights, e5m2 for their gradients: two
 * configurations. Needs the default floating-point environment. */
#ifndef MPSIM_RECIPE_H
#define MPSIM_RECIPE_H

#include <mpsim/format.h>
#include <mpsim/status.h>

MPSIM_BEGIN

typedef enum mpsim_amax_algorithm {
    MPSIM_AMAX_MAX,        /* the largest amax of the window */
    MPSIM_AMAX_MOST_RECENT /* this step's                    */
} mpsim_amax_algorithm;

/* The implementations of the update, which differ at corners. */
typedef enum mpsim_delayed_variant {
    MPSIM_DELAYED_BULK,   /* PyTorch: no roll and no new scale where this step's amax is 0       */
    MPSIM_DELAYED_LEGACY, /* JAX: always rolls                                                   */
    MPSIM_DELAYED_PYTHON  /* NVTE_UNFUSED_FP8_UPDATE: ((1 / amax) * fp8_max) / 2^margin, which is
                             how torch divides a number by a tensor; always rolls; NaN propagates */
} mpsim_delayed_variant;

typedef struct mpsim_delayed_config {
    uint32_t history;  /* >= 1: amax_history_len, 1024   */
    uint8_t algorithm; /* mpsim_amax_algorithm           */
    uint8_t variant;   /* mpsim_delayed_variant          */
    int16_t margin;    /* 0; -126 to 126                 */
    float fp8_max;     /* 448 for e4m3, 57344 for e5m2   */
} mpsim_delayed_config;

/* mpsim_delayed_config_init -- TransformerEngine's defaults for elements of format f. */
MPSIM_API void mpsim_delayed_config_init(mpsim_delayed_config *c, const mpsim_format *f);
MPSIM_API mpsim_status mpsim_delayed_config_check(const mpsim_delayed_config *c);

/* One tensor's state. The history is an array of c->history numbers that the caller owns; slot 0 is
 * this step's amax. */
typedef struct mpsim_delayed {
    mpsim_delayed_config config;
    float scale;         /* elements are multiplied by it: 1 at first            */
    float scale_inverse; /* 1 / scale in binary32, as of the last update         */
    float *history;      /* 0 at first                                           */
} mpsim_delayed;

/* mpsim_delayed_init -- scale 1 and an empty history. MPSIM_EINVAL if the configuration is invalid
 * or history is NULL. */
MPSIM_API mpsim_status mpsim_delayed_init(mpsim_delayed *d, const mpsim_delayed_config *c, float *history);

/* mpsim_amax -- the largest magnitude of n elements as the cast kernels see it: NaN is dropped (0
 * if all are), infinity counts. */
MPSIM_API float mpsim_amax(const float *x, size_t n);

/* mpsim_delayed_record -- a cast of this step saw this amax: slot 0 becomes the larger of both (a
 * NaN is dropped, as fmaxf does, but under PYTHON). */
MPSIM_API void mpsim_delayed_record(mpsim_delayed *d, float amax);

/* mpsim_delayed_update -- after the step. `reduced` is the largest amax over the group where
 * amax is all-reduced, or 0 to take slot 0. A scale that would be infinite becomes FLT_MAX; one may
 * underflow to 0, as in the source, and its inverse is infinite then. */
MPSIM_API void mpsim_delayed_update(mpsim_delayed *d, float reduced);

/* mpsim_fp8_scale -- TransformerEngine's compute_scale_from_amax (recipe_common.cuh): fp8_max /
 * amax, correctly rounded to binary32; amax is raised to epsilon; 1 for an amax of 0, inf or NaN;
 * `for_inf` instead of an infinite scale; cut down to a power of two if asked for. */
MPSIM_API float mpsim_fp8_scale(float amax, float fp8_max, float epsilon, float for_inf, int power_of_two);

MPSIM_END

#endif
