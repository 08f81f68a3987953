/* oracle_arith.h -- the independent answer for <mpsim/arith.h>: operations and comparisons.
 *
 * Shares no code, table or constant with lib/; formats, decoding and choices are those of
 * oracle.h. Two ways lead to every result:
 *
 *   oracle_arith_apply   integers (GMP): the exact value is a fraction of two integers or the
 *                        root of one; its integer and fractional part in units of the last
 *                        place are found by division, the mode is applied as round.h words it
 *   oracle_arith_mpfr    GNU MPFR's own operation, also for infinities, signs of zero and
 *                        operations without a value; nearest-even and the directed modes are
 *                        one operation in the precision of the result
 *
 * Not for threads. */
#ifndef MPSIM_SIM_VERIFY_ORACLE_ARITH_H
#define MPSIM_SIM_VERIFY_ORACLE_ARITH_H

#include "oracle.h"

#include <mpsim/arith.h>

typedef struct oracle_arith {
    int op; /* mpsim_op */
    const oracle_format *result;
    const oracle_format *operand[3]; /* those beyond the operation's may be NULL */
    mpsim_rounding r;
} oracle_arith;

/* The exact value of an operation, seen from the result's format. */
typedef struct oracle_value {
    enum { ORACLE_VALUE_NAN, ORACLE_VALUE_INF, ORACLE_VALUE_ZERO, ORACLE_VALUE_NUMBER } kind;
    int negative;
    int by_mode;       /* a zero whose sign depends on the mode                      */
    unsigned flags;    /* MPSIM_FLAG_INVALID, MPSIM_FLAG_DIVBYZERO                   */
    uint64_t payload;  /* of a NaN: the 52 trailing bits of its binary64 encoding    */
    /* A number: |value| = (whole + (fraction + s) / 2^34) * 2^q, 0 <= s < 1. */
    int q;             /* as in round.h                                              */
    int sticky;        /* s > 0                                                      */
    uint64_t whole;    /* floor(X / 2^q)                                             */
    uint64_t fraction; /* 34 bits                                                    */
} oracle_value;

/* oracle_arith_value -- the exact value of op on the codes a, b, c. Of o->r only flush_input
 * and flush_below matter: one value serves all modes and choices. */
void oracle_arith_value(oracle_value *v, const oracle_arith *o, uint64_t a, uint64_t b,
                        uint64_t c);

/* oracle_arith_code -- the value rounded by o->r: the code, and the flags in *flags. */
uint64_t oracle_arith_code(const oracle_value *v, const oracle_arith *o, uint32_t random,
                           unsigned *flags);

/* oracle_arith_apply -- the two above. oracle_arith_mpfr -- the same by MPFR. */
uint64_t oracle_arith_apply(const oracle_arith *o, uint64_t a, uint64_t b, uint64_t c,
                            uint32_t random, unsigned *flags);
uint64_t oracle_arith_mpfr(const oracle_arith *o, uint64_t a, uint64_t b, uint64_t c,
                           uint32_t random, unsigned *flags);

/* oracle_compare -- -1, 0, 1, or 2 for unordered. */
int oracle_compare(const oracle_format *fa, uint64_t a, const oracle_format *fb, uint64_t b);

#endif
