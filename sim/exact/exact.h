/* exact.h -- real numbers as people type them, without an error: 0.1 is one tenth. An operation on such numbers is
 * exact as well, and its result is rounded once.
 *
 * The result reaches the library as the fma of three binary64 numbers that hold its first 105 bits and a sticky
 * bit, and is rounded there. */
#pragma once

#include "natural.h"

#include <mpsim/arith.h>

/* What a text stands for: (-1)^negative top / bottom 2^power; or, where it is special, an infinity or a NaN.
 * `nearest` is the number of binary64 that is nearest to it. A NaN that was given as a code keeps the code, because
 * binary64 on its way through the machine is made quiet. */
typedef struct exact_number {
    int special;
    int negative;
    const mpsim_format *nan_of; /* the format of that code; NULL: no NaN, or none that was given as a code */
    uint64_t nan;
    natural top, bottom;
    long power;
    double nearest;
} exact_number;

/* Characters of a number: so many that every number of binary64 can be written in full. */
enum { EXACT_LONGEST = 1100 };

/* exact_parse -- decimal (0.1, 1e-3), hexadecimal with a point or a p (0x1.8, 0x1p-3), a power of two (2^-14), inf or
 * nan, with a sign. 0, NUMBER_BAD or NUMBER_RANGE of text/option.h; a text that is too long is NUMBER_RANGE. */
int exact_parse(exact_number *x, const char *text);

/* exact_is_code -- whether a text is 0x with hexadecimal digits alone, or that behind a sign: not a number but a code. */
int exact_is_code(const char *text);

/* exact_of -- the number x of binary64. exact_of_code -- the number of a code of f, which must outlive x. exact_is_binary64 -- whether it is one. exact_is_below -- whether its magnitude
 * is less than `bound`. */
void exact_of(exact_number *x, double value);
void exact_of_code(exact_number *x, const mpsim_format *f, uint64_t code);
int exact_is_binary64(const exact_number *x);
int exact_is_below(const exact_number *x, double bound);

/* exact_apply -- the operation, rounded once to the format of the result. As mpsim_arith_apply with operands that no
 * format bounds, but for flushing: that of inputs is not done. *tiny receives what mpsim_arith_tiny says; may be NULL. */
uint64_t exact_apply(mpsim_op op, const mpsim_format *result, const mpsim_rounding *r,
                     const exact_number *const operands[3], uint32_t random, unsigned *flags, unsigned *tiny);

/* exact_encode -- x in the format f: as mpsim_encode_f64, with its scale, its flushing and its way by binary32, of a
 * number that need not be one of binary64. */
uint64_t exact_encode(const mpsim_format *f, const mpsim_rounding *r, const exact_number *x, uint32_t random,
                      unsigned *flags, unsigned *tiny);

/* exact_combine -- z = a + b, a - b, a b or a / b, not rounded; both are finite, and so is the result. As often as it is
 * used on results, natural.h must hold them: twice is safe. */
void exact_combine(exact_number *z, mpsim_op op, const exact_number *a, const exact_number *b);
