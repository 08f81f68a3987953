/* places.h -- differences of place: transposed, shifted, permuted; and other shapes. Each is a verdict_judge. */
#pragma once

#include "verdict.h"

/* diff_places_moved -- of as many elements. diff_places_resized -- of other counts: always says something. */
verdict_judge diff_places_moved, diff_places_resized;
