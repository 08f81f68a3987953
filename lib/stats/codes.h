/* codes.h -- how often each code of an array occurs. */
#pragma once

#include "cells.h"

/* Codes of one format of at most 16 bits whose numbers are binary32 numbers. */
typedef struct mpsim_code_counts {
    mpsim_format format;
    uint32_t *counts; /* four tables, used in turn; NULL: nothing was counted yet    */
    uint64_t n;       /* codes counted: fewer than 2^32                              */
} mpsim_code_counts;

/* Count n codes of format f, at any alignment. Before, and where that would be too many, the counts of
 * another format go to the cells. MPSIM_ENOMEM: nothing was counted. */
mpsim_status mpsim_code_counts_add(mpsim_code_counts *c, mpsim_cells *m, const mpsim_format *f, const void *codes,
                                   size_t n);

/* What was counted goes to the cells. */
void mpsim_code_counts_settle(mpsim_code_counts *c, mpsim_cells *m);
void mpsim_code_counts_forget(mpsim_code_counts *c);

/* Add the elements of an array of which is known how often each of the 2^bits codes occurs. */
void mpsim_cells_add_codes(mpsim_cells *m, const mpsim_format *f, const uint64_t *weights);
