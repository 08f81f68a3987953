/* convolution.c -- convolutions: what is asked, and what both kinds of sums share; see mpsim/convolution.h. */
#include "convolution.h"

#include "../base/matrix.h"
#include "../round/scalar.h"

#include <stdlib.h>
#include <string.h>

enum { DIMS = MPSIM_DIMS };

static const size_t largest = INT32_MAX;

void mpsim_convolution_init(mpsim_convolution *c, size_t dims)
{
    if (!c)
        return;
    memset(c, 0, sizeof *c);
    c->dims = (uint8_t)(dims <= DIMS ? dims : 0);
    c->groups = 1;
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

static int is_convolution(const mpsim_convolution *c)
{
    return c->dims >= 1 && c->dims <= DIMS && c->transposed <= 1 && c->order < MPSIM_CONVOLUTION_ORDERS &&
           c->taps < MPSIM_CONVOLUTION_TAPS && in_range(&c->images, 1, 0) && in_range(&c->channels, 1, 0) &&
           in_range(&c->outputs, 1, 0) && in_range(&c->groups, 1, 1) && c->channels % c->groups == 0 &&
           c->outputs % c->groups == 0 && in_range(c->in, c->dims, 0) && in_range(c->out, c->dims, 0) &&
           in_range(c->kernel, c->dims, 0) && in_range(c->stride, c->dims, 1) && in_range(c->padding, c->dims, 0) &&
           in_range(c->dilation, c->dims, 1);
}

/* The size of y in dimension d, or less than 0. */
static int64_t size_of(const mpsim_convolution *c, size_t d, size_t extra)
{
    const int64_t in = (int64_t)c->in[d], stride = (int64_t)c->stride[d], padding = 2 * (int64_t)c->padding[d];
    const int64_t e = ((int64_t)c->kernel[d] - 1) * (int64_t)c->dilation[d] + 1;
    if (c->transposed)
        return (in - 1) * stride - padding + e + (int64_t)extra;
    return in + padding < e ? (in + padding < e - stride ? -1 : 0) : (in + padding - e) / stride + 1;
}

mpsim_status mpsim_convolution_sizes(mpsim_convolution *c, const size_t *output_padding)
{
    size_t out[DIMS] = {0};
    if (!c || !is_convolution(c) || (output_padding && !in_range(output_padding, c->dims, 0)))
        return MPSIM_EINVAL;
    for (size_t d = 0; d < c->dims; d++) {
        const int64_t n = size_of(c, d, output_padding ? output_padding[d] : 0);
        if (n < 0 || n > (int64_t)largest)
            return MPSIM_EINVAL;
        out[d] = (size_t)n;
    }
    memcpy(c->out, out, c->dims * sizeof out[0]);
    return MPSIM_OK;
}

/* n sizes of fewer dimensions as those of three. */
static void widen(size_t *to, const size_t *from, size_t n, size_t missing)
{
    for (size_t d = 0; d < DIMS; d++)
        to[d] = d < DIMS - n ? missing : from[d - (DIMS - n)];
}

static mpsim_geometry geometry_of(const mpsim_convolution *c)
{
    mpsim_geometry g = {.images = c->images,
                        .channels = c->channels,
                        .outputs = c->outputs,
                        .groups = c->groups,
                        .order = c->order,
                        .taps = c->taps,
                        .transposed = c->transposed};
    widen(g.in, c->in, c->dims, 1);
    widen(g.out, c->out, c->dims, 1);
    widen(g.kernel, c->kernel, c->dims, 1);
    widen(g.stride, c->stride, c->dims, 1);
    widen(g.padding, c->padding, c->dims, 0);
    widen(g.dilation, c->dilation, c->dims, 1);
    return g;
}

/* ---- tensors ---- */

static mpsim_strided widened(const mpsim_strided *x, size_t dims)
{
    mpsim_strided y = *x;
    for (size_t d = 0; d < DIMS; d++)
        y.stride[2 + d] = d < DIMS - dims ? 0 : x->stride[2 + d - (DIMS - dims)];
    return y;
}

/* Whether memory can hold a tensor, and it is there. */
static int is_there(const mpsim_strided *x, size_t first, size_t second, const size_t *extent)
{
    const double n = (double)first * (double)second * (double)extent[0] * (double)extent[1] * (double)extent[2];
    return n == 0 || (x->codes && n < 0x1p56 && n < (double)(SIZE_MAX / 32));
}

static mpsim_status check_operand(const mpsim_strided *x)
{
    const mpsim_rounded *r = x->rounded;
    if (mpsim_format_check(x->format) != MPSIM_OK)
        return MPSIM_EINVAL;
    if (r && (mpsim_format_check(&r->format) != MPSIM_OK || mpsim_rounding_check(&r->rounding) != MPSIM_OK ||
              mpsim_is_stochastic(r->rounding.mode)))
        return MPSIM_EINVAL;
    return mpsim_operand_format(x)->zero == MPSIM_ZERO_NONE ? MPSIM_ERANGE : MPSIM_OK;
}

int mpsim_operand_open(mpsim_operand *o, const mpsim_strided *x, size_t images, size_t channels, const size_t *extent,
                       int planar, const mpsim_pool *pool)
{
    mpsim_axes axes = {.format = x->format, .codes = (const unsigned char *)x->codes, .rounded = x->rounded};
    *o = (mpsim_operand){.format = mpsim_operand_format(x), .codes = axes.codes};
    memcpy(o->stride, x->stride, sizeof o->stride);
    if (!x->rounded && (planar || x->stride[1] == 1 || channels == 1))
        return 1;
    ptrdiff_t side = 1;
    const size_t size[2 + DIMS] = {images, channels, extent[0], extent[1], extent[2]};
    static const uint8_t by_channels[] = {0, 2, 3, 4, 1}, by_planes[] = {0, 1, 2, 3, 4};
    const uint8_t *turns = planar ? by_planes : by_channels;
    for (size_t i = 0; i < 2 + DIMS; i++)
        mpsim_axes_add(&axes, size[turns[i]], x->stride[turns[i]]);
    for (size_t i = 2 + DIMS; i-- > 0; side *= (ptrdiff_t)size[turns[i]])
        o->stride[turns[i]] = side;
    o->own = malloc(mpsim_axes_count(&axes) * mpsim_format_code_bytes(o->format) + 1);
    o->codes = (const unsigned char *)o->own;
    if (o->own)
        mpsim_axes_put(&axes, o->own, pool);
    return o->own != NULL;
}

/* ---- sums ---- */

int mpsim_convolving_bias(const mpsim_convolving *v, mpsim_summing *s)
{
    if (!v->how->bias)
        return 1;
    s->bias = mpsim_summing_bias(s, v->how->bias, v->g->outputs);
    return s->bias != NULL;
}

int mpsim_convolving_is_random(const mpsim_convolving *v)
{
    const mpsim_model *m = v->how->model;
    return v->how->rng &&
           (mpsim_is_stochastic(m->product.rounding.mode) || mpsim_is_stochastic(m->accumulator.rounding.mode) ||
            mpsim_is_stochastic(m->outer.rounding.mode) || mpsim_is_stochastic(m->result.rounding.mode));
}

static void run_task(size_t i, void *context)
{
    mpsim_tasks *t = (mpsim_tasks *)context;
    t->status[i] = (unsigned char)t->task(t->context, i);
}

mpsim_status mpsim_tasks_run(mpsim_tasks *t, const mpsim_pool *pool)
{
    mpsim_status s = MPSIM_OK;
    t->status = (unsigned char *)calloc(t->n ? t->n : 1, 1);
    if (!t->status)
        return MPSIM_ENOMEM;
    if (pool && t->n > 1)
        pool->run(pool->self, t->n, run_task, t);
    else
        for (size_t i = 0; i < t->n; i++)
            run_task(i, t);
    for (size_t i = 0; i < t->n && s == MPSIM_OK; i++)
        s = (mpsim_status)t->status[i];
    free(t->status);
    return s;
}

/* ---- what is asked ---- */

/* A tensor that a call is given, and its sizes. */
typedef struct given {
    const mpsim_strided *x;
    size_t first, second;
    const size_t *extent;
} given;

static given input_of(const mpsim_geometry *g, const mpsim_strided *x)
{
    return (given){x, g->images, g->channels, g->in};
}

static given output_of(const mpsim_geometry *g, const mpsim_strided *x)
{
    return (given){x, g->images, g->outputs, g->out};
}

static given weight_of(const mpsim_geometry *g, const mpsim_strided *x)
{
    return g->transposed ? (given){x, g->channels, g->outputs / g->groups, g->kernel}
                         : (given){x, g->outputs, g->channels / g->groups, g->kernel};
}

static mpsim_status check_bias(const mpsim_strided *bias, size_t n)
{
    return mpsim_format_check(bias->format) != MPSIM_OK || bias->rounded || (n && !bias->codes) ? MPSIM_EINVAL
                                                                                                : MPSIM_OK;
}

/* Whether the sums can be made of a and b, and stored as d; *v is set. */
static mpsim_status prepare(mpsim_convolving *v, mpsim_geometry *g, const mpsim_convolution *c,
                            const mpsim_convolution_how *how, given a, given b, given d)
{
    if (!is_there(a.x, a.first, a.second, a.extent) || !is_there(b.x, b.first, b.second, b.extent) ||
        !is_there(d.x, d.first, d.second, d.extent) || !mpsim_is_pool(how->pool))
        return MPSIM_EINVAL;
    mpsim_status s = check_operand(a.x);
    if (s == MPSIM_OK)
        s = check_operand(b.x);
    if (s == MPSIM_OK && how->bias)
        s = check_bias(how->bias, g->outputs);
    if (s == MPSIM_OK)
        s = mpsim_summing_check(how, mpsim_operand_format(a.x), mpsim_operand_format(b.x), d.x);
    const mpsim_pool *pool = how->pool;
    *v = (mpsim_convolving){.g = g, .how = how, .threads = !pool ? 1 : pool->threads ? pool->threads(pool->self) : 8};
    v->first = widened(a.x, c->dims);
    v->second = widened(b.x, c->dims);
    v->result = widened(d.x, c->dims);
    return s;
}

static int is_call(const mpsim_convolution *c, const mpsim_convolution_how *how, const mpsim_strided *a,
                   const mpsim_strided *b, const mpsim_strided *d)
{
    return c && how && a && b && d && is_convolution(c);
}

mpsim_status mpsim_convolution_forward(const mpsim_convolution *c, const mpsim_convolution_how *how,
                                       const mpsim_strided *x, const mpsim_strided *w, const mpsim_strided *y)
{
    mpsim_convolving v;
    if (!is_call(c, how, x, w, y))
        return MPSIM_EINVAL;
    mpsim_geometry g = geometry_of(c);
    const mpsim_status s = prepare(&v, &g, c, how, input_of(&g, x), weight_of(&g, w), output_of(&g, y));
    return s == MPSIM_OK ? mpsim_convolve_taps(&v, g.transposed) : s;
}

/* Sums of gradients have no bias. */
static int is_gradient(const mpsim_convolution *c, const mpsim_convolution_how *how, const mpsim_strided *a,
                       const mpsim_strided *b, const mpsim_strided *d)
{
    return is_call(c, how, a, b, d) && !how->bias;
}

/* The convolution that a gradient of an input is: outputs are its channels. */
static mpsim_geometry reversed(const mpsim_geometry *g)
{
    mpsim_geometry r = *g;
    r.channels = g->outputs;
    r.outputs = g->channels;
    memcpy(r.in, g->out, sizeof r.in);
    memcpy(r.out, g->in, sizeof r.out);
    return r;
}

mpsim_status mpsim_convolution_backward_input(const mpsim_convolution *c, const mpsim_convolution_how *how,
                                              const mpsim_strided *dy, const mpsim_strided *w, const mpsim_strided *dx)
{
    mpsim_convolving v;
    if (!is_gradient(c, how, dy, w, dx))
        return MPSIM_EINVAL;
    mpsim_geometry g = geometry_of(c), back = reversed(&g);
    const mpsim_status s = prepare(&v, &back, c, how, output_of(&g, dy), weight_of(&g, w), input_of(&g, dx));
    return s == MPSIM_OK ? mpsim_convolve_taps(&v, !g.transposed) : s;
}

mpsim_status mpsim_convolution_backward_weight(const mpsim_convolution *c, const mpsim_convolution_how *how,
                                               const mpsim_strided *dy, const mpsim_strided *x, const mpsim_strided *dw)
{
    mpsim_convolving v;
    if (!is_gradient(c, how, dy, x, dw))
        return MPSIM_EINVAL;
    mpsim_geometry g = geometry_of(c);
    const mpsim_status s = prepare(&v, &g, c, how, output_of(&g, dy), input_of(&g, x), weight_of(&g, dw));
    return s == MPSIM_OK ? mpsim_convolve_positions(&v) : s;
}
