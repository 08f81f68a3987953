/* arithrow.h -- rows of element-wise arithmetic: an operation of mpsim/arith.h, how it is rounded, and which NaN it gives. */
#pragma once

#include "list.h"

#include <mpsim/arith.h>

enum { ARITH_OPERANDS = 3 };

/* Which NaN. The rules of mpsim_nan_rule come first; a processor's rule gives the quiet NaN of an operand. */
typedef enum arith_nans {
    ARITH_X86 = MPSIM_NAN_RULES, /* the first NaN of a, b, c; without one the canonical NaN with its sign set */
    ARITH_ARM,  /* the first signalling NaN, else the first NaN, c before a, b; without one the canonical NaN */
    ARITH_LAST, /* the last NaN of a, b, c; without one the canonical NaN */
    ARITH_ANY,  /* any: NaNs are not compared */
    ARITH_NANS
} arith_nans;

/* Which results become zeros of their sign: those of which something is below the smallest normal number. */
typedef enum arith_flush {
    ARITH_KEEP,
    ARITH_FLUSH_RESULTS, /* the rounded result                                               */
    ARITH_FLUSH_TINY,    /* the exact result rounded with unbounded exponents: FTZ of x86    */
    ARITH_FLUSH_BEFORE,  /* the exact result: FZ of Arm                                       */
    ARITH_FLUSHES
} arith_flush;

typedef struct arith_row {
    judge_row of;
    mpsim_op op;
    mpsim_format via; /* the result is rounded to this format first; without a name: it is not */
    uint8_t mode, nans, flush, flush_inputs, overflow;
    uint8_t twice; /* fma: the product is rounded, then the sum; div: one over b is rounded, then the product */
} arith_row;

extern const char *const judge_arith_nans[ARITH_NANS], *const judge_arith_flushes[ARITH_FLUSHES];

/* judge_arith_read -- OP[:MODE][:nan=RULE][:flush-inputs][:flush-results, -tiny or -before][:overflow=max][:separate, reciprocal]
 * [:via=FORMAT]; `read` of a judge_list. */
int judge_arith_read(void *row, char *text);

/* judge_arith_row_parse -- the same of a text that stays. 0, or -1. */
int judge_arith_row_parse(arith_row *row, const char *text);

/* Rows of an operation: of what results show. */
typedef struct arith_rows {
    const mpsim_format *result, *operand;                 /* operand: the widest one */
    int nans, tiny_operands, tiny_results, large_results; /* whether there are such; others are not told apart */
    void (*add)(void *to, const char *name);
    void *to;
} arith_rows;

void judge_arith_rows(const arith_rows *r, mpsim_op op, mpsim_round_mode mode);

typedef struct arith_operand {
    const mpsim_format *format;
    const void *codes;
} arith_operand;

/* judge_arith_compute -- n codes of f. */
mpsim_status judge_arith_compute(const arith_row *row, const mpsim_format *f, const arith_operand x[ARITH_OPERANDS],
                                 size_t n, void *codes);
