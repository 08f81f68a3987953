/* peers.h -- what the tests of other emulators' mistakes share: reports, and tables of rows.
 *
 * Every row is a defect that was observed somewhere; the comment of its group says what goes
 * wrong. The right results are typed in from the standards. Rows about fused multiply-add
 * belong to the arithmetic module, and are not here. */
#pragma once

#include "support.h"

#include <math.h>
#include <mpsim/round.h>
#include <stddef.h>
#include <stdint.h>

/* The first mismatch of a test, in words, and how many there are. */
typedef struct report {
    size_t wrong;
    char first[400];
} report;

__attribute__((format(printf, 2, 3))) void peers_note(report *p, const char *text, ...);

#define ck_no_mismatch(p) ck_assert_msg((p)->wrong == 0, "%zu wrong; %s", (p)->wrong, (p)->first)

/* Short names for the tables. */
enum {
    RNE = MPSIM_ROUND_NEAREST_EVEN,
    RNA = MPSIM_ROUND_NEAREST_AWAY,
    RTZ = MPSIM_ROUND_TOWARD_ZERO,
    RUP = MPSIM_ROUND_UP,
    RDN = MPSIM_ROUND_DOWN,
    ODD = MPSIM_ROUND_TO_ODD,
    SRA = MPSIM_ROUND_STOCHASTIC_A,
    SRB = MPSIM_ROUND_STOCHASTIC_B,
    SRC = MPSIM_ROUND_STOCHASTIC_C
};

#define NOT_A_NUMBER ((double)NAN)
#define INFINITE ((double)INFINITY)

/* By name; the test fails if there is none. */
mpsim_format peers_format(const char *name);
mpsim_rounding rounding_of(const char *preset, const mpsim_format *f, int mode);

/* The code of x, by the binary64 function and, if x is a binary32 number, by the binary32
 * function too; a difference between them is noted. */
uint64_t encode(report *p, const mpsim_format *f, const mpsim_rounding *r, double x, unsigned *flags);

/* One row: what x becomes. The value, as far as it is none of NaN, and the sign. */
typedef struct row {
    const char *format, *preset;
    int mode;
    double x, want;
} row;

void check_rows(const row *rows, size_t n);

#define CHECK_ROWS(rows) check_rows(rows, sizeof rows / sizeof rows[0])
