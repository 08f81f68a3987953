/* layer.h -- what a neural network computes beside matrix products, to the last bit: exp, log,
 * sums, softmax with cross-entropy, batch normalisation.
 *
 * Two machines agree on such a result only if they do the same operations in the same order. Every
 * function here is a fixed sequence of correctly rounded binary32 operations (add, subtract,
 * multiply, fma, divide, square root; to nearest, subnormal numbers kept): lib/layer/scalar.h holds
 * what a CUDA kernel compiles, too, and gpu/ gives the same bits in parallel.
 *
 * `math` is the format that this is done in. NULL or binary32: as written. A narrower format (fp16,
 * bf16): inputs and the result of every operation written below are rounded to it (nearest-even,
 * overflow to infinity), as a chain of framework operations on tensors of that format does; exp and
 * log are evaluated in binary32 and rounded. Numbers of a format are held as binary32 values.
 *
 * NaN: results are NaN where the operations give NaN, with no promise about sign and payload.
 *
 * Needs the default floating-point environment. The functions raise floating-point flags, and may clear those of underflow and
 * of subnormal operands. */
#ifndef MPSIM_LAYER_H
#define MPSIM_LAYER_H

#include <mpsim/format.h>

MPSIM_BEGIN

/* mpsim_exp, mpsim_exp2, mpsim_log -- e^x, 2^x and ln x in binary32, by integer operations, products, sums and fma
 * only. Error below 1 ulp of the result, the largest one found is in lib/README.md (gradual
 * underflow below 2^-126 included), and all are monotone. exp: exp(+-0) = 1, exp(-inf) = +0,
 * exp(inf) = inf, inf above 0x1.62e42ep+6, +0 below about -103.97. exp2: the same, but inf from 128
 * on and +0 up to -150. log: log(1) = +0, log(+-0) = -inf, log(inf) = inf, NaN below zero; subnormal
 * arguments are numbers like others. NaN gives NaN. */
MPSIM_API float mpsim_exp(float x);
MPSIM_API float mpsim_exp2(float x);
MPSIM_API float mpsim_log(float x);

/* Lanes of a sum: a warp adds a row of a softmax, a block of threads everything longer. */
enum { MPSIM_LANES_ROW = 32, MPSIM_LANES_ALL = 256 };

/* mpsim_sum_lanes -- the sum of n numbers x[0], x[stride], x[2 stride], ... in a fixed tree.
 *
 *   s[t] = +0, then s[t] = s[t] + x[i] for i = t, t + lanes, t + 2 lanes, ... ascending;
 *   then for h = lanes / 2, lanes / 4, ..., 1: s[t] = s[t] + s[t + h] for every t < h; s[0].
 *
 * lanes is a power of two, 1 to 1024; other numbers give NaN, as do a format that the functions
 * below refuse and x NULL with n > 0. */
MPSIM_API float mpsim_sum_lanes(const mpsim_format *math, const float *x, size_t n, size_t stride, size_t lanes);

/* mpsim_softmax_xent -- cross-entropy of softmax, and its gradient. For each row of `classes`
 * logits x with label y < classes, c = coefficient:
 *
 *   m = max x[j]      (exact; NaN if an element is NaN)
 *   e[j] = exp(x[j] - m);   s = mpsim_sum_lanes(e, MPSIM_LANES_ROW)
 *   loss[row] = log(s) - (x[y] - m)
 *   g[j] = (e[j] / s) * c,  g[y] = g[y] - c;   dx[j] = g[j] rounded to f (nearest-even, overflow to
 *   infinity)
 *
 * The mean over B rows with loss scale S has c = f32(S / B), rounded to `math` first. dx NULL:
 * losses only; loss NULL: not wanted; dx may be x. `correct`, if not NULL, receives the number of
 * rows whose first largest logit (rounded to `math`) is the label; a row with a NaN is not correct.
 * f NULL: binary32.
 *
 * MPSIM_EINVAL if a format is invalid, a needed pointer is NULL or a label is not below classes;
 * MPSIM_ERANGE if a format has numbers that binary32 has not; nothing is touched then. */
MPSIM_API mpsim_status mpsim_softmax_xent(const mpsim_format *math, const mpsim_format *f, size_t rows, size_t classes,
                                          const float *x, const uint32_t *labels, float coefficient, float *loss,
                                          float *dx, uint64_t *correct);

/* mpsim_cross_entropy -- the same but for rows whose label is `ignored`: their loss is +0, their dx +0, and they count
 * neither as correct nor in *counted, the number of the others (NULL: not wanted). */
MPSIM_API mpsim_status mpsim_cross_entropy(const mpsim_format *math, const mpsim_format *f, size_t rows, size_t classes,
                                           const float *x, const uint32_t *labels, uint32_t ignored, float coefficient,
                                           float *loss, float *dx, uint64_t *correct, uint64_t *counted);

/* mpsim_mean -- mpsim_sum_lanes(x, MPSIM_LANES_ALL) / f32(counted), both rounded to `math`, as is the quotient: the mean
 * loss of n rows, of which `counted` have one. NaN as of mpsim_sum_lanes. */
MPSIM_API float mpsim_mean(const mpsim_format *math, const float *x, size_t n, size_t counted);

/* mpsim_column_sums -- sums[c] of a rows x cols matrix: mpsim_sum_lanes over its rows with MPSIM_LANES_ALL, rounded to f.
 *
 * mpsim_period_sums -- sums: period x cols: sums[t] = s rounded to f, s = +0 or, with `added` 1, the number there, then
 * s = s + x[r] for r = t, t + period, ... ascending, in `math`: the gradient of a matrix that was added to each `period`
 * rows. period = 1: a chain over all rows. rows below a multiple of period: some have one number less.
 *
 * Rows of x are `stride` numbers apart. Statuses as above; MPSIM_EINVAL for a period of 0, too. */
MPSIM_API mpsim_status mpsim_column_sums(const mpsim_format *math, const mpsim_format *f, float *sums, const float *x,
                                         size_t rows, size_t cols, size_t stride);
MPSIM_API mpsim_status mpsim_period_sums(const mpsim_format *math, const mpsim_format *f, float *sums, const float *x,
                                         size_t rows, size_t cols, size_t stride, size_t period, int added);

/* Batch normalisation of a rows x channels matrix: every channel over all rows (images and pixels
 * of a convolution). n is f32(rows), rounded to `math`. Sums over rows are mpsim_sum_lanes with
 * MPSIM_LANES_ALL; their terms are computed before they are added. */
typedef struct mpsim_batchnorm {
    size_t rows, channels;
    float eps;      /* 1e-5 */
    float momentum; /* 0.1: share of the new statistics in the running ones */
    const mpsim_format *math;
    const mpsim_format *f; /* of the outputs y and dx; NULL: binary32 */
} mpsim_batchnorm;

/* mpsim_batchnorm_forward -- training. By channel, with weight w and bias b:
 *
 *   mean = sum(x) / n;  d = x - mean;  var = sum(d * d) / n;  inverse = 1 / sqrt(var + eps)
 *   y = ((d * inverse) * w) + b, rounded to f
 *   running_mean = ((1 - momentum) * running_mean) + (momentum * mean), 1 - momentum rounded to
 *   binary32; the same for running_var with sum(d * d) / (n - 1), n - 1 = f32(rows - 1) (with one
 *   row: NaN)
 *
 * mean, inverse: channels each, kept for the backward pass. running_* may be NULL, both; they are
 * kept in binary32 whatever `math` is, and their updates, the division by n - 1 among them, are
 * binary32 operations on the channel's mean and sum(d * d). y may be x.
 *
 * All three functions: MPSIM_EINVAL if a format is invalid, a needed pointer is NULL, one of
 * running_* only is, or there are no rows (but inference does nothing then); MPSIM_ERANGE if a
 * format has numbers that binary32 has not; nothing is touched then. No pointer is needed if there
 * are no channels. */
MPSIM_API mpsim_status mpsim_batchnorm_forward(const mpsim_batchnorm *b, float *y, float *mean, float *inverse,
                                               float *running_mean, float *running_var, const float *x,
                                               const float *weight, const float *bias);

/* mpsim_batchnorm_backward -- with h = (x - mean) * inverse:
 *
 *   dbias = sum(dy);  dweight = sum(dy * h);  a = dbias / n;  c = dweight / n
 *   dx = (w * inverse) * ((dy - a) - (h * c)), rounded to f
 *
 * dweight and dbias are left in `math`. dx may be dy. */
MPSIM_API mpsim_status mpsim_batchnorm_backward(const mpsim_batchnorm *b, float *dx, float *dweight, float *dbias,
                                                const float *dy, const float *x, const float *mean,
                                                const float *inverse, const float *weight);

/* mpsim_batchnorm_inference -- y = (((x - running_mean) * (1 / sqrt(running_var + eps))) * w) + b,
 * rounded to f. */
MPSIM_API mpsim_status mpsim_batchnorm_inference(const mpsim_batchnorm *b, float *y, const float *x,
                                                 const float *running_mean, const float *running_var,
                                                 const float *weight, const float *bias);

/* mpsim_count_numbers -- of n elements: how many are finite and not zero, how many are finite. */
typedef struct mpsim_number_counts {
    uint64_t nonzero, finite;
} mpsim_number_counts;

MPSIM_API mpsim_number_counts mpsim_count_numbers(const float *x, size_t n);

MPSIM_END

#endif
