/* measure.c -- see measure.h. */
#include "measure.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../cli/progress.h"

#include <train/parallel.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static mpsim_attention_shape shape_of(const attention_heads *h)
{
    return (mpsim_attention_shape){h->q.tokens, h->k.tokens, h->q.size, h->v.size};
}

static int failed(mpsim_status s, const mpsim_attention *a)
{
    if (s == MPSIM_ERANGE)
        return fail(
            EXIT_USAGE,
            "attention: model '%s' or '%s' cannot take its operands: more than 60 explicit significand bits together",
            a->context->name, a->scores->name);
    return fail(EXIT_IO, "attention: model '%s': %s", a->context->name, mpsim_status_string(s));
}

int attention_exactly(attention_exact *to, const mpsim_attention *a, const attention_heads *h)
{
    const mpsim_attention_shape shape = shape_of(h);
    const size_t n = shape.queries * shape.size;
    mpsim_status s = MPSIM_OK;
    to->n = n * heads_count(h);
    to->y = need_memory(to->n, sizeof *to->y);
    for (size_t i = 0; i < heads_count(h) && s == MPSIM_OK; i++) {
        const mpsim_matrix q = heads_query(h, i), k = heads_key(h, i), v = heads_value(h, i);
        s = mpsim_attention_exact(a, &shape, &q, &k, &v, to->y + i * n, &parallel_pool);
        progress_add(1);
    }
    return s == MPSIM_OK ? 0 : failed(s, a);
}

/* ---- errors by the sign of the result ---- */

typedef struct sums {
    mpsim_sum error, size;
} sums;

static void add_signs(attention_result *r, const double *d, const double *e, size_t n, size_t size,
                      const uint8_t *repeats)
{
    sums of[2][2];
    mpsim_sum along, squares;
    uint64_t count = 0;
    mpsim_sum_init(&along);
    mpsim_sum_init(&squares);
    for (int i = 0; i < 4; i++) {
        mpsim_sum_init(&of[i / 2][i % 2].error);
        mpsim_sum_init(&of[i / 2][i % 2].size);
    }
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(d[i]) || !isfinite(e[i]) || e[i] == 0)
            continue;
        const int repeated = repeats[i / size] != 0, sign = e[i] > 0;
        const double error = d[i] - e[i], outward = sign ? error : -error;
        attention_signs *const s = &r->signs[repeated][sign];
        mpsim_sum_add(&along, outward);
        mpsim_sum_add_square(&squares, error);
        mpsim_sum_add(&of[repeated][sign].error, error);
        mpsim_sum_add(&of[repeated][sign].size, fabs(e[i]));
        s->count++;
        s->away += outward > 0;
        count++;
    }
    const double all = sqrt((double)count * mpsim_sum_value(&squares));
    r->lean = all > 0 ? mpsim_sum_value(&along) / all : 0;
    for (int i = 0; i < 4; i++) {
        const double size_of = mpsim_sum_value(&of[i / 2][i % 2].size);
        r->signs[i / 2][i % 2].mean = size_of > 0 ? mpsim_sum_value(&of[i / 2][i % 2].error) / size_of : 0;
    }
}

/* ---- a model ---- */

static mpsim_status run(double *d, uint8_t *repeats, mpsim_attention_counts *counts, const mpsim_attention *a,
                        const attention_heads *h, uint64_t seed)
{
    const mpsim_attention_shape shape = shape_of(h);
    const size_t n = shape.queries * shape.size, heads = heads_count(h);
    float *y = need_memory(n, sizeof *y);
    mpsim_status s = MPSIM_OK;
    for (size_t i = 0; i < heads && s == MPSIM_OK; i++) {
        const mpsim_matrix q = heads_query(h, i), k = heads_key(h, i), v = heads_value(h, i);
        const mpsim_rng rng = {seed, (uint64_t)i << 32, 0};
        s = mpsim_attention_forward(a, &shape, &q, &k, &v, y, NULL, repeats + i * shape.queries, counts, &rng,
                                    &parallel_pool);
        for (size_t j = 0; j < n; j++)
            d[i * n + j] = (double)y[j];
        progress_add(1);
    }
    free(y);
    return s;
}

int attention_measure(attention_result *to, const mpsim_attention *a, const attention_heads *h,
                      const attention_exact *exact, uint64_t seed)
{
    double *d = need_memory(exact->n, sizeof *d);
    uint8_t *repeats = need_memory((uint64_t)h->q.tokens * heads_count(h), sizeof *repeats);
    memset(to, 0, sizeof *to);
    const mpsim_status s = run(d, repeats, &to->counts, a, h, seed);
    if (s == MPSIM_OK) {
        dot_error_compare(&to->error, d, exact->y, exact->n, a->context->result.format.mbits + 1);
        add_signs(to, d, exact->y, exact->n, h->v.size, repeats);
    }
    free(repeats);
    free(d);
    return s == MPSIM_OK ? 0 : failed(s, a);
}
