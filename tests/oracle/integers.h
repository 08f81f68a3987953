/* integers.h -- another way to what sim/verify/oracles/oracle_arith.h answers by GNU MPFR's operations: integers (GMP). The
 * exact value is a fraction of two integers or the root of one; its integer and fractional part in units of the last
 * place are found by division, the mode is applied as round.h words it. Not for threads. */
#pragma once

#include "sim/verify/oracles/oracle_arith.h"

/* oracle_arith_value -- the exact value of op on the codes a, b, c. Of o->r only flush_input
 * and flush_below matter: one value serves all modes and choices. */
void oracle_arith_value(oracle_value *v, const oracle_arith *o, uint64_t a, uint64_t b, uint64_t c);

/* oracle_arith_apply -- that value, and the code of it. */
uint64_t oracle_arith_apply(const oracle_arith *o, uint64_t a, uint64_t b, uint64_t c, uint32_t random,
                            unsigned *flags);

/* oracle_compare -- -1, 0, 1, or 2 for unordered. */
int oracle_compare(const oracle_format *fa, uint64_t a, const oracle_format *fb, uint64_t b);
