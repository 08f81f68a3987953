/* panel.h -- operands and results of matrix products: codes to values and values to codes, many at
 * a time, in loops that compilers turn into vector code.
 *
 * The same numbers as mpsim_scalar_unpack and the same codes as mpsim_scalar_encode. Integer
 * operations, and products of an integer below 2^53 and a power of two that are normal numbers:
 * exact in every rounding mode, and nothing that could be flushed. What does not fit is left to the
 * reference. */
#pragma once

#include "../round/ready.h"
#include "../round/scalar.h"

#include <mpsim/dot.h>

enum {
    MPSIM_PANEL = 16,            /* lines of a panel                                   */
    MPSIM_EXPONENT_ZERO = -4000, /* of an operand that is zero: no product wins with it */
    MPSIM_SCALE_NAN = 32767
};

/* ---- formats ---- */

/* Exponent of the largest number of f, rounded up, and of the last bit of the smallest. */
static inline int mpsim_format_highest(const mpsim_format *f)
{
    return (int)(f->max_finite >> f->mbits) - f->bias + 1;
}

static inline int mpsim_format_last_bit(const mpsim_format *f)
{
    return mpsim_emin(f) - f->mbits;
}

/* Whether every number of f is a binary32 number. */
static inline int mpsim_in_binary32(const mpsim_format *f)
{
    return f->mbits <= 23 && mpsim_format_last_bit(f) >= -149 && mpsim_format_highest(f) <= 128;
}

/* ---- codes to values ---- */

/* How codes of a format become values: with E and T the fields of a code, they become those of the
 * value where E > 0; T times `unit` is the value where E = 0. */
typedef struct mpsim_unpacker {
    const mpsim_format *format;
    size_t bytes;  /* of a code                                                 */
    int wide;      /* values are binary64, not binary32                         */
    int direct;    /* 0: by the reference, one by one                           */
    int same_bias; /* E = 0 needs nothing of its own: bf16, tf32 as binary32    */
    int shift;     /* from the significand of a code to that of a value         */
    int is_signed, sign_shift;
    int negzero; /* the code of -0 is NaN                                     */
    uint64_t magnitude, rebias, max_finite;
    double unit;
} mpsim_unpacker;

/* Values must hold every number of f. */
void mpsim_unpacker_init(mpsim_unpacker *u, const mpsim_format *f, int wide);

/* mpsim_is_direct -- whether codes of f become binary32 values in vectors, where they can be flushed, scaled and marked. */
int mpsim_is_direct(const mpsim_format *f);

/* mpsim_unpack_line -- n <= MPSIM_PANEL values from the codes number first, first + stride, ...
 * Returns, as bits, which are infinities or NaNs; values mean nothing there. values: binary64 if
 * u->wide. */
unsigned mpsim_unpack_line(const mpsim_unpacker *u, void *values, const void *codes, size_t first, size_t stride,
                           size_t n);

/* Of two int16 side by side the first is the high half of their word of 32 bits. */
enum { MPSIM_FIRST_IS_HIGH = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ };

/* A decode function -- `rows` rows of MPSIM_PANEL values each, for an unpacker that is direct and not wide, and, unless e is
 * NULL, their exponents as panels have them: in their order, or, with `pairs`, as k_major lines in pairs, of an even
 * number of rows. The codes of a row stand side by side; or `words` of 32 bits do, of codes of less: a word has those of
 * as many rows at one place, the first in its low bits. Returns, as bits, the places in a row where there are
 * infinities or NaNs: they become +0. */
typedef unsigned mpsim_panel_decode_function(const mpsim_unpacker *u, float *values, int16_t *e, int pairs, int lowest,
                                             const void *codes, int words, size_t rows);

/* A look function -- the places in a row, as bits, where one of `rows` rows of MPSIM_PANEL values has an infinity or a NaN. */
typedef unsigned mpsim_look_function(const void *values, size_t rows);

/* Magnitudes of values by their place in a row, as bits of binary32: the largest; 0x7fffffff less the smallest but zero. */
typedef struct mpsim_ranges {
    int32_t most[MPSIM_PANEL], least[MPSIM_PANEL];
} mpsim_ranges;

/* A widen function -- `rows` rows of MPSIM_PANEL values become binary64 values and widen the ranges. In the default
 * environment. */
typedef void mpsim_widen_function(const float *values, double *to, size_t rows, mpsim_ranges *ranges);

/* A mark function -- changes the values of an addition, n of a row or n rows of MPSIM_PANEL, as cut.h says, and gives their
 * signs: a word, or one a column, and their exponents. n is a multiple of 4. */
typedef void mpsim_mark_function(float *values, uint32_t *signs, uint8_t *exponents, int lowest, size_t n);

/* A line function -- the same for chains in binary64 (see cut.h), from n binary32 values of a row, or n rows of them. n is even. */
struct mpsim_wide_line;
typedef void mpsim_line_function(const float *from, const struct mpsim_wide_line *to, int lowest, size_t n);

/* How codes of one format become numbers of another one as they are read, in binary32, which has all numbers of both. */
typedef struct mpsim_entry {
    const mpsim_format *from, *to;
    mpsim_rounding rounding;
    int as_values;     /* the codes are binary32 values */
    int rounds;        /* 0: they are numbers of the other format */
    mpsim_ready ready; /* this rounding */
} mpsim_entry;

/* An operand: rows of a or columns of b are lines of `depth` codes. */
typedef struct mpsim_lines {
    mpsim_unpacker u;            /* of binary32 where there is an entry */
    const mpsim_entry *entry;    /* NULL: none                          */
    const mpsim_format *numbers; /* of what is multiplied            */
    size_t bytes;                /* of a code in memory                 */
    mpsim_panel_decode_function *decode;
    mpsim_mark_function *mark;    /* NULL: not wanted */
    mpsim_widen_function *widen;  /* NULL: values are those of u; else they are binary64, those of u binary32 */
    mpsim_line_function *prepare; /* NULL: not wanted; values are binary64 then, too */
    mpsim_look_function *look; /* NULL: codes are decoded; else they are values, and nothing more is wanted than to know
                                    which are special; these stay what they are */
    const void *codes;
    size_t count, depth;
    size_t line, next; /* from a line to the next, from k to k + 1, in codes */
    int flush;         /* numbers below the normal ones become +0, as does -0 */
    /* exponents of scales, `blocks` a line, or MPSIM_SCALE_NAN; NULL: none. A value times its scale that is no
     * normal number of binary32 makes its line special */
    const int16_t *scales;
    size_t block, blocks;
} mpsim_lines;

/* Where its values go. Values and exponents of lines that are beyond `count`, or k beyond depth,
 * are zeros. */
typedef struct mpsim_panels {
    int k_major;        /* value (l, k) at (l / 16) 16 padded + 16 k + l % 16; else at l padded + k */
    size_t padded;      /* at least depth                                                       */
    int pairs;          /* exponents of k_major lines stand in pairs: see tile.h; padded is even     */
    size_t quads;       /* chunk of order QUADS, or 0: the products stand in their order        */
    int lowest;         /* exponents are not lower                                              */
    void *values;       /* NULL: lines are looked at, where they lie side by side, and no more */
    int16_t *exponents; /* NULL: not wanted; MPSIM_EXPONENT_ZERO for zeros              */
    uint8_t *bytes;     /* exponents of values that are marked, in their order; of k_major lines four side by side */
    uint32_t *signs;    /* of the values that are marked, `words` of `length` products each: those of a line, or, of
                               k_major lines, N side by side                                  */
    size_t words, length;
    int16_t *low, *high;    /* by line: exponents of its least and largest number but zero; NULL
                               alike. A line of zeros has low > high. Binary64 values only, and
                               chains in binary64 (fields of binary32 there)                */
    unsigned char *special; /* by line: 1 if it has an infinity or a NaN                    */
} mpsim_panels;

/* mpsim_panel_pack -- lines 16 panel to 16 panel + 15. */
void mpsim_panel_pack(const mpsim_lines *x, const mpsim_panels *to, size_t panel);

/* ---- values to codes ---- */

typedef struct mpsim_packer {
    const mpsim_rounded *to;
    int native; /* the machine's binary32 rounds so              */
    int fast;   /* 0: by the reference, one by one                        */
    int drop, sign_shift;
    uint64_t half, odd; /* to nearest even; 0: toward zero                        */
    uint64_t rebias;
    uint64_t least, most; /* bits of the smallest normal and the largest number     */
} mpsim_packer;

void mpsim_packer_init(mpsim_packer *p, const mpsim_rounded *to);

/* mpsim_pack_values -- codes of MPSIM_PANEL binary64 values, each rounded once; none is NaN. In the default environment. */
void mpsim_pack_values(const mpsim_packer *p, uint64_t *codes, const double *values);

/* mpsim_add_values -- d[j] = to(d[j] + s[j]) as a value, MPSIM_PANEL times.
 * Returns, as bits, where the sum is no finite number. */
unsigned mpsim_add_values(const mpsim_packer *p, double *d, const double *s);
