/* constants.h -- one number, and constants: what fits many causes and proves none. Each is a verdict_judge. */
#pragma once

#include "verdict.h"

/* constants_scalar -- both sides are one finite number. constants_constant -- all elements of a side are one, not zero
 * beside numbers, of which patterns.h says more. */
verdict_judge constants_scalar, constants_constant;
