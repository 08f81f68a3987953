/* ops.h -- what the proofs of <mpsim/arith.h> share: an operation as the library and the oracle
 * take it, operands, and the comparison of the two.
 *
 * Operands are codes, listed from the ORACLE's format: a wrong row of the library's table cannot
 * steer the test around its own mistake. */
#pragma once

#include "cases.h"
#include "oracle/integers.h"

#include <mpsim/arith.h>

typedef struct operation {
    mpsim_arith lib;
    oracle_arith oracle;
} operation;

/* operation_make -- op on operands of the named formats with a result of another one; NULL: the
 * result's. The default rounding of that mode. */
operation operation_make(int op, const char *result, const char *a, const char *b, const char *c, int mode);

/* operation_rounding -- the same operation with another rounding. operation_mode -- with
 * another mode, the choices unchanged. */
void operation_rounding(operation *p, const mpsim_rounding *r);
void operation_mode(operation *p, int mode);

int op_operands(int op);
const char *op_name(int op);

/* The names of the table's formats of at most `bits` bits, by number; NULL behind the last. */
const char *narrow_format(size_t i, int bits);

/* ------------------------------------------------------------------------ operands ---- */

typedef struct codes {
    size_t n;
    uint64_t code[1024];
} codes;

/* codes_all -- every code of a format of at most 8 bits, and of wider ones none. */
codes codes_all(const oracle_format *of);

/* codes_edges -- exponent fields at both ends and around that of 1, crossed with significands of
 * no, one and all bits, the top bit, alternating and random ones, both signs. thin: fewer. */
codes codes_edges(const oracle_format *of, int thin, uint64_t *random);

/* code_random -- any code; three in four with an exponent close to that of 1 or to the code
 * `near`, so that sums and products neither vanish nor overflow. */
uint64_t code_random(const oracle_format *of, uint64_t near, uint64_t *random);

/* code_of -- the code of a number that the format has. */
uint64_t code_of(const oracle_format *of, double y);

/* ---------------------------------------------------------------------- comparison ---- */

/* tally_op -- one operation by both, code and flags. */
void tally_op(tally *t, const operation *p, uint64_t a, uint64_t b, uint64_t c, uint32_t random);

/* tally_modes -- the same in all nine modes; stochastic ones with two random words each, one of
 * them at the word that decides, and a number of random bits that depends on `turn`. */
void tally_modes(tally *t, operation *p, uint64_t a, uint64_t b, uint64_t c, size_t turn);

/* tally_two_ways -- the oracle with itself, in all nine modes. */
void tally_two_ways(tally *t, operation *p, uint64_t a, uint64_t b, uint64_t c, size_t turn);

/* tally_pairs -- tally_modes of all pairs of two lists, or of one list if the operation has one
 * operand only; of all triples with a third list. */
void tally_pairs(tally *t, operation *p, const codes *a, const codes *b);
void tally_triples(tally *t, operation *p, const codes *a, const codes *b, const codes *c);

/* tally_passed -- fails the test if anything differed or nothing was compared. */
void tally_passed(const tally *t);

/* ------------------------------------------------------------------------- choices ---- */

enum { ROUNDING_VARIANTS = 19 };

/* rounding_variant -- the default rounding but for one choice field, k < ROUNDING_VARIANTS. */
mpsim_rounding rounding_variant(int mode, int k);

/* rounding_random -- every field drawn from its domain. */
mpsim_rounding rounding_random(int mode, uint64_t *random);
