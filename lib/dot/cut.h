/* cut.h -- the fast path of fused additions that keep few bits (fp8 on Hopper and Ada) and truncate: one fused
 * multiply-add a product, in binary32 and the environment that rounds toward zero.
 *
 * With units of 2^(E - F), the last bit that alignment keeps, a sum from 1.5 2^23 units on has no smaller bit and is
 * positive: adding a product rounds it to the integer below. For a positive product that is its truncation. The last bits
 * of b's values are set (MPSIM_CUT_ODD), which makes every product a little larger, by less than its own last
 * bit: the integer below a positive one stays, that below a negative one becomes its truncation - 1, always.
 * So what is missing in the end is the number of negative products, those whose signs differ. The signs of the values of
 * an addition are a word. Zeros become so small numbers (MPSIM_CUT_ZERO, 2^-60) that their products are less than a
 * unit: they count like others. The accumulator is added last, with its last bit set, too.
 *
 * The exponents of products are bytes, those of a and of b added: byte k % 4 of a lane has the largest of its k, and at the
 * end the highest byte that of all, where the exponent of the accumulator stands, too.
 *
 * Where E is below the least exponent of a product, all products are zeros, and they would be more than a unit: E is
 * not less. That changes nothing for an accumulator that is zero or was a sum of this kind, a multiple of that
 * least unit. A lane that begins with a smaller one, or one so large that sums could leave the range, is looked at
 * in every addition until it is ready.
 *
 * The other fused additions that truncate have the same chains in binary64, from 1.5 2^52 units on: `wide`. Exponents
 * are fields of binary64 there, in 16 bits, those of an even product and the next side by side; the accumulator's sign is
 * the last bit of the word of signs. Zeros are MPSIM_WIDE_ZERO: less than a unit whatever E is. No exponent is out of
 * range; results are where they could be below the normal numbers of the accumulator or beyond them, which the
 * ranges of lines say: `tested`.
 *
 * Additions in two stages (staged.h) have a chain for each sum of products, which is exact: the chain less its base. A number
 * with the base 1.5 2^52 units of 2^(E - kept - 1) takes the accumulator, loses its bits below 2^(E - F), and takes the sum of
 * products: the integer below, each time. Less its base it is exact, and is the integer below in units of its kept + 1
 * highest bits after the same again; the last rounding is that of the sum with 1.5 2^29 times its power of two.
 *
 * Where x y is rounded before it is added, it is still larger than the product was: MPSIM_CUT_ODD is two units in the
 * last place of y, at least one of x y.
 *
 * What bounds it (make bench, rows `chain`): operations on vectors, of which the machine does two a cycle. For 16
 * columns an fp8 addition of 32 products takes 65: 32 multiply-adds, 16 for exponents (four at a time, as bytes)
 * and 17 at the end. So 0.49 of the peak is possible if one unit does all (Intel); 0.37 is measured, 36 G products
 * a second on a core of 3.59 GHz by its cycles; packing takes an eighth. If sums have units of their own (AMD), the
 * multiply-adds alone bound it. Without VPOPCNTDQ 10 more operations count bits. In binary64 (fp16, bf16, tf32) L
 * products take 2 L multiply-adds, L for exponents (two at a time) and 23 at the end; a sum in two stages (CDNA3)
 * ends with 37. In fractions of the peak in binary64:
 *
 *   products an addition   operations   at most   measured   G/s at 3.59 GHz
 *   16                     71           0.45      0.33       19
 *   8                      47           0.34      0.25       15
 *   4                      35           0.23      0.17       10
 *   8, two stages          61           0.26      0.2        11 */
#pragma once

#include "tile.h"

enum {
    MPSIM_CUT_ODD = 2,
    MPSIM_CUT_ZERO = (127 - 60) << 23,
    MPSIM_CUT_LENGTH = 32, /* products of an addition, bits of a word */
    MPSIM_CUT_BIAS_A = 63, /* of the bytes of exponents, which are 0 for zeros */
    MPSIM_CUT_BIAS_B = 64
};

/* Rows of a, or the columns of a panel of b (next and next_signs are not used). */
typedef struct mpsim_cut_operand {
    const float *values;
    const uint8_t *exponents;
    const uint32_t *signs;   /* by addition: of a row, or of MPSIM_PANEL columns */
    size_t next, next_signs; /* from a row to the next                           */
} mpsim_cut_operand;

enum {
    MPSIM_WIDE_LENGTH = 16, /* products of an addition             */
    MPSIM_WIDE_BIAS_A = 600,
    MPSIM_WIDE_BIAS_B = 423, /* together that of binary64           */
    MPSIM_WIDE_LOWEST = -300 /* below E of any number that is not 0 */
};
#define MPSIM_WIDE_ZERO 0x1p-480    /* of operands */
#define MPSIM_WIDE_NOTHING 0x1p-400 /* of sums     */

/* Lines of an addition as they are stored: a row, or a panel's columns.
 * low and high: fields of the exponents as binary32 has them, by line, widened to those of values but zero. */
typedef struct mpsim_wide_line {
    double *values;
    int16_t *exponents, *low, *high;
    uint32_t *signs;
} mpsim_wide_line;

/* As mpsim_cut_operand. */
typedef struct mpsim_wide_operand {
    const double *values;
    const int16_t *exponents;
    const uint32_t *signs;
    size_t next, next_signs;
} mpsim_wide_operand;

int mpsim_wide_init(const mpsim_tile *t, const mpsim_model *m);

/* As mpsim_cut_function. tested: results may be no ordinary numbers. */
typedef void mpsim_wide_function(const mpsim_tile *t, int tested, const mpsim_wide_operand *a,
                                 const mpsim_wide_operand *b, float *c, size_t rows, size_t depth, unsigned *redo);

/* mpsim_cut_init -- whether this path can do what vectors can (t->vectors). */
int mpsim_cut_init(const mpsim_tile *t, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb);

/* mpsim_cut_is_tame -- whether sums of `depth` products and a number below 2^(MPSIM_TILE_HIGH - 1) are below 2^MPSIM_TILE_HIGH. */
int mpsim_cut_is_tame(const mpsim_format *fa, const mpsim_format *fb, size_t depth);

/* A probe function, in that environment -- whether the machine obeys the rounding mode; valgrind does not. */
typedef int mpsim_cut_probe(void);

/* A cut function -- all additions over `depth` products for `rows` rows, as mpsim_fused_function. */
typedef void mpsim_cut_function(const mpsim_tile *t, const mpsim_cut_operand *a, const mpsim_cut_operand *b, float *c,
                                size_t rows, size_t depth, unsigned *redo);
