/* numbers.h -- differences that arithmetic explains: a scale, a rounding. Each is a verdict_judge. */
#pragma once

#include "verdict.h"

/* numbers_rounded_own -- one side is the other one rounded to its own, narrower format.
 * numbers_rounded -- one side is the other one rounded to any format of the table.
 * numbers_scaled -- one side is the other one times a constant, rounded. */
verdict_judge numbers_rounded_own, numbers_rounded, numbers_scaled;
