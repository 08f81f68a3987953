/* gradientinput.h -- what the tests of gradients begin with: elements of every kind. */
#pragma once

#include "oracle/rounded.h"

#include <math.h>
#include <mpsim/format.h>
#include <stddef.h>
#include <stdint.h>

#define INFINITE ((double)INFINITY)
#define NOTANUMBER ((double)NAN)

enum { N = 96 };

extern const int narrow[3]; /* binary32, bf16, fp16 */

const mpsim_format *gradient_format(int f);

/* Of both signs, 2^lo to 2^(hi + 1). */
double uniform(uint64_t *random, int lo, int hi);

/* The same bits, or NaN both. */
int same(double want, float got);
int same64(double want, double got);

/* Elements of f: usual ones, any, edges; with `special`, also infinities and NaN. */
void gradient_fill(float *x, size_t n, int f, int special, uint64_t *random);
