/* transformer.h -- what a transformer computes beside matrix products, to the last bit: functions,
 * normalisation of rows, GELU and SwiGLU, softmax of causal attention, whole and in tiles.
 *
 * As in mpsim/layer.h: fixed sequences of correctly rounded binary32 operations, which kernels of
 * gpu/ compile, too (lib/layer/functions.h, lib/layer/transformer.h); `math` and NULL mean what they
 * mean there: inputs and the result of every operation written below are rounded to `math`. The
 * functions are evaluated in binary32, of the argument as it is, and rounded. f, NULL: binary32, is
 * the format that results y, dx, P, dS are rounded to in the end, nearest-even, overflow to infinity.
 * Constants are binary32 numbers, rounded to `math` before they are used, but for 1, 0.5 and -0.5.
 * NaN: as operations say.
 *
 * Where it returns a status: MPSIM_EINVAL if a format is invalid or a needed pointer is NULL,
 * MPSIM_ERANGE if a format has numbers that binary32 has not; nothing is touched then. Outputs may be
 * inputs of the same element type and place, unless it says not. Needs the default floating-point
 * environment. */
#ifndef MPSIM_TRANSFORMER_H
#define MPSIM_TRANSFORMER_H

#include <mpsim/layer.h>
#include <mpsim/rng.h>

MPSIM_BEGIN

/* ---- functions ---- */

/* In binary32, by integer operations, sums, products, fma, quotients and square roots only. The
 * largest errors over all 2^32 arguments are in lib/README.md; tanh, erf,
 * sigmoid and rsqrt are monotone. NaN gives NaN.
 *
 * mpsim_tanh      tanh(+-0) = +-0, tanh(+-inf) = +-1
 * mpsim_erf       erf(+-0) = +-0, erf(+-inf) = +-1
 * mpsim_sigmoid   1 / (1 + e^-x): 0 at -inf, 1 at inf; subnormal results are not flushed
 * mpsim_rsqrt     1 / sqrt(x): inf at +0, -inf at -0, NaN below zero, +0 at inf
 * mpsim_sin, mpsim_cos   of radians, with the argument reduced as if exactly for all finite x; NaN
 *                 at infinities */
MPSIM_API float mpsim_tanh(float x);
MPSIM_API float mpsim_erf(float x);
MPSIM_API float mpsim_sigmoid(float x);
MPSIM_API float mpsim_rsqrt(float x);
MPSIM_API float mpsim_sin(float x);
MPSIM_API float mpsim_cos(float x);

/* mpsim_normal_array -- normal numbers of a stream: y[k] is element i = rng->index + k. With the words v of index
 * 2 i and w of 2 i + 1 of seed and stream, in binary32: u = ((v >> 8) + 1) * 2^-24; z = sqrt(-2 * mpsim_log(u)) *
 * mpsim_cos(((w >> 8) * 2^-24) * 0x1.921fb6p+2f); y = deviation * z. */
MPSIM_API void mpsim_normal_array(const mpsim_rng *rng, float deviation, float *y, size_t n);

/* ---- normalisation of rows ---- */

typedef enum mpsim_norm_kind {
    MPSIM_NORM_LAYER, /* LayerNorm */
    MPSIM_NORM_RMS    /* RMSNorm   */
} mpsim_norm_kind;

/* x, y: rows x cols; weight, bias: cols each (bias NULL: none). n = f32(cols), rounded to `math`. Sums
 * along a row are mpsim_sum_lanes with MPSIM_LANES_ROW, over rows with MPSIM_LANES_ALL; their terms
 * are computed before they are added. */
typedef struct mpsim_rownorm {
    size_t rows, cols;
    uint8_t kind; /* mpsim_norm_kind */
    float eps;    /* 1e-5 */
    const mpsim_format *math, *f;
} mpsim_rownorm;

/* mpsim_rownorm_forward -- of each row:
 *
 *   LAYER   mean = sum(x) / n;  d = x - mean;  var = sum(d * d) / n
 *   RMS     mean is +0 and not used: d = x;    var = sum(x * x) / n
 *   inverse = 1 / sqrt(var + eps)       (the sum, the root and the quotient rounded one by one)
 *   y = (d * inverse) * w;  with bias: y = y + b
 *
 * mean, inverse: rows each, for the backward pass. With no columns y has nothing, and mean and inverse
 * are untouched. An unknown kind is MPSIM_EINVAL, as is an unknown activation below. */
MPSIM_API mpsim_status mpsim_rownorm_forward(const mpsim_rownorm *r, float *y, float *mean, float *inverse,
                                             const float *x, const float *weight, const float *bias);

/* mpsim_rownorm_backward -- with h = d * inverse, g = dy * w:
 *
 *   LAYER   a = sum(g) / n;  c = sum(g * h) / n;  dx = inverse * ((g - a) - (h * c))
 *   RMS                      c = sum(g * h) / n;  dx = inverse * (g - (h * c))
 *   dweight = sum over rows of dy * h;  dbias = sum over rows of dy
 *
 * Each may be NULL: not wanted. dweight and dbias are left in `math`; +0 without rows; they overlap no input. mean of
 * RMS may be NULL. */
MPSIM_API mpsim_status mpsim_rownorm_backward(const mpsim_rownorm *r, float *dx, float *dweight, float *dbias,
                                              const float *dy, const float *x, const float *mean, const float *inverse,
                                              const float *weight);

/* ---- activations ---- */

typedef enum mpsim_activation {
    MPSIM_GELU_TANH,
    MPSIM_GELU,   /* with erf */
    MPSIM_SWIGLU, /* a row of x is `cols` gates, then `cols` values */
    MPSIM_RELU,   /* of RELU, SIGMOID, TANH and EXP the backward pass takes the result y in the place of x */
    MPSIM_SILU,
    MPSIM_SIGMOID,
    MPSIM_TANH,
    MPSIM_EXP
} mpsim_activation;

/* mpsim_activate -- y: rows x cols, x: rows x cols, of SWIGLU rows x 2 cols (y must not overlap x then).
 *
 *   GELU_TANH   u = k * (x + (c * ((x * x) * x)));  t = tanh(u);  y = (0.5 * x) * (1 + t)
 *               k = 0x1.988454p-1 (sqrt(2 / pi)), c = 0x1.6e4e26p-5 (0.044715)
 *   GELU        t = erf(x * r);  y = (0.5 * x) * (1 + t);  r = 0x1.6a09e6p-1 (sqrt(1 / 2))
 *   SWIGLU      g a gate, v its value: y = (g * sigmoid(g)) * v
 *   RELU        y = x if x > 0 or NaN, else +0
 *   SILU        y = x * sigmoid(x)
 *   SIGMOID, TANH, EXP   the function
 *
 * mpsim_activate_backward -- dx of x's shape from dy (not overlapping it for SWIGLU):
 *
 *   GELU_TANH   s = 1 - (t * t);  w = k * (1 + (c3 * (x * x)));  c3 = 0x1.12ba9ep-3 (3 * 0.044715)
 *               dx = dy * ((0.5 * (1 + t)) + (((0.5 * x) * s) * w))
 *   GELU        p = q * exp(-0.5 * (x * x));  q = 0x1.988454p-2 (1 / sqrt(2 pi))
 *               dx = dy * ((0.5 * (1 + t)) + (x * p))
 *   SWIGLU      s = sigmoid(g);  dv = dy * (g * s);  dg = (dy * v) * (s * (1 + (g * (1 - s))))
 *   RELU        dx = dy if y > 0, else +0
 *   SILU        s = sigmoid(x);  dx = dy * (s * (1 + (x * (1 - s))))
 *   SIGMOID     dx = dy * (y * (1 - y));   TANH  dx = dy * (1 - (y * y));   EXP  dx = dy * y */
MPSIM_API mpsim_status mpsim_activate(mpsim_activation kind, const mpsim_format *math, const mpsim_format *f, float *y,
                                      const float *x, size_t rows, size_t cols);
MPSIM_API mpsim_status mpsim_activate_backward(mpsim_activation kind, const mpsim_format *math, const mpsim_format *f,
                                               float *dx, const float *dy, const float *x, size_t rows, size_t cols);

/* ---- tables and elements ---- */

/* mpsim_embed -- y[r] = table[index[r]], of rows of `cols` numbers, rounded to f; index[r] < entries.
 *
 * mpsim_embed_backward -- of entries first to first + n - 1 of the table, whose gradients dtable has: dtable[v] = s, in
 * `math`; s = +0 or, with `added` 1, the number in dtable, then s = s + dy[r] for every r of `rows` with index[r] = v,
 * ascending. An index that is none of these entries changes nothing. */
MPSIM_API mpsim_status mpsim_embed(const mpsim_format *f, float *y, const float *table, const uint32_t *index,
                                   size_t rows, size_t cols, size_t entries);
MPSIM_API mpsim_status mpsim_embed_backward(const mpsim_format *math, float *dtable, const float *dy,
                                            const uint32_t *index, size_t rows, size_t cols, size_t first, size_t n,
                                            int added);

/* mpsim_add_array, mpsim_multiply_array -- y[i] = a[i] + b[i], a[i] * b[i] in `math`, rounded to f: with `math` NULL
 * one rounding. y may be a or b. */
MPSIM_API mpsim_status mpsim_add_array(const mpsim_format *math, const mpsim_format *f, float *y, const float *a,
                                       const float *b, size_t n);
MPSIM_API mpsim_status mpsim_multiply_array(const mpsim_format *math, const mpsim_format *f, float *y, const float *a,
                                            const float *b, size_t n);

/* mpsim_dropout -- element i stays if the random word of index rng->index + i is at least 2^32 p (0 <= p <= 1,
 * rounded down to an integer), and y[i] = x[i] * k then, k = f32(1 / (1 - p)) rounded to `math`; else +0; with p = 1 all
 * are +0. The same function takes dy to dx. y may be x. MPSIM_EINVAL for another p. */
MPSIM_API mpsim_status mpsim_dropout(const mpsim_format *math, const mpsim_format *f, double p, const mpsim_rng *rng,
                                     float *y, const float *x, size_t n);

/* mpsim_rotary -- tables of rotary positions: cosines and sines of places x half numbers, of the angle a of place p and
 * column c, in binary64: ratio = (2 c) / (2 half);  w = e^(-ratio ln(base));  a = p w, less the whole turns that are nearest,
 * a - floor(a 0x1.45f306dc9c883p-3 + 0.5) 0x1.921fb54442d18p+2;  mpsim_cos(f32(a)), mpsim_sin(f32(a)). e^x and ln are
 * correctly rounded. MPSIM_EINVAL for a base that is not finite and above 0. */
MPSIM_API mpsim_status mpsim_rotary(float *cosines, float *sines, size_t places, size_t half, double base);

/* ---- softmax of rows ---- */

/* `rows` rows of `cols` scores, one below the other. A row sees its first n columns, which are all that is read: n =
 * cols; or, with `length` above 0, of queries beside keys: query i = (first + row) modulo length sees i + 1 + cols - length
 * of them (0 if that is not above 0). Of these a row sees, with a mask of rows x cols bytes, those whose byte is not 0. */
typedef struct mpsim_softmax {
    size_t rows, cols, length;
    size_t first; /* the place of the first row; 0 where it begins a matrix */
    float scale;  /* rounded to `math` before it is used */
    const mpsim_format *math, *f;
} mpsim_softmax;

/* Over the columns j that a row sees:
 *
 * mpsim_softmax_rows -- x[j] = scale * s[j];  m = max x[j] (exact; NaN if one is NaN);  e[j] = exp(x[j] - m);  z =
 * mpsim_sum_lanes(e, MPSIM_LANES_ROW), with +0 for columns that it does not see;  P[j] = e[j] / z, +0 elsewhere.
 *
 * mpsim_softmax_backward -- D = mpsim_sum_lanes(P[j] * dP[j], MPSIM_LANES_ROW);  dS[j] = (P[j] * (dP[j] - D)) * scale,
 * +0 elsewhere.
 *
 * mpsim_log_softmax -- y[j] = (x[j] - m) - log(z), -infinity elsewhere.
 *
 * mpsim_log_softmax_backward -- D = mpsim_sum_lanes(dy, MPSIM_LANES_ROW);  dS[j] = (dy[j] - (exp(y[j]) * D)) * scale, +0
 * elsewhere.
 *
 * mask NULL: none is masked. p, y, ds may be s, dp, dy. */
MPSIM_API mpsim_status mpsim_softmax_rows(const mpsim_softmax *c, float *p, const float *s, const uint8_t *mask);
MPSIM_API mpsim_status mpsim_softmax_backward(const mpsim_softmax *c, float *ds, const float *dp, const float *p,
                                              const uint8_t *mask);
MPSIM_API mpsim_status mpsim_log_softmax(const mpsim_softmax *c, float *y, const float *s, const uint8_t *mask);
MPSIM_API mpsim_status mpsim_log_softmax_backward(const mpsim_softmax *c, float *ds, const float *dy, const float *y,
                                                  const uint8_t *mask);

/* ---- softmax of causal attention ---- */

/* `matrices` square matrices of `length` rows, one below the other: row i of each has scores of its
 * first i + 1 columns, which are all that is read; x[j] = scale * s[j]. */
typedef struct mpsim_causal {
    size_t matrices, length;
    float scale; /* 1 / sqrt(size of a head), rounded to `math` before it is used */
    const mpsim_format *math, *f;
} mpsim_causal;

/* mpsim_causal_softmax, mpsim_causal_softmax_backward -- mpsim_softmax_rows and mpsim_softmax_backward of `length`
 * columns and queries. */
MPSIM_API mpsim_status mpsim_causal_softmax(const mpsim_causal *c, float *p, const float *s);
MPSIM_API mpsim_status mpsim_causal_softmax_backward(const mpsim_causal *c, float *ds, const float *dp, const float *p);

/* ---- the same in tiles of columns (online softmax: Milakov and Gimelshein, 2018; FlashAttention-2) ---- */

/* Columns first to first + cols - 1 of the matrices above, rows first to length - 1 of each: those
 * above have none of these columns. s, p, dp, ds: matrices * (length - first) rows of cols numbers;
 * max, sum, lse, d: matrices * length numbers; o: matrices * length rows of `size` numbers. Arithmetic is
 * binary32 (c.math is not looked at); P and dS are rounded to c.f. */
typedef struct mpsim_causal_tile {
    mpsim_causal c;
    size_t first, cols, size;
    float p_scale; /* P is multiplied by this before it is rounded: a power of two */
} mpsim_causal_tile;

/* mpsim_causal_tile_forward -- before the product P V is added to o. max, sum and o are -inf, +0 and +0
 * before the first tile; of two zeros max may be either. Of row i, x[j] = scale * s[j] over the columns
 * of the tile j <= i:
 *
 *   m = the larger of max and all x[j] (NaN if one is NaN);  r = m, or +0 if m is -inf
 *   a = exp(max - r);  e[j] = exp(x[j] - r);  z = mpsim_sum_lanes(e, MPSIM_LANES_ROW)
 *   sum = (sum * a) + z;  max = m;  o = o * a
 *   P[j] = e[j] * p_scale for j <= i, +0 beyond
 *
 * mpsim_causal_tile_end -- after the last tile, of every row:
 *
 *   y = (o * (1 / p_scale)) / sum, rounded to c.f;  lse = max + log(sum)
 *
 * mpsim_causal_tile_dots -- d = mpsim_sum_lanes(dy[c] * y[c], MPSIM_LANES_ROW) of every row of `size`
 * numbers.
 *
 * mpsim_causal_tile_again -- of the backward pass: e[j] = exp((scale * s[j]) - lse); P[j] = e[j], +0
 * beyond; p_scale is not looked at.
 *
 * mpsim_causal_tile_backward -- dS[j] = (e[j] * (dP[j] - d)) * scale, +0 beyond; e as above, not
 * rounded. */
MPSIM_API mpsim_status mpsim_causal_tile_forward(const mpsim_causal_tile *t, float *p, float *o, float *max, float *sum,
                                                 const float *s);
MPSIM_API mpsim_status mpsim_causal_tile_end(const mpsim_causal_tile *t, float *y, float *lse, const float *o,
                                             const float *max, const float *sum);
MPSIM_API mpsim_status mpsim_causal_tile_dots(const mpsim_causal_tile *t, float *d, const float *dy, const float *y);
MPSIM_API mpsim_status mpsim_causal_tile_again(const mpsim_causal_tile *t, float *p, const float *s, const float *lse);
MPSIM_API mpsim_status mpsim_causal_tile_backward(const mpsim_causal_tile *t, float *ds, const float *dp,
                                                  const float *s, const float *lse, const float *d);

MPSIM_END

#endif
