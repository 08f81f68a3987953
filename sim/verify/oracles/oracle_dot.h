/* oracle_dot.h -- the independent answer for dot products under a model.
 *
 * The sentences of <mpsim/dot.h>, computed with GMP's integers: every sum and every aligned term
 * is exact, every rounding is floor and remainder as round.h defines them, every choice is
 * oracle_finish. Of the library it takes the description of the model only (the fields of
 * mpsim_model, the names of its formats): no code, no table, no constant.
 *
 * Not for threads: the GMP variables are static. */
#pragma once

#include "oracle.h"

#include <mpsim/dot.h>
#include <stddef.h>
#include <stdint.h>

/* oracle_dot_format -- oracle_find, and behind it eXmY without options as format.h defines it: an
 * IEEE 754 layout (e8m13, the accumulator of some tensor cores). NULL for others. */
const oracle_format *oracle_dot_format(const char *name);

/* A model with the oracle's own formats. */
typedef struct oracle_model {
    const mpsim_model *model;
    const oracle_format *product, *accumulator, *outer, *result; /* NULL: unused by the model */
} oracle_model;

/* oracle_model_init -- 1, or 0 if the oracle does not know a format that the model uses. *m is
 * kept, not copied. */
int oracle_model_init(oracle_model *om, const mpsim_model *m);

/* The j-th random word of a dot product: asked for once for every rounding of a stochastic mode. */
typedef uint32_t oracle_word(void *self, uint64_t j);

/* oracle_dot -- the code of c + a[0] b[0] + ... + a[n-1] b[n-1], as mpsim_dot defines it.
 *
 *   a, b  one code an element
 *   word  may be NULL if no mode is stochastic */
uint64_t oracle_dot(const oracle_model *om, const oracle_format *fa, const uint64_t *a, const oracle_format *fb,
                    const uint64_t *b, size_t n, uint64_t c, oracle_word *word, void *self);
