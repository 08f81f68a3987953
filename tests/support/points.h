/* points.h -- inputs at which a fast cast may go wrong, as bit patterns of binary32 or binary64.
 *
 * Listed from the public functions that t-codes.c proves (mpsim_decode and others), for any format. */
#pragma once

#include <mpsim/round.h>
#include <stddef.h>
#include <stdint.h>

typedef struct points {
    int width; /* 32 or 64: the type of the inputs */
    size_t n, room;
    uint64_t *u;
} points;

void points_init(points *p, int width);
void points_clear(points *p);

/* points_push -- one pattern. points_near -- |v| in the source type and `steps` of its neighbours there on
 * both sides, of both signs. */
void points_push(points *p, uint64_t u);
void points_near(points *p, double v, int steps);

/* points_specials -- zeros, both ends of the normal and subnormal numbers, infinities, NaNs (quiet,
 * signalling, payloads at either end), each of both signs. */
void points_specials(points *p);

/* points_codes -- around every number of the format divided by scale, and every midpoint; where it has
 * more than `most` numbers, about as many: both ends, the ends of its normal range, the rest at random. */
void points_codes(points *p, const mpsim_format *f, double scale, size_t most, uint64_t *state);

/* points_stride -- n patterns, `stride` (odd) apart, from a random one; of binary64 with the lower half
 * at random. points_ordinary -- n numbers like gradients: about 2^centre, with a spread of some binades. */
void points_stride(points *p, size_t n, uint64_t stride, uint64_t *state);
void points_ordinary(points *p, size_t n, int centre, uint64_t *state);

/* points_shuffle -- in a random order. points_value -- as a number; a NaN keeps no more than being one. */
void points_shuffle(points *p, uint64_t *state);
double points_value(const points *p, size_t i);

/* points_store -- the first n as an array of the source type, at any address. */
void points_store(const points *p, void *to, size_t n);

/* points_encode -- the one-element function for input i. */
uint64_t points_encode(const points *p, size_t i, const mpsim_format *f, const mpsim_rounding *r, uint32_t random,
                       unsigned *flags);
