/* places.h -- differences of place: transposed, shifted, permuted; and other shapes. Each is a verdict_judge. */
#pragma once

#include "verdict.h"

/* places_moved -- of as many elements. places_resized -- of other counts: always says something. */
verdict_judge places_moved, places_resized;
