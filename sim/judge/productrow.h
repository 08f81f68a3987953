/* productrow.h -- rows of products: a model of mpsim/dot.h, how the depth is split, what operands are rounded to first. */
#pragma once

#include "judge.h"

enum {
    PRODUCT_ROWS = 640,     /* at most, of a search                                                    */
    PRODUCT_MKL_BLOCK = 384 /* products after which MKL's kernel of binary32 for AVX-512 begins a new sum */
};

typedef struct product_row {
    char name[MPSIM_JUDGE_ROW];
    mpsim_model model;
    size_t split;   /* parts of the depth, whose sums are added in order in binary32; 1: none */
    size_t chunk;   /* products of a part after which a new sum begins; 0: none            */
    unsigned lanes; /* sums of so many lanes in plain binary32: computed here, not by the model; 0: they are not */
    int mkl;        /* 1: chunks are those of MKL, parts those of its threads              */
    mpsim_format partials; /* of the sums of parts, and what they are added in; without a name: binary32 */
    mpsim_format operands; /* that operands are rounded to first, to nearest even; without a name: none */
    int scales;            /* how scales are multiplied: judge_product_scales */
    uint8_t mode;          /* of the last rounding: mpsim_round_mode, not stochastic */
} product_row;

/* Orders of a sum times its scales: s (a b), (s a) b, (s b) a. */
typedef enum judge_product_scales {
    PRODUCT_SCALES_FIRST,
    PRODUCT_SCALES_A_B,
    PRODUCT_SCALES_B_A,
    PRODUCT_SCALES
} judge_product_scales;

/* judge_product_row_parse -- MODEL[+chunk=N][+split=N[+partials=FORMAT]][+operands=FORMAT][+scales=ORDER][+round=MODE]; or
 * mkl-fp32[:parts=2] in place of the model, without chunk and split. MPSIM_ENOTFOUND. */
mpsim_status judge_product_row_parse(product_row *row, const char *text);

/* What decides which rows there are. */
typedef struct product_rows_source {
    const mpsim_format *a, *b, *d;
    size_t depth;
    int scales; /* 1: there are scales of both */
} product_rows_source;

/* judge_product_rows -- the rows that can be, at most `most`; the likely ones first. */
size_t judge_product_rows(product_row *to, size_t most, const product_rows_source *from);

/* The operands of results: rows and columns: which lines of a and b; NULL: all. b is depth x columns, turned: columns x depth. */
typedef struct product_operands {
    const mpsim_judge_array *a, *b, *c, *bias, *scale_a, *scale_b; /* all but a and b may be NULL */
    int turned;
    const size_t *rows, *columns;
    size_t first; /* product of the depth */
    const mpsim_pool *pool;
} product_operands;

/* judge_product_compute -- m x n results as codes of f, of `depth` products from o->first on: the chain by the model, times the scales, c and
 * bias added in binary32, one rounding. */
mpsim_status judge_product_compute(void *codes, const product_operands *o, const product_row *row,
                                   const mpsim_format *f, size_t m, size_t n, size_t depth);
