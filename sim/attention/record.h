/* record.h -- the records of mpsim attention. */
#pragma once

#include "../dot/distancereport.h"
#include "measure.h"

/* What is computed. */
typedef struct attention_config {
    const heads_part *q, *k, *v;
    const char *labels[3];                  /* of q, k and v                                               */
    const char *generated;                  /* how; NULL: read                                             */
    const char *scores;                     /* the model of scores; NULL: that of each row                 */
    const char *mask;                       /* where it is from; NULL: there is none                       */
    const char *softmax, *p_round, *output; /* names of formats and a mode                                 */
    mpsim_attention a;                      /* models aside                                                */
    uint64_t seed;
    size_t tile, window[2], windows; /* keys: of a tile; before a query's own, and behind it; 2           */
    const size_t *bounds;            /* window; NULL: a query sees all                                    */
    const float *cure;               /* its factor, or NULL                                               */
    const double *above;             /* the bound, or NULL                                                */
} attention_config;

/* A model. */
typedef struct attention_row {
    const char *model, *accumulator;
    attention_result x;
    const dot_distance *apart; /* x.error.given, where it is not x.error.rounded; else NULL */
    const attention_config *config;
} attention_row;

/* Errors of one sign, in tables for people. */
typedef struct attention_signs_row {
    const char *model, *rows, *results;
    const attention_signs *signs;
} attention_signs_row;

/* Of an attention_row, beside what distances show: each model has scores of its own, so that other largest scores repeat. */
enum { SHOW_REPEATED = SHOW_NEXT };

extern const report_kind attention_kind;         /* an attention_config of attention_rows */
extern const record_kind attention_signs_record; /* an attention_signs_row                */
