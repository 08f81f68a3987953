/* attendformula.h -- attention in binary64, right and wrong. */
#pragma once

#include "attendrow.h"

/* Numbers of the operands, and one row of scores that is kept: results of a row ask for it one after the other. */
typedef struct attend_numbers {
    attend_shape s;
    attend_arrays x;
    float *q, *k, *v;
    double *weight; /* keys numbers                       */
    size_t row, formula;
    const attend_row *of; /* whose weights these are; NULL: none */
    double sum, most;     /* of the weights; the score that has the weight 1 */
    double error, of_lse; /* the relative error that a weight and the sum may have; the error of most + log(sum) */
} attend_numbers;

extern const judge_formula judge_attend_formulas[];
size_t judge_attend_formula_count(void);

/* judge_attend_exact -- column c of line `line` of o, output 0, or the number of the line of lse, output 1. */
judge_exact judge_attend_exact(attend_numbers *n, const attend_row *row, size_t formula, size_t output, size_t line,
                               size_t c);
