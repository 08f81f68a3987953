/* cases.h -- hard inputs, listed from a format's published parameters, and the comparison
 * of the library with the oracle.
 *
 * Inputs are bit patterns of binary32 or binary64 (`width`), so that NaNs stay as they are.
 * All of them are points of the ORACLE's format: a wrong row of the library's table cannot
 * steer the test around its own mistake. */
#pragma once

#include "sim/verify/oracles/oracle.h"

typedef struct cases {
    int width; /* 32 or 64: the type of the inputs */
    size_t n;
    size_t room;
    uint64_t *u; /* n bit patterns                   */
} cases;

void cases_init(cases *c, int width);
void cases_clear(cases *c);

/* cases_edges -- the few dozen inputs where a choice decides: zeros, the ends of the normal
 * and of the subnormal range, the largest number and halves of units beyond it, the ends of
 * the source type, infinities, NaNs of several payloads; both signs.
 *
 * near = 1 adds the neighbours in the source type on both sides of each. */
void cases_edges(cases *c, const oracle_format *of, double scale, int near);

/* cases_numbers -- every number of the format, every midpoint between neighbours, each with
 * its neighbours in the source type on both sides, the quarter points, and midpoints that
 * are missed by less than an intermediate fp16, bf16 or binary32 could tell; both signs.
 *
 * Divided by scale, so that x * scale lies there. If the format has more than `limit`
 * magnitudes, about `limit` of them are taken: both ends, the ends of each binade, and a
 * stride between. What lies between runs in parts (test_in_part) where a format has more than 256 magnitudes. */
void cases_numbers(cases *c, const oracle_format *of, double scale, size_t limit);

/* cases_sweep -- n patterns of the source type: for binary32 a prime stride through all
 * 2^32, for binary64 random ones, three in four with an exponent of the format's range. */
void cases_sweep(cases *c, const oracle_format *of, size_t n, uint64_t seed);

/* The value of an input as the oracle takes it. */
double cases_value(const cases *c, size_t i);

/* What a run of comparisons found. */
typedef struct tally {
    size_t compared;
    size_t wrong;
    char first[800]; /* the first mismatch, in words */
} tally;

/* tally_code -- compare the library's code and flags with the expected ones. */
void tally_code(tally *t, const oracle_format *of, const mpsim_rounding *r, int width, size_t i, uint64_t u,
                uint32_t random, uint64_t want, unsigned want_flags, uint64_t got, unsigned got_flags);

/* tally_case -- encode input i of c by both, and compare. */
void tally_case(tally *t, const mpsim_format *f, const oracle_format *of, const mpsim_rounding *r, const cases *c,
                size_t i, uint32_t random);

/* tally_cases -- the same for all inputs of c. A stochastic mode draws its words from a
 * list with 0 and 0xffffffff in it and, if `thresholds`, for each input also the words just
 * below, at and above the one from which on its fraction rounds away. */
void tally_cases(tally *t, const mpsim_format *f, const oracle_format *of, const mpsim_rounding *r, const cases *c,
                 int thresholds);

/* The library's code for a bit pattern of either width. */
uint64_t encode_bits(const mpsim_format *f, const mpsim_rounding *r, int width, uint64_t u, uint32_t random,
                     unsigned *flags);

/* cannot_be_nan -- 1 if no choice makes this rounded input a NaN. The 18 combinations of the
 * two NaN choices mean nothing to it: a test may give it two of them instead of all. */
int cannot_be_nan(const oracle_format *of, const oracle_rounded *in);

/* Random word number i: the extremes first, then well mixed ones. */
uint32_t cases_word(size_t i);

/* mode_name -- for messages; the library's own names are under test elsewhere. */
const char *mode_name(int mode);

/* is_stochastic -- 1 for the three modes that take random bits. */
int is_stochastic(int mode);
