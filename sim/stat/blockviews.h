/* blockviews.h -- the matrices that recipes quantise, tile by tile: the tensor along rows or columns, as it is or behind
 * a Hadamard transform, and with --axis both also what is quantised along rows first. Each is a view of the tensor. */
#pragma once

#include "../pass/tiles.h"
#include "blockquant.h"

enum { BLOCK_AXES = 2, BLOCK_SLOTS = 5, BLOCK_VIEWS = BLOCK_AXES * BLOCK_SLOTS }; /* transforms: none, and four sizes */

/* A view, and the amaxes of its rows and of all of it, where no tile holds all the elements that they are of. */
typedef struct block_view {
    int axis, slot;
    int used;                     /* by a recipe */
    int needs_tensor, needs_rows; /* by one whose scales depend on all elements, or on those of a row */
    int looks_for_tensor;         /* in a phase of its own */
    uint64_t rows;
    shared_amax3 tensor, *of_rows; /* of_rows: NULL where every tile has whole rows of it */
} block_view;

typedef struct block_views {
    const block_list *list;
    block_matrix m;
    uint64_t seed, stream;
    block_view *of; /* BLOCK_VIEWS, and of each target what --axis both quantises the second time */
    size_t n;
} block_views;

/* What a thread needs: the elements of a tile as they were read, those of the views along both axes, and what quantising
 * gives, the first and the second time. */
typedef struct block_buffers {
    float *x, *views[BLOCK_AXES], *first, *second; /* one memory, that of x */
    amax3 *amaxes[BLOCK_AXES + 1];                 /* likewise              */
    block_room room;
    mpsim_summary *summary;
    elements_beyond beyond;
} block_buffers;

/* stat_block_views_make, stat_block_buffers_make -- 0, or -1 without memory; _clear in any case. */
int stat_block_views_make(block_views *v, const block_list *list, const block_matrix *m, uint64_t seed,
                          uint64_t stream);
void stat_block_views_clear(block_views *v);
int stat_block_buffers_make(block_buffers *b, const block_list *list);
void stat_block_buffers_clear(block_buffers *b);

/* stat_block_views_applies -- whether there is anything to quantise: a tensor of one dimension has no columns. */
int stat_block_views_applies(const block_views *v, const block_target *t);

/* stat_block_views_plan -- decide which amaxes need a phase of their own; whole_rows and whole_cols say whether every tile has
 * whole rows, or columns, of the matrix as it lies. 0; 1 if there are more rows than BLOCK_ROWS_MOST, the most that
 * are remembered; -1 without memory. */
enum { BLOCK_ROWS_MOST = 1 << 20 };
int stat_block_views_plan(block_views *v, int whole_rows, int whole_cols);
/* stat_block_views_looks -- whether there are such amaxes; *unit is that of the tiles of the phase. stat_block_views_looks_again --
 * whether there are some of what target i quantises the second time. */
int stat_block_views_looks(const block_views *v, block_unit *unit);
int stat_block_views_looks_again(const block_views *v, size_t i);

/* Each works on a tile, `of`, whose elements are in b->x and b->beyond:
 *
 *   stat_block_views_look        adds its magnitudes to the amaxes of the views
 *   stat_block_views_look_again  the same for what target i quantises the second time
 *   stat_block_views_quantise    adds to found[i] what the recipe does, for each target i with pass_of[i] = pass
 *
 * The signal of SQNR is the sum of the squares of all elements, S, less those that are left out. Behind a transform it has
 * to be the squares of the transformed elements, T, less those of them that are left out, L: so found[i] gets L - T as
 * what is left out, and stat_blockrun_end adds S. */
void stat_block_views_look(block_views *v, const block_part *of, block_buffers *b);
void stat_block_views_look_again(block_views *v, const block_part *of, block_buffers *b, size_t i);
void stat_block_views_quantise(block_views *v, const block_part *of, block_buffers *b, const size_t *pass_of,
                               size_t pass, mpsim_block_stats *found);
