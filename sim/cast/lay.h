/* lay.h -- a piece of a quantised tensor laid into the parts of a file, with its share of the padding. */
#pragma once

#include "../pass/tiles.h"
#include "../quant/quant.h"
#include "../trace/trace.h"

/* What became of a tile of the matrix, whose sides are whole blocks, and multiples of what a packed group of codes and a
 * tile of swizzled scales hold, but at the ends of the matrix: as it lies in memory, or transposed, columns as lines. */
typedef struct laid {
    const quant_geometry *g;
    trace_writer *to;
    uint64_t at[QUANT_PARTS]; /* of the parts in the data */
    block_part t;
    int transposed;
    const unsigned char *codes;
    const unsigned char *scale_codes;  /* of the recipe's blocks, in the order of the lines     */
    const float *scales;               /* the same as numbers; scale_codes is NULL then         */
    uint64_t block_lines, block_codes; /* of the recipe: lines of a block, codes of one in it  */
    unsigned char *room;               /* for as many bytes as cast_lay_room says                    */
} laid;

/* cast_lay_room -- of a tile of so many elements. */
size_t cast_lay_room(const quant_geometry *g, const block_part *t);

/* cast_lay_lines -- n lines of so many bytes, of which the first goes to `at` of the data and each other one `stride` behind
 * the one before; cast_lay_codes, cast_lay_scales. Each 0, or -1 with *error filled. */
int cast_lay_lines(trace_writer *to, uint64_t at, uint64_t stride, const void *lines, uint64_t bytes, uint64_t n,
                   trace_error *error);
int cast_lay_codes(const laid *l, trace_error *error);
int cast_lay_scales(const laid *l, trace_error *error);
