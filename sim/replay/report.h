/* report.h -- what replay writes: text, JSON, CSV (schema mpsim.replay/1). */
#pragma once

#include "../report/report.h"
#include "total.h"

typedef struct replay_report {
    FILE *file;
    report_style style;
    int tensors;     /* every tensor, not the worst only          */
    int amp;         /* one [AMP] line per step instead of a table */
    int several;     /* policies                                   */
    int compare;     /* several policies: their table only        */
    int with_master; /* the steps' table has a column for it    */
    table *steps;    /* text: the table under construction        */
    int policies;    /* JSON: entries so far                      */
    int entries;
    const unread_list *unread; /* JSON: of the operands */
} replay_report;

void replay_report_begin(replay_report *r, json_t *config);
void replay_report_policy(replay_report *r, const policy *p);
void replay_report_step(replay_report *r, const policy *p, const replay_step *s);
void replay_report_total(replay_report *r, const replay_total *t);
/* replay_report_compare -- text and CSV: all policies side by side. */
void replay_report_compare(replay_report *r, const policy *policies, const replay_total *totals, size_t n);
void replay_report_abandon(replay_report *r);
int replay_report_end(replay_report *r); /* 0, or -1 if writing failed */
