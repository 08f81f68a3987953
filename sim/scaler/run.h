/* run.h -- loss scalers over overflow patterns and over recorded gradients. */
#pragma once

#include "../input/input.h"
#include "pattern.h"
#include "../traininglog/track.h"
#include "wide.h"

#include <mpsim/mpsim.h>

/* What a step's gradients give at one scale. */
typedef struct measured {
    double scale;
    track_loss loss;
    int overflow, norm_overflow; /* an element; the norm of all, in binary32 */
} measured;

/* A recorded step: all files of one step number. */
typedef struct recorded_step {
    int64_t number;         /* -1: the files say nothing                          */
    size_t file, files;     /* the first of in->tree.paths; how many              */
    double amax, amax_wide; /* of the finite gradients, unscaled; of those in binary32 */
    double amax_narrow;     /* of the others                                      */
    double scale;           /* that they were recorded at; NaN: not said          */
    double limit;           /* smallest one at which Inf or NaN was recorded      */
    int found;              /* a file says that Inf or NaN was found              */
    int contradicts;        /* rounded, it overflows at a scale at which it was recorded clean */
    double fits;            /* largest power of two without overflow: see span    */
    track_loss counts;      /* elements, not_finite                               */
    char worst[128];        /* the tensor with Inf or NaN, else with amax         */
    measured *seen;         /* scales measured so far                             */
    size_t n_seen;
} recorded_step;

enum { TRACKS_MAX = 64 };

/* Gradients that were recorded scaled and hold Inf or NaN overflow at that scale and above it;
 * below it nothing is known of them, and they are taken as numbers that fit. Recorded unscaled, Inf
 * and NaN are so at every scale. Gradients that the run had in binary32 are rounded to that, but where a
 * format is given; and where rounding finds an overflow at the scale at which a step was recorded clean, or below it,
 * the record counts. */
typedef struct scalerrun {
    track *tracks; /* TRACKS_MAX of them; see spec.h */
    size_t count;
    /* traces */
    input *in;
    mpsim_format format, wide_format; /* the latter: binary32 */
    int given;                        /* the format is the user's, for all gradients */
    wide_gradients wide;
    uint64_t repeat;
    recorded_step *steps;
    size_t n_steps;
    uint64_t bad_steps;         /* with Inf or NaN that may be of the scale they were recorded at  */
    uint64_t tensors, left_out; /* of the first pass; left_out: not floating-point          */
    uint64_t in_wide;           /* of the tensors: rounded to binary32                      */
    uint64_t roundoff; /* elements that are nothing but rounding, in all steps; the first tensor that has some */
    char first_rounded[128];
    int unsaid;            /* files of gradients that do not say whether they were recorded scaled */
    int unscaled, inexact; /* files whose gradients were recorded scaled; not by 2^N    */
    int twice;             /* two files of one step have the same rank: several runs?   */
    int narrow;            /* tensors recorded in a format with the range of fp16       */
    /* after every step of the first track, or NULL */
    void (*told)(const track *t, int64_t number, const mpsim_scaler_result *r, void *context);
    void *context;
} scalerrun;

/* scaler_run_pattern -- every track over a pattern that was checked. */
void scaler_run_pattern(scalerrun *r, const char *text);

/* scaler_run_trace -- every track over the selected tensors of r->in. 0 or an exit code after a
 * message. Each step's files are read once for all tracks and scales; with r->repeat > 1 again
 * only for scales that were not seen before. */
int scaler_run_trace(scalerrun *r);
void scaler_run_clear(scalerrun *r); /* what scaler_run_trace made; not the tracks */

/* scaler_run_own -- *own: whether the metadata of the first file name a scaler (mpsim.scaler, _init, _growth, _backoff,
 * _interval), then in *spec as mpsim_scaler_parse takes it. 0, or an exit code after a message. */
int scaler_run_own(input *in, char *spec, size_t size, int *own);

/* scaler_run_recorded_scale -- what the gradients of a file were multiplied by, 1 if by nothing, and
 * the flags of r about it. 0, or -1 after a trace error. */
int scaler_run_recorded_scale(scalerrun *r, const trace *t, double *scale, trace_error *error);

/* scaler_run_step -- the recorded step of a number, or NULL. */
const recorded_step *scaler_run_step(const scalerrun *r, int64_t number);
