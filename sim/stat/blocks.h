/* blocks.h -- a tensor, or a piece of it, under the block recipes of a command.
 *
 * A run has phases, one after the other; the tiles of a phase may be taken by any thread, in any order. Where a scale
 * depends on more elements than a tile holds, the first phases look for the amax; the others quantise. Without such
 * recipes there is one phase, and the elements are read once. */
#pragma once

#include "../pass/tiles.h"
#include "group.h"

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
