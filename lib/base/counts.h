/* counts.h -- adding up what happened to elements. */
#pragma once

#include <mpsim/round.h>

static inline void mpsim_count_flags(mpsim_counts *to, unsigned flags)
{
    to->inexact += (flags & MPSIM_FLAG_INEXACT) != 0;
    to->underflow += (flags & MPSIM_FLAG_UNDERFLOW) != 0;
    to->subnormal += (flags & MPSIM_FLAG_SUBNORMAL) != 0;
    to->overflow += (flags & MPSIM_FLAG_OVERFLOW) != 0;
    to->nan += (flags & MPSIM_FLAG_NAN) != 0;
}

static inline void mpsim_counts_add(mpsim_counts *to, const mpsim_counts *from)
{
    to->inexact += from->inexact;
    to->underflow += from->underflow;
    to->subnormal += from->subnormal;
    to->overflow += from->overflow;
    to->nan += from->nan;
}
