/* line.h -- B is A times one number, or plus one, or both, but for small errors. Each is a verdict_judge. */
#pragma once

#include "verdict.h"

/* diff_line_offset -- B = A + c within a rounding, for all elements.
 * diff_line_fitted -- the best straight line leaves an error that is small against what it explains, nearly everywhere. */
verdict_judge diff_line_offset, diff_line_fitted;
