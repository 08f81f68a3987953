/* constants.h -- one number, and constants: what fits many causes and proves none. Each is a verdict_judge. */
#pragma once

#include "verdict.h"

/* diff_constants_scalar -- both sides are one finite number. diff_constants_constant -- all elements of a side are one, not zero
 * beside numbers, of which patterns.h says more. */
verdict_judge diff_constants_scalar, diff_constants_constant;
