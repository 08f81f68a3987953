/* stale.h -- differences that the step before explains. Each is a verdict_judge. */
#pragma once

#include "verdict.h"

/* diff_stale_shifted -- B has what A has at another step, and not what it had itself before.
 * diff_stale_b -- B has what it, or A, had at the step before, and A has not. diff_stale_a -- the other way round; a run skips
 * steps by itself, so that this explains less. */
verdict_judge diff_stale_shifted, diff_stale_b, diff_stale_a;
