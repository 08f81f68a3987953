/* scales.h -- block scales that were found beside those of a recipe: their order, and what is wrong with them. */
#pragma once

#include "impl.h"

/* The order of the scales of a grid. */
typedef enum judge_layout { JUDGE_PLAIN, JUDGE_TURNED, JUDGE_SWIZZLED, JUDGE_TWICE, JUDGE_LAYOUTS } judge_layout;

/* judge_scales_layout -- the first order from `from` on in which n scales can be those of a grid; JUDGE_LAYOUTS: none. */
judge_layout judge_scales_layout(size_t n, size_t down, size_t across, unsigned from);

/* Where both come from. stored: the format of the recipe's scales; NULL: numbers of binary32, which codes are multiplied by (inverses) or
 * elements were (scales). */
typedef struct judge_scales_source {
    const mpsim_judge_array *found;
    const mpsim_format *stored;
    const uint8_t *codes;
    const float *scales, *inverses;
    size_t rows, columns; /* of the grid of what was quantised */
    size_t whole;         /* 0: that is a part of the matrix    */
} judge_scales_source;

/* Scales of a grid, row-major, as codes of one format; found: NULL: there are none. */
typedef struct judge_scales {
    const mpsim_format *format;
    void *found, *expected;
    size_t rows, columns;
    judge_layout layout;
    int fault;   /* the array has the shape of the grid, and the order of another one */
    int factors; /* numbers that elements are multiplied by, not codes */
} judge_scales;

/* judge_scales_take -- in the meaning that differs least, and in another order than that of the shape where that explains half of what
 * differs; the whole grid has down x across scales. 0, or -1 without memory. judge_scales_clear in any case. */
int judge_scales_take(judge_scales *s, const judge_scales_source *from, size_t down, size_t across);
void judge_scales_clear(judge_scales *s);

judge_pair judge_scales_pair(const judge_scales *s);
uint64_t judge_scales_differ(const judge_scales *s);

/* judge_scales_ratio -- what the factor of elements of a block has to be multiplied by, to be that of the scale which was found. */
double judge_scales_ratio(const judge_scales *s, size_t block);

/* judge_scales_is_zero -- whether the scale that was found for a block is 0. */
int judge_scales_is_zero(const judge_scales *s, size_t block);

/* judge_scales_explain -- findings, and whether one of them is a reason; x: what was quantised. */
int judge_scales_explain(mpsim_judgement *j, const judge_scales *s, const float *x, size_t rows, size_t columns);
