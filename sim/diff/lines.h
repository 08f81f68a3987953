/* lines.h -- each row, or each column, with a number of its own. */
#pragma once

#include "verdict.h"

/* diff_lines_own -- each row of B is A's times, or plus, a number of that row; or each column times one. */
verdict_judge diff_lines_own;
