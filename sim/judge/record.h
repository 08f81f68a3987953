/* record.h -- the records of mpsim judge. */
#pragma once

#include "../record/record.h"

#include <mpsim/judge.h>

/* A result that differs, in reports. */
typedef struct judge_place_row {
    size_t row, column;
    char found_code[24], expected_code[24];
    double found, expected, exact;
} judge_place_row;

typedef struct judge_report {
    const char *kind, *array, *format, *row, *nearest;
    int equal;
    uint64_t rows, columns, results, differ, nearest_differ;
    size_t same, listed, findings, places, has_nearest;
    const char *class_rows[MPSIM_JUDGE_ROWS];
    const char *const *class_list;
    const mpsim_judge_finding *finding;
    const judge_place_row *place;
    judge_place_row place_rows[MPSIM_JUDGE_PLACES];
} judge_report;

extern const report_kind judge_inputs_report, judge_tolerance_report;
extern const report_kind judge_run_kind;       /* of a stored run: runout.c */
extern const report_kind judge_kind;           /* a judge_report; its rows are judge_place_row */
extern const record_kind judge_finding_record; /* a mpsim_judge_finding                       */
extern const record_kind judge_place_record;   /* a judge_place_row                             */

/* judge_report_fill -- of a judgement, which must stay. */
void judge_report_fill(judge_report *r, const char *kind, const mpsim_judgement *j);

/* judge_report_print -- for people. */
void judge_report_print(FILE *to, const judge_report *r);
