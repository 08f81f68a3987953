/* measure.c -- see measure.h. */
#include "measure.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../process/progress.h"

#include <threads/parallel.h>

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

static size_t results(const attention_heads *h)
{
    return h->q.tokens * h->v.size * attention_heads_count(h);
}

static mpsim_status all_heads(double *y, const mpsim_attention *a, const attention_heads *h)
{
    const mpsim_attention_shape shape = shape_of(h);
    mpsim_status s = MPSIM_OK;
    for (size_t i = 0; i < attention_heads_count(h) && s == MPSIM_OK; i++) {
        const mpsim_matrix q = attention_heads_query(h, i), k = attention_heads_key(h, i),
                           v = attention_heads_value(h, i);
        s = mpsim_attention_exact(a, &shape, &q, &k, &v, y + i * shape.queries * shape.size, &parallel_pool);
        progress_add(1);
    }
    return s;
}

int attention_exactly(dot_truth *to, const mpsim_attention *a, const attention_heads *h, double above)
{
    *to = dot_truth_make(results(h), attention_heads_exact(h), above);
    mpsim_status s = all_heads(to->rounded, a, h);
    if (s == MPSIM_OK && !attention_heads_exact(h)) {
        pieces p;
        const attention_heads given = attention_heads_given(h, &p);
        s = all_heads(to->given, a, &given);
        dot_pieces_clear(&p);
    }
    return s == MPSIM_OK ? 0 : failed(s, a);
}

/* ---- errors by the sign of the result ---- */

/* Of one sign, in rows that repeat or others: sums of the errors and of |e|. */
typedef struct sums {
    mpsim_sum error, size;
} sums;

typedef struct leaning {
    sums of[2][2];            /* as attention_result.signs                       */
    mpsim_sum along, squares; /* of errors away from zero, and of their squares */
    uint64_t count;
} leaning;

static void begin(leaning *l)
{
    mpsim_sum_init(&l->along);
    mpsim_sum_init(&l->squares);
    l->count = 0;
    for (int i = 0; i < 4; i++) {
        mpsim_sum_init(&l->of[i / 2][i % 2].error);
        mpsim_sum_init(&l->of[i / 2][i % 2].size);
    }
}

static void add_result(leaning *l, attention_signs *s, sums *of, double d, double e)
{
    const double error = d - e, outward = e > 0 ? error : -error;
    mpsim_sum_add(&l->along, outward);
    mpsim_sum_add_square(&l->squares, error);
    mpsim_sum_add(&of->error, error);
    mpsim_sum_add(&of->size, fabs(e));
    s->count++;
    s->away += outward > 0;
    l->count++;
}

static void end(const leaning *l, attention_result *r)
{
    const double all = sqrt((double)l->count * mpsim_sum_value(&l->squares));
    r->lean = all > 0 ? mpsim_sum_value(&l->along) / all : 0;
    for (int i = 0; i < 4; i++) {
        const sums *of = &l->of[i / 2][i % 2];
        const double size = mpsim_sum_value(&of->size);
        r->signs[i / 2][i % 2].mean = size > 0 ? mpsim_sum_value(&of->error) / size : 0;
    }
}

/* n results in rows of `size`. */
static void add_signs(attention_result *r, const double *d, const double *e, size_t n, size_t size,
                      const uint8_t *repeats)
{
    leaning l;
    begin(&l);
    for (size_t i = 0; i < n; i++) {
        const int repeated = repeats[i / size] != 0, sign = e[i] > 0 ? ATTENTION_POSITIVE : ATTENTION_NEGATIVE;
        if (isfinite(d[i]) && isfinite(e[i]) && e[i] != 0)
            add_result(&l, &r->signs[repeated][sign], &l.of[repeated][sign], d[i], e[i]);
    }
    end(&l, r);
}

/* ---- a model ---- */

static mpsim_status run(double *d, uint8_t *repeats, mpsim_attention_counts *counts, const mpsim_attention *a,
                        const attention_heads *h, uint64_t seed)
{
    const mpsim_attention_shape shape = shape_of(h);
    const size_t n = shape.queries * shape.size, heads = attention_heads_count(h);
    float *y = need_memory(n, sizeof *y);
    mpsim_status s = MPSIM_OK;
    for (size_t i = 0; i < heads && s == MPSIM_OK; i++) {
        const mpsim_matrix q = attention_heads_query(h, i), k = attention_heads_key(h, i),
                           v = attention_heads_value(h, i);
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

int attention_measure(attention_result *to, const mpsim_attention *a, const attention_heads *h, const dot_truth *exact,
                      uint64_t seed)
{
    const size_t n = results(h);
    double *d = need_memory(n, sizeof *d);
    uint8_t *repeats = need_memory((uint64_t)h->q.tokens * attention_heads_count(h), sizeof *repeats);
    memset(to, 0, sizeof *to);
    const mpsim_status s = run(d, repeats, &to->counts, a, h, seed);
    if (s == MPSIM_OK) {
        dot_error_compare(&to->error, d, exact, n, a->context->result.format.mbits + 1);
        add_signs(to, d, exact->rounded, n, h->v.size, repeats);
    }
    free(repeats);
    free(d);
    return s == MPSIM_OK ? 0 : failed(s, a);
}
