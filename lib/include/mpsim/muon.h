/* muon.h -- Muon: momentum whose matrices are orthogonalised by Newton and Schulz's iteration, in a chosen format,
 * every product by an accumulation model. Needs the default floating-point environment.
 *
 * A step of a matrix p of `rows` x `columns` with gradient g and momentum buffer b, all of them numbers of
 * o->param; operations on elements are those of o->variant, which has tensor operations (torch, torch-cpu,
 * torch-cpu-default, ...):
 *
 *   b = lerp(b, g, 1 - momentum);  u = lerp(g, b, momentum) with nesterov, else b
 *   y = orthogonalise(u)
 *   TORCH:   p = p (1 - lr weight_decay);  p = p + (-lr s) y
 *   KELLER:  y = y s;  p = p (1 - lr weight_decay);  p = p + (-lr) y
 *   where rows > columns, y is a transposed view: the last sum is that of the variant's scalar tail, p = [p + [[-lr s] y]] with
 *   parameters of bf16 and the CPU's variants
 *   s: sqrt(max(1, rows / columns)) ORIGINAL, 0.2 sqrt(max(rows, columns)) MATCH_RMS_ADAMW,
 *      sqrt(rows / columns) SPECTRAL, 1 NONE; in binary64
 *
 * orthogonalise: X = u rounded to `format`; transposed if rows > columns; then, [] being one rounding to
 * `format` and sums, products and quotients inside it binary32, each rounded,
 *   n = [norm of X], by mpsim_norm (an exact sum; torch's is one of binary32 in an order of its own, which decides where the norm is next to the
 *   middle between two numbers of `format`: of 4,000 matrices in bf16 one had the other of them);  TORCH: n = max(n, [eps]);  KELLER: n = [n + [eps]];  X = [X / n]
 *   `steps` times, P(M, N) being the product of the matrices by `model`, from +0:
 *     A = [P(X, X')]
 *     TORCH:   B = [c P(A, A) + b A];          X = [P(B, X) + a X]
 *     KELLER:  B = [[b A] + [P([c A], A)]];    X = [[a X] + [P(B, X)]]
 *   With products as ATen's (TORCH in bf16) P sums in binary32 as torch 2.15 does on CPUs without bf16 instructions, by
 *   the kernels of capability DEFAULT or AVX2; the latter contract a X, and b A, with the sum. Products of elements below
 *   2^-126 are rounded there once or twice, here twice. ONEDNN: as oneDNN 3.13 does for torch on CPUs with AVX512-BF16,
 *   chunks of 512 products (1024 where there are more than 1024, and X is no transposed view) by the model
 *   avx512-bf16-fp32; contracted as with AVX2; products of 16^3 multiply-adds at most by the kernels of AVX2.
 *   ONEDNN_AMX: the same with AMX, by the model amx-bf16-fp32, tiles equal where X is no transposed view (mpsim/torchmm.h), depths not
 *   cut: so oneDNN does below 255 in X X', A A and B X, and beyond in some shapes only.
 *   a, b, c as binary32. Then X, transposed back, is y. */
#ifndef MPSIM_MUON_H
#define MPSIM_MUON_H

#include <mpsim/dot.h>
#include <mpsim/optim.h>

MPSIM_BEGIN

typedef enum mpsim_muon_form {
    MPSIM_MUON_TORCH, /* torch.optim.Muon, torch 2.9 to 2.15: torch/optim/_muon.py */
    MPSIM_MUON_KELLER /* KellerJordan/Muon @00ba60d3 muon.py                       */
} mpsim_muon_form;

typedef enum mpsim_muon_scale {
    MPSIM_MUON_ORIGINAL,
    MPSIM_MUON_MATCH_RMS_ADAMW,
    MPSIM_MUON_SPECTRAL,
    MPSIM_MUON_NONE
} mpsim_muon_scale;

typedef enum mpsim_muon_products {
    MPSIM_MUON_MODEL, /* by `model` */
    MPSIM_MUON_ATEN,
    MPSIM_MUON_ATEN_AVX2,
    MPSIM_MUON_ONEDNN,
    MPSIM_MUON_ONEDNN_AMX
} mpsim_muon_products;

typedef struct mpsim_muon {
    const mpsim_optim_variant *variant;
    uint8_t form, scale, nesterov;          /* mpsim_muon_form, mpsim_muon_scale */
    uint8_t steps;                          /* 5; at most 99                      */
    uint8_t products;                       /* mpsim_muon_products                */
    double lr, momentum, weight_decay, eps; /* 1e-3, 0.95, 0.1, 1e-7     */
    double a, b, c;                         /* 3.4445, -4.7750, 2.0315; finite as binary32 */
    double factor;                          /* s itself; 0: by `scale`            */
    mpsim_format param, format;             /* binary32; bf16                     */
    mpsim_model model;                      /* its result's numbers are binary32 numbers */
} mpsim_muon;

/* mpsim_muon_init -- the defaults of torch.optim.Muon; KELLER: lr 0.02, no weight decay. model: exact sums, rounded
 * once to binary32. */
MPSIM_API void mpsim_muon_init(mpsim_muon *o, mpsim_muon_form form, const mpsim_optim_variant *v);

/* mpsim_muon_check -- MPSIM_OK; MPSIM_EINVAL for numbers that are not finite or negative (lr, weight_decay, eps;
 * momentum 0 to 1), a form, a scale, a model or products that are none, 100 steps, ATen's products in another form or format; MPSIM_EUNAVAILABLE for a variant without tensor
 * operations, or nesterov without momentum; MPSIM_ERANGE for a format or a model's result outside binary32 and a
 * model that does not take the format. */
MPSIM_API mpsim_status mpsim_muon_check(const mpsim_muon *o);

/* mpsim_muon_work -- multiply-adds of a matrix in its products. */
MPSIM_API double mpsim_muon_work(const mpsim_muon *o, size_t rows, size_t columns);

/* mpsim_muon_factor -- s. */
MPSIM_API double mpsim_muon_factor(const mpsim_muon *o, size_t rows, size_t columns);

/* mpsim_muon_momentum -- the first line of a step: b, and u, which may be g, not b. mpsim_muon_orthogonalise -- y from
 * u, which may be the same array. mpsim_muon_apply -- the last one: p from y, which KELLER scales. MPSIM_EINVAL if
 * mpsim_muon_check is not MPSIM_OK or an array is NULL; MPSIM_ENOMEM. Results are untouched then. */
MPSIM_API mpsim_status mpsim_muon_momentum(const mpsim_muon *o, float *b, float *u, const float *g, size_t n);
MPSIM_API mpsim_status mpsim_muon_orthogonalise(const mpsim_muon *o, float *y, const float *u, size_t rows,
                                                size_t columns, const mpsim_pool *pool);
MPSIM_API mpsim_status mpsim_muon_apply(const mpsim_muon *o, float *p, float *y, size_t rows, size_t columns);

/* mpsim_muon_reference -- orthogonalise in binary64 throughout, in o's form; products are sums from k = 0 on. */
MPSIM_API mpsim_status mpsim_muon_reference(const mpsim_muon *o, double *y, const double *u, size_t rows,
                                            size_t columns);

MPSIM_END

#endif
