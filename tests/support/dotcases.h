/* dotcases.h -- operands for the tests of dot products and matrix products. */
#pragma once

#include <mpsim/dot.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of operands. */
enum {
    DOT_BITS,    /* random bit patterns: NaNs, infinities, subnormals included              */
    DOT_NORMAL,  /* around 1                                                                */
    DOT_ZEROS,   /* around 1, three in four are +0 or -0                                    */
    DOT_CANCEL,  /* around 1, in pairs of opposite products, at random places               */
    DOT_EXTREME, /* the ends of the format: zeros, smallest, largest, 1                     */
    DOT_FINITE,  /* random bit patterns of numbers                                          */
    DOT_SPECIAL, /* around 1, a few infinities and NaNs                                     */
    DOT_TINY,    /* products near the smallest number of the result                         */
    DOT_HUGE,    /* products near the largest number of the result                          */
    DOT_KINDS
};
const char *dot_kind(int kind); /* for messages */

/* dot_fill -- n codes a and b of that kind, for results of format fr. */
void dot_fill(const mpsim_format *fa, uint64_t *a, const mpsim_format *fb, uint64_t *b, size_t n,
              const mpsim_format *fr, int kind, uint64_t *seed);

/* dot_addend -- a code c for products of that kind. */
uint64_t dot_addend(const mpsim_format *fr, int kind, uint64_t *seed);

/* dot_pack, dot_unpack -- codes to an array as the library takes it, and back, from element
 * `first` of the array on. */
void dot_pack(const mpsim_format *f, void *out, size_t first, const uint64_t *codes, size_t n);
uint64_t dot_unpack(const mpsim_format *f, const void *in, size_t i);

/* dot_formats -- operand formats for a model: all that its row lists, or a choice for a model that
 * takes any. Returns their number, at most room. */
size_t dot_formats(const mpsim_model *m, mpsim_format *list, size_t room);

/* Formats of every kind, typed and from the table, for operands and for models. */
enum { DOT_FORMATS = 25 };
mpsim_format dot_format(size_t i);

/* dot_any_model -- a random valid model: additions, orders, lengths, formats, modes and choices
 * that no table has. dot_print_model prints one as TAP comments. */
void dot_any_model(mpsim_model *m, uint64_t *seed);
void dot_print_model(const mpsim_model *m);
