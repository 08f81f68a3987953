/* special.h -- results where an operand, an addend or a sum is an infinity or a NaN, without the reference.
 *
 * Such a term decides alone, where every place of the model keeps infinities and NaNs (mpsim_specials.can):
 *
 *  - A NaN among the terms, an infinity times zero, infinities of both signs: a NaN. A sum that has one keeps it, and two
 *    infinities meet at the latest in the last sum.
 *  - Else infinities of one sign: that infinity, if no sum of numbers overflows. Any sum of the model has one of those terms, and is
 *    this infinity, or has none, and is the same sum as where these terms are zeros: the fast path has added that, with zeros, and
 *    tells whether one was beyond a place's numbers.
 *
 * Which infinities meet which zeros, and their signs, say words of bits, one bit a product (mpsim_specials_find).
 *
 * The bits of a NaN: most models have a single NaN. In the others, chains and trees, the NaN of an operand decides that comes first
 * (last, where a fused multiply-add takes the product's before the sum's), unless the NaN of an operation without a
 * value came before: that is known not to be where there are no infinities and no overflow. The rest is left to the reference. */
#pragma once

#include "job.h"

/* Bits of mpsim_panels.special, beside the 1 of packing. */
enum { MPSIM_LINE_NAN = 2, MPSIM_LINE_INFINITE = 4 };

/* Of a line, the NaN that decides: its product, or SIZE_MAX; the code of the result; its sign. */
typedef struct mpsim_special_nan {
    size_t k;
    uint64_t code;
    int sign;
} mpsim_special_nan;

/* Lines of an operand, those of their panels. */
typedef struct mpsim_special_lines {
    int any;
    mpsim_kinds *words;      /* of every line, NULL: no line of either operand has an infinity */
    mpsim_special_nan *nans; /* of every line, NULL: any NaN serves, or there are none         */
} mpsim_special_lines;

typedef struct mpsim_specials {
    int can;              /* whether anything can be said                                  */
    int alike;            /* every NaN of an operand has one code                          */
    int last;             /* of an operation the NaN of the product comes before the sum's */
    int signs;            /* a NaN keeps its sign only                                     */
    int overflows;        /* what overflows before the result is an infinity               */
    uint64_t infinite[2]; /* codes of results, by sign                                     */
    uint64_t invalid;     /* that of an operation without a value                          */
    size_t words;         /* of a line                                                     */
    mpsim_special_lines a, b;
} mpsim_specials;

/* mpsim_specials_init -- what the model of a job does with infinities and NaNs. */
void mpsim_specials_init(mpsim_specials *s, const job *g);
void mpsim_specials_free(mpsim_specials *s);

/* mpsim_specials_find -- looks at the lines of a job that packing found special: those of b, and, with `first`, those of a. 0: no
 * memory. */
int mpsim_specials_find(job *g, const mpsim_pool *pool, int first);

/* mpsim_specials_raw -- whether values may be what they are: no NaN depends on whether a sum of numbers overflowed before. */
static inline int mpsim_specials_raw(const job *g)
{
    return g->specials->alike || (g->specials->last && !g->m->chunk);
}

/* mpsim_specials_overflow -- whether what overflows before the result is an infinity, and stays one. */
static inline int mpsim_specials_overflow(const job *g)
{
    return g->specials->can && g->specials->overflows;
}

/* mpsim_specials_decided -- whether NaNs of n rows decide all their results, so that no product need be added; then what a path
 * says of `panels` panels. */
int mpsim_specials_decided(const job *g, size_t first, size_t n, results *to, size_t panels);

/* mpsim_specials_settle -- the codes of row i of a panel, number `at` of the results: *redo becomes the columns that the reference must
 * do. */
void mpsim_specials_settle(const job *g, size_t i, size_t panel, results *to, size_t at, unsigned *redo);
