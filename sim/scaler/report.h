/* report.h -- the report of mpsim scaler: text, JSON, CSV (schema mpsim.scaler/1). */
#ifndef MPSIM_SIM_SCALER_REPORT_H
#define MPSIM_SIM_SCALER_REPORT_H

#include "../report/report.h"
#include "scalerreplay.h"
#include "run.h"

typedef struct scaler_report {
    const scalerrun *run;
    const training_log *log;   /* or NULL                                        */
    const char *log_path;
    const char *pattern;       /* as given, or NULL                              */
    uint64_t pattern_steps;
    const char *format;        /* traces: what gradients are rounded to          */
    const replay_match *matches;
    size_t n_matches;
    int own;                   /* the scaler is that of the trace's metadata      */
    int all;                   /* every row of a trajectory                      */
    int several;               /* a table of scalers instead of one's trajectory */
} scaler_report;

void scaler_report_text(FILE *to, const scaler_report *r);
/* 0, or -1 if memory ran out or writing failed. */
int scaler_report_json(FILE *to, const scaler_report *r);
void scaler_report_csv(FILE *to, const scaler_report *r);

/* scaler_list -- the table of scalers, in full for the rows that are named. 0, or an exit code. */
int scaler_list(FILE *to, report_style style, char **names, int n);

/* scaler_verdict -- track_verdict with what the trace says of it. */
verdict scaler_verdict(const scaler_report *r, const track *t, char *text, size_t size);

/* scaler_config_json -- every field of a configuration, as mpsim_scaler_parse spells it. */
json_t *scaler_config_json(const mpsim_scaler_config *c);
/* scaler_config_text -- "65536, x 2 after 2000 clean steps, x 0.5 on overflow; ..." */
const char *scaler_config_text(char *out, size_t size, const mpsim_scaler_config *c);

/* print_wrapped -- text in lines of at most 96 columns, after `first`, then after blanks. */
void scaler_print_wrapped(FILE *to, const char *first, const char *text);

#endif
