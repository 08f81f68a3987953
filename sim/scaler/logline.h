/* logline.h -- lines about the loss scale in the logs of training runs. All input is untrusted.
 *
 * A line is recognised wherever it stands, with any prefix (time, rank, logger) and with the
 * colours of a terminal. Recognised are
 *
 *   Apex       Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0
 *   DeepSpeed  [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 2048, reducing to
 *              1024; ... but hysteresis is 2. Reducing hysteresis to 1; Grad overflow on iteration
 *              5; Reducing (Increasing) dynamic loss scale from A to B; ... already at minimum
 *   Megatron   iteration 120/ 1000 | ... | loss scale: 4294967296.0 | ... | number of skipped
 *              iterations: 1 | number of nan iterations: 0 |
 *   fairseq    NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: 64.0;
 *              Minimum loss scale reached (0.0001)
 *   others     a loss scale by name (loss_scale: 65536.0, grad_scale=65536), or a scale beside a
 *              step, a growth tracker or the word skipped: step 12: scale 65536.0, skipped n
 *
 * Digits may be in groups: 65,536. A comma that could as well be a decimal one (0,5) makes the
 * number unusable. */
#ifndef MPSIM_SIM_SCALER_LOGLINE_H
#define MPSIM_SIM_SCALER_LOGLINE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum log_dialect {
    LOG_APEX,
    LOG_DEEPSPEED,
    LOG_MEGATRON,
    LOG_FAIRSEQ,
    LOG_VALUES, /* names and values */
    LOG_DIALECTS
} log_dialect;

/* What a line says: a set of these. */
enum {
    LOG_OVERFLOW = 1,   /* a step overflowed                                                   */
    LOG_TOLERATED = 2,  /* and the scale stays (hysteresis)                                    */
    LOG_GROWTH = 4,     /* the scale grows                                                     */
    LOG_STOP = 8,       /* the framework stops with an error                                   */
    LOG_STATUS = 16,    /* the scale after a step, or before it: the line does not say which    */
    LOG_SKIPS = 32,     /* .skipped steps were skipped since the last such line; may be 0      */
    LOG_DETAIL = 64     /* more about the overflow that the line before told                   */
};

/* The training loss ("loss", "lm loss", "train_loss", ...). */
enum { LOSS_UNSAID, LOSS_FINITE, LOSS_NAN, LOSS_INF };

typedef struct log_line {
    log_dialect dialect;
    unsigned what;
    int64_t step;    /* -1: not said                                         */
    int64_t rank;    /* -1                                                   */
    int64_t scaler;  /* Apex's number of the loss scaler; 0                  */
    double before;   /* the scale before and after the change; NaN: not said */
    double after;
    uint64_t skipped;
    int rule;        /* which fixed phrase it was; -1: none                     */
    int loss;        /* LOSS_*: of the training loss, if the line tells it   */
    int bad;         /* a number is missing, or is no scale (nan, -1, 1e999) */
} log_line;

/* log_line_parse -- 1 and *l if the line is recognised. `text` ends with 0. */
int log_line_parse(log_line *l, const char *text);

const char *log_dialect_name(log_dialect d);

/* log_reader -- bytes to lines: ends of lines (LF, CR, CRLF) and colours go, NUL bytes too, so that
 * UTF-16 becomes readable; what is beyond LOG_WIDTH bytes of a line is left out. */
enum { LOG_WIDTH = 8192 };

typedef struct log_reader {
    char line[LOG_WIDTH + 1];
    size_t n;
    int escape;          /* inside a sequence that begins with ESC         */
    uint64_t lines, cut; /* lines that are not empty; of them, cut short   */
    uint64_t ends;       /* LFs: the line has the number ends + 1          */
    int is_cut;
} log_reader;

/* log_reader_bytes -- call visit for every line that is complete. 0, or what visit returned. */
int log_reader_bytes(log_reader *r, const char *bytes, size_t n,
                     int (*visit)(const char *line, void *context), void *context);
int log_reader_end(log_reader *r, int (*visit)(const char *line, void *context), void *context);

#endif
