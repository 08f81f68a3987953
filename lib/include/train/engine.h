/* engine.h -- what computes a training: tensors and the operations on them. One engine is the
 * CPU with the library's arithmetic, the other CUDA kernels; both give the same bits, and the
 * trainer above does not know which it has.
 *
 * Plain C and C++; needs neither options, JSON nor YAML, so that gpu/ can build it alone.
 * Nothing here prints or exits. An operation returns 0, or -1 with one line in e->error.
 *
 * All matrices are row-major. RN(f, x) is x rounded to format f, nearest-even, overflow to
 * infinity, or to NaN in formats without one. Arithmetic on numbers is binary32, every operation
 * rounded to nearest, subnormal numbers kept, nothing contracted. NaNs are one class: what is
 * compared or digested has every NaN replaced by one.
 *
 * Tensors with the same data but other rows and cols are views of one matrix. What an operation
 * writes has inverse 1, but for quantize, and gather, which hands the inverse of x on. Tensors
 * must not be one or overlap unless it says so. */
#ifndef MPSIM_TRAIN_ENGINE_H
#define MPSIM_TRAIN_ENGINE_H

#include <mpsim/mpsim.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix of numbers of a format. How an engine keeps it is its own matter: the CPU as binary32
 * values, a device as codes of mpsim_format_code_bytes(format) bytes. */
typedef struct train_tensor {
    const mpsim_format *format;
    size_t rows, cols;
    void *data;    /* the engine's, a train_data first; NULL: no tensor */
    float inverse; /* quantised per tensor: numbers stand for number * inverse; 1 otherwise */
} train_tensor;

/* Head of train_tensor.data: the number of elements; views may have fewer. */
typedef struct train_data {
    size_t n;
} train_data;

/* Head of an index: how many numbers, and the largest one. */
typedef struct train_indices {
    size_t n;
    int32_t largest;
} train_indices;

/* Counts of rounding the results of an operation. */
typedef struct train_counts {
    uint64_t nonzero;   /* finite and not zero before rounding           */
    uint64_t lost;      /* of these: zero after it                       */
    uint64_t overflow;  /* of these: beyond the largest number, saturated or not */
    uint64_t nonfinite; /* results that are infinite or NaN              */
} train_counts;

/* Rows first to first + n - 1 of each matrix of a stack. */
typedef struct train_part {
    size_t first, n;
} train_part;

/* Start of the sums of a product: the numbers in d. */
typedef enum train_start {
    TRAIN_FROM_ZERO,
    TRAIN_FROM_SUM, /* the chain begins with the number in d, not with +0; both inverses are 1 */
    TRAIN_ADD_TO    /* the result, as it would be stored, is added to the number in d: d = d + s; counts are
                       of these sums */
} train_start;

/* d = a b: rows x depth times depth x columns, where a (b) is read transposed if a_transposed
 * (b_transposed) is 1: it is depth x rows then.
 *
 *   s = the model's chain from +0 over k ascending, result format binary32
 *   s = s * factor;  with bias: s = s + bias[column];  d = RN(d->format, s)
 *
 * factor is f32(a->inverse * b->inverse), and the product is left out where both inverses are 1.
 *
 * With blocks: a and b hold what the codes of blocks stand for, `promote` products deep, and have a
 * factor for each: a_blocks and b_blocks, binary32, (rows / a_rows, rounded up) x (depth / promote,
 * rounded up), the same of b. a is not transposed, b is. Then
 *
 *   s = +0;  for every block of the depth: p = the model's chain from +0 over its products,
 *   s = fma(f32(a_blocks[row / a_rows, block] * b_blocks[column / b_rows, block]), p, s) */
typedef struct train_gemm {
    const mpsim_model
        *model; /* for the formats of a and b, result binary32. One with blocks (mpsim/dot.h): a_blocks and
                                 b_blocks are its scales, `promote` elements deep, and s is its chain over the whole depth */
    const train_tensor *a, *b;
    int a_transposed, b_transposed;
    const train_tensor *bias;                /* 1 x columns, or NULL */
    size_t depth_limit;                      /* 0; else only the first products: to find where two engines part */
    const train_tensor *a_blocks, *b_blocks; /* both, or NULL */
    size_t a_rows, b_rows, promote;          /* with blocks: above 0 */
    /* stacks: d is so many matrices of equal height, one below the other, a as well, b of stacks / shared,
     * each of which `shared` consecutive products take (0: 1); every matrix of d is its own product.
     * Of each matrix of a, b, d only the rows of `a_part` ... are there (n = 0: all): what is not
     * in d's part is left alone. Without bias, blocks and depth_limit. 0: one matrix, no parts. */
    size_t stacks, shared;
    train_part a_part, b_part, d_part;
    uint8_t start; /* train_start; other than TRAIN_FROM_ZERO: d is binary32 */
} train_gemm;

/* One of a list of products that are done at once: none reads or writes what another one writes, but other rows
 * of the same matrices (d_part). */
typedef struct train_multiply {
    train_tensor *d;
    const train_gemm *g;
    train_counts *counts;
} train_multiply;

/* Windows of a convolution or of pooling over images in NHWC order: rows of a tensor are pixels
 * (image, y, x), columns are channels. */
typedef struct train_pool {
    size_t images, height, width, channels, size; /* of the input; windows: size x size, apart */
} train_pool;

typedef struct train_quantize {
    const mpsim_block_recipe *recipe; /* element format, rule, blocks */
    int transposed;                   /* x is read transposed first: y has the shape of x^T */
    float given;                      /* MPSIM_SCALE_GIVEN: the scale; MSAMP: the scale so far */
    mpsim_rng rng;                    /* for stochastic element modes */
    int scale_codes;                  /* 1, with blocks: their factors are the numbers of the recipe's scale codes, and
                             y->inverse is the tensor's scale (NVFP4; 1 for others) */
    train_tensor *blocks;             /* NULL, or for blocks of one-byte elements with one factor each: y holds
                             the numbers of the codes, in the element's format, and this, binary32,
                             a number for each block, what they are multiplied by */
} train_quantize;

/* Heads of attention: x has sequences * length rows, of which `heads` groups of `size` columns, from
 * column `first` on, are the heads of a tensor y of sequences * heads * length rows and `size` columns, in
 * the order sequence, head, place. */
typedef struct train_heads {
    size_t sequences, length, heads, size, first;
    const train_tensor *cos, *sin; /* binary32, length x size / 2: rotation by place; NULL, both: none */
} train_heads;

/* Attention in tiles: mpsim_causal_tile without pointers and formats, matrices = stacks. */
typedef struct train_tile {
    size_t matrices, length, first, cols, size;
    float scale, p_scale;
} train_tile;

/* One of some tiles that are worked through going back: p (tile_again) or ds (tile_backward) of it. */
typedef struct train_tiled {
    const train_tile *tile;
    train_tensor *y;
    const train_tensor *s, *lse;
    const train_tensor *dp, *d; /* of tile_backward */
    train_counts *counts;
} train_tiled;

/* Gradients of the parameters of a row normalisation. */
typedef struct train_normed {
    const mpsim_rownorm *r;
    train_tensor *dweight, *dbias; /* dbias NULL: none */
    const train_tensor *dy, *x, *mean, *inverse, *weight;
} train_normed;

typedef struct train_update {
    train_tensor *param, *grad, *m, *v, *vmax, *kahan; /* those of mpsim_optim_tensor; NULL alike */
    const mpsim_optim *optim;
    uint64_t step;
    const mpsim_rng *rng;       /* of stochastic rounding: element i takes index rng->index + i; or NULL */
    const mpsim_states *states; /* in which its arrays are kept after the step (keep); or NULL      */
} train_update;

/* One of a list that an operation works through at once: no y is what another one reads or writes. */
typedef struct train_pair {
    train_tensor *y;
    const train_tensor *x;
    train_counts *counts;
} train_pair;

/* One of a list that is quantised at once: as the operation quantize has them. */
typedef struct train_quantized {
    train_tensor *y;
    const train_tensor *x;
    const train_quantize *how; /* its blocks are no one else's */
    float *amax;
    train_counts *counts;
} train_quantized;

/* The same of heads, of which y is those of x; join: x those of y. */
typedef struct train_turn {
    train_tensor *y;
    const train_tensor *x;
    const train_heads *heads;
    train_counts *counts;
} train_turn;

/* Result of reducing the ranks' x. */
typedef struct train_sum {
    train_tensor *y;
    const train_tensor *const *x;
} train_sum;

typedef struct train_engine train_engine;

typedef struct train_ops {
    const char *name; /* "cpu", "cuda" */
    uint8_t cuda;     /* 1: of optimizers it has those whose row says cuda */

    /* tensors: x->format, rows and cols are set; data becomes zeros, inverse 1 */
    int (*alloc)(train_engine *e, train_tensor *x);
    void (*release)(train_engine *e, train_tensor *x);
    /* rows * cols binary32 values, which must be numbers of the format (NaN: any) */
    int (*put)(train_engine *e, train_tensor *x, const float *values);
    int (*get)(train_engine *e, const train_tensor *x, float *values);
    /* The digest of the tensor's codes that e->digests names */
    int (*digest)(train_engine *e, const train_tensor *x, uint64_t *digest);
    /* Until this returns, numbers that the operations before were given a place for may be missing there:
     * counts, the largest magnitude of quantize, loss and hits of softmax_xent, updates of optim */
    int (*finish)(train_engine *e);

    /* y = x rounded to y's format, same shape; mode NEAREST_EVEN, or NEAREST_AWAY (split
     * masters). y may be x. counts, here and below: NULL, or added to */
    int (*cast)(train_engine *e, train_tensor *y, const train_tensor *x, mpsim_round_mode mode, train_counts *counts);
    /* the same, of a list */
    int (*cast_list)(train_engine *e, const train_pair *list, size_t n, mpsim_round_mode mode);
    int (*gemm)(train_engine *e, train_tensor *d, const train_gemm *g, train_counts *counts);
    int (*gemm_list)(train_engine *e, const train_multiply *list, size_t n);
    /* y = x through a block recipe. A recipe with one block (block_rows = block_cols = 0): y's
     * format is the element's, y->inverse as mpsim_block_quantize gives it. Others: y's format
     * is bf16 and y = RN(bf16, value), value as mpsim_blocks.values. The columns of y run along
     * the depth of the product to come. *amax, if not NULL, becomes the larger of itself and
     * mpsim_amax of x. counts: against x, of mpsim_blocks.casts; nonfinite: of y */
    int (*quantize)(train_engine *e, train_tensor *y, const train_tensor *x, const train_quantize *q, float *amax,
                    train_counts *counts);
    /* the same, of a list */
    int (*quantize_list)(train_engine *e, const train_quantized *list, size_t n);
    /* y = RN(y's format, each row through mpsim_hadamard_groups of 16), of x, or of x transposed;
     * the formats of x and y are one */
    int (*hadamard)(train_engine *e, train_tensor *y, const train_tensor *x, int transposed);
    /* y[i] = x[index[i]], or +0 where index[i] is -1; rows * cols of y indices, from index_new.
     * x and y have one format. Convolutions are this and gemm. */
    int (*index_new)(train_engine *e, const int32_t *index, size_t n, void **handle);
    void (*index_free)(train_engine *e, void *handle);
    int (*gather)(train_engine *e, train_tensor *y, const train_tensor *x, const void *index);
    /* y = x > 0 or NaN ? x : +0;  dx = y > 0 ? dy : +0 (the formats of x and y, of dx and dy are
     * one); y may be x, dx may be dy */
    int (*relu)(train_engine *e, train_tensor *y, const train_tensor *x);
    int (*relu_backward)(train_engine *e, train_tensor *dx, const train_tensor *dy, const train_tensor *y);
    /* y = largest of each window, NaN if there is one (the first); the first of equals counts,
     * row by row; y has images * (height / size) * (width / size) rows. backward: dx = dy at
     * that place, +0 elsewhere; x is the input of the forward pass */
    int (*maxpool)(train_engine *e, train_tensor *y, const train_tensor *x, const train_pool *p);
    int (*maxpool_backward)(train_engine *e, train_tensor *dx, const train_tensor *dy, const train_tensor *x,
                            const train_pool *p);
    /* y[column] = RN(y's format, mpsim_sum_lanes over the rows of x, binary32, MPSIM_LANES_ALL) */
    int (*column_sums)(train_engine *e, const train_pair *list, size_t n);
    /* mpsim_softmax_xent; dx NULL: none; labels: x->rows, on the host. *mean_loss =
     * f32(mpsim_sum_lanes(losses, MPSIM_LANES_ALL, in math)) / f32(rows), both in math; *correct: rows
     * whose largest number is the label's */
    int (*softmax_xent)(train_engine *e, train_tensor *dx, const train_tensor *x, const uint32_t *labels,
                        float coefficient, const mpsim_format *math, float *mean_loss, uint64_t *correct,
                        train_counts *counts);
    /* mpsim_batchnorm_*, b->rows, channels and f from the tensors; mean, inverse, running,
     * weight and bias are 1 x channels; running_* are binary32, or NULL, both; mean, inverse,
     * dweight and dbias are rounded to their tensor's format. counts: of y, of dx. y may be x,
     * dx may be dy */
    int (*batchnorm)(train_engine *e, const mpsim_batchnorm *b, train_tensor *y, train_tensor *mean,
                     train_tensor *inverse, train_tensor *running_mean, train_tensor *running_var,
                     const train_tensor *x, const train_tensor *weight, const train_tensor *bias, train_counts *counts);
    int (*batchnorm_backward)(train_engine *e, const mpsim_batchnorm *b, train_tensor *dx, train_tensor *dweight,
                              train_tensor *dbias, const train_tensor *dy, const train_tensor *x,
                              const train_tensor *mean, const train_tensor *inverse, const train_tensor *weight,
                              train_counts *counts);
    int (*batchnorm_inference)(train_engine *e, const mpsim_batchnorm *b, train_tensor *y, const train_tensor *x,
                               const train_tensor *running_mean, const train_tensor *running_var,
                               const train_tensor *weight, const train_tensor *bias);

    /* Lists of tensors of all parameters. unscale: mpsim_unscale_array into y (any of x's shape; rounding
     * format y's), found[i] |= its result, unless found is NULL. y is rounded to its format also where the
     * factor is 1, MPSIM_FOUND_OUTPUT is of y as it is then, and y may be its own x. norm: norms[i] =
     * mpsim_norm of x[i], rounded to f[i] (f, or f[i], NULL: binary32); both wait for the device.
     * scale: mpsim_scale_array in place to x's format */
    int (*unscale)(train_engine *e, const train_pair *list, size_t n, mpsim_unscale_rule rule, double scale,
                   unsigned *found);
    int (*norm)(train_engine *e, const train_tensor *const *x, size_t n, const mpsim_format *const *f, float *norms);
    int (*scale)(train_engine *e, train_tensor *const *x, size_t n, float factor);
    /* mpsim_optim_step of each. `updates`, if not NULL, is added to: elements of which the same step in
     * binary64 (mpsim_optim_reference, from the same numbers) would change the parameter;
     * `lost`: those of them that the step leaves as they are. An engine that cannot count fails
     * if asked to */
    int (*optim)(train_engine *e, const train_update *list, size_t n, uint64_t *updates, uint64_t *lost);
    /* NULL of an engine that has it not; trainings that need it are refused there. muon: a step of mpsim/muon.h from
     * u's gradient, divided by grad_scale and rounded to the parameter's format, with u->m as its buffer; counted as
     * optim is. keep: the arrays (NULL: none) of a parameter become what states store of them (mpsim_states_apply,
     * mpsim_state_quantise); vmax as v */
    int (*muon)(train_engine *e, const train_update *u, const mpsim_muon *o, uint64_t *updates, uint64_t *lost);
    int (*keep)(train_engine *e, const mpsim_states *s, train_tensor *kept, train_tensor *m, train_tensor *v,
                train_tensor *vmax);
    /* ---- transformers: mpsim/transformer.h; counts are of what is rounded to the result's format ---- */

    /* y = RN(y's format, a + b), one shape; y may be a or b */
    int (*add)(train_engine *e, train_tensor *y, const train_tensor *a, const train_tensor *b, train_counts *counts);
    /* y[r] = RN(x[r] + table[r mod rows of table]); y may be x. backward: dtable[t] = RN(s), s = +0, then
     * s = s + dy[r] for r = t, t + rows of dtable, ... ascending, in binary32 */
    int (*add_rows)(train_engine *e, train_tensor *y, const train_tensor *x, const train_tensor *table,
                    train_counts *counts);
    int (*add_rows_backward)(train_engine *e, train_tensor *dtable, const train_tensor *dy, train_counts *counts);
    /* y[r] = RN(table[index[r]]); index on the host, y->rows numbers below the rows of table. backward:
     * dtable[v] = RN(s), s = +0 or, with `added` 1, the number in dtable, then s = s + dy[r] for all
     * r with index[r] = v, ascending, in binary32 */
    int (*embed)(train_engine *e, train_tensor *y, const train_tensor *table, const uint32_t *index,
                 train_counts *counts);
    int (*embed_backward)(train_engine *e, train_tensor *dtable, const train_tensor *dy, const uint32_t *index,
                          int added, train_counts *counts);
    /* lists. y = RN(heads of x): without rotation the numbers; with it, for c < size / 2, C and S those of
     * the place, in binary32 operations: y[c] = (x[c] C[c]) - (x[c + size / 2] S[c]),
     * y[c + size / 2] = (x[c + size / 2] C[c]) + (x[c] S[c]). join: the heads of y = RN(x rotated back):
     * S with the other sign; other columns of y are left alone, and may be another one's of the list */
    int (*split)(train_engine *e, const train_turn *list, size_t n);
    int (*join)(train_engine *e, const train_turn *list, size_t n);
    /* mpsim_rownorm_*, rows, cols and f from the tensors; mean and inverse: rows x 1, binary32; bias and
     * dbias NULL: none; dweight, dbias rounded to their tensor's format. counts: of y; of dx. y may be
     * x, dx may be dy. dweight NULL: dx alone; gradients: dweight and dbias alone, of a list */
    int (*rownorm)(train_engine *e, const mpsim_rownorm *r, train_tensor *y, train_tensor *mean, train_tensor *inverse,
                   const train_tensor *x, const train_tensor *weight, const train_tensor *bias, train_counts *counts);
    int (*rownorm_backward)(train_engine *e, const mpsim_rownorm *r, train_tensor *dx, train_tensor *dweight,
                            train_tensor *dbias, const train_tensor *dy, const train_tensor *x,
                            const train_tensor *mean, const train_tensor *inverse, const train_tensor *weight,
                            train_counts *counts);
    int (*rownorm_gradients)(train_engine *e, const train_normed *list, size_t n);
    /* mpsim_activate*, f: the result's format */
    int (*activate)(train_engine *e, mpsim_activation kind, const mpsim_format *math, train_tensor *y,
                    const train_tensor *x, train_counts *counts);
    int (*activate_backward)(train_engine *e, mpsim_activation kind, const mpsim_format *math, train_tensor *dx,
                             const train_tensor *dy, const train_tensor *x, train_counts *counts);
    /* mpsim_causal_softmax*, matrices = rows / cols of the tensors, which are of one shape; f: the result's
     * format; p may be s, ds may be dp */
    int (*causal)(train_engine *e, const mpsim_format *math, float scale, train_tensor *p, const train_tensor *s,
                  train_counts *counts);
    int (*causal_backward)(train_engine *e, const mpsim_format *math, float scale, train_tensor *ds,
                           const train_tensor *dp, const train_tensor *p, train_counts *counts);
    /* y = RN(((x0 + x1) + x2) + ...), binary32 sums: y is a stack of matrices of `length` rows, x of `group`
     * times as many, of which x0, x1, ... are those below one another that belong to one of y's */
    int (*add_groups)(train_engine *e, train_tensor *y, const train_tensor *x, size_t length, size_t group,
                      train_counts *counts);
    /* mpsim_causal_tile_*; max, sum, lse, d: matrices * length x 1, o: matrices * length x size, all binary32,
     * as s and dp are; s, p, dp, ds: matrices * (length - first) x cols. again, backward: of each of a list */
    int (*tile_forward)(train_engine *e, const train_tile *t, train_tensor *p, train_tensor *o, train_tensor *max,
                        train_tensor *sum, const train_tensor *s, train_counts *counts);
    int (*tile_end)(train_engine *e, const train_tile *t, train_tensor *y, train_tensor *lse, const train_tensor *o,
                    const train_tensor *max, const train_tensor *sum, train_counts *counts);
    int (*tile_dots)(train_engine *e, const train_tile *t, train_tensor *d, const train_tensor *dy,
                     const train_tensor *y);
    int (*tile_again)(train_engine *e, const train_tiled *list, size_t n);
    int (*tile_backward)(train_engine *e, const train_tiled *list, size_t n);
    /* y = mpsim_reduce_array of x[0] ... x[ranks - 1], of y's shape, for each of a list; y may be one of
     * its x; r->result is y's format */
    int (*reduce)(train_engine *e, const mpsim_reduce *r, const train_sum *list, size_t n, size_t ranks);
    void (*close)(train_engine *e); /* frees e->self; for train_engine_close, which may find NULL */
} train_ops;

/* An operation of `ops` checks what it is given, so that it is what this header says, and calls that of `own`. */
/* mpsim_digest; mpsim_digest_blocks, which takes less time. */
typedef enum train_digest_kind { TRAIN_DIGEST_CODES, TRAIN_DIGEST_BLOCKS } train_digest_kind;

struct train_engine {
    const train_ops *ops;
    const train_ops *own; /* the engine's: they say only what they lack, as a kernel for a format */
    train_ops checked;    /* ops, unless somebody has put others before them */
    void *self;
    const mpsim_pool *pool; /* threads for the CPU, or NULL */
    char device[256];       /* its name; "": the CPU */
    char error[256];
    train_digest_kind digests; /* may be set at any time */
};

/* train_engine_cpu -- 0, or -1 (out of memory). */
int train_engine_cpu(train_engine *e, const mpsim_pool *pool);
/* train_engine_begin -- for what makes an engine: ops that check, above the engine's own. */
void train_engine_begin(train_engine *e, const train_ops *own);
/* train_engine_close -- whatever kind it is; every tensor and index must have been released. */
void train_engine_close(train_engine *e);

#ifdef __cplusplus
}
#endif

#endif
