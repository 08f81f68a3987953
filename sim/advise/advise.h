/* advise.h -- what the files of this folder share: tensors as they were measured, and the advice.
 *
 * measure.c casts every tensor of every step to each candidate and keeps whether that is within the bounds, and the worst
 * place; judge.c turns that into advice; hold.c asks how often it is kept in steps that judge.c did not see.
 *
 * Nothing is measured here: casts are stat's (sim/stat/walk.h), updates a replay's, recipes the policies'
 * (policy_recipe_find). Each line of the advice has the number that decided it. What the trace does not say is "not
 * known", never a default, and a condition on it fails. For each step a tensor stores one bit per candidate and per
 * loss scale, and the worst numbers; only held-back steps keep more. */
#pragma once

#include "../input/input.h"
#include "../input/names.h"
#include "../replay/replay.h"
#include "candidates.h"

/* Where a number is worst; step -1: the file says none, or nothing was measured (value NaN). */
typedef struct advise_worst {
    double value;
    int64_t step;
} advise_worst;

/* A tensor as a candidate: shares of its elements, and decibels. */
typedef struct advise_evidence {
    advise_worst underflow, overflow, sqnr;
} advise_evidence;

/* Powers of two that may multiply the loss. A set of them is a mask, from the smallest on. */
enum { SCALE_LOW = -8, SCALE_HIGH = 32, SCALES = SCALE_HIGH - SCALE_LOW + 1 };

/* An end of the scales of a tensor: none is left beyond it; the step that says so. */
typedef struct advise_end {
    int exponent;
    int64_t step;
} advise_end;

typedef struct advise_tensor {
    char *name; /* as in the file; first: nameindex_item */
    char kind[12];
    char *layer; /* whose operand or parameter it is */
    candidate_role role;
    int gradient; /* the loss scale multiplies it */
    uint64_t count;
    size_t rank;
    const mpsim_format *stored;
    uint64_t steps, broken; /* measured; left out, since gradients hold Inf or NaN */
    uint64_t nonfinite;     /* Inf and NaN, most of a step: of those that are no gradients */
    uint64_t roundoff;      /* elements that are nothing but rounding, most of a step; they are left out */
    uint64_t rounding;      /* steps in which it holds nothing else */
    int evidence;           /* how that is known: trace_roundoff_evidence */
    unsigned fits;          /* bit c: candidate c, in every step */
    advise_evidence of[CANDIDATES_MOST];
    uint64_t scales; /* of a gradient: those that keep fp16 within the bounds, in every step */
    advise_end low, high;
    size_t choice;             /* the candidate that is advised */
    unsigned char at_scale;    /* fp16 fits with the scale that is advised for all */
    unsigned char is_operand;  /* of a product that recipes quantise */
    unsigned char in_recipe;   /* and quantised by the recipe that is advised */
    unsigned char keeps_layer; /* its layer is kept in fp32, and it is why */
} advise_tensor;

/* A tensor in a step that was held back. */
typedef struct advise_seen {
    size_t tensor;
    int64_t step;
    unsigned fits;
    uint64_t scales;
} advise_seen;

typedef struct advise_bounds {
    double underflow, overflow; /* shares, at most */
    double sqnr;                /* decibels, at least */
    double lost;                /* share of updates, at most */
} advise_bounds;

typedef struct advise_layer {
    char *name; /* first: nameindex_item */
    layer_kind kind;
    uint64_t elements;      /* of its operands, in one step */
    unsigned operands;      /* set of roles that the trace has */
    unsigned fits[3];       /* by role: candidates that all its operands fit */
    int rank;               /* of its weight; -1: not known */
    unsigned char kept;     /* in fp32 */
    unsigned char excluded; /* not quantised by the recipe */
} advise_layer;

/* Why something is not known, or NULL: a text that lives as long as the program. */
typedef struct advise_stall {
    const char *unknown;
    int64_t step; /* the worst */
    uint64_t lost, updates;
    double moved, lr,
        enough;      /* share that they move in the mean; enough: an lr at which no more than the bound are lost; NaN */
    int upwards;     /* enough is above lr; else the least that will do */
    char worst[256]; /* the parameter that loses most, of its updates: */
    uint64_t worst_lost, worst_updates;
    const char *no_lr; /* why `enough` is not known, or NULL */
    int keep;          /* masters are needed */
} advise_stall;

/* How often the advice is kept in steps that were held back. */
typedef struct advise_kept {
    uint64_t judged, kept;
    size_t tensor; /* the first that breaks it, where kept < judged */
    int64_t step;
} advise_kept;

typedef struct advise {
    const char *verb; /* the command, for messages */
    candidate_list candidates;
    advise_bounds bounds;
    uint64_t hold_back;
    advise_tensor *tensors;
    size_t n_tensors;
    nameindex names;
    advise_layer *layers;
    size_t n_layers;
    nameindex layer_names;
    advise_seen *held;
    size_t n_held;
    uint64_t steps, held_steps, files; /* distinct; files without a step are one */
    int64_t first_step, last_step;
    uint64_t left_out;         /* tensors without numbers */
    int bad_scale;             /* gradients are scaled by what is no power of two: no window */
    int scaled;                /* recorded gradients were scaled */
    int unsaid;                /* a file with gradients does not say whether they are scaled */
    uint64_t gradient_numbers; /* of such files, that are not 0 */
    uint64_t fp16_numbers;     /* of these, those of gradients that have numbers of fp16 alone */
    const char *low_stored;    /* a format narrower than binary32 in which gradients were recorded; or NULL */
    char *kindless;            /* the first tensor, no counter, left out since only others have a kind; or NULL */
    int has_optimizer, has_weights, has_gradients, has_kinds, once, no_step;
    /* the advice */
    const char *compute; /* "bf16", "fp16", "binary32" */
    const advise_recipe *recipe;
    const char *no_recipe;            /* why there is none; NULL where there is one */
    int scale_low, scale_high, scale; /* exponents of the window; low > high: there is none */
    uint64_t gradients, scale_fits;   /* tensors, in all and of those that the window holds for */
    size_t needs_most, bears_least;   /* tensors at the ends of the window */
    uint64_t operands, operand_layers, fitting_layers,
        unjudged_layers; /* elements; layers with all operands in the trace */
    advise_stall stall;
    advise_kept kept_choice, kept_scale, kept_recipe;
} advise;

/* Bounds and wishes as they stand on the command line; NULL or 0: not given. */
typedef struct advise_words {
    const char *formats, *compute;
    const char *underflow, *overflow, *sqnr, *lost;
    uint64_t hold_back;
} advise_words;

/* The rows of these options for a command's table; `o` is an advise_words variable. */
#define ADVISE_BOUND_ROWS(o)                                                                                           \
    {0,                                                                                                                \
     "max-underflow",                                                                                                  \
     OPTION_STRING,                                                                                                    \
     &(o).underflow,                                                                                                   \
     "SHARE",                                                                                                          \
     "largest share of a tensor that may become zero (default 1%)"},                                                   \
        {0,                                                                                                            \
         "max-overflow",                                                                                               \
         OPTION_STRING,                                                                                                \
         &(o).overflow,                                                                                                \
         "SHARE",                                                                                                      \
         "largest share of a tensor that may become Inf or NaN (default 0)"},                                          \
        {0, "min-sqnr", OPTION_STRING, &(o).sqnr, "DB", "smallest signal to quantisation noise ratio (default 25dB)"}, \
    {                                                                                                                  \
        0, "max-lost", OPTION_STRING, &(o).lost, "SHARE",                                                              \
            "largest share of updates that bf16 weights may lose; above it masters are advised (default 10%)"          \
    }
#define ADVISE_COMPUTE_ROW(o)                                                    \
    {                                                                            \
        0, "compute", OPTION_CHOICE, &(o).compute, "bf16|fp16",                  \
            "format of the layers (default: bf16, unless more tensors fit fp16)" \
    }

/* run.c: advise_begin -- *a, which is all zeros, with what the words say; messages begin with `verb`. advise_run -- all the
 * work: measure, judge, hold back, replay. Both 0, or an exit code after a message; advise_clear in any case. */
int advise_begin(advise *a, const char *verb, const advise_words *words);
int advise_run(advise *a, input *in);
void advise_clear(advise *a);

/* measure.c: 0, or an exit code after a message. advise_must_ask -- whether gradients look as a scaled backward pass leaves them, and
 * no file says by what. */
int advise_measure(advise *a, input *in);
int advise_must_ask(const advise *a);
/* judge.c */
void advise_judge(advise *a);
/* stall.c: whether bf16 weights need masters. 0, or an exit code after a message. */
int advise_find_stall(advise *a, input *in);
/* hold.c */
void advise_hold(advise *a);
/* policyfile.c: what `replay` and `train` accept. */
void advise_write_policy(const advise *a, FILE *to);

/* reason.c: why a tensor is not in a format, from its numbers: "3.1 % underflow at step 20000, more than 0.1 %". "" where it
 * fits. */
const char *advise_reason(char *out, size_t size, const advise *a, const advise_tensor *t, size_t which);
const char *advise_step(char out[32], const char *before, int64_t step); /* " at step 7", or "" */
const char *advise_scale_reason(char *out, size_t size, const advise *a, const advise_tensor *t);
const char *advise_lr(char out[32], double lr);

/* What a sentence of the advice is about. */
typedef enum advise_topic {
    ADVISE_WEIGHTS,
    ADVISE_COMPUTE,
    ADVISE_RECIPE,
    ADVISE_SCALE,
    ADVISE_BYTES,
    ADVISE_TOPICS
} advise_topic;

/* sentences.c: advise_sentences -- tell the advice, one sentence or more a topic, in their order. advise_notes -- what a reader must
 * know about it: what was left out, what was lost before. advise_note_roundoff -- one more note: what is no gradient, the first by name. advise_accumulates -- whether tensors of a kind take up updates
 * from step to step: that a format holds them once does not say that it can keep them. advise_kept_in -- what a tensor is to be
 * kept in, wider than the rest, and why; NULL: nothing. */
void advise_sentences(const advise *a, void (*tell)(void *context, advise_topic topic, const char *text),
                      void *context);
void advise_notes(const advise *a, void (*tell)(void *context, const char *text), void *context);
void advise_note_roundoff(const advise *a, void (*tell)(void *context, const char *text), void *context);
int advise_accumulates(const char *kind);

/* The tensors of a kind: how many, their elements, how many fit each candidate; bytes as recorded, and in the narrowest. */
typedef struct advise_kind {
    const char *kind;
    uint64_t tensors, elements, fits[CANDIDATES_MOST];
    double recorded, narrowest;
} advise_kind;

/* advise_kind_of -- those of tensor i's kind: 1 if it is the first of them that was looked at, else 0. */
int advise_kind_of(advise_kind *k, const advise *a, size_t i);
const char *advise_kept_in(char *why, size_t size, const advise *a, const advise_tensor *t);

/* report.c: text. record.c: the other forms. */
void advise_print(const advise *a, int tensors, FILE *to);
void advise_write(const advise *a, const input *in, report_style style, FILE *to);
