/* report.h -- what mpsim diff prints: text, JSON, NDJSON, CSV. */
#pragma once

#include "diff.h"
#include "sequence.h"

typedef struct diffreport diffreport;

/* What was asked, for the head of a report. */
typedef struct diffreport_head {
    const char *paths[2];
    const side *sides;     /* both */
    const char *tolerance; /* as typed, or NULL */
    option_list match, kinds;
} diffreport_head;

/* diffreport_new -- `all`: text lists every tensor that differs. */
diffreport *diffreport_new(FILE *to, report_style style, const diffreport_head *head, const tolerance *within, int all);
void diffreport_free(diffreport *r); /* accepts NULL */

/* diffreport_told -- a sequence_told, whose context is the report. */
sequence_told diffreport_told;

/* diffreport_end -- what came of it. `failed`: files or tensors that could not be read. */
void diffreport_end(diffreport *r, int failed);

/* Of what was told: tensors that were compared; that differ, missing ones and steps included. */
uint64_t diffreport_compared(const diffreport *r);
/* Those that could not be compared; the first of them, and why. */
uint64_t diffreport_unseen(const diffreport *r);
const char *diffreport_first_unseen(const diffreport *r);
uint64_t diffreport_differing(const diffreport *r);
