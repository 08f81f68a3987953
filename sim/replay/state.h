/* state.h -- the state of a replay; shared by the files of this folder. */
#ifndef MPSIM_SIM_REPLAY_STATE_H
#define MPSIM_SIM_REPLAY_STATE_H

#include "../cli/names.h"
#include "replay.h"

/* A parameter: what the record says of it in this step, and the run's own numbers. */
typedef struct parameter {
    char *name, *layer; /* "conv1.weight", "conv1" */
    layer_kind kind;
    size_t n, cols;
    uint64_t shape_rank;
    int weight_rank; /* of the layer's weight, or -1 */
    /* of the record, this step; NULL: not there. Values as binary64. */
    double *weight, *master, *m, *v;
    double **grads; /* of the ranks, as recorded */
    size_t ranks;
    const mpsim_format *weight_format; /* of the record */
    train_placement place; /* of the layer, under the plan in force */
    /* of the run: p in place.kept, the model's copy in place.storage */
    float *p, *model, *g, *pm, *pv, *vmax, *kahan;
    /* references */
    float *p32, *m32, *v32, *x32;
    double *p64, *m64, *v64, *x64;
    uint64_t t, t_reference; /* optimizer steps done */
    int alive;               /* has numbers of its own                              */
} parameter;

/* The FP8 state of a tensor. */
typedef struct cast_state {
    char *name;
    layer_kind layer;
    train_placement place;
    int layer_known; /* these two are those of the plan in force */
    int has_delayed, used;
    mpsim_delayed delayed;
    float *history;
    size_t cast; /* its entry of this step's casts */
} cast_state;

/* What the metadata of the step's files say. */
typedef struct step_record {
    double loss_scale; /* 1 if not said                                    */
    int scale_known, grads_scaled, reduced;
    double lr, momentum, dampening, weight_decay, beta1, beta2, eps; /* NaN: not said */
    int nesterov, amsgrad, maximize, optimizer; /* -1: not said */
    uint64_t world;          /* mpsim.world; 0: not said                          */
    char optimizer_name[32];
    int steps_known;         /* mpsim.optimizer_steps                             */
    uint64_t optimizer_steps; /* taken before this one                            */
    double grad_norm;        /* before clipping, unscaled; NaN: not said          */
} step_record;

typedef struct replay {
    const policy *policy;
    const plan *plan;
    const replay_options *options;
    input *in;
    int (*done)(const replay_step *s, void *context);
    void *context;

    int64_t step, last_step;
    int have_step, stepped; /* a step is at hand; one has been done */
    int new_plan, from_record;
    int gap;   /* the step before this one was not recorded           */
    int ended; /* the scaler has raised its error: training ended     */
    size_t files; /* of this step                                     */
    mpsim_scaler scaler;
    step_record record;
    size_t rank;      /* of the file at hand, among those of its step */
    int overflow;     /* seen in activations or their gradients       */
    const char *cause;

    parameter *parameters;
    size_t n_parameters;
    cast_state *states;
    size_t n_states;
    nameindex state_names, parameter_names;
    nameindex weight_ranks; /* of the file at hand: "LAYER.weight" to the rank of its weight */
    replay_cast *casts;
    size_t n_casts, room_casts;
    replay_weight *weights;

    mpsim_optim optimizer; /* as policy and trace agree on, of the last step that had one */
    int has_optimizer;
    replay_step out;
} replay;

/* Tensor names of more bytes are refused. */
enum { REPLAY_NAME_MAX = 480 };

/* record.c: read the metadata of a file; an error in a file, its path and text escaped. Both 0
 * or an exit code. */
int replay_read_record(const trace *t, step_record *m);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int replay_bad_file(const trace *t, const char *message, ...);

/* plan.c: the bytes of this step under the plan; see replay_run for the patterns. */
void replay_count_bytes(replay *r);
void replay_find_unmatched(const replay *r, char *out, size_t size);

/* state.c: what all of them use. */
int replay_no_memory(void);
/* From a tensor's step, name to random bits. */
mpsim_rng replay_rng(const replay *r, const char *name);
/* y = x * factor, rounded once to f: a format whose numbers are binary32 numbers. */
void replay_round(const mpsim_format *f, double factor, float *y, const double *x, size_t n);

/* cast.c: 0, or an exit code after a message. place: of its layer. x: n numbers as recorded,
 * times `factor` they are scaled as in this step. is_operand: of a matrix product, so that a block
 * recipe applies (a bias is none). */
int replay_cast_tensor(replay *r, const char *name, train_role role, layer_kind layer,
                       const train_placement *place, int is_operand, const double *x, size_t n,
                       size_t cols, double factor);
cast_state *replay_state(replay *r, const char *name);
void replay_states_update(replay *r);
void replay_states_clear(replay *r);

/* weights.c: parameters taken from the record, carried, compared. */
int replay_begin_weights(replay *r); /* after all files of the step have been read */
void parameter_refresh(const replay *r, parameter *p); /* the model's copy from what is kept */
void parameter_forget(parameter *p); /* what the record said */
void parameter_free(parameter *p);

/* step.c: the step itself. */
int replay_update(replay *r);

/* measure.c: the references of fp32 and binary64, updates that are lost, distances from the
 * references: |a - b| / |b| over elements, 0 where all are equal. The four are: model from fp32,
 * model from binary64, fp32 from binary64, kept from fp32. */
typedef struct replay_distance {
    mpsim_sum difference, size;
    int broken; /* an Inf or NaN where the reference has a number: infinitely far */
} replay_distance;

int replay_record_finite(const replay *r); /* no recorded gradient is damaged */
double replay_reference_factor(const replay *r);
int replay_references(const mpsim_optim *o, parameter *p, double factor);
int replay_count_lost(const mpsim_optim *o, const parameter *p, const float *before,
                      const float *model_before, const float *m, const float *v, const float *vmax,
                      const float *kahan, replay_weight *w);
void replay_distance_init(replay_distance *d);
double replay_distance_value(const replay_distance *d);
void replay_measure(const parameter *p, replay_weight *w, replay_distance all[4]);

#endif
