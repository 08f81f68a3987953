/* stale.h -- differences that the step before explains. A verdict_judge. */
#ifndef MPSIM_SIM_DIFF_STALE_H
#define MPSIM_SIM_DIFF_STALE_H

#include "verdict.h"

/* stale_step -- one side has what it, or the other one, had at the step before, and the other one has not. */
verdict_judge stale_step;

#endif
