/* blockrow.h -- rows of products of block-scaled operands: what the scales are multiplied with. */
#pragma once

#include "list.h"

/* Elements and scales of an operand: lines along the depth. */
typedef struct block_operand {
    const mpsim_format *format;
    void *codes; /* lines x depth */
    size_t lines, depth;
    const mpsim_judge_array *given; /* the scales; NULL: 1 */
    const mpsim_format *scale_format;
    float *scales;           /* as they lie in memory                         */
    size_t n;                /* so many                                       */
    size_t down, across;     /* lines and elements of the depth that share a scale */
    size_t grid, grid_lines; /* scales along the depth, and of lines              */
    int turned;              /* 1: scale (line, t) is at t x grid_lines + line    */
    int swizzled_only;       /* 1: there are as many scales as the swizzled order has, not the plain one */
} block_operand;

typedef enum block_form { BLOCK_DEQUANT, BLOCK_SUMS, BLOCK_NATIVE, BLOCK_FORMS } block_form;

typedef struct block_row {
    judge_row of;
    block_form form;
    mpsim_model model;
    mpsim_format to; /* dequant: that operands are rounded to after they are scaled */
    int fma;         /* blocks: a sum times its scales is added in one rounding     */
    int separate;    /* blocks: (sum scale_a) scale_b, not sum (scale_a scale_b)    */
    int swizzled;    /* the scales lie in the order of cuBLAS                       */
} block_row;

extern const char *const judge_block_forms[BLOCK_FORMS];

/* judge_block_read -- dequant[:to=FORMAT], blocks[:fma][:separate] or native, [:model=NAME[:CHANGE]...][:swizzled]; `read` of a judge_list. */
int judge_block_read(void *row, char *text);

int judge_block_takes(const block_row *row, const block_operand *a, const block_operand *b);

/* judge_block_scale_at -- where the scale of a line and element k lies; n and more: nowhere. */
size_t judge_block_scale_at(const block_operand *x, int swizzled, size_t line, size_t t);
static inline double judge_block_scale(const block_operand *x, int swizzled, size_t line, size_t k)
{
    const size_t at = x->given ? judge_block_scale_at(x, swizzled, line / x->down, k / x->across) : 0;
    return !x->given ? 1 : at < x->n ? (double)x->scales[at] : 0;
}

/* judge_block_compute -- m x n results of lines of a and b from these on. */
mpsim_status judge_block_compute(const block_row *row, const block_operand *a, const block_operand *b, size_t line_a,
                                 size_t m, size_t line_b, size_t n, float *y);
