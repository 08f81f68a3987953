/* report.h -- what replay writes (schema mpsim.replay/1); its records are fields.h's. */
#pragma once

#include "fields.h"

typedef struct replay_report {
    FILE *file;
    report_style style;
    int tensors; /* every tensor, not the worst only          */
    int amp;     /* one [AMP] line per step instead of a table */
    int several; /* policies                                   */
    int compare; /* several policies, text or CSV: their table only */
    replay_document document;
    const policy *policy; /* the one at hand */
    unsigned shows;
    replay_run_row run;
    table *steps;      /* text: the table under construction */
    record_writer out; /* of JSON and NDJSON                 */
} replay_report;

void replay_report_begin(replay_report *r);
void replay_report_policy(replay_report *r, const policy *p);
void replay_report_step(replay_report *r, const replay_step *s);
void replay_report_total(replay_report *r, const replay_total *t);
/* replay_report_compare -- text and CSV: all policies side by side. */
void replay_report_compare(replay_report *r, const policy *policies, const replay_total *totals, size_t n);
void replay_report_abandon(replay_report *r);
int replay_report_end(replay_report *r); /* 0, or -1 if writing failed */
