/* scalerreplay.h -- a training log as a recorded track, its jumps, and whose rules reproduce it. */
#ifndef MPSIM_SIM_SCALER_TRAININGLOG_H
#define MPSIM_SIM_SCALER_TRAININGLOG_H

#include "scalerlog.h"
#include "track.h"

/* Events of recorded spans besides MPSIM_SCALER_*. */
enum {
    RECORDED_JUMP = 1 << 16,    /* the scale differs, and nothing in the log explains it */
    RECORDED_RESTART = 1 << 17, /* the step numbers begin again: resumed from a checkpoint */
    RECORDED_MIXED = 1 << 18,   /* some of the steps were skipped; which is not known */
    RECORDED_INFERRED = 1 << 19 /* not logged: seen by the scale */
};

/* A line, or several that say the same. */
typedef struct log_entry {
    uint64_t line;
    log_line said;
    int64_t to;        /* the last step of lines that say the same                      */
    uint64_t n;        /* lines that say the same                                       */
    unsigned rules;    /* of the phrases that told this event                           */
} log_entry;

typedef struct log_jump {
    uint64_t line;
    int64_t step;
    double from, to;
    int restart;
} log_jump;

typedef struct training_log {
    log_entry *entries;
    size_t count, room;
    log_reader reader;
    uint64_t recognised[LOG_DIALECTS], total; /* lines                                  */
    uint64_t other_ranks, other_scalers, bad, repeats;
    int64_t rank, scaler;
    uint64_t copies;       /* every event was logged so many times, by as many ranks    */
    uint64_t lost, lost_lines; /* the line of the first loss that is NaN or infinite; how many   */
    int lost_since, lost_as;   /* 1: no line since then tells another; LOSS_NAN or LOSS_INF      */
    int before;            /* the lines tell the scale before a step, not after it      */
    int failed;            /* 1: out of memory; 2: too many entries                     */
    log_jump *jumps;
    size_t n_jumps, room_jumps;
    uint64_t restarts, mixed;
    track recorded;
} training_log;

/* training_log_read -- 0; or an exit code after a message: no such file (4), no line that is
 * recognised (3). `path` "-": standard input. */
int training_log_read(training_log *l, const char *path);
void training_log_clear(training_log *l);

/* How well a scaler reproduces a log. */
typedef struct replay_match {
    char label[96];
    uint64_t compared, agreed; /* changes of the scale and overflows            */
    int64_t step;              /* of the first difference; -1: its step is unknown */
    uint64_t at;               /* number of the overflow or change, from 1; 0: no difference */
    double recorded, computed; /* the scales there                              */
} replay_match;

/* replay_log -- run a scaler over the recorded overflows, from the recorded first scale. With
 * windows != 0 the numbers of clean steps before growth that the log shows are tried for `window`
 * where the scaler's own does not fit. */
void replay_log(replay_match *m, const char *label, const mpsim_scaler_config *c, const track *t,
                int windows);

#endif
