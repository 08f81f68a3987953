/* distancereport.h -- distances in tables, JSON and CSV, and the options that choose them: the same for sums, reductions and attention. */
#pragma once

#include "../report/report.h"
#include "distance.h"

/* --absolute and --above. */
typedef struct distance_options {
    int absolute;      /* tables show absolute measures */
    const char *above; /* as typed, or NULL             */
} distance_options;

#define DISTANCE_OPTION_ROWS(o)                                                                                      \
    {0,                                                                                                              \
     "absolute",                                                                                                     \
     OPTION_FLAG,                                                                                                    \
     &(o).absolute,                                                                                                  \
     NULL,                                                                                                           \
     "in text show the largest absolute error, RMSE and means instead of relative errors (JSON and CSV have both)"}, \
    {                                                                                                                \
        0, "above", OPTION_STRING, &(o).above, "X",                                                                  \
            "relative errors count only results whose exact value is above X in magnitude (default: all)"            \
    }

/* distance_above -- the bound of --above, below 0 where it is not given: 0, or an exit code after a message of the command `of`. */
int distance_above(double *bound, const char *of, const char *text);

/* distance_columns -- titles of the columns of one distance, under a title or NULL; distance_cells: its cells, empty where d is
 * NULL. */
const char *distance_columns(char *out, size_t size, int absolute, const char *title);
void distance_cells(table *t, const dot_distance *d, int absolute);
/* distance_compared -- a cell: how many results count, where there is a bound. */
void distance_compared(table *t, const dot_distance *d, double above);

/* Members `given` and `rounded` of a result; columns of CSV, each behind a comma. */
void distance_put(json_t *result, const dot_error *e);
void distance_csv_head(FILE *to);
void distance_csv(FILE *to, const dot_error *e);
/* distance_bound_json -- the bound, null where there is none. */
json_t *distance_bound_json(double above);

/* distance_worse -- keep what distance_note tells of: a large relative error whose result cancels. `begin`, `end`: whose error it
 * is. */
void distance_worse(dot_distance *worst, const dot_distance *d);
void distance_note(FILE *to, const dot_distance *worst, const char *begin, const char *end);
