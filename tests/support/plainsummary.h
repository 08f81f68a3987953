/* plainsummary.h -- what <mpsim/summary.h> must give, element by element: every element is cast by the one-element
 * function, its flags are counted, and sums are integers of GMP.
 *
 * Elements are binary64 numbers, narrower ones widened. */
#pragma once

#include <gmp.h>
#include <mpsim/stats.h>
#include <mpsim/summary.h>
#include <stddef.h>
#include <stdint.h>

/* Integers: of the number times 2^2176, as the limbs of mpsim_sum count. */
typedef struct plain_cast {
    mpsim_counts counts;
    uint64_t compared;
    double max_rel_err;
    mpz_t squared_error, left_out;
} plain_cast;

enum { PLAIN_CASTS = 128 };

typedef struct plain_summary {
    uint64_t count, zero, nan, inf;
    double amax, amin;
    mpz_t sum, squares;
    uint64_t bin[MPSIM_HISTOGRAM_BINS];
    size_t n;
    plain_cast cast[PLAIN_CASTS];
} plain_summary;

/* plain_sum -- a sum of the library as such an integer. */
void plain_sum(mpz_t z, const mpsim_sum *s);

void plain_init(plain_summary *p);

/* plain_set -- the summary of x[0..n) for n_casts casts, `times` times over; element i takes the word rng->index + i
 * (rng NULL: 0; a stochastic cast with times > 1 means nothing). */
void plain_set(plain_summary *p, const mpsim_cast *casts, size_t n_casts, const mpsim_rng *rng, const double *x,
               size_t n, uint64_t times);

/* What a reader got, and what its accumulators held before: NULL if all that is wanted is as it must be, else what
 * differs, in words; valid until the next call. */
typedef struct plain_read {
    mpsim_stats stats;
    mpsim_histogram histogram;
    mpsim_cast_stats casts[PLAIN_CASTS];
} plain_read;

const char *plain_differs(const plain_summary *p, unsigned want, const plain_read *before, const plain_read *after);

/* plain_before -- accumulators that are not empty. */
void plain_before(plain_read *b, size_t n_casts, uint64_t *state);
