/* rounding.h -- what the proofs of <mpsim/round.h> share: the formats under test, and the
 * comparisons that are the same for binary32 and binary64 inputs (`width`). */
#pragma once

#include "cases.h"
#include "sim/verify/oracles/oracle.h"

#include <mpsim/round.h>
#include <stddef.h>
#include <stdint.h>

/* The default rounding in that mode. */
mpsim_rounding rounding(int mode);

/* for_all_formats -- one check for every format under test; fails the test at the first
 * format that has a mismatch. These are the rows of the table, behind them the typed eXmY
 * spellings and a few P3109 formats of other widths, not the same for both widths. */
typedef void format_check(tally *t, const mpsim_format *f, const oracle_format *of);
void for_all_formats(format_check *one, int width);

/* compare_two_ways -- the oracle with itself, nearest-even and the directed modes: one MPFR
 * operation with its ternary value, and the definition by neighbours and exact fraction. */
void compare_two_ways(tally *t, const oracle_format *of, const cases *c, double scale);

/* compare_modes -- the inputs c in every mode, with the default choices. */
void compare_modes(tally *t, const mpsim_format *f, const oracle_format *of, const cases *c, double scale);

/* compare_in_turn -- as compare_modes, but the modes other than nearest-even take turns; `turn` is another number
 * for each scale, so that all run. Seven turns, which have no divisor in common with those of cases_numbers. */
void compare_in_turn(tally *t, const mpsim_format *f, const oracle_format *of, const cases *c, double scale,
                     size_t turn);

/* compare_thresholds -- the inputs c in the stochastic modes with 1, 2, ... random bits (n
 * widths, which take turns), around the words that decide. */
void compare_thresholds(tally *t, const mpsim_format *f, const oracle_format *of, const cases *c, const uint8_t *widths,
                        size_t n);

/* compare_sweep -- inputs that nobody chose, others in each mode. */
void compare_sweep(tally *t, const mpsim_format *f, const oracle_format *of, int width);

/* compare_choices -- the edges in every mode and with ALL combinations of the choices. */
void compare_choices(tally *t, const mpsim_format *f, const oracle_format *of, int width);
