/* cells.h -- binary32 elements, summed up binade by binade for many casts at once.
 *
 * A cast that mpsim_target_init accepts drops the same number of bits from every significand of a
 * binade. So the elements are distributed over buffers by their exponents, and of a full buffer, in
 * vectors of integers, the significands are summed, their squares, and for each number of bits that any
 * cast drops in this binade the squares of the residues. Where a cast becomes another function within a
 * binade (overflow, flushing), the binade is split into cells. What a cast does to an array then follows
 * from its cells (resolve.c), at a cost that does not depend on the number of elements.
 *
 * What bounds `stat` with errors (make bench, rows `summary` and `sweep`): an element goes to the buffer of its
 * binade, two stores and a load that waits for the store before it. That takes 3.1 to 3.6 of the 6 cycles of four
 * formats, from memory as from the cache, so overlapping the reading would gain nothing (pread is 0.13 of 2.4 ns).
 * A pass over a full buffer takes 15 operations for 16 elements and one number of dropped bits, and 6 for each
 * further number. 25 scales of four formats need up to 12 such numbers in a binade: a sweep has 0.67 to 0.71 of the
 * speed of one scale if exponents cover 60 binades, and 0.5 if all elements are subnormal in every format. */
#pragma once

#include "loops/loops.h"
#include "target.h"

enum { MPSIM_DROPS = 25, MPSIM_BINADES = 256 };

/* Of one number of dropped bits. */
typedef struct mpsim_drop {
    mpsim_wide squares;  /* of the residues, all of the cell together */
    mpsim_ratio largest; /* relative error                            */
} mpsim_drop;

/* The elements of magnitude [from, below), words of binary32. */
typedef struct mpsim_cell {
    uint32_t from, below;
    uint64_t n;      /* if 0, nothing below is valid                                     */
    uint64_t sum[2]; /* of the significands, positive and negative numbers               */
    mpsim_wide squares;
    uint32_t min, max;           /* significands                                                     */
    uint64_t exact[MPSIM_DROPS]; /* [d]: how many have d zeros at their end                   */
    mpsim_drop drops[MPSIM_CELL_KINDS][MPSIM_DROPS];
    uint64_t *reached; /* [i]: how many reach cut i of the binade                          */
} mpsim_cell;

/* A binade: its cells, the cuts at which casts count otherwise but round alike (words), the drops that
 * are summed (bit MPSIM_DROPS * kind + d), and whether a cast needs its elements one by one. */
typedef struct mpsim_binade {
    uint32_t first_cell, cells, first_cut, cuts;
    uint64_t drops;
    uint32_t exact; /* bit d: `exact` is wanted */
    int left;
} mpsim_binade;

/* Elements that cells cannot answer for: n words that were not added anywhere; of all casts if target
 * is NULL, otherwise those of its cast alone. */
typedef void mpsim_cells_leave(void *context, const mpsim_target *target, const uint32_t *words, size_t n);
/* The same of one word that occurs so often. */
typedef void mpsim_cells_repeat(void *context, const mpsim_target *target, uint32_t word, uint64_t times);

typedef struct mpsim_cells {
    mpsim_target *targets;
    size_t n_targets;
    mpsim_binade binades[MPSIM_BINADES];
    mpsim_cell *cells;
    size_t n_cells;
    uint32_t *cuts;
    uint64_t *reached;
    uint64_t zero, inf, nan;
    uint32_t min, max; /* magnitudes of elements whose cells do not know them; ~0, 0: none */
    uint32_t *buffers;
    uint32_t at[MPSIM_BUFFERS];   /* the next free word of each buffer */
    int pending;                  /* some may wait there               */
    uint32_t used[MPSIM_BINADES]; /* keys of the binades that have elements */
    size_t n_used;
    const mpsim_cell_loops *loops; /* that were used last */
    mpsim_cells_leave *leave;
    mpsim_cells_repeat *repeat;
    void *context;
} mpsim_cells;

/* Prepare for these targets, which become the cells', with errors or counts alone; forgets everything. */
mpsim_status mpsim_cells_plan(mpsim_cells *m, mpsim_target *targets, size_t n, int errors);
void mpsim_cells_free(mpsim_cells *m);
void mpsim_cells_forget(mpsim_cells *m);

/* The loops of the active instruction set; NULL: the scalar way was chosen, which has none. */
const mpsim_cell_loops *mpsim_cells_loops(void);

/* Add n binary32 numbers at any alignment. Some wait in the buffers until mpsim_cells_settle. */
mpsim_status mpsim_cells_add(mpsim_cells *m, const mpsim_cell_loops *loops, const void *x, size_t n);
void mpsim_cells_settle(mpsim_cells *m);

/* Add n ascending words of one sign, each as often as its weight says. */
void mpsim_cells_add_weighted(mpsim_cells *m, const uint32_t *words, const uint64_t *weights, size_t n);

/* to += from, both settled and planned alike. */
void mpsim_cells_merge(mpsim_cells *to, const mpsim_cells *from);

/* cell.c: one cell of a binade. Words of one sign; they become significands, and there is room for a
 * whole vector after them. */
void mpsim_cell_add(mpsim_cells *m, uint32_t key, mpsim_cell *c, uint32_t *words, size_t n);
void mpsim_cell_add_weighted(mpsim_cells *m, uint32_t key, mpsim_cell *c, const uint32_t *words,
                             const uint64_t *weights, size_t n);
/* n elements of which only is known: their fractions, the low 23 bits, are at least `from`, with no cut in
 * between but one at 1, and have so many zeros at their end (23: they are 0). Not their extremes. */
void mpsim_cell_add_counted(mpsim_cells *m, uint32_t key, mpsim_cell *c, uint32_t from, int zeros, uint64_t n);
void mpsim_cell_merge(mpsim_cells *m, uint32_t key, mpsim_cell *to, const mpsim_cell *from);

/* The cells of a key. */
static inline mpsim_cell *mpsim_cells_of(const mpsim_cells *m, uint32_t key)
{
    return m->cells + m->binades[key].first_cell;
}

/* resolve.c: what the cells say, added to the caller's accumulators; of casts, by their indices. */
void mpsim_cells_stats(const mpsim_cells *m, int sums, mpsim_stats *to);
void mpsim_cells_histogram(const mpsim_cells *m, mpsim_histogram *to);
void mpsim_cells_casts(const mpsim_cells *m, int errors, mpsim_cast_stats *to);
