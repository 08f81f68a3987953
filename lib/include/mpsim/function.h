/* function.h -- correctly rounded exp, log and tanh in any format.
 *
 * The result is the true value of the function at the operand, rounded once to the result's format by
 * the mode and choices of mpsim/round.h: as mpsim/arith.h, for functions whose values have no end.
 * They are computed in integers, with more bits until the rounding is certain. */
#ifndef MPSIM_FUNCTION_H
#define MPSIM_FUNCTION_H

#include <mpsim/arith.h>

MPSIM_BEGIN

typedef enum mpsim_function {
    MPSIM_FUNCTION_EXP,  /* e^a                */
    MPSIM_FUNCTION_LOG,  /* natural logarithm  */
    MPSIM_FUNCTION_TANH, /* hyperbolic tangent */
    MPSIM_FUNCTIONS      /* number of functions */
} mpsim_function;

/* mpsim_function_name, mpsim_function_parse -- "exp", "log", "tanh", in any letter case. NULL and
 * MPSIM_ENOTFOUND for an unknown one; MPSIM_EINVAL for a NULL pointer. */
MPSIM_API const char *mpsim_function_name(mpsim_function f);
MPSIM_API mpsim_status mpsim_function_parse(mpsim_function *f, const char *name);

/* mpsim_function_apply -- the code of f(a).
 *
 *   operand, result  formats, and r, a rounding with the scale 1: valid
 *   random, flags    as in mpsim_arith_apply
 *
 * Exact are exp(+-0) = 1, exp(-inf) = +0, exp(+inf) = +inf, log(1) = +0, log(+inf) = +inf,
 * log(+-0) = -inf (DIVBYZERO), tanh(+-0) = +-0 and tanh(+-inf) = +-1; all else is inexact. The
 * logarithm of a negative number is INVALID. A NaN, infinities and flushing as in mpsim/arith.h. */
MPSIM_API uint64_t mpsim_function_apply(mpsim_function f, const mpsim_format *operand, const mpsim_format *result,
                                        const mpsim_rounding *r, uint64_t a, uint32_t random, unsigned *flags);

MPSIM_END

#endif
