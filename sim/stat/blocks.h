/* blocks.h -- a tensor, or a piece of it, under the block recipes of a command, from one reading where that is enough.
 *
 * A run has phases, whose tiles may be worked through by any thread in any order, but all of a phase before the next. The
 * first ones look for the largest magnitudes where a scale is of more than a tile holds. */
#ifndef MPSIM_SIM_STAT_BLOCKS_H
#define MPSIM_SIM_STAT_BLOCKS_H

#include "../pass/tiles.h"
#include "group.h"

typedef struct blockrun blockrun;
typedef struct blocklane blocklane; /* what a thread needs for it: buffers, and what it has found */

/* NULL: out of memory. `targets` must outlive it. */
blocklane *blocklane_new(const target_list *targets);
void blocklane_free(blocklane *l); /* accepts NULL */
void blocklane_begin(blocklane *l); /* nothing is found */

typedef struct blockrun_of {
    trace *t;
    size_t i;
    uint64_t first, n; /* whole blocks: block_align */
    uint64_t seed, stream;
} blockrun_of;

/* blockrun_new -- NULL with *error. Until *asked is not 0 (NULL: never): after that what is there is of no use. */
blockrun *blockrun_new(const blockrun_of *of, const target_list *targets, const volatile sig_atomic_t *asked,
                       trace_error *error);
void blockrun_free(blockrun *r); /* accepts NULL */

int blockrun_phases(const blockrun *r);
uint64_t blockrun_tiles(const blockrun *r, int phase);
/* blockrun_whole -- whether one phase quantises, so that what some of its tiles gave is something. */
int blockrun_whole(const blockrun *r);

/* How a tile is read: through `codes` of `bytes`; the summary is told of its elements, in one phase. */
typedef struct blocktile_how {
    mpsim_summary *summary;
    void *codes;
    size_t bytes;
} blocktile_how;

/* blockrun_tile -- a tile of a phase. In one phase the summary is told of the elements, and their number added to *n.
 * 0, or -1 with *error. */
int blockrun_tile(blockrun *r, int phase, uint64_t tile, blocklane *l, const blocktile_how *how, uint64_t *n,
                  trace_error *error);

/* blocklane_take -- what a lane has found, added to a group. blockrun_end -- that was all of it, of n elements whose
 * statistics the group has. */
void blocklane_take(const blocklane *l, group *g);
void blockrun_end(const blockrun *r, group *g, uint64_t n);

#endif
