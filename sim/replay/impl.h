/* impl.h -- what the files of sim/replay have of one another. */
#pragma once

#include "../input/names.h"
#include "../record/cells.h"
#include "fields.h"
#include "replay.h"
#include "total.h"

#include <jansson.h>

/* ---- report.c: what replay writes (schema mpsim.replay/1); its records are fields.h's. ---- */

typedef struct replay_report {
    FILE *file;
    report_style style;
    int tensors; /* every tensor, not the worst only          */
    int amp;     /* one [AMP] line per step instead of a table */
    int several; /* policies                                   */
    int compare; /* several policies, text or CSV: their table only */
    replay_document document;
    const policy *policy; /* the current one */
    unsigned shows;
    replay_run_row run;
    table *steps;      /* text: the table under construction */
    record_writer out; /* of JSON and NDJSON                 */
} replay_report;

void replay_report_begin(replay_report *r);
void replay_report_policy(replay_report *r, const policy *p);
void replay_report_step(replay_report *r, const replay_step *s);
void replay_report_total(replay_report *r, const replay_total *t);
/* replay_report_compare -- text and CSV: all policies side by side. */
void replay_report_compare(replay_report *r, const policy *policies, const replay_total *totals, size_t n);
void replay_report_abandon(replay_report *r);
int replay_report_end(replay_report *r); /* 0, or -1 if writing failed */

/* ---- said.c: lines of text on a run and its record: the optimizer with its groups, what differs, what the
 * record lacks. ---- */

void replay_text_optimizer(FILE *to, const replay_total *t);
void replay_text_moments(FILE *to, const replay_total *t);
void replay_text_muon(FILE *to, const replay_total *t);
void replay_text_movement(FILE *to, const replay_total *t);
void replay_text_record(FILE *to, const replay_total *t);

/* ---- state.c: the state of a replay; shared by the files of this folder. ---- */

/* Numbers as they were recorded: binary32 where their format has no others, else binary64. */
typedef struct record_values {
    float *narrow; /* NULL: not there */
    double *wide;
} record_values;

static inline int replay_values_there(const record_values *v)
{
    return v->narrow || v->wide;
}

static inline double replay_value_at(const record_values *v, size_t i)
{
    return v->narrow ? (double)v->narrow[i] : v->wide[i];
}

/* What went wrong in a task of one of many threads; reported afterwards. */
typedef struct replay_problem {
    int code; /* exit code; 0: nothing */
    char text[640];
} replay_problem;

/* A parameter: what the record says of it in this step, and the run's own numbers. */
typedef struct parameter {
    char *name, *layer; /* "conv1.weight", "conv1" */
    layer_kind kind;
    uint64_t count; /* of its elements                                      */
    int mine;       /* this process has them (share.c)                      */
    size_t n, cols; /* n: how many are here, all or none                    */
    uint64_t shape_rank;
    size_t rows;     /* of the matrix that the first dimension and all others make */
    size_t kernel;   /* the last dimension but one                                 */
    int weight_rank; /* of the layer's weight, or -1 */
    /* of the record, this step */
    record_values weight, master, m, v, vmax_recorded;
    record_values *grads; /* of the ranks */
    size_t ranks;
    const mpsim_format *weight_format; /* of the record */
    train_placement place;             /* of the layer, under the plan in force */
    /* of the run: p in place.kept, the model's copy in place.storage */
    float *p, *model, *g, *pm, *pv, *vmax, *kahan;
    /* references */
    float *p32, *m32, *v32, *x32;
    double *p64, *m64, *v64, *x64;
    uint64_t t, t_reference;     /* optimizer steps done */
    int alive;                   /* has numbers of its own                              */
    int lacks_state, lacks_vmax; /* after steps that were recorded, it begins this one without */
    /* its parameter group in this step; -1: none of them has it */
    ptrdiff_t group;
    int steps_known; /* of `steps`, taken before this one */
    uint64_t steps;
    int tied; /* stands for several of the model's parameters */
    /* of this step: its first cast; of its gradients as recorded and as cast */
    size_t cast;
    uint64_t gradients, unheld; /* see replay_step */
    float norm;
    int counts_unheld, damaged, not_finite, from_record;
    replay_problem problem;
} parameter;

/* The FP8 state of a tensor. */
typedef struct cast_state {
    char *name;
    layer_kind layer;
    train_placement place;
    int layer_known; /* these two are those of the plan in force */
    int has_delayed, used, mine;
    mpsim_delayed delayed;
    float *history;
    size_t cast; /* its entry of this step's casts */
} cast_state;

/* What the record says of an optimizer, or of one of its parameter groups. */
typedef struct record_settings {
    int optimizer;                                /* mpsim_optim_algorithm; -1: not said, or none of ours       */
    char optimizer_name[32], class[64], impl[16]; /* "": not said                */
    union {                                       /* NaN: not said */
        double number[MPSIM_OPTIM_NUMBERS];       /* by mpsim_optim_setting */
        struct {
            double lr, momentum, dampening, weight_decay, beta1, beta2, eps, beta2_decay, eps2, d;
        };
    };
    int nesterov, amsgrad, maximize; /* -1: not said                             */
    int by_muon;                     /* torch.optim.Muon, or another Muon        */
    double ns_steps, cubic[3];       /* of Muon's iteration; NaN: not said       */
    int adjust_lr;                   /* mpsim_muon_scale; -1: not said           */
    int tensor_lr, tensor_betas;     /* they are tensors, with which torch computes in binary32 */
} record_settings;

/* What a run, or the policy, computed in. */
typedef enum record_precision { COMPUTED_UNKNOWN, COMPUTED_FP32, COMPUTED_FP16, COMPUTED_BF16 } record_precision;

typedef enum record_device { DEVICE_UNKNOWN, DEVICE_CPU, DEVICE_CUDA } record_device;

/* What the metadata of the step's files say. */
typedef struct step_record {
    double loss_scale; /* 1 if not said                                    */
    int scale_known, grads_scaled, reduced;
    record_settings whole;             /* where there are no groups                         */
    char states[32];                   /* mpsim.states: moments are recorded as these store them; "" */
    uint64_t world;                    /* mpsim.world; 0: not said                          */
    int steps_known;                   /* mpsim.optimizer_steps                             */
    uint64_t optimizer_steps;          /* taken before this one                            */
    double lr_factor;                  /* of the schedule, for what the policy says; NaN: not said */
    double grad_norm;                  /* before clipping, unscaled; NaN: not said          */
    double grad_norm_type;             /* 2 if not said                                     */
    double grad_clip, grad_clip_value; /* NaN: not said; 0: none                  */
    uint64_t accumulation;             /* micro-batches that a gradient is the sum of       */
    const mpsim_format *summed_in;     /* the format of these sums; NULL: not said    */
    record_precision computed;
    record_device device;
    int contracts;  /* the CPU's kernels use FMA: 1, with AVX-512 2, 0; -1: not said */
    int ieee_roots; /* of the CPU's library: 1: said to be               */
    int minor;      /* of torch 2; -1: not said                          */
} step_record;

/* What the record says of one of several optimizers (mpsim.optimizers). */
typedef struct record_optimizer {
    int skipped, found_inf;            /* -1: not said          */
    double grad_clip, grad_clip_value; /* as in step_record     */
    double grad_norm, grad_norm_type;
} record_optimizer;

enum { REPLAY_OPTIMIZERS = 64 }; /* at most; a set of them is a uint64_t */

/* What the record says of a parameter. */
typedef struct record_member {
    size_t group;
    int steps_known;
    uint64_t steps;
} record_member;

/* The parameter groups of a step (mpsim.groups), and the names that stand for others (mpsim.tied).
 * Names are those of the JSON values. */
typedef struct record_groups {
    json_t *json, *tied; /* NULL: not said */
    record_settings *list;
    size_t n;
    record_member *members;
    size_t n_members;
    nameindex names, /* of members */ tied_names; /* parameters that have an alias */
    json_t *said;                                 /* mpsim.optimizers; NULL: there is one optimizer */
    record_optimizer optimizers[REPLAY_OPTIMIZERS];
    size_t n_optimizers;  /* 0: not said */
    size_t *optimizer_of; /* of groups */
} record_groups;

/* What all processes need to know of a step's gradients and casts before it. */
typedef struct replay_facts {
    uint64_t infinite;               /* the first cast that overflowed to an infinity; UINT64_MAX: none        */
    uint64_t not_finite;             /* the first parameter of a group whose gradient is not finite; the same */
    uint64_t unheld_in;              /* the first parameter with gradients not held; the same                  */
    uint64_t counting;               /* the last one that counts them, and 1; 0: none                          */
    uint64_t damaged, not_finite_in; /* sets of optimizers: recorded gradients that are not finite; current gradients */
    uint64_t gradients, unheld;
} replay_facts;

/* One of the optimizers in this step. */
typedef struct replay_optimizer {
    replay_doing out;
    int idle;                            /* the program did not step it, whatever the scaler */
    double grad_scale, reference_factor; /* that it and its references work with */
} replay_optimizer;

/* Which process has which tensors. */
typedef struct replay_piece {
    char *key;
    uint64_t bytes;
    int rank;
} replay_piece;

typedef struct replay_division {
    nameindex index; /* of the keys */
    replay_piece *items;
    size_t count;
    uint64_t *loads; /* of the processes, in bytes of a step */
} replay_division;

/* How far numbers are from references: exact sums, which merge (measure.c). */
typedef struct replay_distance {
    mpsim_sum difference, size;
    int broken; /* an Inf or NaN where the reference has a number: infinitely far */
} replay_distance;

typedef struct replay {
    const policy *policy;
    const plan *plan;
    const replay_options *options;
    input *in;
    int (*done)(const replay_step *s, void *context);
    void *context;

    int64_t step, last_step;
    int have_step, stepped; /* there is a current step; one has been done */
    int new_plan, from_record;
    int gap;      /* the step before this one was not recorded           */
    int mixed;    /* parameters of several formats in one model                    */
    int ended;    /* the scaler has raised its error: training ended     */
    size_t files; /* of this step                                     */
    mpsim_scaler scaler;
    step_record record;
    record_groups groups;
    size_t rank;        /* of the current file, among those of its step */
    int state_recorded; /* a file of the step has moments                */
    int overflow;       /* seen in activations or their gradients       */
    replay_optimizer of[REPLAY_OPTIMIZERS];
    replay_doing shown[REPLAY_OPTIMIZERS];
    ptrdiff_t only;          /* the optimizer whose gradients are clipped and summed; -1: all */
    double reference_factor; /* of the norm that is summed */
    const char *cause;
    replay_facts facts;
    int measured;                 /* distances are of this step */
    replay_distance distances[4]; /* see replay_measure */
    replay_division division;

    parameter *parameters;
    size_t n_parameters;
    cast_state *states;
    size_t n_states;
    nameindex state_names, parameter_names;
    policy_depth depth;     /* numbers of the layers seen so far */
    nameindex weight_ranks; /* of the current file: a layer's name to the rank of its weight */
    char **layer_names;     /* of these */
    size_t n_layer_names;
    replay_cast *casts;
    size_t n_casts;
    struct replay_worker *workers; /* a thread's own */
    replay_weight *weights;

    replay_settings *settings; /* as policy and trace agree on, of the last step that had some */
    size_t n_settings;
    mpsim_muon muon; /* of the first parameter that it has */
    replay_notes notes;
    replay_step out;
} replay;

/* Tensor names of more bytes are refused. */
enum { REPLAY_NAME_MAX = 480 };

/* share.c: whether a tensor takes part. Which process has the tensors of a file; whether this process has one. The facts of all.
 * Casts, weights and distances of all, in the first process. Each but the questions 0 or an exit code. */
int replay_wants(const replay *r, const trace_tensor *t);
void replay_divide(replay *r, const trace *t);
int replay_is_mine(const replay *r, const char *name); /* "kind:fqn" */
int replay_tensor_is_mine(const replay *r, const trace_tensor *t);
int replay_share_facts(replay_facts *f);
int replay_collect(replay *r);
void replay_division_clear(replay_division *d);

/* record.c: read the metadata of a file; an error in a file, its path and text escaped. Both 0
 * or an exit code. */
int replay_read_record(const trace *t, step_record *m);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int replay_bad_file(const trace *t, const char *message, ...);
void replay_no_settings(record_settings *s); /* nothing is said */

/* groups.c: the groups of a file, 0 or an exit code; whether another file of the step says the same;
 * every parameter's group; what is said of it. */
int replay_read_groups(record_groups *g, const trace *t);
int replay_same_groups(const record_groups *g, const trace *t);
void replay_groups_clear(record_groups *g);
void replay_find_groups(replay *r);
const record_settings *replay_group_settings(const replay *r, const parameter *p);

/* layer.c: the weights of a file; the rank of a layer's weight, -1: not known. */
void replay_index_weights(replay *r, const trace *t);
void replay_forget_weights(replay *r);
int replay_weight_rank(const replay *r, const char *layer);

/* several.c: the optimizers of a file, 0 or an exit code; how many there are; whose a parameter is. */
int replay_read_optimizers(record_groups *g, const trace *t);
size_t replay_optimizers(const replay *r);
size_t replay_owner(const replay *r, const parameter *p);

/* turns.c: which of them this step skips: all, or on an overflow those that it is about; unscaling and clips of those
 * that step, 0 or an exit code. */
void replay_choose_skips(replay *r, int all, int overflowed);
int replay_clip_all(replay *r, double unscale);

/* optimizer.c: the settings of all groups that are updated; those of a parameter. */
int replay_choose_optimizers(replay *r);
const mpsim_optim *replay_optimizer_of(const replay *r, const parameter *p);
/* The variant that the record names, or NULL. */
const mpsim_optim_variant *replay_recorded_variant(const replay *r, const record_settings *s);
int replay_is_updated(const parameter *p);
/* o at step t of a parameter, where its learning rate is a tensor: numbers that give the scalars that torch computes. */
void replay_tensor_scalars(const replay *r, const parameter *p, uint64_t t, mpsim_optim *o);

/* clip.c: gradients as the optimizer gets them, which divides by *in_optimizer itself. */
void replay_choose_clip(replay *r);
int replay_unscale_and_clip(replay *r, double scale, double *in_optimizer);

/* norm.c: how ATen's CPU kernels sum a norm, where that is known of the run; NaN: it is not, or the
 * list has another format or order. 0 or an exit code. */
int replay_cpu_norm(const replay *r, parameter *const *list, size_t n, double *norm);

/* note.c: the first of its kind stays; `text` of a name shows it escaped. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void replay_say(replay *r, replay_note note, const char *message, ...);

/* plan.c: the bytes of this step under the plan; see replay_run for the patterns. */
void replay_count_bytes(replay *r);
void replay_find_unmatched(const replay *r, char *out, size_t size);
/* replay_say_refused -- note what the framework of the plan's scaler would refuse to do. */
void replay_say_refused(replay *r);

/* state.c: what all of them use. */
/* A task fails. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void replay_fails(replay_problem *p, int code, const char *message, ...);

/* Whether Muon has a parameter. */
int replay_is_muon(const replay *r, const parameter *p);

/* A task for every parameter, on all threads; the first problem in their order is reported. */
int replay_each(replay *r, void (*task)(replay *r, parameter *p, replay_weight *w));

/* What a thread keeps: statistics of arrays, sums that merge exactly. */
typedef struct replay_worker {
    mpsim_summary *summary;
    replay_distance *distances; /* four: see replay_measure */
    mpsim_sum squares;
} replay_worker;

replay_worker *replay_self(const replay *r); /* of the calling thread */
void replay_hire(replay *r);
void replay_dismiss(replay *r);
/* From a tensor's step, name to random bits. */
mpsim_rng replay_rng(const replay *r, const char *name);
/* y = x * factor, of n elements from `first` on, rounded once to f: a format whose numbers are binary32
 * numbers. */
void replay_round(const mpsim_format *f, double factor, float *y, const record_values *x, size_t first, size_t n);

/* cast.c: a tensor to be cast: its entry is at r->n_casts - 1. Then the cast: place:
 * of its layer. x: n numbers as recorded, times `factor` they are scaled as in this step. is_operand: of
 * a matrix product, so that a block recipe applies (a bias is none). Threads may cast at once. */
typedef struct replay_casting {
    train_role role;
    layer_kind layer;
    const train_placement *place;
    int is_operand;
    size_t n, cols;
    double factor;
    int columns; /* as the weight's gradient has it: along the columns, through the transform of the place */
} replay_casting;

void replay_add_cast(replay *r, const char *kind, const char *name);
void replay_add_columns(replay *r, const char *kind, const char *name); /* named as the trainer's copy: "act.qt:fc1" */
void replay_cast_tensor(const replay *r, size_t cast, const replay_casting *how, const record_values *x,
                        replay_problem *problem);
cast_state *replay_state(replay *r, const char *name);
void replay_states_update(replay *r);
void replay_states_clear(replay *r);

/* weights.c: parameters taken from the record, carried, compared. */
int replay_begin_weights(replay *r);                          /* after all files of the step have been read */
void replay_parameter_refresh(const replay *r, parameter *p); /* the model's copy from what is kept */
void replay_parameter_forget(parameter *p);                   /* what the record said */
void replay_values_free(record_values *v);
void replay_parameter_free(parameter *p);

/* step.c: the step itself. */
int replay_update(replay *r);

/* muon.c: the settings of a parameter that Muon has; what is said of them; its step; that of its references. */
mpsim_muon replay_muon_of(const replay *r, const parameter *p);
void replay_say_muon(replay *r, const parameter *p);
void replay_muon_step(replay *r, parameter *p, replay_weight *w);
void replay_muon_references(const replay *r, parameter *p, double factor);

/* measure.c: the references of fp32 and binary64, updates that are lost, distances from the
 * references: |a - b| / |b| over elements, 0 where all are equal. The four are: model from fp32,
 * model from binary64, fp32 from binary64, kept from fp32. */

/* What a parameter was before its step. */
typedef struct replay_before {
    float *p, *model, *m, *v, *vmax, *kahan; /* NULL: none, zeros */
} replay_before;

/* An element that was x before, would become y in binary64, nearest of that in the kept format, and is now z. */
void replay_move(replay_movement *m, double x, double y, double nearest, double z);
/* n numbers of y, rounded to the nearest of f. */
void replay_nearest(const mpsim_format *f, double *nearest, const double *y, size_t n);
double replay_mean_gradient(const parameter *p, size_t i, double factor); /* of the ranks */
int replay_reference_factor(replay *r, double *factor);                   /* 0 or an exit code */
/* An optimizer with the last two dimensions of a parameter, for those that ask for them. */
mpsim_optim replay_shaped(const mpsim_optim *o, const parameter *p);
void replay_references(const mpsim_optim *o, parameter *p, double factor);
void replay_count_lost(const mpsim_optim *o, parameter *p, const replay_before *before, replay_weight *w);
void replay_distance_init(replay_distance *d);
double replay_distance_value(const replay_distance *d);
void replay_distance_merge(replay_distance *to, const replay_distance *d);
void replay_measure(parameter *p, replay_weight *w, replay_worker *self);
