/* sum.h -- an exact sum as a number that can be rounded to any format. */
#ifndef MPSIM_LIB_STATS_SUM_H
#define MPSIM_LIB_STATS_SUM_H

#include "../round/scalar.h"

#include <mpsim/stats.h>

/* The sum with its highest 97 or more bits, and a sticky bit for the rest; +0 if it is zero. */
mpsim_number mpsim_sum_number(const mpsim_sum *s);

#endif
