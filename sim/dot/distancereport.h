/* distancereport.h -- distances in tables, JSON and CSV, and the options that choose them: the same for sums, reductions and attention. */
#pragma once

#include "../record/record.h"
#include "distance.h"

/* --absolute and --above. */
typedef struct distance_options {
    int absolute; /* tables show absolute measures                */
    double above; /* the bound; below 0, as it begins: there is none */
} distance_options;

/* clang-format off */
#define DISTANCE_OPTION_ROWS(o)                                                                                    \
    {0, "absolute", OPTION_FLAG, &(o).absolute, NULL,                                                              \
     "text: show absolute errors (largest, RMSE, means) instead of relative ones"}, \
    {0, "above", OPTION_NUMBER, &(o).above, "X",                                                                   \
     "relative errors: only results whose exact magnitude is above X (default: all)"},               \
    RANGE("above", 0, HUGE_VAL)
/* clang-format on */

/* What the columns of a distance show: relative or absolute measures, how many results are above the bound; distances to the operands
 * as rounded under a title, or without one where the operands as given are the same. */
enum {
    SHOW_RELATIVE = 1,
    SHOW_ABSOLUTE = 2,
    SHOW_BOUND = 4,
    SHOW_ROUNDED = 8,
    SHOW_EXACT = 16,
    SHOW_NEXT = 32 /* the first bit for others */
};
extern const record_kind dot_distance_record; /* of a dot_distance */
/* DISTANCE_COLUMNS -- rows of a table of fields: the columns of a pointer to a distance, which is NULL where it is the one that follows,
 * and of that one; AT: where both are; PLACE: that of the columns. */
#define DISTANCE_COLUMNS(AT_GIVEN, AT_ROUNDED, PLACE)                                                            \
    FIELD(RECORD, NULL, FIELD_POINTER, AT_GIVEN, NULL, .title = "operands as given", .spare = 1,                 \
          .record = &dot_distance_record, .column = PLACE),                                                      \
        FIELD(RECORD, NULL, 0, AT_ROUNDED, NULL, .title = "operands as rounded", .record = &dot_distance_record, \
              .column = PLACE, .when = SHOW_ROUNDED),                                                            \
        FIELD(RECORD, NULL, 0, AT_ROUNDED, NULL, .title = "", .record = &dot_distance_record, .column = PLACE,   \
              .when = SHOW_EXACT)

/* ERROR_FIELDS -- rows of a table of fields for the dot_error at AT(ERROR): the results that are not finite, and the relative errors of
 * its distance BY. */
#define ERROR_FIELDS(ERROR, BY, COLUMN)                                                                    \
    FIELD(COUNT, "not_finite", IN_ALL | FIELD_BLANK, AT(ERROR.not_finite), "Results that are not finite.", \
          .title = ">not finite", .column = COLUMN),                                                       \
        FIELD(REAL, "max_rel_err", IN_ALL, AT(ERROR.BY.max_rel), "`max_rel_err` of `" #BY "`."),           \
        FIELD(REAL, "rel_err", IN_ALL, AT(ERROR.BY.rel), "`rel_err` of `" #BY "`."),                       \
        FIELD(REAL, "bias", IN_ALL, AT(ERROR.BY.bias), "`bias` of `" #BY "`.")

/* dot_distance_shows -- what a report shows of distances; of CSV all bits. */
unsigned dot_distance_shows(report_style style, int absolute, double above);

/* dot_distance_worse -- keep what dot_distance_note tells of: a large relative error whose result cancels. `begin`, `end`: whose error it
 * is. */
void dot_distance_worse(dot_distance *worst, const dot_distance *d);
void dot_distance_note(FILE *to, const dot_distance *worst, const char *begin, const char *end);
