/* computed.h -- results of a computation in fewer bits, which is no rounding of the other side's. Each is a
 * verdict_judge. */
#pragma once

#include "verdict.h"

/* diff_computed_widened -- all numbers of one side are those of a narrower format, near the other side's.
 * diff_computed_operands -- results of products differ by as much as rounding their operands to bf16 or tf32 does: it only
 * looks like it. */
verdict_judge diff_computed_widened, diff_computed_operands;
