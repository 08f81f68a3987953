/* report.h -- the report of mpsim scaler, for people; for programs: record.h. */
#pragma once

#include "../traininglog/judge.h"
#include "../traininglog/match.h"
#include "run.h"
#include "../traininglog/traininglog.h"

typedef struct scaler_report {
    const scalerrun *run;
    const training_log *log;        /* or NULL                                        */
    const log_judgement *judgement; /* of the log                                */
    const char *log_path;
    const char *pattern; /* as given, or NULL                              */
    uint64_t pattern_steps;
    const char *format; /* traces: what gradients are rounded to          */
    const log_match *matches;
    size_t n_matches;
    int own;     /* the scaler is that of the trace's metadata      */
    int all;     /* every row of a trajectory                      */
    int several; /* a table of scalers instead of one's trajectory */
} scaler_report;

/* Steps of a trajectory as a row of a table. */
typedef struct scaler_span {
    char step[48], scale[32], recorded[32], what[256], fits[32];
    const track_loss *loss; /* NULL: not told */
    const char *worst;
} scaler_span;
extern const record_kind scaler_span_record;
void scaler_span_fill(scaler_span *row, const scaler_report *r, const track *t, const span *s);

void scaler_report_text(FILE *to, const scaler_report *r);

/* scaler_verdict -- traininglog_track_verdict with what the trace says of it; of a log, its judgement. */
verdict scaler_verdict(const scaler_report *r, const track *t, char *text, size_t size);
