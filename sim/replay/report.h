/* report.h -- what replay writes: text, JSON, CSV (schema mpsim.replay/1). */
#ifndef MPSIM_SIM_REPLAY_REPORT_H
#define MPSIM_SIM_REPLAY_REPORT_H

#include "../cli/names.h"
#include "replay.h"
#include "../report/step.h"

/* Groups of kinds that are added up. */
typedef enum replay_group {
    GROUP_ACT,    /* act, out      */
    GROUP_WEIGHT, /* weight        */
    GROUP_AGRAD,  /* agrad, dgrad  */
    GROUP_WGRAD,
    REPLAY_GROUPS
} replay_group;

typedef struct replay_counts {
    uint64_t count, nonzero, nonfinite, underflow, subnormal, overflow, stale;
} replay_counts;

/* One tensor over all steps. */
typedef struct replay_tensor {
    char *name;
    char format[48];
    layer_kind layer;
    uint64_t steps;
    replay_counts counts;
    double worst_sqnr;
    double scale, next; /* of the last step; next: NaN but for FP8 delayed scaling */
} replay_tensor;

/* A run added up. */
typedef struct replay_total {
    uint64_t steps, skipped, overflows, growths, backoffs, clipped, raised, from_record,
        unknown;
    double final_scale;
    replay_counts groups[REPLAY_GROUPS];
    uint64_t updates, lost, lost_model, compared, differ;
    double max_difference, distance_fp32, distance_f64;
    train_bytes bytes; /* of the last step */
    mpsim_optim optimizer; /* of the last step that had one */
    int has_optimizer;
    int reduces; /* a plan says how ranks are added    */
    size_t ranks; /* the most in a step                */
    char unmatched[512]; /* patterns of the policy that fit no layer */
    replay_tensor *tensors;
    size_t n_tensors;
    nameindex names; /* of the tensors */
} replay_total;

replay_group replay_group_of(const char *kind);
void replay_counts_add(replay_counts *to, const replay_cast *c);
void replay_total_init(replay_total *t);
int replay_total_add(replay_total *t, const replay_step *s); /* 0, or -1 if out of memory */
void replay_total_clear(replay_total *t);

json_t *replay_json_step(const replay_step *s);
json_t *replay_json_total(const replay_total *t);

typedef struct replay_report {
    FILE *file;
    report_style style;
    int tensors;  /* every tensor, not the worst only          */
    int amp;      /* one [AMP] line per step instead of a table */
    int several;  /* policies                                   */
    int compare;  /* several policies: their table only        */
    int with_master; /* the steps' table has a column for it    */
    table *steps; /* text: the table under construction        */
    int policies; /* JSON: entries so far                      */
    int entries;
    int failed;
} replay_report;

/* csv.c: the counts of a step by group of kinds; CSV. */
void replay_group_counts(const replay_step *s, replay_counts groups[REPLAY_GROUPS]);
void replay_csv_header(const replay_report *r);
void replay_csv_step(replay_report *r, const policy *p, const replay_step *s);
void replay_csv_tensors(replay_report *r, const policy *p, const replay_step *s);
void replay_csv_compare(replay_report *r, const policy *p, const replay_total *t, size_t n);

void replay_report_begin(replay_report *r, json_t *config);
void replay_report_policy(replay_report *r, const policy *p);
void replay_report_step(replay_report *r, const policy *p, const replay_step *s);
void replay_report_total(replay_report *r, const replay_total *t);
/* replay_report_compare -- text and CSV: all policies side by side. */
void replay_report_compare(replay_report *r, const policy *policies, const replay_total *totals,
                           size_t n);
void replay_report_abandon(replay_report *r);
int replay_report_end(replay_report *r); /* 0, or -1 if memory or writing failed */

#endif
