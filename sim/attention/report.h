/* report.h -- what mpsim attention prints. */
#pragma once

#include "record.h"

typedef struct attention_report {
    FILE *to;
    report_style style;
    const attention_heads *h;
    const mpsim_attention *a; /* models aside */
    const char *values;       /* generated: what; NULL: from files */
    uint64_t seed;
    const char *scores;          /* the model of scores; NULL: that of each row */
    const char *mask;            /* where it is from; NULL: there is none */
    int absolute;                /* --absolute */
    double above;                /* --above    */
    int repeated;                /* in some model a largest score did */
    dot_distance given, rounded; /* the largest errors of all that are no small ones */
    attention_config config;
    record_writer out;
    table *signs;
} attention_report;

void attention_report_begin(attention_report *r);
void attention_report_add(attention_report *r, const mpsim_model *m, const attention_result *x);
void attention_report_end(attention_report *r, const attention_result *last);
