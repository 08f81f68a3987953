/* track.h -- what a loss scaler did over the steps of a run, condensed: runs of steps at one
 * scale, totals. The scaler is a simulated one, or that of a training log. */
#pragma once

#include <mpsim/scaler.h>

/* Gradient elements at the scale in force. */
typedef struct track_loss {
    uint64_t elements;   /* everything included                          */
    uint64_t lost;       /* not 0, and 0 once scaled and rounded         */
    uint64_t overflowed; /* finite as recorded, and not so once rounded  */
    uint64_t not_finite; /* Inf or NaN as recorded: no scale helps       */
} track_loss;

/* Steps that follow each other with the same events at the same scale. */
typedef struct span {
    uint64_t first, steps;    /* index of the first, from 0; how many           */
    int64_t from, to;         /* the steps' own numbers; -1: they have none     */
    double scale, next;       /* in force; after the last of them; NaN: unknown */
    unsigned events;          /* of each: MPSIM_SCALER_*, 0: clean              */
    uint64_t line, last_line; /* of the log that has them; 0: none              */
    uint64_t seq, last_seq;   /* the same among the lines that are not empty     */
    track_loss loss;
    double fits; /* largest power of two that all would have taken; infinity: any;
                              0: none; NaN: unknown                                     */
} span;

typedef struct track {
    char label[96];      /* "torch:init=2^10"                                      */
    mpsim_scaler scaler; /* of a recorded track only .config and .scale are used   */
    int recorded;        /* 1: what a log says                                     */
    int unknown_steps;   /* recorded: how many clean steps there were is not known */
    int by_step;         /* 1: a span for every step                               */
    uint64_t line, seq;  /* recorded: of the log, for what is recorded next        */
    span *spans;
    size_t count;
    int truncated; /* spans beyond the cap are only in the totals            */
    /* totals */
    uint64_t steps, overflows, skipped, taken, growths, backoffs, tolerated, refused, floored;
    uint64_t after_growth; /* the first overflow after a growth                    */
    uint64_t spikes;       /* neither that nor of the start-up search              */
    uint64_t run;          /* overflows since the last clean step                  */
    uint64_t run_floored;  /* of them, at the floor                                */
    double run_fits;       /* what all of them would have fitted; 0: not known     */
    double all_fit;        /* the same of all overflows; 0: of one it is not known, or none fits */
    double clean_fits;     /* what the clean steps since the last overflow fit; infinity: any, or not known */
    double begin;          /* the first scale                                      */
    uint64_t not_finite_steps;
    int64_t first_not_finite, stop; /* steps; -1: none. stop: where the error came */
    uint64_t grown, owed;           /* 1: since the last overflow; overflows that growth explains    */
    int clean_seen;
    double least, most, last;  /* scales                                      */
    uint64_t compared, agreed; /* steps recorded with a scale; with this one  */
    track_loss loss;
} track;

/* traininglog_track_init -- 0, or -1 if the configuration is invalid. */
int traininglog_track_init(track *t, const char *label, const mpsim_scaler_config *c);
void traininglog_track_clear(track *t);

/* traininglog_track_step -- one step of the simulated scaler. `number` is the step's own (-1: none); loss may
 * be NULL, fits NaN. A scaler that has stopped sees no further steps. Returns what it said. */
mpsim_scaler_result traininglog_track_step(track *t, int64_t number, int overflow, const track_loss *loss, double fits);

/* traininglog_track_record -- n steps as recorded, all alike; they are the step numbers from, ..., to. */
void traininglog_track_record(track *t, int64_t from, int64_t to, uint64_t n, unsigned events, double scale,
                              double next);

/* traininglog_events_text -- "overflow: skipped, scale halved" and the like. */
const char *traininglog_events_text(char *out, size_t size, const track *t, const span *s);
