/* format.h -- what a floating-point format is: one row of one table.
 *
 * A code is the bit pattern of one element in the low `bits` bits of an unsigned
 * integer. It consists of a sign bit (absent in unsigned formats), `ebits` exponent
 * bits and `mbits` trailing significand bits, from high to low. The low ebits + mbits
 * bits, read as an integer, are the magnitude code M; with E and T its two fields
 *
 *     E > 0 or no zero:  |value| = 2^(E - bias) * (1 + T / 2^mbits)
 *     E == 0          :  |value| = 2^(1 - bias) * (T / 2^mbits)      zero and subnormals
 *
 * for M <= max_finite. Finite magnitudes grow with M, without a gap. Above max_finite
 * come the infinity (if `inf`; it is always max_finite + 1) and the NaNs (MPSIM_NAN_TOP).
 * All formats are subsets of binary64: decoding is exact.
 *
 * Special values in the sources:
 *
 *   IEEE 754 (binary64, binary32, fp16; also tf32, bf16, e5m2, e4m3ieee, e3m4): the top
 *     exponent holds infinity (T = 0) and NaNs; the top bit of T marks a quiet NaN; +0 and -0.
 *   e4m3 (OCP OFP8 1.0): no infinity; the magnitude 0x7f is NaN, so NaN is 0x7f or 0xff; the
 *     largest number is 448 = 0x7e: 480 would be 0x7f. +0 and -0. Ties of 464 go to 448.
 *   e4m3fnuz, e5m2fnuz, e4m3b11fnuz: no infinity, no -0; its code 0x80 is the only NaN.
 *   e3m2, e2m3, e2m1 (OCP MX 1.0): numbers only, +0 and -0; what NaN, infinity and overflow
 *     become is left to the conversion (see mpsim/round.h).
 *   e8m0 (OCP MX 1.0): 2^(code - 127), unsigned; 0xff is NaN; neither zero nor infinity.
 *   binary8p{P}{s|u}{e|f} (IEEE P3109): one zero, one NaN (signed: the code of -0; unsigned:
 *     all ones); e: infinities just below the NaN (signed: 0x7f and 0xff); f: none. */
#ifndef MPSIM_FORMAT_H
#define MPSIM_FORMAT_H

#include <mpsim/status.h>
#include <stddef.h>
#include <stdint.h>

MPSIM_BEGIN

typedef enum mpsim_nan_codes {
    MPSIM_NAN_NONE,   /* no code is NaN (e2m1, e2m3, e3m2)                               */
    MPSIM_NAN_TOP,    /* every magnitude above the largest finite one and the infinity   */
    MPSIM_NAN_NEGZERO /* the single code 1000..0 (FNUZ formats, signed P3109 formats)    */
} mpsim_nan_codes;

typedef enum mpsim_zero_codes {
    MPSIM_ZERO_SIGNED,   /* +0 and -0                                                 */
    MPSIM_ZERO_UNSIGNED, /* one zero, code 0                                          */
    MPSIM_ZERO_NONE      /* no zero and no subnormals: E == 0 is a normal binade (e8m0) */
} mpsim_zero_codes;

typedef struct mpsim_format {
    char name[56];       /* canonical name: "e4m3"                                        */
    const char *aliases; /* other names, separated by spaces: "e4m3fn float8_e4m3fn"      */
    uint8_t bits;        /* width of a code, 2 to 64                                      */
    uint8_t ebits;       /* exponent field, 1 to 11                                       */
    uint8_t mbits;       /* trailing significand, 0 to 52; precision p = mbits + 1        */
    uint8_t inf;         /* 1: has infinities                                             */
    uint8_t nan;         /* mpsim_nan_codes: which codes are NaN                          */
    uint8_t zero;        /* mpsim_zero_codes: which are zero                              */
    int16_t bias;        /* exponent bias                                                 */
    uint64_t max_finite; /* largest finite magnitude code; 0x7e for e4m3: not derivable   */
    uint64_t nan_code;   /* canonical (quiet) NaN, sign bit clear unless NEGZERO; else 0  */
    const char *source;  /* where the row comes from: "OCP OFP8 1.0, table 2"             */
} mpsim_format;

/* mpsim_format_count, mpsim_format_at -- iterate over the table of named formats.
 *
 * mpsim_format_at returns NULL for i >= mpsim_format_count(). Rows live for ever. */
MPSIM_API size_t mpsim_format_count(void);
MPSIM_API const mpsim_format *mpsim_format_at(size_t i);

/* mpsim_format_find -- the row whose name or alias is `name`, or NULL.
 *
 * Letter case is ignored, and '-' equals '_'. Only the table is searched; names that a
 * user types may need mpsim_format_parse. */
MPSIM_API const mpsim_format *mpsim_format_find(const char *name);

/* mpsim_format_parse -- fill *f from any accepted spelling of a format.
 *
 * `name` is, in this order of precedence,
 *   - a name or alias of the table;
 *   - binary{K}p{P}{s|u}{e|f}: an IEEE P3109 format of K bits (3 to 16), precision P,
 *     signed or unsigned, extended (with infinities) or finite;
 *   - e{X}m{Y}[:option]...: X exponent bits (1 to 11), Y significand bits (0 to 52).
 *     Without options an IEEE 754 layout: bias 2^(X-1) - 1, infinities, NaNs, signed
 *     zeros, 1 + X + Y bits (Y = 0 leaves no room for a NaN beside the infinity: such a
 *     format needs an option). Options, separated by ':', each at most once:
 *       ieee | fn | fnuz | finite   the top of the code space: infinity and NaNs in the top
 *                               binade (ieee); NaN in the all-ones magnitude only (fn); NaN in
 *                               the code of -0 only, bias 2^(X-1) (fnuz); numbers only (finite)
 *       inf | noinf             give fn, fnuz or finite an infinity (the largest magnitude
 *                               that is not NaN), or take it from ieee (the code is NaN then)
 *       bias=N                  exponent bias, -1200 to 1200
 *       unsigned                no sign bit
 *     An eXmY that is a table name means the row: "e4m3" is OCP E4M3, "e4m3:ieee" is not.
 *     Where that row is no IEEE 754 layout, options must include ieee, fn, fnuz or finite:
 *     "e4m3:bias=7" is MPSIM_EINVAL; say "e4m3:ieee:bias=7" or "e4m3:fn:bias=7".
 *     Numbers are decimal, without leading zeros.
 *
 * Every number of the format must be a binary64 number: MPSIM_ERANGE otherwise.
 * MPSIM_ENOTFOUND if the name has none of these forms, MPSIM_EINVAL if an option is
 * unknown or contradicts another one, or if an argument is NULL. *f is untouched then. */
MPSIM_API mpsim_status mpsim_format_parse(mpsim_format *f, const char *name);

/* mpsim_format_check -- MPSIM_OK if *f is a consistent format, else MPSIM_EINVAL or
 * MPSIM_ERANGE. For formats that were filled in by hand. */
MPSIM_API mpsim_status mpsim_format_check(const mpsim_format *f);

/* mpsim_format_same -- 1 if both have the same numbers in the same codes, whatever their names. Neither
 * may be NULL. */
MPSIM_API int mpsim_format_same(const mpsim_format *a, const mpsim_format *b);

/* mpsim_format_code_bytes -- bytes of one code in an array: 1, 2, 4 or 8, the smallest
 * that holds `bits`. Codes narrower than 8 bits take one byte each. */
MPSIM_API size_t mpsim_format_code_bytes(const mpsim_format *f);

/* mpsim_format_is_signed -- 1 if codes have a sign bit. */
MPSIM_API int mpsim_format_is_signed(const mpsim_format *f);

/* The landmarks of a format as exact binary64 values: largest finite magnitude, smallest
 * positive normal, smallest positive number (subnormal where there are subnormals, else
 * the smallest normal), and the distance from 1 to the next larger number, 2^-mbits. */
MPSIM_API double mpsim_format_max(const mpsim_format *f);
MPSIM_API double mpsim_format_min_normal(const mpsim_format *f);
MPSIM_API double mpsim_format_min_positive(const mpsim_format *f);
MPSIM_API double mpsim_format_epsilon(const mpsim_format *f);

typedef enum mpsim_class {
    MPSIM_CLASS_NAN,
    MPSIM_CLASS_INF,
    MPSIM_CLASS_ZERO,
    MPSIM_CLASS_SUBNORMAL,
    MPSIM_CLASS_NORMAL
} mpsim_class;

/* mpsim_classify -- the class of a code. Bits above `bits` are ignored. */
MPSIM_API mpsim_class mpsim_classify(const mpsim_format *f, uint64_t code);

/* mpsim_decode -- the value of a code, exactly, as binary64.
 *
 * NaN codes give a quiet NaN with the code's sign and its payload at the top of the
 * binary64 payload (MPSIM_NAN_NEGZERO: the positive canonical NaN). -0 stays -0.
 * Bits above `bits` are ignored. */
MPSIM_API double mpsim_decode(const mpsim_format *f, uint64_t code);

/* mpsim_decode_array, mpsim_decode_array_f32 -- y[i] = value of code i, for 0 <= i < n.
 *
 *   codes  n codes of mpsim_format_code_bytes(f) bytes each, host byte order, any alignment
 *   y      n binary64, or binary32, values; must not overlap codes
 *
 * The _f32 function needs a format whose numbers are all binary32 numbers: MPSIM_ERANGE otherwise. NaN there is that
 * of mpsim_decode with the leading bits of its payload.
 * MPSIM_EINVAL if f is NULL or invalid, or if a pointer is NULL and n > 0. */
MPSIM_API mpsim_status mpsim_decode_array(const mpsim_format *f, double *y, const void *codes, size_t n);
MPSIM_API mpsim_status mpsim_decode_array_f32(const mpsim_format *f, float *y, const void *codes, size_t n);

/* mpsim_next_up, mpsim_next_down -- the code of the least number greater (the greatest
 * number less) than the given one, as IEEE 754-2019 5.3.1 defines nextUp and nextDown:
 * from the smallest negative number up to -0 (or the only zero), from either zero to the
 * smallest positive number, from the largest finite number to infinity if there is one.
 * Where no greater (lesser) number exists the code itself is returned: +inf, the largest
 * number of a format without infinity, 0 downwards in an unsigned format. NaN gives the
 * same NaN. */
MPSIM_API uint64_t mpsim_next_up(const mpsim_format *f, uint64_t code);
MPSIM_API uint64_t mpsim_next_down(const mpsim_format *f, uint64_t code);

/* mpsim_ulp -- the spacing of the binade of a finite code: 2^(max(E,1) - bias - mbits),
 * (2^(E - bias - mbits) if there is no zero). +inf for infinities, NaN for NaN. */
MPSIM_API double mpsim_ulp(const mpsim_format *f, uint64_t code);

MPSIM_END

#endif
