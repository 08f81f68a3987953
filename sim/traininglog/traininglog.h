/* traininglog.h -- a training log as a recorded track, and its jumps. */
#pragma once

#include "logline.h"
#include "lognote.h"
#include "logpattern.h"
#include "metric.h"
#include "track.h"

/* Events of recorded spans besides MPSIM_SCALER_*. */
enum {
    RECORDED_JUMP = 1 << 16,    /* the scale differs, and nothing in the log explains it */
    RECORDED_RESTART = 1 << 17, /* the step numbers begin again: resumed from a checkpoint */
    RECORDED_MIXED = 1 << 18,   /* some of the steps were skipped; which is not known */
    RECORDED_GAP = 1 << 20,     /* with JUMP: between lines with overflows, down: lines are
                                   missing */
    RECORDED_INFERRED = 1 << 19 /* not logged: seen by the scale */
};

/* A line, or several that say the same. */
typedef struct log_entry {
    uint64_t line, last_line, seq, last_seq;
    log_line said;
    int64_t to;      /* the last step of lines that say the same                      */
    int64_t tracker; /* of the last of them                                          */
    uint64_t n;      /* lines that say the same                                       */
    unsigned rules;  /* of the phrases that reported this event                           */
} log_entry;

typedef struct log_jump {
    uint64_t line;
    int64_t step;
    double from, to;
    int restart;
    int gap; /* between lines with overflows, without steps: lines are missing, or
                          the scale has grown */
} log_jump;

/* The place in the run, by lines without a scale. */
typedef struct log_line_place {
    int kind; /* 0: unknown; 1: by a bar; 2: by words                    */
    int64_t step, of;
    int fresh, back;    /* no scale has it yet; it has begun again                 */
    int64_t base, last; /* what it is counted from; the step of the last scale     */
} log_line_place;

/* The numbers of a rank at a step, to compare others with. */
typedef struct log_rank_line {
    uint64_t line;
    int64_t step, rank;
    double scale, loss; /* NaN: not known */
} log_rank_line;

enum { RANK_LINES = 64 };

/* Scales, or losses, that differ between ranks at the same step: the first place. */
typedef struct log_apart {
    uint64_t lines, line; /* how many; the first of them; 0: the ranks agree */
    int64_t step, rank, other;
    double scale, other_scale; /* of the rank that came first, of the one in that line */
} log_apart;

typedef struct training_log {
    log_entry *entries;
    size_t count;
    log_reader reader;
    const log_pattern *own;                   /* the user's, or NULL                            */
    uint64_t line, seq;                       /* its number; its number without empty ones, and with those that
                                  end in a carriage return                       */
    uint64_t recognised[LOG_DIALECTS], total; /* lines                                  */
    uint64_t other_ranks, other_scalers, bad, repeats, averages;
    log_apart apart, losses_apart;        /* of scales; of losses, where each rank has batches of its own */
    log_rank_line rank_lines[RANK_LINES]; /* the last of those with a step and a rank */
    uint64_t n_rank_lines;
    int64_t skipped;  /* steps in all, by the last line with a scale that has them; -1 */
    uint64_t told;    /* .seq of the last line with a note */
    uint64_t doubled; /* lines that say again what one before says of the same step */
    char unread[256]; /* names of numbers that many lines have and nothing reads, ", " between; so many */
    size_t n_unread;
    uint64_t other_lost;       /* lines of other ranks with a loss that is not finite       */
    int unterminated;          /* the line has no end: it may be cut in a number            */
    int last_bad;              /* the last line about a scale could not be read             */
    uint64_t unread_line;      /* of an overflow whose scale could not be read; 0           */
    int64_t rank, scaler;      /* whose lines count */
    int64_t event_rank;        /* whose messages about overflows and growth do */
    uint64_t copies;           /* every event was logged so many times, by as many ranks    */
    uint64_t lost, lost_lines; /* the first line of the last losses in a row that are NaN or infinite; how many
                                  there are in all, those before among them */
    uint64_t lost_norms, lost_validations; /* lines in which these are not finite               */
    int lost_since;                        /* 1: no line since then has another */
    log_notes notes;                       /* loss, norm, the place in the run                          */
    metric_values metrics;                 /* of reinforcement learning                                 */
    int64_t about;                         /* the last step of a line; -1                        */
    double epoch;                          /* the last one; -1                                          */
    int64_t last_step, step_base;          /* the last step; what steps of an epoch are counted from */
    log_line_place place;
    int has_loss, has_value; /* lines of Megatron had a loss; any had a loss or a norm   */
    double base;             /* the first scale; 0: none                                 */
    int numbered;            /* lines with a scale carry step numbers                     */
    int before;              /* the lines have the scale before a step, not after it      */
    int full;                /* there are more entries than are kept                      */
    log_jump *jumps;
    size_t n_jumps;
    uint64_t restarts, mixed;
    track recorded;
} training_log;

/* traininglog_training_log_read -- 0; or an exit code after a message: no such file (4), no line that is
 * recognised (3). `path` "-": standard input. `own`: lines of the user's own, or NULL. */
int traininglog_training_log_read(training_log *l, const char *path, const log_pattern *own);
void traininglog_training_log_clear(training_log *l);
