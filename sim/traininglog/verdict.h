/* verdict.h -- what the facts are taken for: rows of a table, the first that fits. The same rows judge logs and simulated
 * scalers.
 *
 * A row has the facts that it needs, those that forbid it and those that make it certain. A fact that forbids one
 * reassuring verdict forbids all of them (FINE). From four lines on, the number of lines changes how sure a verdict
 * is, not which one it is. Sentences (sentences.c) and lines (evidence.c) are made from the facts and decide
 * nothing. So `log`, `scaler`, `report` and `watch` agree. */
#pragma once

#include "facts.h"

typedef enum verdict {
    VERDICT_NONE,       /* no step                                                              */
    VERDICT_CLEAN,      /* no overflow                                                          */
    VERDICT_STARTUP,    /* overflows only at the beginning                                      */
    VERDICT_SEARCHING,  /* overflows at the beginning, the last step among them: it has not ended */
    VERDICT_STEADY,     /* after the start, an overflow only where the scale has grown          */
    VERDICT_SPIKES,     /* overflows that no growth explains; jumps of loss or norm             */
    VERDICT_NOT_FINITE, /* steps whose gradients hold Inf or NaN as recorded                    */
    VERDICT_RUNAWAY,    /* the last steps overflow at every scale                               */
    VERDICT_FLOOR,      /* the framework stopped with its error                                 */
    VERDICT_TAKEN,      /* a scaler that does not skip: steps with Inf or NaN were taken        */
    VERDICT_STUCK,      /* a scale far from what fits, which its settings keep there            */
    /* of logs only */
    VERDICT_DIVERGING, /* the loss rises, or the scale collapses late                      */
    VERDICT_RESUMED,   /* the scaler's state was lost, or the scale jumps without a reason  */
    VERDICT_UNCLEAR,   /* the log does not hold what a verdict needs                        */
    VERDICT_LOST,      /* the log has no scale, and a number is Inf or NaN           */
    VERDICT_WELL,      /* the log has no scale, and nothing else is wrong                       */
    VERDICT_UNLEARNED, /* the loss does not move, or the gradients are 0                    */
    VERDICT_MISMATCH,  /* reinforcement learning: trainer and sampler do not agree          */
    VERDICT_RANKS      /* ranks have different scales                                       */
} verdict;

typedef enum confidence { NOT_ENOUGH, LIKELY, CERTAIN } confidence;

typedef struct verdict_row {
    verdict verdict;
    uint64_t needs, forbids; /* facts that all have to be there; none of these may be */
    uint64_t certain;        /* facts that make it certain */
    void (*says)(const facts *f, char *text, size_t size);
    const char *advice;
    int by_numbers;   /* not by the scale, which may look better */
    const char *text; /* where `says` is NULL: no number is in it */
} verdict_row;

/* traininglog_verdict_find -- the first row that fits; the last one always does. */
const verdict_row *traininglog_verdict_find(const facts *f);
void traininglog_verdict_says(const verdict_row *r, const facts *f, char *text, size_t size);
confidence traininglog_verdict_confidence(const verdict_row *r, const facts *f);

extern const char *const traininglog_verdict_names[]; /* all, up to NULL */
const char *traininglog_verdict_name(verdict v);      /* "start-up search" */
const char *traininglog_verdict_class(verdict v);     /* "fine-startup" */

/* traininglog_verdict_doubt -- what forbids to reassure, in words; NULL: nothing does. */
const char *traininglog_verdict_doubt(const facts *f);
