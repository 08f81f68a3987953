/* dotset.h -- sets of dot products that others computed: inputs by a generator, from a few words, so that only
 * results need be recorded.
 *
 * Case i of a set is of kind i modulo KINDS (sim/verify/kinds.h) and depends on the set's words and i alone. */
#pragma once

#include "dotcases.h"

enum { DOT_SET_DEPTH = 128 };

typedef struct dot_set {
    mpsim_model m;
    mpsim_format fa, fb, scale; /* scale.bits = 0: without scales */
    size_t k;
    uint64_t seed;
} dot_set;

/* Codes of one case. Scales: one for each block of k. */
typedef struct dot_case {
    uint64_t a[DOT_SET_DEPTH], b[DOT_SET_DEPTH], scales_a[DOT_SET_DEPTH], scales_b[DOT_SET_DEPTH], c;
} dot_case;

/* dot_set_parse -- a set from the words "MODEL FORMAT_A FORMAT_B K SEED" or with the format of the scales behind
 * them; NULL, or what is wrong. */
const char *dot_set_parse(dot_set *s, const char *model, const char *fa, const char *fb, const char *k,
                          const char *seed, const char *scale);

/* The number of scales of each operand. */
size_t dot_set_scales(const dot_set *s);

void dot_set_case(const dot_set *s, uint64_t i, dot_case *x);

/* The code that mpsim_dot or mpsim_dot_scaled gives; fails the test where there is none. */
uint64_t dot_set_dot(const dot_set *s, const dot_case *x);

/* The codes of DOT_SET_BLOCK cases from the matrix product of their operands, of which they are the diagonal. */
enum { DOT_SET_BLOCK = 16 };
void dot_set_gemm(const dot_set *s, const dot_case *x, uint64_t *codes);

/* Whether MMA-Sim's code is what comes of leaving out an accumulator that is not a finite number, at the first or the
 * second addition. It does so with `drop` = 1 where products are large, because it takes the exponent
 * that frexp gives an infinity or a NaN, 0, for that of the accumulator. */
int dot_set_dropped(const dot_set *s, const dot_case *x, uint64_t theirs);

/* Whether two codes of the result are the same; with `any_nan` all NaNs are. */
int dot_set_same(const dot_set *s, uint64_t x, uint64_t y, int any_nan);
