/* logline.h -- lines about the loss scale in the logs of training runs. All input is untrusted.
 *
 * A line is recognised anywhere, with any prefix (time, rank, logger, progress bar) and
 * with the colours of a terminal. Which phrases are known, and whose they are, is the table of
 * rules in logline.c. Besides
 *
 *   Megatron   iteration 120/ 1000 | ... | loss scale: 4294967296.0 | ... | number of skipped
 *              iterations: 1 | number of nan iterations: 0 |
 *   others     a loss scale by name (loss_scale: 65536.0, grad_scale=65536, current scale: 8), or
 *              a scale beside a step, a growth tracker, a loss, a progress bar or the word skipped:
 *              step 12: scale 65536.0, skipped n
 *
 * Digits may be in groups: 65,536. A comma that could as well be a decimal one (0,5) makes the
 * number unusable. Words that a terminal has wrapped are joined. */
#pragma once

#include "reader.h"
#include "words.h"

typedef enum log_dialect {
    LOG_APEX,
    LOG_DEEPSPEED,
    LOG_MEGATRON,
    LOG_FAIRSEQ,
    LOG_VALUES, /* names and values */
    LOG_OTHERS, /* phrases of other frameworks and of scripts */
    LOG_OWN,    /* the user's pattern */
    LOG_DIALECTS
} log_dialect;

/* What a line says: a set of these. */
enum {
    LOG_OVERFLOW = 1,  /* a step overflowed                                                   */
    LOG_TOLERATED = 2, /* and the scale stays (hysteresis)                                    */
    LOG_GROWTH = 4,    /* the scale grows                                                     */
    LOG_STOP = 8,      /* the framework stops with an error                                   */
    LOG_STATUS = 16,   /* the scale after a step, or before it: the line does not say which    */
    LOG_SKIPS = 32,    /* .skipped steps were skipped since the last such line; may be 0      */
    LOG_DETAIL = 64,   /* more about the overflow of the line before                   */
    LOG_TAKEN = 128    /* and the step was taken all the same                                 */
};

typedef struct log_line {
    log_dialect dialect;
    unsigned what;
    int64_t step;   /* -1: not said                                         */
    int64_t rank;   /* -1                                                   */
    int64_t scaler; /* Apex's number of the loss scaler; 0                  */
    double before;  /* the scale before and after the change; NaN: not said */
    double after;
    uint64_t skipped;
    int64_t tracker; /* clean steps since the scale last changed, as torch's GradScaler counts them; -1 */
    int rule;        /* which fixed phrase it was; -1: none                     */
    int bad;         /* a number is missing, or is no scale (nan, -1, 1e999)    */
    value_kind loss; /* of the training loss: left to the caller                */
    int average;     /* a mean of several steps' scales: no scale               */
    int rounded;     /* printed to tens or more: 9.782e+04                      */
    int taken_only;  /* .step counts the steps that were taken (num_updates)    */
} log_line;

/* traininglog_line_parse -- 1 and *l if the line is recognised. `text` ends with 0. */
int traininglog_line_parse(log_line *l, const char *text);

/* traininglog_line_length -- how much of a line is about one event: lines that lost their ends hold
 * several. */
size_t traininglog_line_length(const char *text);

/* traininglog_line_join -- whether b goes on where a was cut, in a word or a number: 1, and `a`, of room
 * LOG_WIDTH + 1, is both. */
int traininglog_line_join(char *a, const char *b);

/* traininglog_line_rank -- the rank that printed a line; -1: it does not say. */
int64_t traininglog_line_rank(const char *text);

const char *traininglog_dialect_name(log_dialect d);

/* traininglog_dialect_grown -- whether the scale is above all that the framework starts at. */
int traininglog_dialect_grown(log_dialect d, double scale);

/* traininglog_dialect_starts -- whether the framework starts at that scale. */
int traininglog_dialect_starts(log_dialect d, double scale);
