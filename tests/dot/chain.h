/* chain.h -- problems of t-chain.c and t-chain-corners.c: one product at a time (support/products.h), its numbers, and the comparison. */
#pragma once

#include "support/products.h"
#include "support/support.h"

#include <mpsim/mpsim.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])

/* Numbers of a product. */
enum {
    CHAIN_BITS,    /* random bit patterns                                      */
    CHAIN_NORMAL,  /* around 1                                                 */
    CHAIN_ZEROS,   /* around 1, three in four are zeros of either sign         */
    CHAIN_SPREAD,  /* exponents over a range that a problem draws              */
    CHAIN_COARSE,  /* few bits: sums that are ties                             */
    CHAIN_TINY,    /* products near the smallest number of binary32            */
    CHAIN_HUGE,    /* products near the largest number of binary32             */
    CHAIN_SPECIAL, /* around 1, a few infinities and NaNs                      */
    CHAIN_KINDS
};

extern product chain;
extern mpsim_model chain_model;
enum { CHAIN_FORMATS = 20 };
extern const char *const chain_formats[CHAIN_FORMATS];

mpsim_format chain_format(const char *name);
/* chain_code -- the code of a number, the largest one where it overflows. chain_draw -- a number of a kind. */
uint64_t chain_code(const mpsim_format *f, double x);
uint64_t chain_draw(const mpsim_format *f, int kind, int range, uint64_t *seed);
double chain_uniform(uint64_t *seed); /* in (-1, 1) */

/* chain_new -- forget the product and begin another one. chain_fill -- all its numbers. */
void chain_new(const char *model, const mpsim_format *fa, const mpsim_format *fb, size_t rows, size_t columns,
               size_t depth, uint64_t *seed);
void chain_fill(int kind, uint64_t *seed);
/* chain_check -- compare with every instruction set; chain_solve and chain_check_once are its parts. */
void chain_check(void);
void chain_solve(void);
void chain_check_once(const char *with);
void chain_end(void); /* after each test: says what was compared */
