/* batchnorm.c -- batch normalisation over the rows of a matrix; see mpsim/layer.h.
 *
 * Some channels at a time: the lanes of their sums lie on the stack, and a loop over them is one
 * that compilers vectorise. */
#include <mpsim/layer.h>

#include "shared.h"

enum { WIDTH = 16 };

typedef struct lanes {
    float s[MPSIM_LANES_ALL][WIDTH];
} lanes;

typedef struct job {
    const mpsim_batchnorm *b;
    mpsim_math m, out;
    float n, eps;
} job;

/* Channels from `at`, at most WIDTH; their numbers are in `math`. Arrays by channel are computed to
 * their ends; what lies beyond `width` is never stored. */
typedef struct part {
    size_t at, width;
    float mean[WIDTH], inverse[WIDTH], weight[WIDTH], bias[WIDTH];
} part;

static const mpsim_math binary32 = {.kind = MPSIM_MATH_BINARY32};

/* A statement for every channel c with a rounding m: two loops, that in binary32 without one. */
#define CHANNELS(math, m, c, ...)                  \
    do {                                           \
        if ((math)->kind == MPSIM_MATH_BINARY32) { \
            const mpsim_math *const m = &binary32; \
            for (int c = 0; c < WIDTH; c++)        \
                __VA_ARGS__;                       \
        } else {                                   \
            const mpsim_math *const m = (math);    \
            for (int c = 0; c < WIDTH; c++)        \
                __VA_ARGS__;                       \
        }                                          \
    } while (0)

/* ---- beginning ---- */

static mpsim_status start(job *j, const mpsim_batchnorm *b, const void *const *needed, size_t n)
{
    if (!b)
        return MPSIM_EINVAL;
    const size_t elements = b->rows ? mpsim_elements(b->rows, b->channels) : b->channels > 0;
    const mpsim_status s = mpsim_layer_begin(&j->m, b->math, &j->out, b->f, elements, needed, n);
    if (s != MPSIM_OK)
        return s;
    j->b = b;
    j->n = mpsim_math_round(&j->m, (float)b->rows);
    j->eps = mpsim_math_round(&j->m, b->eps);
    return MPSIM_OK;
}

static part part_at(const job *j, size_t at)
{
    const size_t left = j->b->channels - at;
    return (part){.at = at, .width = left < WIDTH ? left : WIDTH};
}

static void round_to(const mpsim_math *m, float *x)
{
    for (int c = 0; c < WIDTH && m->kind != MPSIM_MATH_BINARY32; c++)
        x[c] = mpsim_math_round(m, x[c]);
}

/* Numbers of the part's channels, rounded to `math`; +0 beyond them. */
static void load(const job *j, const part *p, float *to, const float *from)
{
    if (p->width == WIDTH) {
        memcpy(to, from + p->at, WIDTH * sizeof *to);
    } else {
        memset(to, 0, WIDTH * sizeof *to);
        memcpy(to, from + p->at, p->width * sizeof *to);
    }
    round_to(&j->m, to);
}

/* x becomes the part's channels of a row of y. */
static void store(const job *j, const part *p, size_t row, float *y, float *x)
{
    round_to(&j->out, x);
    memcpy(y + row * j->b->channels + p->at, x, p->width * sizeof *x);
}

/* ---- sums ---- */

static void lanes_add(const mpsim_math *math, float *restrict s, const float *restrict term)
{
    CHANNELS(math, m, c, s[c] = mpsim_math_add(m, s[c], term[c]));
}

/* Every channel's lanes to their sum. */
static void lanes_sum(const mpsim_math *math, lanes *a, size_t used, float *sum)
{
    for (size_t h = used / 2; h > 0; h /= 2)
        for (size_t t = 0; t < h; t++)
            lanes_add(math, a->s[t], a->s[t + h]);
    memcpy(sum, a->s[0], sizeof a->s[0]);
}

/* sum[c] = the sum of x, or, with means, of (x - mean)^2. */
static void sum_rows(const job *j, const part *p, float *sum, const float *x, const float *restrict mean)
{
    lanes a;
    const size_t used = mpsim_lanes_used(j->b->rows);
    float term[WIDTH];
    memset(a.s, 0, used * sizeof a.s[0]);
    for (size_t r = 0; r < j->b->rows; r++) {
        load(j, p, term, x + r * j->b->channels);
        if (mean)
            CHANNELS(&j->m, m, c, term[c] = mpsim_batchnorm_square(m, term[c], mean[c]));
        lanes_add(&j->m, a.s[r % MPSIM_LANES_ALL], term);
    }
    lanes_sum(&j->m, &a, used, sum);
}

/* v = (v - mean) * inverse. */
static void normalise(const job *j, const part *restrict p, float *restrict v)
{
    CHANNELS(&j->m, m, c, v[c] = mpsim_batchnorm_normal(m, v[c], p->mean[c], p->inverse[c]));
}

/* sum[c] = the sum of dy * h. */
static void sum_products(const job *j, const part *p, float *sum, const float *dy, const float *x)
{
    lanes a;
    const size_t used = mpsim_lanes_used(j->b->rows);
    float g[WIDTH], h[WIDTH];
    memset(a.s, 0, used * sizeof a.s[0]);
    for (size_t r = 0; r < j->b->rows; r++) {
        load(j, p, g, dy + r * j->b->channels);
        load(j, p, h, x + r * j->b->channels);
        normalise(j, p, h);
        CHANNELS(&j->m, m, c, h[c] = mpsim_math_mul(m, g[c], h[c]));
        lanes_add(&j->m, a.s[r % MPSIM_LANES_ALL], h);
    }
    lanes_sum(&j->m, &a, used, sum);
}

/* ---- forward ---- */

static void scale_and_shift(const job *j, const part *p, float *y, const float *x)
{
    float v[WIDTH];
    for (size_t r = 0; r < j->b->rows; r++) {
        load(j, p, v, x + r * j->b->channels);
        normalise(j, p, v);
        CHANNELS(&j->m, m, c, v[c] = mpsim_batchnorm_y(m, v[c], p->weight[c], p->bias[c]));
        store(j, p, r, y, v);
    }
}

mpsim_status mpsim_batchnorm_forward(const mpsim_batchnorm *b, float *y, float *mean, float *inverse,
                                     float *running_mean, float *running_var, const float *x, const float *weight,
                                     const float *bias)
{
    job j;
    const mpsim_status s = start(&j, b, MPSIM_NEEDED(y, mean, inverse, x, weight, bias));
    if (s != MPSIM_OK)
        return s;
    if (b->rows == 0 || !running_mean != !running_var)
        return MPSIM_EINVAL;
    const float others = (float)(b->rows - 1);
    for (size_t at = 0; at < b->channels; at += WIDTH) {
        part p = part_at(&j, at);
        float sum[WIDTH], squares[WIDTH];
        load(&j, &p, p.weight, weight);
        load(&j, &p, p.bias, bias);
        sum_rows(&j, &p, sum, x, NULL);
        for (size_t c = 0; c < p.width; c++)
            p.mean[c] = mpsim_math_div(&j.m, sum[c], j.n);
        sum_rows(&j, &p, squares, x, p.mean);
        for (size_t c = 0; c < p.width; c++) {
            const float var = mpsim_math_div(&j.m, squares[c], j.n);
            p.inverse[c] = mpsim_batchnorm_inverse(&j.m, var, j.eps);
            mean[at + c] = p.mean[c];
            inverse[at + c] = p.inverse[c];
        }
        for (size_t c = 0; running_mean && c < p.width; c++) {
            float *run_mean = &running_mean[at + c], *run_var = &running_var[at + c];
            *run_mean = mpsim_batchnorm_running(*run_mean, b->momentum, p.mean[c]);
            *run_var = mpsim_batchnorm_running(*run_var, b->momentum, mpsim_f32_div(squares[c], others));
        }
        scale_and_shift(&j, &p, y, x);
    }
    return MPSIM_OK;
}

mpsim_status mpsim_batchnorm_inference(const mpsim_batchnorm *b, float *y, const float *x, const float *running_mean,
                                       const float *running_var, const float *weight, const float *bias)
{
    job j;
    const mpsim_status s = start(&j, b, MPSIM_NEEDED(running_mean, running_var, weight, bias));
    if (s != MPSIM_OK)
        return s;
    if (b->rows > 0 && b->channels > 0 && (!y || !x))
        return MPSIM_EINVAL;
    for (size_t at = 0; b->rows > 0 && at < b->channels; at += WIDTH) {
        part p = part_at(&j, at);
        float var[WIDTH];
        load(&j, &p, p.weight, weight);
        load(&j, &p, p.bias, bias);
        load(&j, &p, p.mean, running_mean);
        load(&j, &p, var, running_var);
        for (size_t c = 0; c < p.width; c++)
            p.inverse[c] = mpsim_batchnorm_inverse(&j.m, var[c], j.eps);
        scale_and_shift(&j, &p, y, x);
    }
    return MPSIM_OK;
}

/* ---- backward ---- */

/* a = dbias / n, b = dweight / n, by channel. */
static void differentiate(const job *j, const part *p, float *dx, const float *dy, const float *x, const float *a,
                          const float *b)
{
    float g[WIDTH], h[WIDTH], factor[WIDTH];
    CHANNELS(&j->m, m, c, factor[c] = mpsim_math_mul(m, p->weight[c], p->inverse[c]));
    for (size_t r = 0; r < j->b->rows; r++) {
        load(j, p, g, dy + r * j->b->channels);
        load(j, p, h, x + r * j->b->channels);
        normalise(j, p, h);
        CHANNELS(&j->m, m, c, g[c] = mpsim_batchnorm_dx(m, g[c], h[c], factor[c], a[c], b[c]));
        store(j, p, r, dx, g);
    }
}

mpsim_status mpsim_batchnorm_backward(const mpsim_batchnorm *b, float *dx, float *dweight, float *dbias,
                                      const float *dy, const float *x, const float *mean, const float *inverse,
                                      const float *weight)
{
    job j;
    const mpsim_status s = start(&j, b, MPSIM_NEEDED(dx, dweight, dbias, dy, x, mean, inverse, weight));
    if (s != MPSIM_OK)
        return s;
    if (b->rows == 0)
        return MPSIM_EINVAL;
    for (size_t at = 0; at < b->channels; at += WIDTH) {
        part p = part_at(&j, at);
        float sum[WIDTH], product[WIDTH], a[WIDTH] = {0}, c[WIDTH] = {0};
        load(&j, &p, p.mean, mean);
        load(&j, &p, p.inverse, inverse);
        load(&j, &p, p.weight, weight);
        sum_rows(&j, &p, sum, dy, NULL);
        sum_products(&j, &p, product, dy, x);
        for (size_t i = 0; i < p.width; i++) {
            dbias[at + i] = sum[i];
            dweight[at + i] = product[i];
            a[i] = mpsim_math_div(&j.m, sum[i], j.n);
            c[i] = mpsim_math_div(&j.m, product[i], j.n);
        }
        differentiate(&j, &p, dx, dy, x, a, c);
    }
    return MPSIM_OK;
}
