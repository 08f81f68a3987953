/* exact.h -- what the tests of <mpsim/stats.h> share: sums in an MPFR number wide enough for
 * every sum of binary64 numbers and of their squares to be exact. */
#pragma once

#include "support.h"

#include <math.h>
#include <mpfr.h>
#include <stddef.h>
#include <stdint.h>

#define DENORM_MIN 0x1p-1074
#define INFINITE ((double)INFINITY)
#define NOT_A_NUMBER ((double)NAN)

#define LENGTH(x) (sizeof(x) / sizeof(x)[0])

/* From 2^-2148 (the square of 2^-1074) to 2^2112 (2^64 squares below 2^2048). */
enum { WIDE = 4400 };

/* s += x or x^2; it must be exact. */
void exact_add(mpfr_t s, double x, int square);

/* The sum of n numbers or of their squares; clear s afterwards. */
void exact_total(mpfr_t s, const double *x, size_t n, int square);

/* The same, rounded once; a zero is +0. */
double exact_sum(const double *x, size_t n, int square);

/* The same bits. */
int exact_same(double a, double b);

/* Finite values over the whole range, or close together (kind: 0 to 4); many cancel in pairs. */
void adversarial(double *x, size_t n, uint64_t *state, int kind);
