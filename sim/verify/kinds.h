/* kinds.h -- operands of dot products, of nine kinds: for mpsim verify and for tests. */
#pragma once

#include <mpsim/round.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KIND_BITS,    /* random bit patterns: NaNs, infinities, subnormals included              */
    KIND_NORMAL,  /* around 1                                                                */
    KIND_ZEROS,   /* around 1, three in four are +0 or -0                                    */
    KIND_CANCEL,  /* around 1, in pairs of opposite products, at random places               */
    KIND_EXTREME, /* the ends of the format: zeros, smallest, largest, 1                     */
    KIND_FINITE,  /* random bit patterns of numbers                                          */
    KIND_SPECIAL, /* around 1, a few infinities and NaNs                                     */
    KIND_TINY,    /* products near the smallest number of the result                         */
    KIND_HUGE,    /* products near the largest number of the result                          */
    KINDS
};
const char *verify_kinds_name(int kind);

/* verify_kinds_word -- 64 well mixed bits; *state is the position in the sequence (SplitMix64). */
uint64_t verify_kinds_word(uint64_t *state);

/* verify_kinds_fill -- n codes a and b of that kind, for results of format fr. */
void verify_kinds_fill(const mpsim_format *fa, uint64_t *a, const mpsim_format *fb, uint64_t *b, size_t n,
                       const mpsim_format *fr, int kind, uint64_t *seed);

/* verify_kinds_addend -- a code c for products of that kind. */
uint64_t verify_kinds_addend(const mpsim_format *fr, int kind, uint64_t *seed);
