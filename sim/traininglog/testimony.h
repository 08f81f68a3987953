/* testimony.h -- a judgement on a log in words: the lines that it rests on, what is missing. */
#pragma once

#include "facts.h"

enum { EVIDENCE_MAX = 10, EVIDENCE_TEXT = 120 };

typedef enum confidence { NOT_ENOUGH, LIKELY, CERTAIN } confidence;

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
    char missing[256]; /* "" if nothing is */
    const char *advice;
    int by_health; /* by what the log tells besides a scale */
} log_judgement;

/* testimony_miss -- one thing more that the log lacks. */
void testimony_miss(log_judgement *j, const char *what);
/* testimony_find -- evidence and text of j->verdict; what is missing, if it is not enough. */
void testimony_find(log_judgement *j, const facts *f);
