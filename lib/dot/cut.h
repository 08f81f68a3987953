/* cut.h -- the fast path of fused additions that keep few bits (fp8 on Hopper and Ada) and truncate: one fused
 * multiply-add a product, in binary32 and the environment that rounds toward zero.
 *
 * With units of 2^(E - F), the last bit that alignment keeps, a sum from 1.5 2^23 units on has no smaller bit and is
 * positive: adding a product rounds it to the integer below. For a positive product that is its truncation. The last bits
 * of b's values are set (MPSIM_CUT_ODD), which makes every product a little larger, by less than its own last
 * bit: the integer below a positive one stays, that below a negative one becomes its truncation - 1, always.
 * So what is missing in the end is the number of negative products, those whose signs differ. The signs of the values of
 * an addition are a word. Zeros become so small numbers (MPSIM_CUT_ZERO, 2^-60) that their products are less than a
 * unit: they count like others.
 *
 * Where x y is rounded before it is added, it is still larger than the product was: MPSIM_CUT_ODD is two units in the
 * last place of y, at least one of x y. */
#pragma once

#include "tile.h"

enum {
    MPSIM_CUT_ODD = 2,
    MPSIM_CUT_ZERO = (127 - 60) << 23,
    MPSIM_CUT_LENGTH = 32 /* products of an addition, bits of a word */
};

/* Rows of a, or the columns of a panel of b (next and next_signs are not used). */
typedef struct mpsim_cut_operand {
    const float *values;
    const int16_t *exponents;
    const uint32_t *signs;   /* by addition: of a row, or of MPSIM_PANEL columns */
    size_t next, next_signs; /* from a row to the next                           */
} mpsim_cut_operand;

/* mpsim_cut_init -- whether this path can do what vectors can (t->vectors). */
int mpsim_cut_init(const mpsim_tile *t, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb);

/* A probe function, in that environment -- whether the machine rounds as it is told; valgrind's does not. */
typedef int mpsim_cut_probe(void);

/* A cut function -- all additions over `depth` products for `rows` rows, as mpsim_fused_function. */
typedef void mpsim_cut_function(const mpsim_tile *t, const mpsim_cut_operand *a, const mpsim_cut_operand *b, float *c,
                                size_t rows, size_t depth, unsigned *redo);
