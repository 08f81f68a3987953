/* peak.h -- what the machine can do at most: instructions that wait for none of the others. */
#pragma once

#include "frame.h"

enum { PEAK_FUSED_F32, PEAK_PRODUCT_AND_SUM_F32, PEAK_FUSED_F64 };

/* bench_peak -- seconds of a multiply-add of that kind by the vectors of the active instruction set, or 0 where it is not
 * known. */
double bench_peak(const bench *b, int kind);
