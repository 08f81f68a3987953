/* loops.h -- the loops over elements of one binade, a unit for each instruction set; see cells.h.
 *
 * An element of a binade is its significand, an integer in [2^23, 2^24). Arrays of them hold at most
 * MPSIM_CELL_BLOCK and room for a whole vector; zeros fill the last vector. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { MPSIM_CELL_BLOCK = 512, MPSIM_CELL_ROOM = MPSIM_CELL_BLOCK + 16 };

/* Buffers: two for each value of the top 9 bits of a word. */
enum { MPSIM_KEYS = 512, MPSIM_BUFFERS = 2 * MPSIM_KEYS };

typedef struct mpsim_cell_sums {
    uint64_t sum, squares;
    uint32_t min, max; /* of the significands                                             */
    uint32_t low;      /* the least of their low bits: 0 if any has none of the bits asked */
} mpsim_cell_sums;

typedef struct mpsim_drop_sums {
    uint64_t squares; /* of the values of the dropped bits                    */
    int raises;       /* 1: a relative error may be above the bound; 0: none is */
} mpsim_drop_sums;

enum { MPSIM_CHAIN = 4 }; /* drops that are summed in one pass */

/* The largest relative error so far: error / significand; 0 / 1 if there is none. */
typedef struct mpsim_ratio {
    uint32_t error, sig;
} mpsim_ratio;

/* What becomes of the bits that are dropped. */
enum { MPSIM_CELL_NEAREST, MPSIM_CELL_TRUNCATED, MPSIM_CELL_KINDS };

/* Counters of elements: [interval between cuts][exponent][zeros at the end of the fraction]; those that
 * are used most share a line of the cache. The cuts are ascending significands. */
enum {
    MPSIM_CUTS = 15,
    MPSIM_ROW = 32,
    MPSIM_SHEET = 256 * MPSIM_ROW + 16,
    MPSIM_BINS = (MPSIM_CUTS + 1) * MPSIM_SHEET
};

typedef struct mpsim_bin_job {
    uint32_t *bins; /* NULL: none yet */
    uint32_t cuts[MPSIM_CUTS];
    uint32_t n_cuts;
    uint32_t min, max; /* magnitudes, but of zeros; twice, of the block that was counted last */
} mpsim_bin_job;

typedef struct mpsim_cell_loops {
    /* Put the words of x to buffers by their top 9 bits, every second word `second` buffers further on,
     * at[buffer] being the next free word, until one is full, i.e. at a multiple of MPSIM_CELL_BLOCK.
     * The number of words taken; *full: that buffer, MPSIM_BUFFERS if there is none. */
    size_t (*distribute)(uint32_t *buffers, uint32_t *at, const void *x, size_t n, uint32_t second, uint32_t *full);
    /* Count n <= MPSIM_CELL_BLOCK words, a multiple of 32; 0 if any is subnormal: nothing was counted. */
    int (*bin)(mpsim_bin_job *job, const void *x, size_t n);
    /* Words of a binade -> significands, and their sums; `low`: the low bits asked for. */
    void (*sums)(mpsim_cell_sums *s, uint32_t *x, size_t n, uint32_t low);
    /* The words below `cut` stay in x, the others go to `above`; returns how many stay. */
    size_t (*split)(uint32_t *x, uint32_t *above, size_t n, uint32_t cut);
    /* s[i]: of drop + i bits, for i < count <= MPSIM_CHAIN; bound[i]: of relative errors, a little less, or 0. */
    void (*drops[MPSIM_CELL_KINDS])(mpsim_drop_sums *s, const uint32_t *sig, size_t n, int drop, int count,
                                    const float *bound);
    /* How many have a bit of `bits`; how many are at least `cut`. */
    size_t (*with_bits)(const uint32_t *sig, size_t n, uint32_t bits);
    size_t (*at_least)(const uint32_t *sig, size_t n, uint32_t cut);
    /* Raise *best to the largest relative error of the significands, too. */
    void (*raise[MPSIM_CELL_KINDS])(mpsim_ratio *best, const uint32_t *sig, size_t n, int drop);
} mpsim_cell_loops;

extern const mpsim_cell_loops mpsim_cell_loops_generic;
extern const mpsim_cell_loops mpsim_cell_loops_avx2;
extern const mpsim_cell_loops mpsim_cell_loops_avx512;
