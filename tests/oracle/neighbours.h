/* neighbours.h -- what mpsim_next_up, mpsim_next_down and mpsim_ulp document, computed from the ascending list of a
 * format's numbers. The format has at most 19 bits, or is binary32 or binary64. Not for threads. */
#pragma once

#include "sim/verify/oracles/oracle.h"

uint64_t oracle_next_up(const oracle_format *of, uint64_t code);
uint64_t oracle_next_down(const oracle_format *of, uint64_t code);
double oracle_ulp(const oracle_format *of, uint64_t code);
