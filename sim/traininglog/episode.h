/* episode.h -- the overflows of a log in groups: those that follow each other, and the steps
 * between; their place in the run. */
#pragma once

#include "traininglog.h"

/* The place of a line in the run. */
typedef struct log_place {
    int64_t step, of;   /* -1: not known                         */
    int per_epoch;      /* .step begins again with every epoch   */
    double epoch;       /* -1                                    */
    uint64_t line, seq; /* of the log that says so             */
} log_place;

/* Overflows without a clean step between, as far as is known. */
typedef struct episode {
    uint64_t line, last_line, seq, last_seq;
    uint64_t n;
    double before, after; /* the scale; NaN: unknown                                     */
    uint64_t clean;       /* clean steps before it, since the last; 0: none or not known */
    int grown;            /* the scale had grown since the last, or jumped up            */
    int floored;          /* of them at the floor                                        */
    int reset;            /* a jump or a restart comes before it                          */
    int inferred;         /* no line reports them: the scale has fallen                    */
    log_place first, last;
} episode;

typedef struct log_episodes {
    episode *at;
    size_t count;
    uint64_t tail_steps;   /* clean steps after the last overflow                        */
    int tail_unsure;       /* they are of an interval in which that came, at its end perhaps */
    uint64_t tail_lines;   /* lines after it that tell a finite loss or a scale          */
    uint64_t tail_line;    /* the last of these                                          */
    uint64_t tail_skipped; /* overflows after it which only a total reports           */
    int64_t whole;         /* what the progress bar of the run counts to; -1: none       */
} log_episodes;

void traininglog_episodes_find(log_episodes *e, const training_log *l);
void traininglog_episodes_clear(log_episodes *e);

/* traininglog_place_at -- where the run stood when the line (by its .seq) was written, by it, those before
 * it, or the next one. */
log_place traininglog_place_at(const training_log *l, int64_t whole, uint64_t seq);
