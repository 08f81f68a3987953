/* report.h -- writing the results of stat, schema mpsim.stat/1: rows of record.h in any form. */
#pragma once

#include "config.h"
#include "record.h"

extern const report_kind stat_kind;

/* The tables of a section for people: what tensors hold, and what casts and recipes lose of it. */
enum { STAT_HOLDS, STAT_LOSES, STAT_BLOCKS, STAT_TABLES };

/* The report but for its lists; what tells that it is partial. */
typedef struct stat_document {
    const stat_config *config;
    const stat_format *formats; /* its own, and its recipes */
    const target_recipe_row *recipes;
    size_t n_formats, n_recipes;
    const stat_row *total;
    int partial; /* 1; -1: it is whole */
} stat_document;

typedef struct statreport {
    record_writer w;
    stat_document document;
    const target_list *targets;
    unsigned shows, titles;                          /* titles: with the labels of the open section */
    const char *title;                               /* text: the open section and its tables */
    table *tables[STAT_TABLES], *first[STAT_TABLES]; /* first: of tensors with NaN or Inf                */
    int marked[STAT_TABLES];                         /* an SQNR leaves out elements: of casts; of recipes */
} statreport;

/* The report in order: begin, then for the tensors, the kinds and the steps a list of entries, the total, end. `sink`: of JSON, instead of `to`, or
 * NULL. `config` must outlive it. */
void stat_report_begin(statreport *r, FILE *to, const record_sink *sink, report_style style, const target_list *targets,
                       const stat_config *config);
/* stat_report_list -- for people the section `title`, of rows that `level` is the title of. */
void stat_report_list(statreport *r, stat_level level, const char *title);
void stat_report_entry(statreport *r, const stat_row *row);
void stat_report_list_end(statreport *r);
void stat_report_list_drop(statreport *r); /* text: without printing it */
/* text: of the open list of tensors those with NaN or Inf, and what they hold; nothing without any.
 * left_out: more of them that have no entry. */
void stat_report_list_broken(statreport *r, uint64_t left_out);
/* stat_report_is_broken -- whether a group holds NaN or Inf. */
int stat_report_is_broken(const group *g);
void stat_report_total(statreport *r, const stat_row *row);
/* What says that the report is partial: JSON, a key of its own; NDJSON, a key of the total; CSV, a last row of the
 * level "partial". */
void stat_report_end(statreport *r, int partial);
