/* oracle.h -- the independent answer: what a code means and what a number rounds to.
 *
 * The oracle shares no code, table or constant with lib/. Its formats are typed from the
 * standards (IEEE 754-2019, OCP OFP8 1.0, OCP MX 1.0, the ml_dtypes documentation, the
 * P3109 interim report 4.0): precision, smallest normal exponent, largest finite VALUE,
 * and which codes are infinities and NaNs. Its rounding is GNU MPFR's; its choices are
 * the sentences of <mpsim/round.h>, from which it takes the names of the inputs only.
 *
 * Not for threads: the MPFR variables are static, so that a call costs 0.1 to 0.2 us. */
#pragma once

#include <mpsim/round.h>
#include <stddef.h>
#include <stdint.h>

typedef struct oracle_format {
    char name[40];
    int bits;          /* width of a code                                            */
    int is_signed;     /* 1: the top bit is a sign                                   */
    int precision;     /* bits of the significand, the leading one included          */
    int emin;          /* exponent of the smallest normal number                     */
    int zeros;         /* 2: +0 and -0, 1: one zero, 0: no zero and no subnormals    */
    double max;        /* largest finite number                                      */
    uint64_t inf;      /* code of +infinity, 0: there is none                        */
    uint64_t nan;      /* canonical NaN, 0: there is none                            */
    uint64_t nan_low;  /* the NaNs of clear sign are nan_low to nan_high; where the  */
    uint64_t nan_high; /*   only NaN is 1000..0 both are 0                           */
    /* Derived, by oracle_find: */
    uint64_t max_code; /* code of max                                                */
    double *values;    /* up to 19 bits: the magnitudes in ascending order, and one
                          more than there are: the number after max                  */
} oracle_format;

typedef enum oracle_class { ORACLE_NAN, ORACLE_INF, ORACLE_ZERO, ORACLE_SUBNORMAL, ORACLE_NORMAL } oracle_class;

/* oracle_find -- the format of that name, or NULL: a typed one (the library's canonical
 * names, and the eXmY spellings of oracle_typed), or any binary{K}p{P}{s|u}{e|f} of the
 * P3109 report that lies in binary64. Lives for ever. */
const oracle_format *oracle_find(const char *name);

/* oracle_typed -- spelling number i of the eXmY formats that the oracle knows, or NULL. */
const char *oracle_typed(size_t i);

/* The meaning of codes, as mpsim_classify and mpsim_decode document it. */
oracle_class oracle_classify(const oracle_format *of, uint64_t code);
double oracle_decode(const oracle_format *of, uint64_t code);

/* The number whose magnitude is the i-th: i <= max_code + 1. Beyond binary64: +infinity. */
double oracle_magnitude(const oracle_format *of, uint64_t i);

/* What rounding alone gives, before any choice of range, sign or NaN. */
typedef struct oracle_rounded {
    enum { ORACLE_IS_NAN, ORACLE_IS_INF, ORACLE_IS_FINITE, ORACLE_IS_BEYOND } kind;
    int negative;      /* sign of the input                                          */
    int nonzero;       /* the input, before any flushing, is not zero                */
    int read_zero;     /* the input is zero, or is flushed to zero                   */
    int exact;         /* the magnitude is that of x * scale                         */
    double magnitude;  /* of the rounded number, if it is at most max                */
    uint64_t payload;  /* of a NaN: the 52 trailing bits of its binary64 encoding    */
    uint64_t fraction; /* floor(nu 2^32), in the stochastic modes                    */
} oracle_rounded;

/* oracle_round -- round x * scale by mode, sr_bits, flush_input and flush_below, with the
 * exponent unbounded above. (`negative` counts too: an ignored sign directs no rounding.)
 *
 * A binary32 number comes widened (oracle_widen) with is_f32 = 1. Nearest-even and the
 * directed modes are one MPFR rounding, made subnormal with its ternary value; the others
 * call oracle_round_defined. */
void oracle_round(oracle_rounded *out, const oracle_format *of, const mpsim_rounding *r, double x, int is_f32,
                  uint32_t random);

/* oracle_round_defined -- the same, for every mode, from the two neighbours and the exact
 * fraction nu, word by word as round.h and the P3109 report define it. */
void oracle_round_defined(oracle_rounded *out, const oracle_format *of, const mpsim_rounding *r, double x, int is_f32,
                          uint32_t random);

/* oracle_finish -- apply the choices of r: the code, and the MPSIM_FLAG_* in *flags. */
uint64_t oracle_finish(const oracle_format *of, const mpsim_rounding *r, const oracle_rounded *in, unsigned *flags);

/* oracle_encode -- oracle_round and oracle_finish. */
uint64_t oracle_encode(const oracle_format *of, const mpsim_rounding *r, double x, int is_f32, uint32_t random,
                       unsigned *flags);

/* oracle_widen -- the same number as binary64; NaNs keep sign, payload and quiet bit. */
double oracle_widen(uint32_t binary32);
