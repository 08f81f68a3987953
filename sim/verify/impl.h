/* impl.h -- what the files of sim/verify have of one another. */
#pragma once

#include "oracles/oracle.h"
#include "verify.h"

#include <gmp.h>
#include <mpsim/dot.h>
#include <stdint.h>

/* ---- architecture.c: which tensor cores a GPU has, by its name. ---- */

/* verify_architecture_of -- the architecture that a file's name tells ("h100.npz": "hopper"), or NULL.
 * verify_architecture_find -- the architecture of that name, in any letter case, as the table of models
 * spells it, or NULL. verify_architecture_list -- all of them, for messages. */
const char *verify_architecture_of(const char *file);
const char *verify_architecture_find(const char *name);
const char *verify_architecture_list(void);

/* ---- groups.c: the table of groups. A group that is not built is there, too, and says why. ---- */

extern const verify_group verify_groups[]; /* ends with a NULL name */

/* ---- inputs.c: inputs for comparisons with the oracle, and what its rows share.
 * Points are listed from the oracle's formats: a wrong row of the library's table cannot steer
 * the comparison around its own mistake. ---- */

/* Bit patterns of binary32 or binary64 numbers. */
typedef struct inputs {
    int width; /* 32 or 64 */
    size_t n;
    uint64_t *u;
} inputs;

/* verify_inputs_points -- numbers of the format, midpoints of neighbours, and what lies beside them in
 * the source type, both signs; the ends of both; infinities and NaNs. All numbers of a format
 * that has at most `limit`, else both ends and a stride between. */
void verify_inputs_points(inputs *in, const oracle_format *of, size_t limit);

/* verify_inputs_random -- n patterns; three in four with an exponent of the format's range. */
void verify_inputs_random(inputs *in, const oracle_format *of, size_t n, uint64_t *state);

void verify_inputs_clear(inputs *in); /* no more inputs; keeps the width and the memory */
void verify_inputs_free(inputs *in);

double verify_inputs_value(const inputs *in, size_t i); /* as the oracle takes it */

/* verify_inputs_word -- 64 well mixed bits; *state is the position in the sequence (SplitMix64). */
uint64_t verify_inputs_word(uint64_t *state);

/* verify_inputs_code -- a code of the format: any; near 1; at an end; one in four each. */
uint64_t verify_inputs_code(const oracle_format *of, uint64_t *state);

/* ---- mpfr_rows.c: the parts of the group mpfr beside its casts. ---- */

/* The rows of arithmetic and of dot products; 0 or an exit code. */
int verify_mpfr_arith(verify *v, const char *judge);
int verify_mpfr_dot(verify *v, const char *judge);

/* ---- oracle_sum.c: of oracle_dot.c: an exact sum of numbers and products, by GMP's integers, and its rounding to a code.
 * Not for threads: one sum is under way at a time. ---- */

/* A sum under way: oracle_total 2^unit, or what its special terms make of it. */
typedef struct oracle_exact {
    enum { NUMBER, INFINITE, NO_VALUE, NOT_A_NUMBER } kind;
    int negative;     /* of an infinity or a NaN                             */
    uint64_t payload; /* of a NaN                                            */
    int plus, minus;  /* terms of that sign, zeros included                  */
    long unit;
} oracle_exact;

extern mpz_t oracle_total; /* of the one sum that is under way */

uint64_t oracle_integer(const mpz_t z); /* below 2^64: mpz_get_ui gives what fits in a long */

void oracle_begin(oracle_exact *x); /* zero, of no terms */
void oracle_add(oracle_exact *x, double v);
void oracle_add_product(oracle_exact *x, double a, double b);
void oracle_add_infinity(oracle_exact *x, int negative);

/* oracle_add_aligned -- oracle_total += +-s 2^w in units of 2^unit, which the caller knows; what is below the unit goes
 * as the alignment says (MPSIM_ALIGN_...). */
void oracle_add_aligned(uint64_t s, int negative, long w, int alignment, long unit);

/* oracle_forget_nan -- exact sums and fused additions: which NaN it was does not count. */
void oracle_forget_nan(oracle_exact *x);

/* oracle_is_negative_zero -- the sign of a sum of zero: terms of one sign keep it, else +0, or -0 in mode DOWN. */
int oracle_is_negative_zero(const oracle_exact *x, const mpsim_rounding *r);

/* oracle_is_tiny -- does |sum| stay below the smallest normal number of the format even where there are smaller ones? */
int oracle_is_tiny(const oracle_exact *x, const oracle_format *of, const mpsim_rounding *r, uint32_t random);

/* oracle_code -- the code of the sum, which is lost. An exact zero has the sign `negative_zero`; with `to_infinity` an
 * overflow is an infinity in every mode. */
uint64_t oracle_code(const oracle_exact *x, const oracle_format *of, const mpsim_rounding *rounding, uint32_t random,
                     int negative_zero, int to_infinity);
