/* formulas.h -- results that differ, beside exact values: whether rounding alone can explain them, or which other formula does. */
#pragma once

#include "impl.h"

/* The value of a formula in binary64, and an error that results of it stay below before they are rounded to their format; JUDGE_EQUAL: they
 * are that value. */
enum { JUDGE_EQUAL = -1 };
typedef struct judge_exact {
    double value, bound;
} judge_exact;

/* A formula: a cause of mpsim_judge_causes, and a sentence about results that are its values. */
typedef struct judge_formula {
    const char *cause, *text;
} judge_formula;

/* Formulas of one array of results. The first is the right one; a formula of which exact's value is NaN everywhere does not count.
 * unit: the largest relative error of the last rounding, of a unit in the last place; halves: the rounding is to nearest. */
typedef struct judge_formulas {
    const judge_formula *of;
    size_t n;
    double unit;
    int halves;
    const void *self;
    judge_exact (*exact)(const void *self, size_t formula, size_t element);
    double (*origin)(const void *self, size_t element); /* what the results were before; NULL: nothing */
} judge_formulas;

/* judge_formulas_explain -- a finding: the first formula that fits all of some results, among them results that differ; or one factor or
 * offset between the results and the right values: of all, or of each row or column; or where the rows or columns are that rounding does
 * not explain, and the formula that fits them; or that none of these is so. */
void judge_formulas_explain(mpsim_judgement *j, const judge_pair *p, const judge_formulas *f);
