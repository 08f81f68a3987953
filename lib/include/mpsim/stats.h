/* stats.h -- statistics of tensors and of casts, in accumulators that merge exactly.
 *
 * Every accumulator is a set of integers (counts, exact sums) and maxima. Adding elements in
 * any order, in any split over any number of accumulators that are then merged, gives the
 * same accumulator and so the same printed digits.
 *
 * Inputs are binary64; narrower types widen to it exactly. Non-finite inputs are counted and
 * enter nothing else. The functions need the default floating-point environment. */
#ifndef MPSIM_STATS_H
#define MPSIM_STATS_H

#include <mpsim/round.h>

MPSIM_BEGIN

/* mpsim_sum -- an exact sum of binary64 values and of products of two of them.
 *
 * A fixed-point number in limbs of 32 bits, each kept in 64 with room for carries, from
 * 2^-2176 to 2^2176. Limb i has the weight 2^(32 i - 2176). Only the limbs from `first` to
 * `end` - 1 may differ from zero, and merging takes a time proportional to their number. */
enum { MPSIM_SUM_LIMBS = 136 };

typedef struct mpsim_sum {
    int64_t limb[MPSIM_SUM_LIMBS];
    uint32_t pending;    /* additions since carries were last propagated */
    uint16_t first, end; /* 0, 0: the sum is zero                        */
} mpsim_sum;

MPSIM_API void mpsim_sum_init(mpsim_sum *s);
MPSIM_API void mpsim_sum_add(mpsim_sum *s, double x);                   /* s += x, x finite           */
MPSIM_API void mpsim_sum_add_square(mpsim_sum *s, double x);            /* s += x*x exactly, x finite */
MPSIM_API void mpsim_sum_add_product(mpsim_sum *s, double x, double y); /* s += x*y exactly */
MPSIM_API void mpsim_sum_merge(mpsim_sum *to, const mpsim_sum *from);
MPSIM_API void mpsim_sum_subtract(mpsim_sum *from, const mpsim_sum *s);

/* mpsim_sum_value -- the sum, rounded once to nearest-even binary64. An exact zero is +0. */
MPSIM_API double mpsim_sum_value(const mpsim_sum *s);

/* mpsim_sum_frexp -- the sum as f * 2^exponent with 1/2 <= |f| < 1, f rounded once; f = 0 and
 * exponent 0 for an exact zero. For sums outside the range of binary64. */
MPSIM_API double mpsim_sum_frexp(const mpsim_sum *s, int *exponent);

/* mpsim_stats -- what a tensor holds. */
typedef struct mpsim_stats {
    uint64_t count; /* elements, everything included                          */
    uint64_t zero;  /* +0 and -0                                              */
    uint64_t nan;
    uint64_t inf;
    double amax;   /* largest finite magnitude; 0 if there is none           */
    double amin;   /* smallest non-zero finite magnitude; 0 if there is none */
    mpsim_sum sum; /* of the finite elements                                 */
    mpsim_sum sum_squares;
} mpsim_stats;

MPSIM_API void mpsim_stats_init(mpsim_stats *s);
MPSIM_API void mpsim_stats_add(mpsim_stats *s, const double *x, size_t n);
MPSIM_API void mpsim_stats_merge(mpsim_stats *to, const mpsim_stats *from);

/* Mean of the finite elements (the exact sum, rounded, divided by their number; NaN if there
 * are none), and the square root of the sum of their squares. Neither overflows on the way. */
MPSIM_API double mpsim_stats_mean(const mpsim_stats *s);
MPSIM_API double mpsim_stats_l2(const mpsim_stats *s);

/* mpsim_histogram -- elements by binary exponent floor(log2 |x|). */
enum { MPSIM_HISTOGRAM_MIN = -1074, MPSIM_HISTOGRAM_MAX = 1023, MPSIM_HISTOGRAM_BINS = 2098 };

typedef struct mpsim_histogram {
    uint64_t zero, inf, nan;
    uint64_t bin[MPSIM_HISTOGRAM_BINS]; /* bin[e - MPSIM_HISTOGRAM_MIN] */
} mpsim_histogram;

MPSIM_API void mpsim_histogram_init(mpsim_histogram *h);
MPSIM_API void mpsim_histogram_add(mpsim_histogram *h, const double *x, size_t n);
MPSIM_API void mpsim_histogram_merge(mpsim_histogram *to, const mpsim_histogram *from);

/* mpsim_cast_stats -- what a cast does to a tensor.
 *
 * The counts are those of mpsim/round.h. Errors compare x with q / scale, where q is the
 * value of the rounded x * scale, over the elements for which both x and q are finite:
 * an element that becomes Inf or NaN is an overflow, not an error. Each difference is formed
 * in binary64, rounded to nearest (exact where x and q / scale are within 2^52 of each other and
 * scale is a power of two); one beyond binary64 counts as its largest number. The square of the
 * difference enters the sum exactly. */
typedef struct mpsim_cast_stats {
    mpsim_counts counts;
    uint64_t compared;  /* elements with finite x and finite q                */
    double max_rel_err; /* largest |x - q / scale| / |x| over them with x != 0;
                               0 if there are none; reports have null where
                               nothing was compared                           */
    mpsim_sum sum_squared_error;
    mpsim_sum sum_squares_left_out; /* of finite x whose q is not finite          */
} mpsim_cast_stats;

MPSIM_API void mpsim_cast_stats_init(mpsim_cast_stats *c);

/* mpsim_cast_stats_add -- round n elements and account for them. rng as in
 * mpsim_encode_array_f64, with the same errors; *c is untouched then. */
MPSIM_API mpsim_status mpsim_cast_stats_add(mpsim_cast_stats *c, const mpsim_format *f, const mpsim_rounding *r,
                                            const mpsim_rng *rng, const double *x, size_t n);

/* mpsim_cast_stats_add_values -- account for the errors of a cast done elsewhere: x[i] became
 * value[i], already scaled back. The counts are the caller's to add. */
MPSIM_API void mpsim_cast_stats_add_values(mpsim_cast_stats *c, const float *x, const float *value, size_t n);
MPSIM_API void mpsim_cast_stats_merge(mpsim_cast_stats *to, const mpsim_cast_stats *from);

/* Mean squared error, and signal to quantisation noise 10 log10(sum x^2 / sum error^2) in
 * decibels, over the compared elements; `s` are the statistics of the same elements.
 * Both are NaN if nothing was compared; SQNR is +inf without error. */
MPSIM_API double mpsim_cast_stats_mse(const mpsim_cast_stats *c);
MPSIM_API double mpsim_cast_stats_sqnr_db(const mpsim_cast_stats *c, const mpsim_stats *s);

MPSIM_END

#endif
