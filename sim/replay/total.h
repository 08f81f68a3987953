/* total.h -- what the steps of a replay add up to. */
#pragma once

#include "../input/names.h"
#include "replay.h"

/* Groups of kinds that are added up. */
typedef enum replay_group {
    GROUP_ACT,    /* act, out      */
    GROUP_WEIGHT, /* weight        */
    GROUP_AGRAD,  /* agrad, dgrad  */
    GROUP_WGRAD,
    REPLAY_GROUPS
} replay_group;

typedef struct replay_counts {
    uint64_t count, nonzero, nonfinite, underflow, subnormal, overflow, stale;
} replay_counts;

/* One tensor over all steps. */
typedef struct replay_tensor {
    char *name;
    char format[48];
    layer_kind layer;
    uint64_t steps;
    replay_counts counts;
    double worst_sqnr;
    double scale, next; /* of the last step; next: NaN but for FP8 delayed scaling */
} replay_tensor;

/* A carried tensor that differs from the recorded one, over all steps. */
typedef struct replay_difference {
    char *name; /* "opt.m:fc1.weight" */
    replay_comparison c;
} replay_difference;

/* A carried tensor of which recorded numbers were not compared, over all steps. */
typedef struct replay_omission {
    char *name;
    uint64_t count;
    char recorded[16], here[16]; /* the formats of its weight; recorded "": there is none */
} replay_omission;

/* How far a parameter moves, over all steps. */
typedef struct replay_moved {
    char *name;
    replay_movement sum; /* .size: of the last step */
} replay_moved;

/* The moments of a parameter in few bits, over all steps. */
typedef struct replay_stored {
    char *name;
    replay_moments sum;
} replay_stored;

/* A run added up. */
typedef struct replay_total {
    uint64_t steps, skipped, overflows, growths, backoffs, clipped, raised, from_record, unknown;
    double final_scale;
    replay_counts groups[REPLAY_GROUPS];
    uint64_t updates, lost, lost_model, compared, differ;
    uint64_t left_out; /* recorded and carried, but not compared */
    double max_difference, distance_fp32, distance_f64;
    train_bytes bytes;         /* of the last step */
    replay_settings *settings; /* of the last step that had some */
    size_t n_settings;
    uint64_t optimizer_skips[64]; /* steps that each of several optimizers skipped */
    size_t n_optimizers;          /* the most in a step; 0: one                    */
    replay_notes notes;
    uint64_t gradients, unheld; /* see replay_step */
    char gradient_format[16], unheld_in[64];
    mpsim_clip_rule clip; /* the record's, where it was in force; else NONE */
    int own_clips;        /* of each of several optimizers */
    double max_norm, clip_value;
    replay_difference *differing; /* tensors that differ somewhere from the record */
    size_t n_differing;
    nameindex differing_names;
    replay_movement movement; /* of all; .size: of the parameters that move, each in its last step */
    replay_movement small;    /* of the updates that rounding to the nearest loses */
    replay_moved *moved;
    size_t n_moved;
    nameindex moved_names;
    replay_omission *omitted; /* tensors of which numbers were not compared */
    size_t n_omitted;
    nameindex omitted_names;
    const mpsim_states *states; /* of the last plan that has some, or NULL */
    mpsim_muon muon;            /* of the last plan that has it; its model has a name then */
    replay_moments moments;
    replay_stored *stored; /* parameters whose moments are in few bits, and Muon's */
    size_t n_stored;
    nameindex stored_names;
    int reduces;         /* a plan says how ranks are added    */
    size_t ranks;        /* the most in a step                */
    char unmatched[512]; /* patterns of the policy that fit no layer */
    replay_tensor *tensors;
    size_t n_tensors;
    nameindex names; /* of the tensors */
} replay_total;

/* The counts of a step by group of kinds. */
void replay_group_counts(const replay_step *s, replay_counts groups[REPLAY_GROUPS]);

void replay_total_init(replay_total *t);
void replay_total_add(replay_total *t, const replay_step *s);
/* The tensors that differ, the worst first: of most of their elements, then by the most. */
void replay_total_sort(replay_total *t);
/* replay_total_sort does the same for moments: those whose steps, or first moments, differ most come first,
 * before them those of which nothing was finite. */
/* Whether all that was carried and recorded was compared, and is equal. */
int replay_total_equals(const replay_total *t);
/* Whether what the record lacks may have made a difference: not where all carried numbers are equal. */
int replay_total_doubts(const replay_total *t);
void replay_total_clear(replay_total *t);
