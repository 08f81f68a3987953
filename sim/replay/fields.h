/* fields.h -- the records of mpsim replay (schema mpsim.replay/1). */
#pragma once

#include "../record/step.h"
#include "total.h"

/* A tensor in a step. */
typedef struct replay_cast_row {
    const char *policy;
    int64_t step;
    replay_cast c; /* of its history what is shown */
} replay_cast_row;

/* A step; `updates` and what follows are of all weights and groups. */
typedef struct replay_step_row {
    const char *policy;
    replay_step s;
    replay_cast_row *casts; /* s.n_casts, to be freed */
    replay_counts groups[REPLAY_GROUPS];
    uint64_t updates, lost, stale;
    char number[32], did[128], from_fp32[32], from_f64[32], master[32]; /* for people */
} replay_step_row;

typedef struct replay_settings_row {
    step_optimizer optimizer;
    replay_settings of;
} replay_settings_row;

/* A run added up. */
typedef struct replay_total_row {
    const char *policy;
    replay_total t;
    uint64_t stale;
    int equal;                     /* to the record; -1: not known */
    replay_settings_row *settings; /* to be freed */
    size_t n_settings;
    const uint64_t *skips;
    const char *refused, *formats, *muon; /* notes; NULL: none */
    const char *lacks[REPLAY_NOTES], *const *lack;
    size_t n_lacks;
    const char *muon_states; /* of said; NULL: no Muon */
    size_t has_states;
    char said[512];
    double percent;                  /* moved; NaN: nothing moves */
    char skipped[64], from_fp32[32]; /* for people */
} replay_total_row;

typedef struct replay_delayed_row {
    int margin;
    uint64_t history;
    const char *algorithm;
} replay_delayed_row;

typedef struct replay_plan_row {
    uint64_t from;
    char plan[512];
    replay_delayed_row delayed;
    size_t is_delayed;
} replay_plan_row;

/* A policy and what became of the run. */
typedef struct replay_run_row {
    step_policy policy;
    replay_plan_row *plans; /* to be freed */
    size_t n_plans;
    replay_total_row total;
} replay_run_row;

/* All of a report. */
typedef struct replay_document {
    const char *weights;
    uint64_t seed;
    int references;
    const char *const *inputs;
    size_t n_inputs;
    const unread_list *unread;
} replay_document;

/* A tensor, and a group of kinds, over all steps: for people. */
typedef struct replay_tensor_row {
    char name[64];
    replay_tensor t;
    double sqnr;     /* NaN: nothing differs, or nothing was compared */
    size_t has_next; /* FP8 delayed scaling */
} replay_tensor_row;

typedef struct replay_group_row {
    const char *name;
    replay_counts c;
    uint64_t zero;
} replay_group_row;

/* Columns of the table of steps: of masters, or of the binary64 run. */
enum { SHOW_MASTER = 1, SHOW_F64 = 2 };

extern const char *const replay_weights_words[]; /* of replay_weights */

extern const report_kind replay_kind;        /* a replay_document of replay_run_rows of replay_step_rows */
extern const record_kind replay_step_record; /* a replay_step_row; as a row of CSV and a table, too */
extern const record_kind replay_cast_record;
extern const record_kind replay_total_record;
extern const record_kind replay_tensor_record;
extern const record_kind replay_group_record;

/* What they are filled with has to stay where it is. */
void replay_step_row_fill(replay_step_row *row, const policy *p, const replay_step *s);
void replay_step_row_clear(replay_step_row *row);
void replay_total_row_fill(replay_total_row *row, const policy *p, const replay_total *t);
void replay_total_row_clear(replay_total_row *row);
void replay_run_row_fill(replay_run_row *row, const policy *p); /* but for the total */
replay_tensor_row replay_tensor_row_of(const replay_tensor *t);
replay_group_row replay_group_row_of(replay_group g, const replay_counts *c);
