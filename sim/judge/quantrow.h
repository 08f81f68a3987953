/* quantrow.h -- rows of block quantisers: the recipes of mpsim/block.h, the rules of E8M0 scales for each of the formats of MX,
 * FP8 with a scale of binary32 by tensor, row and block, or with one that is kept in 16 bits. */
#pragma once

#include <mpsim/block.h>

/* A recipe; kept: not NULL: quantised in a format of 16 bits, operation by operation, as libraries do with tensors of it. */
typedef struct quantise_row {
    mpsim_block_recipe of; /* its name is that of the row */
    const mpsim_format *kept;
} quantise_row;

/* judge_quantise_row_at -- the i-th; 0, or -1 past the last one. Some come twice. */
int judge_quantise_row_at(quantise_row *row, size_t i);

/* judge_quantise_row_parse -- a recipe, or ELEMENT/SHAPE:scale=bf16 or fp16. Errors are those of mpsim_block_parse. */
mpsim_status judge_quantise_row_parse(quantise_row *row, const char *text, char *why, size_t size);

/* judge_quantise_is_random -- whether random bits, or a scale that the caller gives, decide results. */
int judge_quantise_is_random(const mpsim_block_recipe *b);

/* What a row with `kept` makes of a matrix. */
typedef struct quantise_kept {
    const float *x;
    size_t rows, columns, grid_rows, grid_columns;
    uint8_t *codes;
    float *values, *scales, *inverses; /* inverses: the scales; scales: 1 over them */
} quantise_kept;

/* judge_quantise_kept -- the scale is the largest magnitude over the largest number of the elements' format; an element is x over the scale, its
 * value the code times the scale; each is rounded to `kept`. A scale of 0 counts as 1; NaN in a block makes its scale NaN. */
void judge_quantise_kept(const quantise_kept *k, const quantise_row *row);
