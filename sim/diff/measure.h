/* measure.h -- two arrays of numbers, element by element: how many differ, where, by how much, and what the
 * judges of a difference need to know. Everything merges exactly: counts, extremes, exact sums. */
#pragma once

#include <mpsim/mpsim.h>

/* An element of both sides. */
typedef struct measure_place {
    uint64_t at, codes[2];
    double values[2];
} measure_place;

/* Different values of a side, as long as they are few. */
enum { MEASURE_LEVELS = 8 };
typedef struct measure_levels {
    double x[MEASURE_LEVELS];
    unsigned n; /* MEASURE_LEVELS + 1: more, or a NaN */
} measure_levels;

/* Bins of ULPs: 0 for none (numbers that become equal in the narrower format), then 1, 2-3, 4-7, ... */
enum { MEASURE_ULP_BINS = 65, MEASURE_BITS = 64 };

typedef struct measure {
    uint64_t count, differ;    /* elements; that differ: other codes, or of other formats other values */
    measure_place first, last; /* of those that differ                                           */
    measure_place worst;       /* the first of those farthest apart in ULPs                      */
    uint64_t compared;         /* finite pairs of those that differ: of these the ULPs, in the narrower format */
    uint64_t ulps[MEASURE_ULP_BINS], max_ulp;
    uint64_t bits[MEASURE_BITS];     /* of one format: elements whose codes differ in this bit         */
    uint64_t one_bit;                /* elements that differ in one bit alone                          */
    double max_abs, max_rel;         /* of finite pairs; relative to the larger magnitude              */
    double amax[2], low[2], high[2]; /* of finite elements */
    measure_levels levels[2];
    uint64_t nan[2], inf[2], zero[2];
    uint64_t broke, mended;            /* finite in A alone; in B alone                                  */
    uint64_t both_nan;                 /* that differ, by the codes of NaN                               */
    uint64_t larger, smaller;          /* finite pairs: B above A, B below A                             */
    uint64_t away, same_magnitude;     /* that differ: B of the larger magnitude; of the same            */
    uint64_t negated;                  /* B = -A, not zero                                               */
    uint64_t zeroed, filled;           /* zero in B alone; in A alone                                    */
    double zeroed_max, kept_min;       /* A's magnitudes: the largest that is zero in B, the smallest that is not */
    uint64_t end[2];                   /* behind the last element that is not zero                       */
    uint64_t swapped;                  /* B has the bytes of A in the opposite order                     */
    uint64_t same_code;                /* of two formats of one width: B has A's code                    */
    double limit_min, limit_max;       /* magnitudes of B where it differs                               */
    double ratio_min, ratio_max;       /* B / A where neither is zero, subnormal or not finite           */
    double scale_min[2], scale_max[2]; /* scales s with which A s rounds to B, and B s to A          */
    uint64_t ratios;
    double offset_min, offset_max; /* numbers c with which A + c is B, within a unit in the last place of the larger */
    double offset_unit;            /* the largest such unit */
    uint64_t finite;               /* pairs */
    unsigned significant[2];       /* the most significant bits that a number has                    */
    mpsim_sum signal[2], product, noise; /* of finite pairs: A A, B B, A B; (A - B)^2                */
    mpsim_sum signal_differ;             /* A A where they differ                                          */
    mpsim_sum total[2];                  /* A, B of finite pairs                                           */
    uint64_t multiset[2][2];             /* digests of the codes, or values, in whatever order             */
} measure;

void diff_measure_init(measure *m);

/* What measures: the formats of both sides, and the narrower one. */
typedef struct measurer {
    mpsim_format formats[2], narrow;
    double unit; /* in the last place of 1, of the narrower one */
    int same, both_signed;
} measurer;

void diff_measurer_init(measurer *r, const mpsim_format *a, const mpsim_format *b);

/* diff_measure_add -- n elements of both from element `first` on: codes, and the values they stand for. */
void diff_measure_add(measure *m, const measurer *r, uint64_t first, const void *codes_a, const void *codes_b,
                      const double *a, const double *b, size_t n);
/* diff_measure_merge -- `from` is of elements behind those of `to`, or before, or between. */
void diff_measure_merge(measure *to, const measure *from);

/* diff_measure_differs -- whether two elements differ. */
int diff_measure_differs(const measurer *r, uint64_t code_a, uint64_t code_b, double a, double b);

/* Errors relative to A in decibels, and to all that differs; +infinity without error, NaN where nothing is
 * compared. The correlation of both sides, NaN where one is zero. */
double diff_measure_sqnr(const measure *m);
double diff_measure_relative(const measure *m);        /* root mean square of the error to that of A */
double diff_measure_relative_differ(const measure *m); /* the same of the elements that differ       */
double diff_measure_correlation(const measure *m);
/* Whether errors go up and down alike, which is what adding in another order does; how much they go along with A:
 * -1 to 1. */
int diff_measure_is_balanced(const measure *m);
double diff_measure_alignment(const measure *m);

/* diff_measure_line -- the straight line B = slope A + offset that fits finite pairs best, and the root mean square of what
 * is left, absolute and relative to B's deviation from its mean. 0, or -1 where too little differs from its mean. */
typedef struct measure_fit {
    double slope, offset, left, share, deviation; /* deviation: of B */
} measure_fit;
int diff_measure_line(const measure *m, measure_fit *f);
