/* arith.h -- correctly rounded operations between any formats, and comparisons.
 *
 * The operands are numbers of any formats, the same or different ones; the result is the exact
 * value of the operation rounded once to the result's format, by the mode and choices of
 * mpsim/round.h. There is no intermediate format, also in fma and in division.
 *
 * No result depends on the floating-point environment of the caller, which is left as it is. */
#ifndef MPSIM_ARITH_H
#define MPSIM_ARITH_H

#include <mpsim/round.h>

MPSIM_BEGIN

typedef enum mpsim_op {
    MPSIM_OP_CONVERT, /* a                 */
    MPSIM_OP_ADD,     /* a + b             */
    MPSIM_OP_SUB,     /* a - b             */
    MPSIM_OP_MUL,     /* a * b             */
    MPSIM_OP_DIV,     /* a / b             */
    MPSIM_OP_SQRT,    /* square root of a  */
    MPSIM_OP_FMA,     /* a * b + c         */
    MPSIM_OPS         /* number of operations */
} mpsim_op;

/* Values follow IEEE 754-2019, sections 5.4.1, 6.1, 6.2 and 6.3, in every format:
 *
 *   zeros      A sum of zeros of one sign keeps it. A sum (also of fma) that is exactly zero
 *              otherwise is +0, or -0 in mode DOWN. Products and quotients take the sign of both
 *              operands; the root of -0 is -0.
 *   infinity   An exact infinity (inf + x, x / 0, ...) follows the choices for infinities, not
 *              those for overflow: r->infinity, r->no_inf.
 *   NaN        If an operand is NaN, the first one in the order a, b, c counts as the input of the
 *              NaN choices, with its sign and payload. An operation without a value (inf - inf,
 *              0 * inf, also with a number as c, 0 / 0, inf / inf, the root of a negative number)
 *              gives a NaN with a clear sign and no payload to the same choices.
 *   flushing   With r->flush_input a finite operand smaller in magnitude than r->flush_below (0:
 *              than the smallest normal number of its own format) is read as zero of its sign, and
 *              flags describe the operation on what was read. r->flush_output is as in round.h.
 *   scale      r->scale must be 1: there is no scaled arithmetic. */
typedef struct mpsim_arith {
    mpsim_op op;
    mpsim_format result;
    mpsim_format operand[3]; /* of a, b, c; those beyond the operation's are ignored */
    mpsim_rounding rounding;
} mpsim_arith;

/* More of MPSIM_FLAG_*: MPSIM_FLAG_NAN is set too when MPSIM_FLAG_INVALID is. */
enum {
    MPSIM_FLAG_INVALID = 32,  /* no operand is NaN, and the operation has no value          */
    MPSIM_FLAG_DIVBYZERO = 64 /* a finite non-zero number was divided by zero               */
};
/* The others mean: INEXACT, the exact value is finite and the result is not it; UNDERFLOW, the exact
 * value is not zero and the result is; SUBNORMAL; OVERFLOW, as in round.h; NAN, an operand is NaN, or
 * INVALID. */

/* mpsim_op_name, mpsim_op_parse, mpsim_op_operands -- operations by name ("convert", "add",
 * "sub", "mul", "div", "sqrt", "fma", in any letter case) and their number of operands, 1 to 3.
 * NULL, MPSIM_ENOTFOUND and 0 for an unknown one; MPSIM_EINVAL for a NULL pointer. */
MPSIM_API const char *mpsim_op_name(mpsim_op op);
MPSIM_API mpsim_status mpsim_op_parse(mpsim_op *op, const char *name);
MPSIM_API int mpsim_op_operands(mpsim_op op);

/* mpsim_arith_init -- the operation in one format, for operands and result, with the default
 * rounding of that mode (see mpsim_rounding_init). Change the fields for mixed formats. */
MPSIM_API void mpsim_arith_init(mpsim_arith *o, mpsim_op op, const mpsim_format *f, mpsim_round_mode mode);

/* mpsim_arith_check -- MPSIM_OK if operation, formats and rounding are valid and the scale is 1,
 * else MPSIM_EINVAL. */
MPSIM_API mpsim_status mpsim_arith_check(const mpsim_arith *o);

/* mpsim_arith_apply -- the code of the result.
 *
 *   a, b, c  codes of the operands' formats; bits above their width are ignored
 *   random   32 random bits, used by the stochastic modes only
 *   flags    NULL, or receives MPSIM_FLAG_*
 *
 * o must be valid (mpsim_arith_check); nothing else is required. */
MPSIM_API uint64_t mpsim_arith_apply(const mpsim_arith *o, uint64_t a, uint64_t b, uint64_t c, uint32_t random,
                                     unsigned *flags);

/* mpsim_arith_tiny -- is the exact value tiny in the result's format? A set of MPSIM_TINY_*: see
 * mpsim_tiny_f64. The same arguments as for mpsim_arith_apply. */
MPSIM_API unsigned mpsim_arith_tiny(const mpsim_arith *o, uint64_t a, uint64_t b, uint64_t c, uint32_t random);

/* mpsim_arith_array -- result[i] = operation on a[i], b[i], c[i], for 0 <= i < n.
 *
 *   result, a, b, c  arrays of n codes of mpsim_format_code_bytes of their formats each, host byte
 *                    order, any alignment; operands that the operation lacks may be NULL; the
 *                    result may be the same array as an operand whose codes have its size, and
 *                    must not overlap operands otherwise
 *   rng              element i takes the random word of index rng->index + i; may be NULL unless
 *                    the mode is stochastic
 *   counts           NULL, or counters that are added to (an INVALID counts as nan)
 *
 * MPSIM_EINVAL if o is invalid or a needed pointer is NULL (of arrays, if n > 0); outputs are
 * untouched then. */
MPSIM_API mpsim_status mpsim_arith_array(const mpsim_arith *o, const mpsim_rng *rng, void *result, const void *a,
                                         const void *b, const void *c, size_t n, mpsim_counts *counts);

/* How two numbers compare, by value: -0 equals +0; a NaN is unordered to everything. */
enum { MPSIM_LESS = -1, MPSIM_EQUAL = 0, MPSIM_GREATER = 1, MPSIM_UNORDERED = 2 };

/* mpsim_compare -- how the number a of format fa compares to the number b of format fb: one of the
 * four above. Exact: neither is rounded. The formats must be valid. */
MPSIM_API int mpsim_compare(const mpsim_format *fa, uint64_t a, const mpsim_format *fb, uint64_t b);

MPSIM_END

#endif
