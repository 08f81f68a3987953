/* blocktarget.h -- block recipes among the formats of a command line: "mxfp8:rceil,mxfp4:*,e4m3/128x128". */
#pragma once

#include "../cli/options.h"

#include <mpsim/block.h>

/* The direction of the blocks of a recipe, in the matrix of all dimensions but the last, and the last. */
typedef enum block_axis {
    BLOCK_ROWS,       /* along the last dimension */
    BLOCK_COLUMNS,    /* along the other one: the matrix is transposed and quantised */
    BLOCK_REQUANTISED /* what quantising along the last dimension gives is transposed and quantised again */
} block_axis;

typedef struct block_target {
    mpsim_block_recipe recipe;
    unsigned transform; /* elements of a Hadamard transform's group; 0: none */
    block_axis axis;
    char label[48]; /* the recipe and its transform: "nvfp4:rht16" */
} block_target;

typedef struct block_list {
    block_target *items; /* recipes, their transforms, their axes, the last varying fastest */
    size_t count;
} block_list;

/* block_list_add -- the recipe, or with a '*' for the scale rule the recipes, that a word of a list stands for, if it
 * is a recipe's: *is. `hadamard`: beside each the same with this transform; NULL: none. `axis`: rows, columns or
 * both. 0, or an exit code after a message. */
int block_list_add(block_list *l, const char *word, const char *hadamard, const char *axis, const char *verb, int *is);
/* block_list_suggest -- the recipes of the table, where a name is not one of them. */
void block_list_suggest(suggestion *s);
void block_list_clear(block_list *l);

extern const char *const block_axes[]; /* "rows", "columns", "requantised", up to NULL */
const char *block_axis_name(block_axis axis);
/* block_is_first -- whether target i is the first of its recipe and transform: the others differ in their axes. */
int block_is_first(const block_list *l, size_t i);
