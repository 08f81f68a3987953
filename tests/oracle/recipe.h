/* recipe.h -- FP8 delayed scaling from its pseudo-code, written again on arrays of its own.
 *
 * TransformerEngine @d0067d0d: common/recipe/delayed_scaling.cu, common/recipe/recipe_common.cuh
 * and pytorch/quantization.py. Quotients and products are MPFR's at 24 bits with the exponents and
 * subnormals of binary32. */
#pragma once

#include <mpsim/recipe.h>

/* In binary32. */
float quotient(float a, float b);
int recipe_same(float a, float b); /* equal bits, or NaN both */

enum { SLOTS = 8 };

typedef struct state {
    int length, most_recent, variant, margin;
    float max, scale, inverse;
    float history[SLOTS];
} state;

void oracle_record(state *s, float amax);
void oracle_update(state *s, float reduced);

/* Oracle and library side by side. */
typedef struct pair {
    state s;
    mpsim_delayed d;
    float history[SLOTS];
} pair;

void pair_init(pair *p, int length, int algorithm, int variant, int margin, float max);
void pair_copy(pair *to, const pair *from); /* with a history of its own */
int pair_equal(const pair *p);

/* Both record an amax and update, with the amax of the group or 0. */
void step(pair *p, float amax, float reduced);

/* Valid until the next call. */
const char *describe(const pair *p);
