/* job.h -- a training from its first step to its last, with everything that is done beside:
 * evaluation, trace, checkpoints, digests, progress, and what it adds up to. */
#pragma once

#include "../policy/policy.h"
#include "digests.h"
#include "meter.h"
#include "record.h"

/* A signal: what there is has been reported; its number is added, as shells count. */
enum { EXIT_INTERRUPTED = 128 };

/* What is trained. */
typedef struct train_job {
    const char *name;     /* of the policy, or of the file of a run */
    const policy *policy; /* NULL: the run comes from a file         */
    train_run run;
} train_job;

typedef struct train_watch {
    uint64_t every;                  /* steps between two evaluations; 0: only at the end            */
    train_opener device;             /* what computes; NULL: the CPU                            */
    const char *resume, *checkpoint; /* files, or NULL                              */
    uint64_t checkpoint_every;       /* 0: at the end only                          */
    train_recorder recorder;
    train_digests digests;
} train_watch;

/* A step, or the steps from one row of a table to the next. */
typedef struct train_row {
    train_step step;                /* the last one                                          */
    uint64_t steps;                 /* so many                                               */
    double loss, accuracy;          /* means over them                                       */
    uint64_t skipped;               /* up to here                                            */
    train_counts act, agrad, wgrad; /* sums over them, as are these:               */
    uint64_t updates, lost;
    int evaluated;
    double test_loss, test_accuracy; /* after the last step, if evaluated           */
} train_row;

/* A run added up. */
typedef struct train_total {
    uint64_t parameters;
    uint64_t first, done;            /* steps, from 1: the first one of this process, the last one done */
    uint64_t tail;                   /* steps in final_loss                                             */
    double initial_loss;             /* of step `first`                                                 */
    double final_loss;               /* mean of the last tenth of all steps                             */
    double test_loss, test_accuracy; /* of the last evaluation; NaN: none                    */
    uint64_t skipped, overflows, backoffs, growths, clipped;
    uint64_t first_skipped;     /* step, from 1; 0: none                                         */
    char cause[2 * TRAIN_NAME]; /* of the first skipped step; "": not known                  */
    uint64_t diverged;          /* step from which on no loss was finite; 0: none                */
    int infinite;               /* 1: that loss was infinite, not NaN                            */
    int stopped, interrupted;
    double final_scale;
    train_counts act, agrad, wgrad;
    uint64_t updates, lost;
    train_bytes bytes;
    uint64_t products;               /* multiply-adds of matrix products                              */
    double product_seconds, seconds; /* processor time in them, in all                       */
    double ms_per_step;              /* on a device, median; NaN: on the CPU                          */
    double tokens_per_second;        /* of a transformer; NaN                                       */
    uint64_t compared;               /* steps whose digests were compared                             */
    char difference[512];            /* the first difference, or ""                                   */
    float *losses, *times;           /* of every step from `first`; times in seconds                  */
    size_t n_losses;
} train_total;

/* train_job_run -- `each` is called after every step with that step alone, and `row` after every
 * step that is evaluated with the steps since the call before. Either may be NULL. 0, or an exit
 * code after a message; *t is to be cleared in any case. An interrupted run gives 0 and
 * t->interrupted. */
int train_job_run(const train_job *j, train_watch *w, void (*each)(const train_row *r, void *context),
                  void (*row)(const train_row *r, void *context), void *context, train_total *t);
void train_total_clear(train_total *t);

/* train_count_parameters -- weights, biases, scales of a run's layers, what is tied once. */
uint64_t train_count_parameters(const train_run *r);

/* train_catch_interrupt -- from here on SIGINT, SIGTERM and SIGHUP end a run after the current step,
 * and soon: a step and an evaluation that take half a second more are given up. A second signal ends
 * the program. train_interrupted -- the number of the signal that came, or 0. */
void train_catch_interrupt(void);
int train_interrupted(void);
