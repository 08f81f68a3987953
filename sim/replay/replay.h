/* replay.h -- a recorded run through a policy, whole steps.
 *
 * A step, in order: tensors are cast as the plan says (gradients times the loss scale); gradients
 * are reduced over ranks, checked, unscaled and clipped in the scaler's and the clip rule's order;
 * the optimizer updates the parameter (or its master); the model's copy is refreshed; scaler and
 * FP8 scales move on.
 *
 * The optimizer's settings are those of the parameter group that the record names for this step, the
 * clip and its norm the record's, each unless the policy states its own. What the record lacks, and
 * which values may differ therefore, is in the notes.
 *
 * Weights: a run goes on with its own weights as long as the recorded steps are consecutive, and
 * takes weights and optimizer state from the record after a gap. The recorded gradients are those
 * of the recorded weights: nothing is computed anew by a model. The loss scaler counts over gaps; FP8
 * scales begin anew from the step's own amax. When the scaler raises its error, the run ends. The
 * references leave out steps whose recorded gradients hold an Inf or NaN.
 *
 * Several processes (cli/world.h) divide the tensors; the first gets the casts and weights of all.
 *
 * A replay under the policy of the recorded run shows 0 differences. */
#pragma once

#include "../input/input.h"
#include "../policy/policy.h"
#include "moments.h"

typedef enum replay_weights {
    REPLAY_AUTO,     /* carry on over consecutive steps */
    REPLAY_RECORDED, /* every step from its record      */
    REPLAY_CARRY     /* over gaps, too                  */
} replay_weights;

typedef struct replay_options {
    replay_weights weights;
    int references; /* run the fp32 and binary64 references, too */
    uint64_t seed;
} replay_options;

/* One tensor in one step, through its cast. */
typedef struct replay_cast {
    const char *name; /* "wgrad:conv1.weight" */
    const char *kind; /* "wgrad"              */
    layer_kind layer;
    char format[48];      /* "fp16", "bf16 > te-current"                                       */
    double scale;         /* that it was multiplied by: loss scale times FP8 scale; NaN: by block */
    double next;          /* FP8 delayed: the scale of the next step; else NaN                 */
    const float *history; /* FP8 delayed: the amax history after the step, the newest last; or NULL */
    size_t n_history;
    uint64_t count, nonzero, nonfinite;      /* before the cast; weights: as the model has them  */
    uint64_t underflow, subnormal, overflow; /* overflow: also saturated                   */
    int infinite;                            /* some overflowed to an infinity                                     */
    uint64_t stale;                          /* FP8 delayed: saturated where a scale of this step's amax would not */
    double amax;                             /* before the cast, times the loss scale                             */
    double sqnr_db;
} replay_cast;

enum { REPLAY_HISTORY_SHOWN = 32 }; /* of an amax history, the newest */

/* What is carried from step to step, and compared with the record. */
typedef enum replay_carried {
    CARRIED_WEIGHT,
    CARRIED_M,
    CARRIED_V,
    CARRIED_VMAX,
    CARRIED_MASTER,
    REPLAY_CARRIED
} replay_carried;

const char *replay_carried_kind(replay_carried c); /* "weight", "opt.m", ... */

typedef struct replay_comparison {
    uint64_t compared, differ, left_out; /* left_out: recorded and carried, but not comparable: in other formats */
    double max_difference;               /* the largest, relative to the larger of the two */
} replay_comparison;

/* How far a parameter moves along its updates in binary64, whose magnitudes add up to `wanted`: `moved` in the mean, `noise`
 * the sum of squares of what is missing. Updates that rounding loses here and makes up for there are not lost in the
 * mean. */
typedef struct replay_movement {
    double wanted, moved, noise;
    double size;                                   /* sum of the magnitudes of the parameter itself */
    double small_wanted, small_moved, small_noise; /* of updates that rounding to the nearest loses */
    /* of a run, once all is added up: the share of `wanted` that is moved, its standard error, were every rounding by chance, what
     * is missing beside the size; NaN where nothing moves. lost: the share is below 0.9 by more than three of these errors. */
    double share, error, drift;
    int lost;
} replay_movement;

/* One parameter in one step. */
typedef struct replay_weight {
    const char *name; /* "conv1.weight" */
    const char *storage, *grads;
    const char *recorded; /* the format of the recorded weight; NULL: none */
    int master;
    uint64_t count, updates;            /* elements; those that would move in binary64                     */
    uint64_t lost;                      /* of these, where the kept parameter (master) did not move       */
    uint64_t lost_model;                /* where the model's copy did not move                            */
    replay_movement movement;           /* of the kept parameter, with Kahan's compensation              */
    double distance_fp32, distance_f64; /* relative, of the model's copy; NaN without reference */
    double kept_fp32;                   /* of what is kept: the master, if there is one        */
    /* at the start of this step, against the recorded numbers, where the formats are the same */
    replay_comparison carried[REPLAY_CARRIED];
    uint64_t compared, differ, left_out; /* all of them */
    double max_difference;
    replay_moments moments; /* in few bits, as the plan's states say */
} replay_weight;

/* The settings of a parameter group in one step: the record's, where the policy has none. */
typedef struct replay_settings {
    mpsim_optim optimizer;
    size_t parameters; /* that are updated with them; 0: the rest is not set */
} replay_settings;

/* What a reader must know of the record, a line each: what it lacks and which values may differ for
 * that, and what of the policy replaces it. The first step that gives a reason counts. */
typedef enum replay_note {
    NOTE_REFUSED,      /* what the policy's framework would refuse               */
    NOTE_FORMATS,      /* parameters of several formats, as they were recorded   */
    NOTE_MUON,         /* the same as the next, of Muon                          */
    NOTE_POLICY,       /* settings of the policy that are not the recorded ones */
    NOTE_GROUPS,       /* no parameter groups                                    */
    NOTE_UNGROUPED,    /* parameters in no group                                 */
    NOTE_CLASS,        /* an optimizer's class that is not torch's               */
    NOTE_VARIANT,      /* the implementation is not known, or its instructions   */
    NOTE_TENSORS,      /* how torch computes powers of betas that are tensors    */
    NOTE_ROOTS,        /* MKL's square roots are not IEEE's                      */
    NOTE_STEPS,        /* steps taken                                            */
    NOTE_STATE,        /* moments                                                */
    NOTE_VMAX,         /* amsgrad's largest moment                               */
    NOTE_CLIP,         /* whether gradients were clipped                         */
    NOTE_NORM,         /* the norm before clipping                               */
    NOTE_NOT_RECORDED, /* what the recorder left out, in its words               */
    REPLAY_NOTES
} replay_note;

typedef struct replay_notes {
    char text[REPLAY_NOTES][320]; /* "": nothing to say */
} replay_notes;

/* One of several optimizers in a step: each skips for its own gradients, and may have its own clip. */
typedef struct replay_doing {
    int skipped, clipped;
    double norm; /* before clipping; NaN: skipped, or nothing is clipped */
} replay_doing;

typedef struct replay_step {
    int64_t step;
    const plan *plan;
    int trains;                /* 0: weights only, after the last step: nothing happens           */
    int new_plan, from_record; /* this step begins a plan; its weights come from the record       */
    double scale, unscale, next_scale;
    size_t ranks;      /* whose gradients were added; 1 where they came reduced, or alone */
    int unknown;       /* the record holds Inf or NaN from a larger scale: what would have
                                  happened is not known; the step counts as clean, nothing moves */
    unsigned events;   /* MPSIM_SCALER_*                                                  */
    uint64_t tracker;  /* clean steps after this one                                      */
    const char *cause; /* tensor that overflowed first, or NULL                           */
    double norm;       /* before clipping, unscaled; NaN where nothing is clipped         */
    int clipped;
    mpsim_clip_rule clip;                          /* in force                                                        */
    double max_norm, clip_value;                   /* the latter 0: values are not                                  */
    int recorded_clip;                             /* they are the record's                                           */
    int own_clips;                                 /* of each optimizer; what stands here is the last one's           */
    uint64_t gradients, unheld;                    /* recorded ones that are rounded to a lower precision, of a run that
                                  computed in it or does not say; those that it cannot hold       */
    const char *gradient_format;                   /* of these; NULL: there are none                                */
    const char *unheld_in;                         /* a parameter that has such gradients; NULL: there is none        */
    double recorded_scale;                         /* NaN: not recorded                                               */
    double fp32_f64;                               /* relative distance of the fp32 reference from the binary64 one   */
    double distance_fp32, distance_f64, kept_fp32; /* of all weights                              */
    const replay_cast *casts;
    size_t n_casts;
    const replay_weight *weights;
    size_t n_weights;
    const mpsim_optim *optimizer;    /* of the first group; NULL where nothing was updated           */
    const replay_settings *settings; /* of every group, in the record's order, or NULL            */
    size_t n_settings;
    const mpsim_muon *muon;         /* NULL: it has no parameter                     */
    const replay_doing *optimizers; /* of several, in the record's order; NULL: there is one    */
    size_t n_optimizers;
    const replay_notes *notes; /* of the run so far                                               */
    train_bytes bytes;
} replay_step;

/* replay_run -- call `done` after every step; it returns 0 or an exit code to stop with; in other processes than
 * the first without casts and weights. What it gets lives until it returns, names until replay_run returns. 0, or an exit code after a message.
 * `unmatched` (NULL, or `size` bytes) receives the patterns of the policy that fit no layer of the
 * trace: "keep_fp32 '*hed', 'x'; layer_kinds 'y'"; empty if there are none. */
int replay_run(const policy *p, input *in, const replay_options *o, int (*done)(const replay_step *s, void *context),
               void *context, char *unmatched, size_t size);
