/* convolution.c -- convolutions: what is asked; see mpsim/convolution.h.
 *
 * No matrix of all windows is built: a tile of positions is gathered, multiplied by mpsim_gemm and stored. A long
 * sum is cut where its value goes on as c of the next piece (unit_of in sumtile.c). The order of a sum is a
 * setting, because frameworks differ. */
#include "convolution.h"

#include "../base/matrix.h"

#include <stdlib.h>
#include <string.h>

enum { DIMS = MPSIM_DIMS, TENSOR = MPSIM_TENSOR };

static const size_t largest = INT32_MAX;

void mpsim_convolution_init(mpsim_convolution *c)
{
    if (!c)
        return;
    memset(c, 0, sizeof *c);
    c->factor = 1;
    c->groups = c->row_multiple = 1;
    for (size_t d = 0; d < DIMS; d++)
        c->stride[d] = c->dilation[d] = 1;
}

/* ---- sizes ---- */

static int in_range(const size_t *sizes, size_t n, size_t least)
{
    for (size_t i = 0; i < n; i++)
        if (sizes[i] < least || sizes[i] > largest)
            return 0;
    return 1;
}

static int are_settings(const mpsim_convolution *c, size_t dims)
{
    return c->transposed <= 1 && c->order < MPSIM_CONVOLUTION_ORDERS && c->taps < MPSIM_CONVOLUTION_TAPS &&
           in_range(&c->groups, 1, 1) && in_range(&c->row_multiple, 1, 1) && in_range(c->stride, dims, 1) &&
           in_range(c->padding, dims, 0) && in_range(c->dilation, dims, 1);
}

/* Rounded down; the divisor is above 0. */
static int64_t quotient(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a - 1) / b) - 1;
}

mpsim_status mpsim_convolution_size(const mpsim_convolution *c, size_t dimension, size_t in, size_t kernel,
                                    size_t output_padding, size_t *out)
{
    if (!c || !out || dimension >= DIMS || !are_settings(c, dimension + 1) || !in_range(&in, 1, 0) ||
        !in_range(&kernel, 1, 0) || !in_range(&output_padding, 1, 0))
        return MPSIM_EINVAL;
    const int64_t stride = (int64_t)c->stride[dimension], padding = 2 * (int64_t)c->padding[dimension];
    const int64_t e = ((int64_t)kernel - 1) * (int64_t)c->dilation[dimension] + 1;
    const int64_t size = c->transposed ? ((int64_t)in - 1) * stride - padding + e + (int64_t)output_padding
                                       : quotient((int64_t)in + padding - e, stride) + 1;
    if (size < 0 || size > (int64_t)largest)
        return MPSIM_EINVAL;
    *out = (size_t)size;
    return MPSIM_OK;
}

/* n sizes of fewer dimensions as those of three. */
static void widen(size_t *to, const size_t *from, size_t n, size_t missing)
{
    for (size_t d = 0; d < DIMS; d++)
        to[d] = d < DIMS - n ? missing : from[d - (DIMS - n)];
}

/* ---- tensors ---- */

static mpsim_tensor tensor_of(const mpsim_stack *x)
{
    const size_t missing = TENSOR - x->rank;
    mpsim_tensor t = {.format = x->format, .codes = (const unsigned char *)x->codes};
    for (size_t i = 0; i < TENSOR; i++) {
        const size_t from = i < 2 ? i : i - missing;
        const int has = i < 2 || i >= 2 + missing;
        t.size[i] = has ? x->shape[from] : 1;
        t.stride[i] = has ? x->strides[from] : 0;
    }
    return t;
}

static mpsim_factor factor_of(const mpsim_operand *o)
{
    mpsim_factor f = {.x = tensor_of(&o->stack), .rounds = !mpsim_format_same(o->format, o->stack.format)};
    f.rounded.format = *o->format;
    mpsim_rounding_init(&f.rounded.rounding, (mpsim_round_mode)o->mode);
    return f;
}

/* ---- what is asked ---- */

static int is_tensor(const mpsim_stack *x, uint32_t rank)
{
    return mpsim_is_stack(x, 0) && x->rank == rank && in_range(x->shape, rank, 0);
}

static int is_operand(const mpsim_operand *o, uint32_t rank)
{
    return o && is_tensor(&o->stack, rank) && mpsim_format_check(o->format) == MPSIM_OK &&
           o->mode < MPSIM_ROUND_STOCHASTIC_A && !o->factors;
}

/* Numbers along the sizes, and times those of memory, fit. */
static int fits(const mpsim_stack *x)
{
    double n = 1;
    for (uint32_t i = 0; i < x->rank; i++)
        n *= (double)x->shape[i];
    return n < 0x1p56 && n < (double)(PTRDIFF_MAX / 32);
}

static mpsim_status check(const mpsim_convolution *c, const mpsim_pool *pool)
{
    if (!c || !c->d || c->d->rank < 3 || c->d->rank > TENSOR || !is_tensor(c->d, c->d->rank) ||
        !is_operand(c->a, c->d->rank) || !is_operand(c->b, c->d->rank) || !are_settings(c, c->d->rank - 2) ||
        !fits(c->d) || !fits(&c->a->stack) || !fits(&c->b->stack) || !mpsim_is_pool(pool))
        return MPSIM_EINVAL;
    if (c->a->format->zero == MPSIM_ZERO_NONE || c->b->format->zero == MPSIM_ZERO_NONE)
        return MPSIM_ERANGE;
    return mpsim_summing_check(c);
}

/* Whether the sizes of x, w and y are those of one convolution. */
static int agree(const mpsim_convolution *c, const mpsim_stack *x, const mpsim_stack *w, const mpsim_stack *y)
{
    const size_t channels = x->shape[1], outputs = y->shape[1], groups = c->groups;
    return x->shape[0] == y->shape[0] && channels % groups == 0 && outputs % groups == 0 &&
           w->shape[0] == (c->transposed ? channels : outputs) &&
           w->shape[1] == (c->transposed ? outputs : channels) / groups &&
           (!c->bias || c->bias->shape[c->bias->rank - 1] == outputs);
}

/* x is what is read, y what it becomes. */
static void begin(mpsim_convolving *v, const mpsim_convolution *c, const mpsim_pool *pool, const mpsim_stack *x,
                  const mpsim_stack *w, const mpsim_stack *y)
{
    const size_t dims = c->d->rank - 2;
    *v = (mpsim_convolving){.c = c,
                            .pool = pool,
                            .threads = !pool           ? 1
                                       : pool->threads ? pool->threads(pool->self)
                                                       : 8,
                            .a = factor_of(c->a),
                            .b = factor_of(c->b),
                            .d = tensor_of(c->d),
                            .images = x->shape[0],
                            .channels = x->shape[1],
                            .outputs = y->shape[1]};
    widen(v->in, x->shape + 2, dims, 1);
    widen(v->out, y->shape + 2, dims, 1);
    widen(v->kernel, w->shape + 2, dims, 1);
    widen(v->stride, c->stride, dims, 1);
    widen(v->padding, c->padding, dims, 0);
    widen(v->dilation, c->dilation, dims, 1);
    mpsim_summing_init(&v->s, c);
}

static mpsim_status end(mpsim_convolving *v, mpsim_status s)
{
    free(v->a.own);
    free(v->b.own);
    return s == MPSIM_OK ? mpsim_summing_end(&v->s) : s;
}

mpsim_status mpsim_convolution_forward(const mpsim_convolution *c, const mpsim_pool *pool)
{
    mpsim_convolving v;
    const mpsim_status s = check(c, pool);
    if (s != MPSIM_OK)
        return s;
    if (!agree(c, &c->a->stack, &c->b->stack, c->d))
        return MPSIM_EINVAL;
    begin(&v, c, pool, &c->a->stack, &c->b->stack, c->d);
    return end(&v, mpsim_convolve_taps(&v, c->transposed));
}

mpsim_status mpsim_convolution_backward_input(const mpsim_convolution *c, const mpsim_pool *pool)
{
    mpsim_convolving v;
    const mpsim_status s = check(c, pool);
    if (s != MPSIM_OK)
        return s;
    if (c->bias || !agree(c, c->d, &c->b->stack, &c->a->stack))
        return MPSIM_EINVAL;
    begin(&v, c, pool, &c->a->stack, &c->b->stack, c->d);
    return end(&v, mpsim_convolve_taps(&v, !c->transposed));
}

mpsim_status mpsim_convolution_backward_weight(const mpsim_convolution *c, const mpsim_pool *pool)
{
    mpsim_convolving v;
    const mpsim_status s = check(c, pool);
    if (s != MPSIM_OK)
        return s;
    if (c->bias || !agree(c, &c->b->stack, c->d, &c->a->stack))
        return MPSIM_EINVAL;
    begin(&v, c, pool, &c->b->stack, c->d, &c->a->stack);
    return end(&v, mpsim_convolve_positions(&v));
}
