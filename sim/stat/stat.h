/* stat.h -- what the files of sim/stat have of one another.
 *
 * A new accumulator is a row of pack.c, an option that decides numbers a row of settings.c; if the bytes of a part
 * change, its version does. Under block recipes a tensor is read once, in tiles of whole blocks (pass/tiles.h), for
 * all recipes and the summary. A scale of more elements than a tile holds needs a pass before, for the largest
 * magnitudes (blockquant.c). */
#pragma once

#include "../operand/target.h"
#include "../pass/amax.h"
#include "../pass/tiles.h"
#include "group.h"

/* ---- blockquant.c: quantising a tile of a matrix: the statistics of all tiles add up to those of the whole matrix. ---- */

/* A rectangle of a matrix of `all_cols` columns, from row `row` and column `col` on. It holds whole blocks, unless a block
 * is a row or the matrix. */
typedef struct block_rectangle {
    const float *x;
    const float *origin; /* errors are against this; NULL: x */
    float *values;       /* or NULL                          */
    size_t rows, cols;
    uint64_t row, col, all_cols;
    amax3 tensor;         /* of the matrix                    */
    const amax3 *of_rows; /* of the whole rows that the rectangle is of; NULL where no recipe needs them */
    int begins;           /* it has the first element of the matrix */
} block_rectangle;

/* Buffers of a thread: of a stochastic block, and the amaxes of several blocks, three magnitudes of each in x. */
enum { BLOCK_ROOM = 1 << 12, BLOCK_AMAXES = 1 << 10 };
typedef struct block_room {
    float x[BLOCK_ROOM], origin[BLOCK_ROOM], values[BLOCK_ROOM];
    float amax[BLOCK_AMAXES];
} block_room;

/* Whether a recipe needs the amax of all of the matrix, or those of its rows. */
int stat_block_needs_tensor(const mpsim_block_recipe *b);
int stat_block_needs_rows(const mpsim_block_recipe *b);

/* stat_block_quantise -- add the statistics to *to (NULL: nothing). Element i of the matrix takes random word i of the stream,
 * counted row by row; with blocks of several rows it is counted block by block, those at the edges as large as others. */
void stat_block_quantise(const mpsim_block_recipe *b, const block_rectangle *r, const mpsim_rng *rng, block_room *room,
                         mpsim_block_stats *to);

/* ---- blocks.c: a tensor, or a piece of it, under the block recipes of a command.
 * A run has phases, one after the other; the tiles of a phase may be taken by any thread, in any order. Where a scale
 * depends on more elements than a tile holds, the first phases look for the amax; the others quantise. Without such
 * recipes there is one phase, and the elements are read once. ---- */

typedef struct blockrun blockrun;
typedef struct blocklane blocklane; /* what a thread needs for it: buffers, and what it has found */

/* `targets` must outlive it. NULL without memory. */
blocklane *stat_blocklane_new(const target_list *targets);
void stat_blocklane_free(blocklane *l);  /* accepts NULL */
void stat_blocklane_begin(blocklane *l); /* nothing is found */

typedef struct blockrun_of {
    trace *t;
    size_t i;
    uint64_t first, n; /* whole blocks: pass_block_align */
    uint64_t seed, stream;
} blockrun_of;

/* stat_blockrun_new -- NULL with *error. Once *asked (NULL: never) is not 0 it may return before it has copied all elements:
 * then no tile may be run. */
blockrun *stat_blockrun_new(const blockrun_of *of, const target_list *targets, const atomic_int *asked,
                            trace_error *error);
void stat_blockrun_free(blockrun *r); /* accepts NULL */

int stat_blockrun_phases(const blockrun *r);
uint64_t stat_blockrun_tiles(const blockrun *r, int phase);
/* stat_blockrun_whole -- whether a single phase quantises. Then the statistics are those of the elements of the tiles that were
 * run, even if others were not; with several phases, each with some of the recipes, all tiles of all must be run. */
int stat_blockrun_whole(const blockrun *r);

/* How a tile is read: through a buffer of so many bytes. The summary is given all elements, in one of the phases. */
typedef struct blocktile_how {
    mpsim_summary *summary;
    void *codes;
    size_t bytes;
} blocktile_how;

/* stat_blockrun_tile -- a tile of a phase. Elements that were given to the summary are counted in *n. 0, or -1 with *error. */
int stat_blockrun_tile(blockrun *r, int phase, uint64_t tile, blocklane *l, const blocktile_how *how, uint64_t *n,
                       trace_error *error);

/* stat_blocklane_take -- add what a lane has found to a group. stat_blockrun_end -- to be called after all lanes, when the group also
 * has the statistics of the n elements. */
void stat_blocklane_take(const blocklane *l, group *g);
void stat_blockrun_end(const blockrun *r, group *g, uint64_t n);

/* ---- blockviews.c: the matrices that recipes quantise, tile by tile: the tensor along rows or columns, as it is or behind
 * a Hadamard transform, and with --axis both also what is quantised along rows first. Each is a view of the tensor. ---- */

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
