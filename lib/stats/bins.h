/* bins.h -- counting binary32 elements where counts alone are wanted; see cells.h.
 *
 * All that counts depend on is the exponent of an element, between which of a few significands it lies
 * (those at which a cast begins to overflow, is subnormal, ...) and how many zeros its fraction ends in. */
#pragma once

#include "cells.h"

typedef struct mpsim_bins {
    mpsim_bin_job job; /* bins NULL: nothing was counted yet */
    uint64_t n;        /* counted: fewer than 2^32           */
    int can;           /* the cuts of the cells are few      */
} mpsim_bins;

/* Prepare for the cells as they are planned. */
void mpsim_bins_plan(mpsim_bins *b, const mpsim_cells *m);

/* Count n words at any alignment, some of them by the cells. MPSIM_ENOMEM: none. */
mpsim_status mpsim_bins_add(mpsim_bins *b, mpsim_cells *m, const mpsim_cell_loops *loops, const void *x, size_t n);

/* What was counted goes to the cells, or is forgotten. */
void mpsim_bins_settle(mpsim_bins *b, mpsim_cells *m);
void mpsim_bins_forget(mpsim_bins *b);
