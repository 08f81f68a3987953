/* places.h -- differences of place: transposed, shifted, permuted; and other shapes. Each is a verdict_judge. */
#ifndef MPSIM_SIM_DIFF_PLACES_H
#define MPSIM_SIM_DIFF_PLACES_H

#include "verdict.h"

/* places_moved -- of as many elements. places_resized -- of other counts: always says something.
 * places_transposed -- of as many elements: only whether axes have another order. */
verdict_judge places_moved, places_resized, places_transposed;

/* places_column_major -- whether the two are the same but that one is stored by columns: *same. 0, or -1. */
int places_column_major(verdict_case *c, int *same, trace_error *error);

#endif
