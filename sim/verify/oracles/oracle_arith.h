/* oracle_arith.h -- the independent answer for <mpsim/arith.h>: operations.
 *
 * Shares no code, table or constant with lib/; formats, decoding and choices are those of
 * oracle.h. The result is GNU MPFR's own operation, also for infinities, signs of zero and
 * operations without a value; nearest-even and the directed modes are one operation in the
 * precision of the result. (Another way leads there in tests/oracle/integers.h.)
 *
 * Not for threads. */
#pragma once

#include "oracle.h"

#include <gmp.h>
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
    int by_mode;      /* a zero whose sign depends on the mode                      */
    unsigned flags;   /* MPSIM_FLAG_INVALID, MPSIM_FLAG_DIVBYZERO                   */
    uint64_t payload; /* of a NaN: the 52 trailing bits of its binary64 encoding    */
    /* A number: |value| = (whole + (fraction + s) / 2^34) * 2^q, 0 <= s < 1. */
    int q;             /* as in round.h                                              */
    int sticky;        /* s > 0                                                      */
    uint64_t whole;    /* floor(X / 2^q)                                             */
    uint64_t fraction; /* 34 bits                                                    */
} oracle_value;

/* An operand as it is read: flushed, decoded. */
typedef struct oracle_operand {
    double y;
    uint64_t payload;
    int negative;
    int precision;
} oracle_operand;

/* oracle_arith_read -- the operands of these codes, those that the operation lacks as zeros; 1,
 * and the value, if one of them is NaN. */
int oracle_arith_read(oracle_operand x[3], oracle_value *v, const oracle_arith *o, const uint64_t codes[3]);

/* oracle_unit -- q for a number with floor(log2 X) = e. oracle_place -- the value with
 * f = floor(X 2^(34 - q)), and more than that if `sticky`; f changes. */
enum { ORACLE_FRACTION = 34 }; /* bits of a fraction: 33 are asked for by stochastic-b of 32 bits */
int oracle_unit(const oracle_format *of, int e);
void oracle_place(oracle_value *v, int negative, int q, mpz_t f, int sticky);

/* oracle_arith_code -- a value rounded by o->r: the code, and the flags in *flags. */
uint64_t oracle_arith_code(const oracle_value *v, const oracle_arith *o, uint32_t random, unsigned *flags);

/* oracle_arith_mpfr -- op on the codes a, b, c: the code, and the flags in *flags. */
uint64_t oracle_arith_mpfr(const oracle_arith *o, uint64_t a, uint64_t b, uint64_t c, uint32_t random, unsigned *flags);
