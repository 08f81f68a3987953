/* decoderrows.h -- what mpsim/transformer.h says, computed again, one operation after the other.
 *
 * Arithmetic is layer.h's. Only exp, log, tanh, erf and sigmoid are the library's; layer/ judges them. */
#pragma once

#include "layer.h"

/* Rows of `cols`: `math` of the operations, f of what is stored in the end. */
typedef struct oracle_rows {
    size_t rows, cols;
    const oracle_format *math, *f;
} oracle_rows;

/* rms: 1: RMSNorm; bias may be NULL. */
void oracle_norm(const oracle_rows *r, int rms, float *y, float *mean, float *inverse, const float *x,
                 const float *weight, const float *bias);
void oracle_norm_back(const oracle_rows *r, int rms, float *dx, float *dweight, float *dbias, const float *dy,
                      const float *x, const float *mean, const float *inverse, const float *weight);

/* kind: mpsim_activation; x (dx) of SwiGLU has 2 cols. */
void oracle_activate(const oracle_rows *r, int kind, float *y, const float *x);
void oracle_activate_back(const oracle_rows *r, int kind, float *dx, const float *dy, const float *x);

/* Softmax of causal square matrices of r->cols rows each, one below the other. */
void oracle_causal(const oracle_rows *r, float scale, float *p, const float *s);
void oracle_causal_back(const oracle_rows *r, float scale, float *ds, const float *dp, const float *p);

/* One row of a tile with its first `n` columns, which are those up to the diagonal, of `cols`; size: of o and y. */
typedef struct oracle_tile_row {
    size_t n, cols, size;
    float scale, p_scale;
    const oracle_format *f; /* of P and dS; of y at the end */
} oracle_tile_row;

void oracle_tile(const oracle_tile_row *t, float *p, float *o, float *max, float *sum, const float *s);
void oracle_tile_end(const oracle_tile_row *t, float *y, float *lse, const float *o, float max, float sum);
float oracle_dots(const float *a, const float *b, size_t n);
void oracle_tile_again(const oracle_tile_row *t, float *p, const float *s, float lse);
void oracle_tile_back(const oracle_tile_row *t, float *ds, const float *dp, const float *s, float lse, float d);
