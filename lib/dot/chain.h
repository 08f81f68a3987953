/* chain.h -- the fast path of software models in binary32: chains of fused multiply-adds, of
 * products and sums, and trees.
 *
 * The reference's bits by the machine's own binary32 arithmetic (IEEE 754, nearest even, subnormal
 * numbers kept), as the optimizer steps are, in the default environment (base/environment.h).
 * Operands and c are finite; then only these things can happen that are no plain rounding: an
 * overflow gives an infinity, in the reference (the default choices) as in IEEE 754, and keeps it
 * as long as no other infinity comes; a product that overflows beside an infinity of the other sign
 * gives NaN, and special.h says which.
 *
 * machine_flushes (chain.c) and machine_cuts (gemm.c) test first that the processor obeys the modes of rounding and
 * flushing; valgrind does not.
 *
 * What bounds it (make bench, rows `chain`, beside `peak`, the machine's own multiply-adds). Sums of 8 rows and two
 * vectors of columns stay in 16 registers: 16 multiply-adds need 10 loads and none waits for another, which gives
 * 0.95 of the peak. Packing operands and rounding results grow with the area, multiply-adds with the volume: 256 x
 * 256 x 1024 reaches 0.76 of the peak in binary32 and bf16. A rounded product and a sum are two operations: half
 * the multiply-adds if one unit does both (Intel), as many if each has a unit of its own (AMD). If products are
 * exact in binary32 (fp16, fp8), both are fused. AMX's two lanes are added every 32 products and leave room for
 * half the rows: 0.6. Chains in any format (rounded.h) that round product and sum (bf16, e6m9) take 14 to 20
 * operations for 16 columns. */
#pragma once

#include "panel.h"

enum {
    MPSIM_CHAIN_FMA,
    MPSIM_CHAIN_MULADD,
    MPSIM_CHAIN_PAIRWISE,
    MPSIM_CHAIN_ODD_FIRST, /* fused multiply-adds, the second of two neighbours first: vdpbf16ps     */
    MPSIM_CHAIN_LANES      /* the same in two sums from +0, by even and odd k, that are added: AMX     */
};

/* mpsim_chain_flushes -- whether this kind runs with the machine's flushing of subnormal operands and results:
 * that of x86 is after rounding with unbounded exponent range, as that of the models. Elsewhere the reference does
 * them. */
static inline int mpsim_chain_flushes(int kind)
{
    return kind >= MPSIM_CHAIN_ODD_FIRST;
}

/* mpsim_is_native -- whether a place rounds as the machine's binary32 does. The rule for NaN is left
 * to the reference. */
int mpsim_is_native(const mpsim_rounded *p);

/* mpsim_chain_init -- whether the fast path can do this model with these operands, and which
 * kind it is. */
int mpsim_chain_init(int *kind, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb);

/* Rows of a and panels of b, of binary32 values; all products, or chunks of them whose sums from +0 are added up. */
typedef struct mpsim_chain_work {
    const float *a;
    size_t rows, next; /* values from a row to the next                                  */
    const float *b;    /* panels of MPSIM_PANEL columns, k-major                         */
    size_t panels, apart;
    size_t depth, chunk; /* chunk: 0: all                                                */
    size_t sums;         /* from the accumulators of a panel, row after row, to the next */
} mpsim_chain_work;

/* A chain function -- all additions; s: the accumulators, which are overwritten. */
typedef void mpsim_chain_function(int kind, const mpsim_chain_work *w, float *s);

/* A function of chains in binary64 -- the same of one panel and all products, fused or, from +0 on, exact. s: row after
 * row. */
typedef void mpsim_doubles_function(const double *a, size_t next, const double *b, double *s, size_t rows,
                                    size_t depth);
