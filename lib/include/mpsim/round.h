/* round.h -- rounding a number to a format: modes, choices, presets, arrays.
 *
 * Every function rounds the exact product x * scale once; there is no intermediate
 * format. Let X = |x * scale| > 0, e = floor(log2 X), emin = 1 - bias (-bias in a format
 * without zero), q = max(e, emin) - mbits. The two candidates are the neighbouring
 * multiples of 2^q around X, S = floor(X / 2^q) and S + 1, and nu = X / 2^q - S in [0, 1).
 * nu = 0 is exact. The exponent is unbounded above at this point; the result is then
 * compared with the largest finite number (IEEE 754-2019 4.3 and 7.4; P3109 interim report
 * 4.0, 4.7.4).
 *
 * Parity means the parity of the code of the candidate (for p > 1 that is the parity of S;
 * for formats without a significand field it is the exponent field that decides). In a
 * format without zero, S = 0 counts as even.
 *
 * No result depends on the floating-point environment of the caller, which is left as it is. */
#ifndef MPSIM_ROUND_H
#define MPSIM_ROUND_H

#include <mpsim/format.h>
#include <mpsim/rng.h>

MPSIM_BEGIN

typedef enum mpsim_round_mode {
    MPSIM_ROUND_NEAREST_EVEN, /* away from zero if nu > 1/2, or nu = 1/2 and S is odd      */
    MPSIM_ROUND_NEAREST_AWAY, /* away from zero if nu >= 1/2                               */
    MPSIM_ROUND_TOWARD_ZERO,  /* never away from zero                                      */
    MPSIM_ROUND_UP,           /* toward +infinity                                          */
    MPSIM_ROUND_DOWN,         /* toward -infinity                                          */
    MPSIM_ROUND_TO_ODD,       /* away from zero if nu > 0 and S is even                    */
    MPSIM_ROUND_STOCHASTIC_A, /* away if floor(nu 2^N) + R >= 2^N                          */
    MPSIM_ROUND_STOCHASTIC_B, /* away if floor(nu 2^(N+1)) + 2 R + 1 >= 2^(N+1)            */
    MPSIM_ROUND_STOCHASTIC_C, /* away if nearest-even integer of (nu 2^N) + R >= 2^N       */
    MPSIM_ROUND_MODES         /* number of modes                                           */
} mpsim_round_mode;
/* In the stochastic modes N = sr_bits and R, 0 <= R < 2^N, is the top N bits of the
 * element's random word (see rng.h). The three are P3109's StochasticA, B and C. Where nu is a
 * multiple of 2^-N all are exact: P(away) = nu. Elsewhere P(away) of A is too small by less
 * than 2^-N, by 2^-(N+1) on average; that of B and C is off by at most 2^-(N+1), by 0 on average
 * (of C also for nu of few bits). Few random bits make any of them biased at a given nu. */

/* Result of a finite number beyond the largest finite one. */
typedef enum mpsim_overflow {
    MPSIM_OVERFLOW_INF, /* as IEEE 754: infinity where the mode rounds away, the largest
                           finite number where it does not: toward zero; up for negative
                           and down for positive numbers; to odd if the largest finite code
                           is odd. Without an infinity: see no_inf.                        */
    MPSIM_OVERFLOW_MAX  /* saturate: the largest finite number of that sign                */
} mpsim_overflow;

/* Result of an infinity. */
typedef enum mpsim_infinity {
    MPSIM_INFINITY_KEEP, /* infinity; without one: see no_inf                              */
    MPSIM_INFINITY_MAX   /* the largest finite number of that sign                         */
} mpsim_infinity;

/* Result of infinity in a format without infinity. That NaN is the canonical one with the
 * infinity's sign, under every mpsim_nan_rule. */
typedef enum mpsim_no_inf {
    MPSIM_NO_INF_NAN, /* NaN (OCP OFP8, IEEE usage); the largest number if there is no NaN */
    MPSIM_NO_INF_MAX  /* the largest finite number (P3109)                                 */
} mpsim_no_inf;

/* Result of a NaN in a format with NaN. (NEGZERO formats have one NaN only.) */
typedef enum mpsim_nan_rule {
    MPSIM_NANS_SIGNED,      /* canonical NaN with the input's sign                             */
    MPSIM_NANS_POSITIVE,    /* canonical NaN, sign clear                                       */
    MPSIM_NANS_PAYLOAD,     /* sign and leading payload bits kept, made quiet (F16C, Arm)      */
    MPSIM_NANS_ONES,        /* all exponent and significand bits set, sign clear (CUDA)        */
    MPSIM_NANS_ONES_SIGNED, /* the same with the input's sign (PyTorch float8)              */
    MPSIM_NANS_MINUS_ONES,  /* every bit set, the sign too (PyTorch bfloat16, vector code)  */
    MPSIM_NANS_ONES_OR_CUT, /* as ONES; in the mode nearest-away a NaN keeps its sign and its
                               leading payload bits, is not made quiet, and becomes an infinity
                               where these bits are 0 (CUDA tf32: cvt.rna). The NaN of an
                               operation without a value is ONES, and so is every NaN in a format
                               whose infinity is not followed by all payloads                 */
    MPSIM_NAN_RULES         /* number of rules                                                */
} mpsim_nan_rule;

/* Result of a NaN in a format without NaN. */
typedef enum mpsim_no_nan {
    MPSIM_NO_NAN_MAX,     /* the largest positive number (CUDA)                           */
    MPSIM_NO_NAN_ZERO,    /* +0                                                           */
    MPSIM_NO_NAN_ANTIZERO /* zero of the opposite sign (ml_dtypes: NaN -> -0, -NaN -> +0) */
} mpsim_no_nan;

/* Result of a negative number (that does not round to zero) and of -infinity in an
 * unsigned format; this comes before flush_output. */
typedef enum mpsim_negative {
    MPSIM_NEGATIVE_NAN, /* NaN, by the rules for NaN above                                 */
    MPSIM_NEGATIVE_MIN, /* the smallest number: 0, or 2^-127 in e8m0                       */
    MPSIM_NEGATIVE_ABS  /* the sign is ignored (CUDA e8m0), also by the flags              */
} mpsim_negative;

/* Result of zero, and of a number that would round to zero, in a format without zero.
 * -0 counts as negative there. */
typedef enum mpsim_no_zero {
    MPSIM_NO_ZERO_MIN,    /* both: the smallest number                                     */
    MPSIM_NO_ZERO_NAN,    /* both: NaN                                                     */
    MPSIM_NO_ZERO_NAN_MIN /* zero: NaN; what rounds to zero: the smallest number (ml_dtypes) */
} mpsim_no_zero;

typedef struct mpsim_rounding {
    uint8_t mode;         /* mpsim_round_mode                                             */
    uint8_t sr_bits;      /* 1 to 32: random bits of a stochastic mode; else ignored      */
    uint8_t overflow;     /* mpsim_overflow                                               */
    uint8_t infinity;     /* mpsim_infinity                                               */
    uint8_t no_inf;       /* mpsim_no_inf                                                 */
    uint8_t nan;          /* mpsim_nan_rule                                               */
    uint8_t no_nan;       /* mpsim_no_nan                                                 */
    uint8_t negative;     /* mpsim_negative                                               */
    uint8_t no_zero;      /* mpsim_no_zero                                                */
    uint8_t via_binary32; /* 1: _f64 functions round x to binary32 first, to nearest even */
    uint8_t by_field;     /* 1: a subnormal x of binary32 that is more than 2^-127 (mode up: than
                              0) is read as 2^-126 by the modes to nearest and up: frameworks
                              take its exponent field for its exponent (e8m0)              */
    uint8_t flush_input;  /* 1: an input below flush_below is read as zero of its sign    */
    uint8_t flush_output; /* 1: a result in the subnormal range, after rounding, becomes
                              zero of its sign (after `negative` in unsigned formats)      */
    double scale;         /* finite, > 0: x * scale is rounded, exactly, once             */
    double flush_below;   /* with flush_input: the smallest magnitude that is kept, before
                              scaling; 0: the smallest normal number of the source type,
                              2^-126 in _f32 and 2^-1022 in _f64 functions                 */
} mpsim_rounding;

/* mpsim_rounding_init -- the default: the given mode, OVERFLOW_INF, INFINITY_KEEP,
 * NO_INF_NAN, NANS_SIGNED, NO_NAN_MAX, NEGATIVE_NAN, NO_ZERO_MIN, no flushing, 32 random
 * bits, scale 1, flush_below 0, no route. */
MPSIM_API void mpsim_rounding_init(mpsim_rounding *r, mpsim_round_mode mode);

/* mpsim_rounding_check -- MPSIM_OK if every field is in its domain, else MPSIM_EINVAL. */
MPSIM_API mpsim_status mpsim_rounding_check(const mpsim_rounding *r);

/* mpsim_round_mode_name, mpsim_round_mode_parse -- modes by name.
 *
 * Names are "nearest-even", "nearest-away", "toward-zero", "up", "down", "to-odd",
 * "stochastic-a", "stochastic-b", "stochastic-c"; accepted too are rne, rna, rtz, rup, rdn,
 * rto, sra, srb, src, sr and stochastic (= c) and P3109's TiesToEven and so on, in any
 * letter case (also rn, rz, ru, rd as in PTX). A stochastic name may end in ":N" (1 to 32
 * random bits); *sr_bits is otherwise untouched. Returns NULL, or MPSIM_ENOTFOUND, for an
 * unknown one. */
MPSIM_API const char *mpsim_round_mode_name(mpsim_round_mode mode);
MPSIM_API mpsim_status mpsim_round_mode_parse(mpsim_round_mode *mode, uint8_t *sr_bits, const char *name);

/* A preset is what a real stack does under the same format name. The choices differ between
 * narrow formats (8 bits and less) and wide ones, and some formats are exceptions. A preset has
 * the mode and the route of its stack, too: mpsim_rounding_preset_from gives all of it,
 * mpsim_rounding_preset the choices alone. */
typedef struct mpsim_preset_exception {
    const char *format; /* canonical name; NULL: none */
    mpsim_rounding rounding;
} mpsim_preset_exception;

enum { MPSIM_PRESET_EXCEPTIONS = 3 };

typedef struct mpsim_preset {
    const char *name;
    mpsim_rounding narrow; /* formats of at most 8 bits */
    mpsim_rounding wide;   /* wider formats             */
    const char *source;
    const char *short_nan; /* format whose NaN is the positive canonical one where the source is
                              narrower than binary32; NULL: none                              */
    mpsim_preset_exception exceptions[MPSIM_PRESET_EXCEPTIONS];
} mpsim_preset;

/* The table of presets; a name is found in any letter case and with '-' or '_'. */
MPSIM_API size_t mpsim_preset_count(void);
MPSIM_API const mpsim_preset *mpsim_preset_at(size_t i);
MPSIM_API const mpsim_preset *mpsim_preset_find(const char *name);

/* mpsim_rounding_preset_from -- fill *r with what preset `p` does to tensors of the format `source` on their
 * way to `f`: choices, mode, route, scale 1.
 * mpsim_rounding_preset -- with the choices for numbers of binary32, mode nearest-even, no route. */
MPSIM_API void mpsim_rounding_preset_from(mpsim_rounding *r, const mpsim_preset *p, const mpsim_format *f,
                                          const mpsim_format *source);
MPSIM_API void mpsim_rounding_preset(mpsim_rounding *r, const mpsim_preset *p, const mpsim_format *f);

/* Events of one element; the counters below count the same events. */
enum {
    MPSIM_FLAG_INEXACT = 1,   /* finite input, result differs from x * scale              */
    MPSIM_FLAG_UNDERFLOW = 2, /* non-zero finite input (also a flushed one), zero result,
                                 unless that is an overflow (NEGATIVE_MIN)                */
    MPSIM_FLAG_SUBNORMAL = 4, /* the result is non-zero and subnormal                     */
    MPSIM_FLAG_OVERFLOW = 8,  /* finite input that, rounded with unbounded exponent, lies
                                 beyond the largest finite number, saturated or not; also
                                 a negative number (and -0 if there is no zero) in an
                                 unsigned format, unless NEGATIVE_ABS ignores the sign    */
    MPSIM_FLAG_NAN = 16       /* the input is NaN                                         */
};

typedef struct mpsim_counts {
    uint64_t inexact, underflow, subnormal, overflow, nan;
} mpsim_counts;

/* mpsim_encode_f32, mpsim_encode_f64 -- the code of x rounded to f.
 *
 *   random  32 random bits, used by the stochastic modes only
 *   flags   NULL, or receives MPSIM_FLAG_*
 *
 * f and r must be valid (see the _check functions); nothing else is required. -0 stays -0
 * where the format has one, and a negative number that rounds to zero gives -0 there. */
MPSIM_API uint64_t mpsim_encode_f32(const mpsim_format *f, const mpsim_rounding *r, float x, uint32_t random,
                                    unsigned *flags);
MPSIM_API uint64_t mpsim_encode_f64(const mpsim_format *f, const mpsim_rounding *r, double x, uint32_t random,
                                    unsigned *flags);

/* mpsim_tiny_f32, mpsim_tiny_f64 -- is x * scale tiny in f: not zero, and smaller than the smallest
 * normal number 2^emin? IEEE 754-2019 7.5 lets that be asked in two ways, and its underflow flag is
 * raised where the answer is yes and the result is inexact (MPSIM_FLAG_INEXACT). Flushed inputs are
 * zero. The same arguments as for mpsim_encode_f64; a set of MPSIM_TINY_*. */
enum {
    MPSIM_TINY_BEFORE = 1, /* before rounding: |x * scale| < 2^emin (Arm)                      */
    MPSIM_TINY_AFTER = 2   /* after rounding to the format's precision with unbounded exponent
                              range, too (x86, RISC-V)                                         */
};
MPSIM_API unsigned mpsim_tiny_f32(const mpsim_format *f, const mpsim_rounding *r, float x, uint32_t random);
MPSIM_API unsigned mpsim_tiny_f64(const mpsim_format *f, const mpsim_rounding *r, double x, uint32_t random);

/* mpsim_encode_array_f32, mpsim_encode_array_f64 -- codes[i] = code of x[i] rounded to f.
 *
 *   codes  n codes of mpsim_format_code_bytes(f) bytes each, host byte order
 *   x      n values; must not overlap codes; any alignment of both
 *   rng    element i takes the random word of index rng->index + i; may be NULL unless the
 *          mode is stochastic
 *   counts NULL, or counters that are added to
 *
 * Equal to the scalar functions, element by element, whatever n is split into.
 * MPSIM_EINVAL if f or r is invalid or a needed pointer is NULL; outputs are untouched then. */
MPSIM_API mpsim_status mpsim_encode_array_f32(const mpsim_format *f, const mpsim_rounding *r, const mpsim_rng *rng,
                                              void *codes, const float *x, size_t n, mpsim_counts *counts);
MPSIM_API mpsim_status mpsim_encode_array_f64(const mpsim_format *f, const mpsim_rounding *r, const mpsim_rng *rng,
                                              void *codes, const double *x, size_t n, mpsim_counts *counts);

/* mpsim_round_array_f32, mpsim_round_array_f64 -- y[i] = x[i] * scale rounded to f, as a
 * value of the source type (not divided by scale again).
 *
 *   x, y   n values; y may equal x, otherwise they must not overlap
 *
 * The _f32 function needs a format whose numbers are all binary32 numbers: MPSIM_ERANGE
 * otherwise. The rest as for mpsim_encode_array. */
MPSIM_API mpsim_status mpsim_round_array_f32(const mpsim_format *f, const mpsim_rounding *r, const mpsim_rng *rng,
                                             float *y, const float *x, size_t n, mpsim_counts *counts);
MPSIM_API mpsim_status mpsim_round_array_f64(const mpsim_format *f, const mpsim_rounding *r, const mpsim_rng *rng,
                                             double *y, const double *x, size_t n, mpsim_counts *counts);

MPSIM_END

#endif
