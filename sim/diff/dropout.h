/* dropout.h -- zeros at random places, the rest scaled up, or as it is. */
#pragma once

#include "verdict.h"

/* diff_dropout_masks -- one side has zeros where the other has numbers, as many of them as the scale of the rest calls for;
 * or both have, as many and at other places, and share the rest. */
verdict_judge diff_dropout_masks;
