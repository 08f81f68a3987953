/* numbers.h -- differences that arithmetic explains: a scale, a rounding. Each is a verdict_judge. */
#pragma once

#include "verdict.h"

/* diff_numbers_rounded_own -- one side is the other one rounded to its own, narrower format.
 * diff_numbers_rounded -- one side is the other one rounded to any format of the table.
 * diff_numbers_scaled -- one side is the other one times a constant, rounded. */
verdict_judge diff_numbers_rounded_own, diff_numbers_rounded, diff_numbers_scaled;
