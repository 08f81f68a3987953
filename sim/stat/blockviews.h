/* blockviews.h -- a tensor as the matrices that recipes quantise: along rows or columns, perhaps transformed, perhaps
 * quantised before; tile by tile. */
#ifndef MPSIM_SIM_STAT_BLOCKVIEWS_H
#define MPSIM_SIM_STAT_BLOCKVIEWS_H

#include "../pass/tiles.h"
#include "blockquant.h"

enum { BLOCK_AXES = 2, BLOCK_SLOTS = 5 }; /* transforms: none, and four sizes */

/* One of these matrices, and the largest magnitudes in it as far as a tile does not tell them. */
typedef struct block_view {
    int used, needs_tensor, needs_rows; /* recipes with a scale of more than a block */
    int looks_for_tensor;
    uint64_t rows;
    shared_peak tensor, *of_rows; /* of_rows: NULL where every tile has whole rows of it */
} block_view;

typedef struct block_views {
    const block_list *list;
    block_matrix m;
    uint64_t seed, stream;
    block_view of[BLOCK_AXES][BLOCK_SLOTS];
    block_view *again; /* of each recipe that requantises: what is quantised the second time */
} block_views;

/* What a thread needs: the elements of a tile as they were read, and of two views; values between two quantisations, or
 * of the last one. */
typedef struct block_buffers {
    float *x, *views[BLOCK_AXES], *first, *second;
    peak *peaks[BLOCK_AXES], *peaks_again;
    block_room room;
    mpsim_summary *summary;
    elements_beyond beyond;
} block_buffers;

/* Each 0, or -1 without memory; to be cleared in any case. */
int block_views_make(block_views *v, const block_list *list, const block_matrix *m, uint64_t seed, uint64_t stream);
void block_views_clear(block_views *v);
int block_buffers_make(block_buffers *b, const block_list *list);
void block_buffers_clear(block_buffers *b);

/* block_views_applies -- whether the tensor has what a recipe is along. */
int block_views_applies(const block_views *v, const block_target *t);

/* block_views_plan -- decide what has to be looked for, from what every tile has: whole rows, whole columns of the
 * matrix as it lies. 0; the number of rows, if they are too many; UINT64_MAX without memory. */
enum { BLOCK_ROWS_MOST = 1 << 20 };
uint64_t block_views_plan(block_views *v, int whole_rows, int whole_cols);
/* block_views_looks -- whether there is something: the unit of tiles to look in. _looks_again: for target i. */
int block_views_looks(const block_views *v, block_unit *unit);
int block_views_looks_again(const block_views *v, size_t i);

/* With the elements of a tile, `of`, in b->x and b->beyond: look; look at what is quantised the second time for target
 * i; quantise, for the targets i with pass_of[i] = pass, into found[i]. The squares of what a transform makes of the
 * elements are subtracted from those that are left out: with those of the elements (blockrun_end) the signal is theirs. */
void block_views_look(block_views *v, const block_part *of, block_buffers *b);
void block_views_look_again(block_views *v, const block_part *of, block_buffers *b, size_t i);
void block_views_quantise(block_views *v, const block_part *of, block_buffers *b, const size_t *pass_of, size_t pass,
                          mpsim_block_stats *found);

#endif
