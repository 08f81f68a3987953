/* ready.h -- casts of a few binary32 values, again and again: what a kernel needs is prepared once. Bits of mpsim/round.h. */
#pragma once

#include "kernel/kernel.h"

typedef struct mpsim_ready {
    const mpsim_format *f;
    mpsim_rounding r;
    int values;                   /* results are values, not codes                 */
    const mpsim_kernels *kernels; /* NULL: the functions of mpsim/round.h do it all */
    mpsim_cast_constants k;
} mpsim_ready;

/* mpsim_ready_init -- f and r are valid, r is not stochastic, f stays. mpsim_ready_run -- n values; out may be x where results are
 * values. Statuses as in mpsim/round.h. */
void mpsim_ready_init(mpsim_ready *c, const mpsim_format *f, const mpsim_rounding *r, int values);
mpsim_status mpsim_ready_run(const mpsim_ready *c, void *out, const float *x, size_t n);
