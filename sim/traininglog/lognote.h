/* lognote.h -- what the lines of a log say besides the loss scale: the loss, the norm of the
 * gradients, the place in the run, that it was resumed or has ended. */
#pragma once

#include "words.h"

#include <stddef.h>

enum {
    NOTE_RESUMED = 1,    /* the run goes on from a checkpoint                    */
    NOTE_FRESH = 2,      /* there is none: the run begins                        */
    NOTE_ENDED = 4,      /* an error ends the run                                */
    NOTE_LOADED = 16,    /* a checkpoint was loaded: the run's, or a first model */
    NOTE_LOST = 8,       /* a message that the loss, or a tensor, is Inf or NaN  */
    NOTE_LOST_NORM = 32, /* a message that the norm of the gradients is        */
    NOTE_LOST_MEAN = 64, /* a running mean is: "2.03 (inf)"                    */
    NOTE_BAR = 512,      /* the loss is the mean of an epoch in a progress bar           */
    NOTE_SKIPPED = 256,  /* a step is skipped, and its norm is finite: a threshold of the norm */
    NOTE_TENSOR = 128    /* such a message of one tensor: several are of one step */
};

typedef struct log_note {
    uint64_t line, seq; /* its number; among lines that are not empty */
    unsigned marks;
    value_kind loss, norm;
    int aside; /* the loss is that of an evaluation, or of a whole epoch */
    double loss_value, norm_value;
    value_kind validation; /* the loss on other data than the training's           */
    double validation_value;
    int64_t step, of; /* the place in the run, of how many; -1: not known      */
    int64_t about;    /* the step that the line is about: its own, or the last step of a line; -1 */
    int64_t batch;    /* of "[2, 100] loss: 1.9", the batch of an epoch; -1       */
    int worded;       /* by a word for steps, not only by a bar               */
    int per_epoch;    /* .step begins again with every epoch                  */
    double epoch;     /* -1                                                   */
    int64_t skipped;  /* steps skipped since the beginning of the run; -1     */
    int timed;        /* a line of Megatron: it has an "elapsed time per iteration" */
    double starts;    /* the first scale, of the run's settings; NaN: unsaid  */
} log_note;

/* traininglog_note_parse -- 1 and *n if the line says any of it; n->line is left to the caller. `settings`: the line before numbers that are no
 * measurements were masked. */
int traininglog_note_parse(log_note *n, const char *text, const char *settings);

/* Notes in the order of their lines, NOTES_MAX of them at most: of more every second is dropped, as
 * often as it takes, but for those of what is not finite, of which MANY are kept. */
enum { NOTES_MAX = 1 << 14, NOTES_MANY = NOTES_MAX / 4 };

typedef struct log_notes {
    log_note *at;
    size_t count;
    uint64_t seen, stride; /* notes so far; one of `stride` is kept */
    size_t rare;           /* that are kept, whatever their number is */
} log_notes;

void traininglog_notes_add(log_notes *all, const log_note *n);
void traininglog_notes_clear(log_notes *all);
