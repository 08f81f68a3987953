/* ways.h -- ways in which a device may multiply matrices: a model row, the depth in which parts, what scales are applied
 * to. Of cuts.c (what names of kernels say of the parts), ways.c (what a way gives in an element), multiply.c (in many),
 * digests.c (in all) and their readers, products.c and scaled.c. */
#pragma once

#include "device.h"

#include <mpsim/dot.h>

enum { WAYS_DEPTH = 32768, WAYS_CUTS = 96, WAYS_MOST = 1024 };

/* How the depth is cut. part: products a part, 0: all. tile: of the depth; where a part is no multiple of it, the
 * rest is its first chunk (CUTLASS). turn: parts take chunks of so many by turns; 0: they are ranges. */
typedef struct cut {
    size_t part, tile, turn;
} cut;

/* One way: a row, a cut; what scales are applied to. */
typedef struct way {
    mpsim_model m;
    cut cut;
    int partial;            /* 1: parts are rounded to the result's 16 bits before they are added */
    int scales, contracted; /* SCALES_*: BEFORE: operands are multiplied, in binary32; of blocks: 1:
                               what is multiplied last, and their sum, by fma                     */
} way;

enum { SCALES_A_FIRST, SCALES_B_FIRST, SCALES_PRODUCT, SCALES_BEFORE, SCALES_ORDERS };

/* The operands of one element, as numbers and as codes of the model's formats. */
typedef struct element {
    const mpsim_format *fa, *fb, *out;
    size_t k;
    float start, onto; /* what products are added to; what parts are added to */
    float a[WAYS_DEPTH], b[WAYS_DEPTH];
    unsigned char ca[WAYS_DEPTH * 4], cb[WAYS_DEPTH * 4];
} element;

/* In which parts the depth k may be cut, whole first; returns how many ways there are. Where kernels are not known (guess):
 * powers of two and a few equal parts. */
size_t ways_cuts(const json_t *c, size_t k, int guess, cut *cuts);

/* The architecture whose rows are tried; NULL: software alone. */
const char *ways_architecture(const json_t *head);

/* Software rows but "chunked", and those of the architecture that take the operands. */
int ways_has(const mpsim_model *m, const char *arch, const mpsim_format *a, const mpsim_format *b);

/* The codes of e's numbers. */
void ways_encode(element *e);

/* n products from the first, where the depth is not cut in parts. */
float ways_dot(const way *w, const element *e, size_t first, size_t n);

/* All products; parts are added one after the other in binary32. */
float ways_whole(const way *w, const element *e);

/* The same of operands times their scales, in binary32. */
float ways_whole_scaled(const way *w, const element *e, float x, float y);

typedef struct candidates {
    way w[WAYS_MOST];
    size_t n;
    int out[WAYS_MOST]; /* 1: another sum was found */
} candidates;

/* Nothing where there is no room. */
void ways_add(candidates *all, way w);

/* How many give no other sum so far. */
size_t ways_left(const candidates *all);

/* The name of a way; `how` follows. */
void ways_name(const way *w, const char *how, char *name, size_t size);
void ways_fit(const way *w, const char *how, device_fits *fits);

/* Rows of a and columns of b, k codes each. */
typedef struct operands {
    const mpsim_format *fa, *fb, *out;
    size_t m, n, k;
    unsigned char *a, *b;
} operands;

/* sums[i n + j] of row i and column j: ways_dot and ways_whole of each. */
void ways_multiply_range(const way *w, const operands *x, size_t first, size_t depth, float *sums);
void ways_multiply(const way *w, const operands *x, float *sums);

/* A product, as a case asks for it. */
typedef struct product_case {
    const json_t *c; /* "places", "d", "digest" */
    const void *of;
    const char *inputs; /* names all that results depend on but the way: they are kept */
    size_t m, n, k;
    const mpsim_format *fa, *fb, *out;
    /* The k numbers of a row of a, or of a column of b (right). */
    void (*draw)(const void *of, int right, size_t line, float *x);
    /* Sums of rows and columns from these on. */
    void (*multiply)(const void *of, const way *w, const operands *x, size_t row, size_t column, float *sums);
    void (*name)(const void *of, const way *w, char *name, size_t size);
} product_case;

/* Whether all of a result is computed today, by so many ways. */
int ways_reads_digest(const product_case *x, size_t ways);

/* Candidates that give another digest, or other elements of the sample, are out. */
void ways_judge_digest(candidates *all, const product_case *x);

/* The digest of a way. */
uint64_t ways_digest(const way *w, const product_case *x);
