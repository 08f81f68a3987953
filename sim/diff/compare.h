/* compare.h -- two tensors: whether they are equal, and what their difference is taken for. */
#pragma once

#include "tolerance.h"
#include "verdict.h"

typedef struct comparison {
    verdict_case c;
    const tolerance *within;
    int opened, equal, measured, failed;
    finding found;
    trace_error error;
} comparison;

/* diff_compare_begin -- open both tensors, of c->c.sides and c->c.tensors (NULL: that side has it not), to be read by
 * `lanes` threads. What can be said without reading is said. diff_compare_look -- read them; of several comparisons at once, if
 * each has one lane. diff_compare_end -- judge the difference, and close them. A failure is c->failed, with
 * c->error. */
void diff_compare_begin(comparison *c, int lanes);
void diff_compare_look(comparison *c);
void diff_compare_end(comparison *c);

/* diff_compare_differs -- whether a verdict is a difference; with a tolerance, other codes of equal values are not. */
int diff_compare_differs(verdict v, const tolerance *within);
