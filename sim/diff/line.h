/* line.h -- B is A times one number, or plus one, or both, but for small errors. Each is a verdict_judge. */
#pragma once

#include "verdict.h"

/* line_offset -- B = A + c within a rounding, for all elements.
 * line_fitted -- the best straight line leaves an error that is small against what it explains, nearly everywhere. */
verdict_judge line_offset, line_fitted;
