/* report.h -- what mpsim diff prints: text, JSON, NDJSON, CSV. */
#pragma once

#include "diff.h"
#include "sequence.h"

typedef struct diffreport diffreport;

/* The request, for the head of a report. */
typedef struct diffreport_head {
    const char *paths[2];
    const side *sides;     /* both */
    const char *tolerance; /* as typed, or NULL */
    option_list match, kinds;
} diffreport_head;

/* diff_report_new -- `all`: text lists every tensor that differs. */
diffreport *diff_report_new(FILE *to, report_style style, const diffreport_head *head, const tolerance *within,
                            int all);
void diff_report_free(diffreport *r); /* accepts NULL */

/* diff_report_told -- a sequence_told, whose context is the report. */
sequence_told diff_report_told;

/* diff_report_end -- what came of it. `failed`: files or tensors that could not be read. */
void diff_report_end(diffreport *r, int failed);

/* Of what was told: tensors that were compared; that differ, missing ones and steps included. */
uint64_t diff_report_compared(const diffreport *r);
/* Those that could not be compared; the first of them, and why. */
uint64_t diff_report_unseen(const diffreport *r);
const char *diff_report_first_unseen(const diffreport *r);
uint64_t diff_report_differing(const diffreport *r);
