/* tiles.h -- how a tensor is worked through under block recipes: as a matrix, in tiles that hold whole blocks.
 *
 * Its elements lie in the matrix of all dimensions but the last, and the last; those of a column-major tensor in the
 * transposed one, if its rows have one order only; else they are copied row by row (pass_block_in_rows). A tile is a rectangle of it
 * whose sides are multiples of those of all blocks, but at the edges. Recipes whose blocks have no small common multiple are
 * worked through one after the other, in passes. Nothing that is computed depends on the tiles. */
#pragma once

#include "../operand/target.h"
#include "elements.h"

typedef struct block_matrix {
    uint64_t rows, cols; /* as the elements lie */
    int transposed;      /* a row of the tensor's matrix is a column of this one */
    int line;            /* the tensor has one dimension, and so no columns      */
} block_matrix;

block_matrix pass_block_matrix_of(const trace_tensor *x);

/* pass_block_in_rows -- whether a tensor is worked through as ELEMENTS_ROWS has it: a column-major one of several dimensions before
 * the last, whose rows lie in another order. pass_block_stored -- where element i of these rows lies in the file. */
int pass_block_in_rows(const trace_tensor *x);
uint64_t pass_block_stored(const trace_tensor *x, uint64_t i);

/* Elements in a matrix: a rectangle. */
typedef struct block_part {
    uint64_t row, col, rows, cols;
} block_part;

/* A run of whole blocks: up to three rectangles. */
enum { BLOCK_PARTS = 3 };

/* Sides of a tile are multiples of these. */
typedef struct block_unit {
    uint64_t rows, cols;
} block_unit;

/* pass_block_unit_of -- of a target; pass_block_unit_join -- of two, so much as fits in 64 bits. */
block_unit pass_block_unit_of(const block_target *t, int transposed);
block_unit pass_block_unit_join(block_unit a, block_unit b);

/* pass_block_align -- the first element at or behind element i where a run of whole blocks of all recipes may begin. */
uint64_t pass_block_align(const block_list *l, const trace_tensor *x, uint64_t i);

/* pass_block_parts -- elements `first` to `end` - 1, aligned, as rectangles: how many. */
size_t pass_block_parts(block_part parts[BLOCK_PARTS], const block_matrix *m, uint64_t first, uint64_t end);

/* The tiles of a rectangle. */
typedef struct block_tiling {
    block_part of;
    uint64_t rows, cols; /* of a tile */
    uint64_t across, count;
} block_tiling;

enum { BLOCK_TILE = 1 << 16, BLOCK_TILE_MOST = 1 << 20 }; /* elements of a tile, but of one of large blocks */

/* pass_block_tile -- tiles that are near to squares where the unit has several rows. pass_block_tile_lines -- such that have all
 * columns, if they fit: then each is one run of elements. */
block_tiling pass_block_tile(const block_part *of, block_unit unit);
block_tiling pass_block_tile_lines(const block_part *of, block_unit unit);
block_part pass_block_tile_at(const block_tiling *t, uint64_t k);

/* How tiles are read: the elements of a matrix of so many columns, as they lie, through `codes` of `bytes`. `tell` (NULL:
 * nobody) is told of the codes from element `first` on: 0, or -1 with *error. */
typedef struct block_reader {
    const elements *from;
    uint64_t cols;
    void *codes;
    size_t bytes;
    int (*tell)(void *context, uint64_t first, const void *codes, size_t n, trace_error *error);
    void *context;
} block_reader;

/* pass_block_read -- the numbers of a tile, row by row, as pass_elements_floats gives them. 0, or -1 with *error. */
int pass_block_read(const block_reader *r, const block_part *p, float *x, elements_beyond *beyond, trace_error *error);

/* pass_block_transpose -- `to`, cols x rows, is the transpose of `from`, rows x cols, which it does not overlap: of binary32
 * numbers; _bytes: of bytes. */
void pass_block_transpose(float *to, const float *from, size_t rows, size_t cols);
void pass_block_transpose_bytes(uint8_t *to, const uint8_t *from, size_t rows, size_t cols);
