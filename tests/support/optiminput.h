/* optiminput.h -- what the tests of optimizer steps begin with: elements of every kind, and
 * settings drawn at random. */
#pragma once

#include "oracle/optimexact.h"
#include "support.h"

#include <math.h>
#include <mpsim/optim.h>
#include <stddef.h>
#include <stdint.h>

#define INFINITE ((double)INFINITY)
#define NOTANUMBER ((double)NAN)

enum { VECTOR = 32, N = 45, STEPS = 6 }; /* 45: a vector body of a CPU, and a tail */

extern const uint64_t steps[STEPS];

/* In [0, 1). */
double unit(uint64_t *random);

/* A number of f: of both signs, about 2^lo to 2^hi; or any finite one; or an edge. */
double draw(int f, uint64_t *random, int kind, int lo, int hi);

const mpsim_format *optim_format(int f);

typedef struct arrays {
    float p[N], g[N], m[N], v[N], x[N], k[N];
} arrays;

/* All arrays, for the formats pf of parameters and sf of states. */
void optim_fill(arrays *a, const mpsim_optim *o, int pf, int sf, int zero_state, uint64_t *random);

/* Arrays that are not needed are NULL. */
mpsim_optim_tensor tensor(arrays *a, const mpsim_optim *o, size_t first, size_t n);

element element_of(const arrays *a, size_t i, uint32_t random);

/* Numbers of a run; the bits of `options` say which of its options are on. */
void numbers(mpsim_optim *o, unsigned options, uint64_t *random);
