/* judge.h -- what a training log, or a simulated scaler, supports: a verdict, the lines that it rests on, how sure it is, what is
 * missing, what to do. */
#pragma once

#include "verdict.h"

enum { EVIDENCE_MAX = 10, EVIDENCE_TEXT = 120 };

typedef struct log_evidence {
    uint64_t line, last_line;
    char says[EVIDENCE_TEXT];
} log_evidence;

typedef struct log_judgement {
    verdict verdict;
    confidence sure;
    char text[1024];
    log_evidence evidence[EVIDENCE_MAX];
    size_t n_evidence;
    char missing[512]; /* "" if nothing is */
    const char *advice;
} log_judgement;

void traininglog_judge(log_judgement *j, const training_log *l);

/* traininglog_track_verdict -- what a simulated scaler's steps look like; `text` gets a sentence or two for people. */
verdict traininglog_track_verdict(const track *t, char *text, size_t size);

extern const char *const traininglog_confidence_names[]; /* "not enough", ... of each confidence, up to NULL */
/* traininglog_class -- what the verdict comes down to: "fine-startup", "warn-diverging", "stopped", ... */
const char *traininglog_class(verdict v);
