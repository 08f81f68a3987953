/* parts.h -- less than half of the elements hold other numbers, the rest is equal. Each is a verdict_judge. */
#pragma once

#include "verdict.h"

/* diff_parts_moved -- a little, or whole rows: what an update does that reaches some of them.
 * diff_parts_corrupted -- in any other way. */
verdict_judge diff_parts_moved, diff_parts_corrupted;
