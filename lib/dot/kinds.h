/* kinds.h -- which codes of lines are infinities, NaNs and zeros, and their signs, as bits. */
#pragma once

#include "panel.h"

/* 64 products of a line. */
typedef struct mpsim_kinds {
    uint64_t infinite, nan, zero, minus;
} mpsim_kinds;

/* How codes of at most 32 bits are told apart, by their magnitudes. */
typedef struct mpsim_kinds_reader {
    size_t bytes;
    uint64_t magnitude, sign; /* bits of a code; sign: 0 if there is none                  */
    uint64_t most, infinity;  /* the largest number; infinity, or a magnitude that none has */
    uint64_t zeros;           /* magnitudes below are read as zeros                        */
    int negzero;              /* a zero with a sign is NaN                                 */
} mpsim_kinds_reader;

/* A kinds function -- `words` words of codes that stand side by side. r->bytes <= 4. */
typedef void mpsim_kinds_function(const mpsim_kinds_reader *r, const void *codes, mpsim_kinds *to, size_t words);

enum { MPSIM_KINDS_WORDS = 2 /* that are read at once */ };

/* mpsim_kinds_reader_of -- that of the codes of x as they are entered; flushes: subnormal numbers are read as zeros. */
mpsim_kinds_reader mpsim_kinds_reader_of(const mpsim_lines *x, int flushes);

/* mpsim_read_kinds -- up to MPSIM_KINDS_WORDS words from number `word` on of n <= MPSIM_PANEL lines from `first` on. In the default
 * environment. */
void mpsim_read_kinds(const mpsim_lines *x, const mpsim_kinds_reader *r, mpsim_kinds_function *read, size_t first,
                      size_t n, size_t word, mpsim_kinds (*to)[MPSIM_KINDS_WORDS]);
