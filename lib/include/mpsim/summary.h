/* summary.h -- everything that mpsim/stats.h says of an array, for many casts, from one pass.
 *
 * A summary is equal, to the bit of every number read from it, to mpsim_stats_add, mpsim_histogram_add
 * and mpsim_cast_stats_add of the same elements, widened to binary64, however these are split over
 * calls and over summaries that are merged. A binary32 array costs little more for many casts than for
 * one where the modes are to nearest or toward zero and the scales powers of two; codes of at most
 * 16 bits are counted. A summary takes a few MiB, besides a few KiB for each cast.
 *
 * The functions need the default floating-point environment. */
#ifndef MPSIM_SUMMARY_H
#define MPSIM_SUMMARY_H

#include <mpsim/stats.h>

MPSIM_BEGIN

/* Target of a cast. The format must outlive the summary and must not change. */
typedef struct mpsim_cast {
    const mpsim_format *format;
    mpsim_rounding rounding; /* scale included */
} mpsim_cast;

/* Requested results beside the counts: of mpsim_stats count, zero, nan, inf, amax and amin, of each cast
 * its mpsim_counts. What is not wanted is left as it was by mpsim_summary_read. */
enum {
    MPSIM_SUMMARY_SUMS = 1,     /* sum, sum_squares                                           */
    MPSIM_SUMMARY_ERRORS = 2,   /* compared, max_rel_err, sum_squared_error, sum_squares_left_out */
    MPSIM_SUMMARY_HISTOGRAM = 4 /* by exponent                                                */
};

typedef struct mpsim_summary mpsim_summary; /* one thread at a time */

/* mpsim_summary_new -- a summary that must begin; NULL: out of memory. */
MPSIM_API mpsim_summary *mpsim_summary_new(void);
MPSIM_API void mpsim_summary_free(mpsim_summary *s); /* NULL: nothing */

/* mpsim_summary_begin -- forget all elements; set the n casts and what is wanted, a set of
 * MPSIM_SUMMARY_*. Cheap where casts and wishes are those of before.
 *
 * MPSIM_EINVAL if a format or a rounding is invalid or a pointer NULL, MPSIM_ENOMEM; the summary must
 * begin again then. */
MPSIM_API mpsim_status mpsim_summary_begin(mpsim_summary *s, const mpsim_cast *casts, size_t n, unsigned want);

/* mpsim_summary_add_f32, _f64, _codes -- add n elements, at any alignment.
 *
 *   f      the format of the codes, of mpsim_format_code_bytes(f) bytes each, host byte order
 *   rng    element i takes the random word of index rng->index + i; may be NULL unless a cast is
 *          stochastic
 *
 * MPSIM_EINVAL if the summary did not begin, f is invalid or a needed pointer NULL; nothing is added then. */
MPSIM_API mpsim_status mpsim_summary_add_f32(mpsim_summary *s, const mpsim_rng *rng, const float *x, size_t n);
MPSIM_API mpsim_status mpsim_summary_add_f64(mpsim_summary *s, const mpsim_rng *rng, const double *x, size_t n);
MPSIM_API mpsim_status mpsim_summary_add_codes(mpsim_summary *s, const mpsim_format *f, const mpsim_rng *rng,
                                               const void *codes, size_t n);

/* mpsim_summary_add_counts -- add elements of which is known how often each code occurs: counts[code] of code, for all
 * 2^f->bits of them; f has at most 16 bits.
 *
 * MPSIM_EINVAL as above, if f has more, or if a cast is stochastic: it depends on the places of elements. MPSIM_ENOMEM. */
MPSIM_API mpsim_status mpsim_summary_add_counts(mpsim_summary *s, const mpsim_format *f, const uint64_t *counts);

/* mpsim_summary_merge -- to += from, which says the same as before. MPSIM_EINVAL unless both began
 * with the same casts and wishes. */
MPSIM_API mpsim_status mpsim_summary_merge(mpsim_summary *to, mpsim_summary *from);

/* mpsim_summary_read -- add what was summarised since the beginning to the caller's accumulators;
 * more elements may follow.
 *
 *   histogram  NULL, or where wanted the histogram
 *   casts      one for each cast, in their order */
MPSIM_API mpsim_status mpsim_summary_read(mpsim_summary *s, mpsim_stats *stats, mpsim_histogram *histogram,
                                          mpsim_cast_stats *casts);

MPSIM_END

#endif
