/* shape.h -- what a product asks of its operands, results and addends, and the shape that follows: for product.c and
 * for products on a device. No code is read. */
#pragma once

#include "stack.h"

typedef struct mpsim_product_shape {
    mpsim_outer outer;
    size_t rows, columns, depth, matrices; /* depth: after the limit */
    mpsim_steps d, bias, add, start;
    const mpsim_format *numbers; /* that results are rounded to */
    int wide;                    /* what follows the sum is computed in binary64 */
} mpsim_product_shape;

/* mpsim_is_within -- whether g has all magnitudes of f, and an infinity if f has one. */
int mpsim_is_within(const mpsim_format *f, const mpsim_format *g);

/* mpsim_product_shape_of -- the statuses of mpsim_product_run, but that of the outer dimensions of operands, which
 * mpsim_steps_in checks. */
mpsim_status mpsim_product_shape_of(mpsim_product_shape *s, const mpsim_product *p);
