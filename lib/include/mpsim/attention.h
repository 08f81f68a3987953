/* attention.h -- attention in tiles of keys with online softmax, as FlashAttention computes it (Milakov and Gimelshein,
 * 2018; FlashAttention-2): every operation, the models of its two products, and what becomes of P.
 *
 * One head: queries x dim numbers q, keys x dim numbers k, keys x size numbers v, of any formats. Numbers of S, O and y
 * are binary32 numbers, most of them of narrower formats; exp and log are mpsim_exp and mpsim_log (mpsim/layer.h). Needs
 * the default floating-point environment. */
#ifndef MPSIM_ATTENTION_H
#define MPSIM_ATTENTION_H

#include <mpsim/dot.h>

MPSIM_BEGIN

/* How. f32(x) is x rounded to binary32, s(x) f32(x) rounded to the format `softmax`, O(x) x rounded to the result format of
 * `context`, all to nearest even, overflow to infinity; a sum over keys is mpsim_sum_lanes with MPSIM_LANES_ROW, of
 * numbers of `softmax`.
 *
 * Query i belongs to key p = i + keys - queries. It sees the keys p - left to p + right, or with `causal` to p, of
 * these those that its row of `mask` has a byte for that is not 0. */
typedef struct mpsim_attention {
    const mpsim_model *scores;   /* of S = Q K^T: its result is S                                           */
    const mpsim_model *context;  /* of P V: its result is the accumulator O                                 */
    mpsim_rounded p;             /* format and rounding of P, not stochastic, of scale 1                    */
    float p_scale;               /* P is multiplied by this before it is rounded: finite, above 0           */
    float scale;                 /* of the softmax: 1 / sqrt(dim)                                           */
    size_t tile;                 /* keys a tile; 0: all of them                                             */
    uint8_t causal;              /* 1: as right = 0                                                         */
    uint8_t reverse;             /* 1: tiles from the last to the first                                     */
    uint8_t separate;            /* 1: the products of a tile are summed from zero and added to O then      */
    uint8_t sum_rounded;         /* 1: the sum of a row is of P as it is rounded                            */
    uint8_t reciprocal;          /* 1: the end multiplies by 1 / sum                                        */
    float beta;                  /* 0, or above 1: a largest score that repeats is moved, see below         */
    float margin;                /* with beta: scores from n - margin on count as repeating                 */
    uint8_t exp2;                /* 1: by powers of two, as FlashAttention-2 and 3 have them: below          */
    size_t left, right;          /* keys that a query sees before and behind its own; SIZE_MAX: all          */
    const uint8_t *mask;         /* queries x keys bytes; NULL: none is masked                              */
    const mpsim_format *softmax; /* of what happens between the products; NULL: binary32                    */
    const mpsim_format *f;       /* of y; NULL: binary32                                                    */
} mpsim_attention;

/* mpsim_attention_init -- all but the models, which are to be set: P in binary32 to nearest even, p_scale 1, scale
 * f32(1 / sqrt(dim)), tiles of 128 keys, left and right SIZE_MAX, the rest 0. */
MPSIM_API void mpsim_attention_init(mpsim_attention *a, size_t dim);

typedef struct mpsim_attention_shape {
    size_t queries, keys, dim, size;
} mpsim_attention_shape;

/* Counts that mpsim_attention_forward adds to. An element is a score that the mask lets its row see. */
typedef struct mpsim_attention_counts {
    uint64_t rows, masked;  /* rows; those that see no key                                                */
    uint64_t repeated;      /* rows whose largest x is that of two keys or more                           */
    uint64_t moved;         /* rows whose largest number was moved in one tile or more                    */
    uint64_t vanished;      /* rows that see keys and whose sum is 0                                      */
    uint64_t elements;      /* scores that are seen                                                       */
    uint64_t p_zero, p_one; /* of these: P is 0; P is p_scale: exactly 1                                  */
} mpsim_attention_counts;

/* mpsim_attention_forward -- y: queries x size numbers, row-major; lse: queries numbers, or NULL. Before the first tile max
 * is -inf, sum and O +0. Tiles of keys in their order; rows before the first and behind the last that see a key of a tile
 * are left as they are. Of the others:
 *
 *   S[j] = scores(q[i] k[j]);  x[j] = s(scale S[j]), over the keys j of the tile that it sees
 *   n = max x[j] (NaN if one is NaN; -inf if there is none).  With beta, where more than one x[j] >= s(n - margin): n
 *       becomes s(beta n) if it is above 0, and +0 if below
 *   m = the larger of max and n;  r = m, or +0 if m is -inf
 *   a = s(exp(s(max - r)));  e[j] = s(exp(s(x[j] - r)));  P[j] = p(f32(e[j] p_scale));  e[j] = P[j] = +0 of the tile's
 *       other keys
 *   z = sum of e[j], or with sum_rounded of s(P[j] f32(1 / p_scale))
 *   sum = s(s(sum a) + z);  max = m;  O[c] = O(f32(O[c] a))
 *   O[c] = context(O[c] + sum over the tile's keys of P[j] v[j][c]); separate: O(f32(O[c] + context(that sum)))
 *
 * and in the end, with b = f32(1 / p_scale):
 *
 *   y[c] = f32(f32(O[c] b) / sum), or f32(f32(O[c] b) f32(1 / sum)), rounded to f; +0 where sum is 0
 *   lse = f32(max + log(sum)): -inf where sum is 0
 *
 * With exp2 scores are not scaled but their differences are, by l = f32(scale 0x1.71547652b82fep+0), log2 e:
 *
 *   x[j] = s(S[j]);  e[j] = s(exp2(s(x[j] l - s(r l)))), the product exact;  a = s(exp2(s(s(max - r) l)))
 *   lse = f32(f32(max scale) + log(sum))
 *
 *   q, k, v  as operands of mpsim_gemm: queries x dim, keys x dim, keys x size after transposition
 *   flags    NULL, or queries bytes: 1 for each row that counts as repeated, else 0
 *   counts   NULL, or counters that are added to
 *   rng      NULL unless a model rounds stochastically: tile t, counted in its place among the keys, takes streams
 *            rng->stream + 2 t (scores) and rng->stream + 2 t + 1 (context), as mpsim_gemm does of the rows from the
 *            first to the last that see a key of it
 *   pool     threads, or NULL; they change no bit
 *
 * MPSIM_EINVAL if a setting or format is invalid (with exp2 a scale that is not above 0, too) or a needed pointer is NULL,
 * MPSIM_ERANGE if S, O, P, y or `softmax` has numbers that binary32 has not, S, O, P or `softmax` has no 0, a model cannot
 * take its operands, or there are more than 2^31 - 1 keys of no numbers (dim and size 0), MPSIM_ENOMEM. Outputs are untouched
 * then. */
MPSIM_API mpsim_status mpsim_attention_forward(const mpsim_attention *a, const mpsim_attention_shape *shape,
                                               const mpsim_matrix *q, const mpsim_matrix *k, const mpsim_matrix *v,
                                               float *y, float *lse, uint8_t *flags, mpsim_attention_counts *counts,
                                               const mpsim_rng *rng, const mpsim_pool *pool);

/* How the gradients are computed. Of `a` the products of the scores, scale, tile, causal, reverse, exp2, left, right, mask and
 * softmax count. */
typedef struct mpsim_attention_gradient {
    const mpsim_attention *a;
    const mpsim_model *dp;     /* of dP = dY V^T                                                          */
    const mpsim_model *dvalue; /* of dV = P^T dY                                                          */
    const mpsim_model *dkey;   /* of dK = dS^T Q                                                          */
    const mpsim_model *dquery; /* of a tile's part of dQ = dS K                                           */
    mpsim_rounded p, ds;       /* of P and dS as these products read them, not stochastic, of scale 1     */
    uint8_t scale_last;        /* 1: dQ and dK are multiplied by `scale`, not dS, as FlashAttention has it */
    const mpsim_format *f;     /* of dQ, dK, dV; NULL: binary32                                           */
} mpsim_attention_gradient;

/* mpsim_attention_gradient_init -- P and dS in binary32 to nearest even; the rest 0; the models are to be set. */
MPSIM_API void mpsim_attention_gradient_init(mpsim_attention_gradient *g, const mpsim_attention *a);

/* mpsim_attention_backward -- dq: queries x dim, dk: keys x dim, dv: keys x size numbers, from the gradient dy of y, a matrix of
 * queries x size, and lse of the forward pass. Tiles of keys in the order of the forward pass; of each the rows from the first
 * to the last that see a key of it. P and dS are computed again, nothing of a tile is kept:
 *
 *   d = mpsim_sum_lanes(dy[c] y[c], MPSIM_LANES_ROW), in binary32, of every row
 *   S[j] = scores(q[i] k[j]);  x[j] = s(scale S[j]);  e[j] = s(exp(s(x[j] - lse))), +0 of keys that it does not see
 *   P[j] = p(e[j]);  dP[j] = dp(dy[i] v[j]);  dS[j] = ds(s(s(e[j] s(s(dP[j]) - s(d))) scale)), with scale_last without
 *       the last product
 *   dv[j] = dvalue(sum over the rows of P[i][j] dy[i]);  dk[j] = dkey(sum over the rows of dS[i][j] q[i])
 *   dQ[i] = f32(dQ[i] + dquery(sum over the tile's keys of dS[i][j] k[j])), from +0
 *
 * and in the end dq = dQ, dk, dv rounded to f; with scale_last f32(dQ scale), f32(dk scale). With exp2, and l as above: e[j] =
 * s(exp2(s(x[j] l - s(f32(lse 0x1.715476p+0f))))) of x[j] = s(S[j]), the product exact. With binary32 everywhere, causal, the bits
 * are those of mpsim_causal_tile_again and mpsim_causal_tile_backward between the same products.
 *
 *   y     queries x size numbers of the forward pass; or NULL, and
 *   dots  queries numbers d; or NULL
 *   rng   NULL unless a model rounds stochastically: tile t takes streams rng->stream + 5 t (scores), + 1 (dp), + 2
 *         (dvalue), + 3 (dkey), + 4 (dquery)
 *
 * Each of dq, dk and dv may be NULL: not wanted. Statuses as of mpsim_attention_forward. */
MPSIM_API mpsim_status mpsim_attention_backward(const mpsim_attention_gradient *g, const mpsim_attention_shape *shape,
                                                const mpsim_matrix *q, const mpsim_matrix *k, const mpsim_matrix *v,
                                                const mpsim_matrix *dy, const float *y, const float *dots,
                                                const float *lse, float *dq, float *dk, float *dv, const mpsim_rng *rng,
                                                const mpsim_pool *pool);

/* mpsim_attention_exact -- the definition: softmax(scale Q K^T) V of the same numbers, not tiled, in binary64. Scores are
 * exact sums rounded once, exp is the C library's, sums go over the keys in their order: the error is below
 * (keys + 8 + 2 max |x|) 2^-53 of the sum of P |v|. Of `a` only scale and what is seen count. A row that sees no key is +0.
 * Statuses as above. */
MPSIM_API mpsim_status mpsim_attention_exact(const mpsim_attention *a, const mpsim_attention_shape *shape,
                                             const mpsim_matrix *q, const mpsim_matrix *k, const mpsim_matrix *v,
                                             double *y, const mpsim_pool *pool);

MPSIM_END

#endif
