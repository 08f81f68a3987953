/* report.h -- writing the results of stat, schema mpsim.stat/1. */
#pragma once

#include "../input/unread.h"
#include "../report/report.h"
#include "../trace/trace.h"
#include "group.h"
#include "settings.h"

/* What a group is a group of. Fields that do not apply are NULL, or step -1. */
typedef struct group_label {
    const char *level; /* "tensor" "kind" "step" "total" */
    const char *file, *name, *kind, *dtype, *shape;
    int64_t step;
    const trace_tensor *tensor;
} group_label;

typedef struct statreport {
    FILE *file;
    report_style style;
    const target_list *targets;
    int counts;        /* counts, amax and amin alone */
    int roundoff;      /* how many elements were left out is told */
    size_t in_list;    /* JSON: entries of the open list so far */
    int partial;       /* not 0: the report is of what was read before it was interrupted */
    const char *title; /* text: the open section and its tables */
    table *holds, *loses;
    table *blocks;                                   /* under block recipes                   */
    table *first_holds, *first_loses, *first_blocks; /* of tensors with NaN or Inf, which come first */
    int marked;                                      /* an SQNR leaves out elements           */
    int marked_blocks;                               /* one of a recipe does                  */
} statreport;

/* The report in order: begin, then for each of "tensors", "kinds", "steps" a list of
 * entries, the total, end. With --counts what sums are needed for is left out, keys and columns. */
void statreport_begin(statreport *r, FILE *to, report_style style, const target_list *targets,
                      const stat_settings *settings, const char *version);
void statreport_list(statreport *r, const char *name, const char *title);
void statreport_entry(statreport *r, const group_label *label, const group *g);
void statreport_list_end(statreport *r);
void statreport_list_drop(statreport *r); /* text: without printing it */
/* text: of the open list of tensors those with NaN or Inf, and what they hold; nothing without any.
 * left_out: more of them that have no entry. */
void statreport_list_broken(statreport *r, uint64_t left_out);
/* statreport_is_broken -- whether a group holds NaN or Inf. */
int statreport_is_broken(const group *g);
/* `failed`: files that failed, with --keep-going; `unread`: for JSON */
void statreport_total(statreport *r, const group *g, int failed, const unread_list *unread);
/* What says that the report is partial: JSON, a key of its own; NDJSON, a key of the total; CSV, a last row of the
 * level "partial". */
void statreport_end(statreport *r);
