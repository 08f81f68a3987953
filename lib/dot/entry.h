/* entry.h -- what enters a product, while it does: lines that are read, rounded, put through a recipe. */
#pragma once

#include "panel.h"
#include "pieces.h"
#include "stack.h"

#include <mpsim/recipe.h>

/* What enters, and what has been made of it. */
typedef struct mpsim_entering_work {
    const mpsim_stack *x;
    const mpsim_entering *how;
    const mpsim_format *format; /* rounded to                         */
    int rounds;                 /* 0: they are such numbers           */
    mpsim_rounding rounding;
    mpsim_outer outer;
    mpsim_steps steps;
    size_t rows, cols, lines; /* of a matrix; of all                  */
    int counting, measuring;  /* counts are wanted; the largest magnitude is */
    /* results: */
    const mpsim_format *multiplied; /* the format of the codes        */
    unsigned char *codes;
    const float *values;  /* what the recipe is given, of all lines, or NULL */
    float *room;          /* for the same, or NULL                    */
    float *factors;       /* of blocks, or NULL                       */
    uint8_t *scale_codes; /* the same as codes, or NULL               */
    float amax, inverse;  /* of the tensor, where its scale comes from that; else -1 */
    int has_amax;         /* also where that is NaN                   */
    size_t grid_rows, grid_cols;
    mpsim_status status[MPSIM_PIECES];
    mpsim_entered counts[MPSIM_PIECES];
    float most[MPSIM_PIECES]; /* magnitudes                           */
    mpsim_cast_stats *casts;  /* MPSIM_PIECES of them, or NULL         */
} mpsim_entering_work;

static inline int mpsim_is_wide(const mpsim_entering_work *e)
{
    return !mpsim_in_binary32(e->x->format);
}

/* Whether codes of neighbouring lines are closer in memory than codes of one line. */
static inline int mpsim_lies_across(const mpsim_entering_work *e)
{
    const int64_t row = e->steps.row < 0 ? -e->steps.row : e->steps.row,
                  col = e->steps.col < 0 ? -e->steps.col : e->steps.col;
    return e->rows > 1 && e->cols > 1 && row < col;
}

static inline int mpsim_in_one_block(const mpsim_block_recipe *b)
{
    return b->block_rows == 0 && b->block_cols == 0;
}

/* Whether what is multiplied are codes, and not values. */
static inline int mpsim_enters_as_codes(const mpsim_entering_work *e)
{
    return e->how->use != MPSIM_BLOCKS_AS_NUMBERS &&
           (mpsim_in_one_block(e->how->recipe) || e->how->use != MPSIM_BLOCKS_AS_VALUES);
}

/* mpsim_entry_error -- of all pieces. */
mpsim_status mpsim_entry_error(const mpsim_entering_work *e);

/* mpsim_encode_lines, mpsim_round_lines -- pieces of numbers that no recipe takes: as codes; as values first, which are
 * transformed or counted. */
void mpsim_encode_lines(void *entry, size_t piece, size_t first, size_t n);
void mpsim_round_lines(void *entry, size_t piece, size_t first, size_t n);

enum { MPSIM_ENTRY_BATCH = 1 << 15 }; /* numbers that are values at once, and stay in a cache */

typedef void mpsim_batch_task(mpsim_entering_work *e, size_t piece, size_t first, size_t n, const float *values,
                              const void *more);

/* mpsim_each_batch -- a task for n lines, some at a time, a multiple of `unit` (0: all), which are values then. */
void mpsim_each_batch(mpsim_entering_work *e, size_t piece, size_t first, size_t n, size_t unit, mpsim_batch_task *task,
                      const void *more);
/* mpsim_measure_most -- the largest magnitude of n numbers, if that is wanted. */
void mpsim_measure_most(mpsim_entering_work *e, size_t piece, const float *values, size_t n);

/* mpsim_entry_allocate -- memory for codes of so many bytes, and factors of blocks. */
mpsim_status mpsim_entry_allocate(mpsim_entering_work *e, unsigned char **kept, size_t bytes);

/* mpsim_enter_recipe -- all lines, put through the recipe, in memory of their own. */
mpsim_status mpsim_enter_recipe(mpsim_entering_work *e, unsigned char **kept, const mpsim_pool *pool);
