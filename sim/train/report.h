/* report.h -- what train writes (schema mpsim.train/1); its records are fields.h's. */
#pragma once

#include "fields.h"

typedef struct train_report {
    FILE *file;
    report_style style;
    int compare;          /* text and CSV: the table of all runs only                  */
    int decoder;          /* transformers: their columns                               */
    int as_published;     /* of compare: each policy clips as it says                  */
    const char *resumed;  /* file that the run was resumed from, or NULL               */
    const char *checked;  /* file of digests that it was compared with, or NULL        */
    const train_job *job; /* the run at hand                                          */
    table *rows;          /* text: the table under construction                        */
    train_config config;
    train_run_row run; /* that at hand */
    record_writer out; /* of all forms but text */
} train_report;

/* In this order. compare: after the last run, text and CSV. */
void train_report_begin(train_report *r, const train_settings *s);
void train_report_run(train_report *r, const train_job *j);
void train_report_step(const train_row *step, void *report);
void train_report_row(const train_row *row, void *report);
void train_report_total(train_report *r, const train_total *t);
void train_report_compare(train_report *r, const train_job *jobs, const train_total *totals, size_t n);
void train_report_end(train_report *r);
void train_report_abandon(train_report *r);
