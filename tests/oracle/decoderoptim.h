/* decoderoptim.h -- a step of an optimizer for a whole tensor, by the sequences of optim.h. */
#pragma once

#include <mpsim/optim.h>

typedef struct oracle_step_of {
    size_t n;
    float *p, *m, *v, *k; /* NULL: not there */
    const float *g;
    mpsim_rng rng;
} oracle_step_of;

/* step: 1 for the first. Aborts on what optim.h has not. */
void oracle_optim(const mpsim_optim *o, uint64_t step, const oracle_step_of *t);

/* e^x and ln x, correctly rounded to binary64. */
double oracle_exp64(double x);
double oracle_log64(double x);
