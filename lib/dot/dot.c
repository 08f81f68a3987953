/* dot.c -- dot products by the reference; see mpsim/dot.h. */
#include "dot.h"

#include "../base/codes.h"
#include "../round/rng.h"
#include "../stats/sum.h"
#include "scalar.h"

#include <stdlib.h>

/* One dot product on its way. */
typedef struct walk {
    const mpsim_model *m;
    mpsim_vector a, b;
    const mpsim_rng *rng;
    uint64_t index; /* of the next random word */
} walk;

/* ---- roundings ---- */

static uint32_t draw(walk *w, const mpsim_rounded *p)
{
    if (!mpsim_is_stochastic(p->rounding.mode))
        return 0;
    return mpsim_rng_word(w->rng->seed, w->rng->stream, w->index++);
}

static uint64_t round_code(walk *w, const mpsim_rounded *p, mpsim_number x)
{
    unsigned flags;
    return mpsim_scalar_encode(&p->format, &p->rounding, p->rounding.mode, x, draw(w, p), &flags);
}

static mpsim_number round_number(walk *w, const mpsim_rounded *p, mpsim_number x)
{
    return mpsim_scalar_unpack(&p->format, round_code(w, p, x));
}

/* place(x + y) */
static mpsim_number add(walk *w, const mpsim_rounded *p, mpsim_number x, mpsim_number y)
{
    unsigned flags = 0;
    const int down = p->rounding.mode == MPSIM_ROUND_DOWN;
    return round_number(w, p, mpsim_number_add(x, y, down, &flags));
}

static uint64_t code_at(const mpsim_vector *v, size_t k)
{
    return mpsim_code_load(v->codes, v->bytes, v->first + k * v->stride);
}

static mpsim_number number_at(const mpsim_vector *v, size_t k)
{
    return mpsim_scalar_unpack(v->format, code_at(v, k));
}

static mpsim_number product_at(walk *w, size_t k)
{
    unsigned flags = 0;
    return round_number(w, &w->m->product,
                        mpsim_number_mul(number_at(&w->a, k), number_at(&w->b, k), &flags));
}

/* ---- one chunk: products first to first + n - 1, from s ---- */

static mpsim_number chain_fma(walk *w, size_t first, size_t n, mpsim_number s)
{
    const mpsim_rounded *acc = &w->m->accumulator;
    const int down = acc->rounding.mode == MPSIM_ROUND_DOWN;
    for (size_t k = first; k < first + n; k++) {
        unsigned flags = 0;
        s = round_number(w, acc, mpsim_number_fma(number_at(&w->a, k), number_at(&w->b, k), s, down,
                                                  &flags));
    }
    return s;
}

static mpsim_number chain_muladd(walk *w, size_t first, size_t n, mpsim_number s)
{
    for (size_t k = first; k < first + n; k++) {
        const mpsim_number p = product_at(w, k);
        s = add(w, &w->m->accumulator, s, p);
    }
    return s;
}

static mpsim_status tree(walk *w, size_t first, size_t n, mpsim_number *s)
{
    if (n == 0)
        return MPSIM_OK;
    mpsim_number *p = (mpsim_number *)malloc(n * sizeof *p);
    if (!p)
        return MPSIM_ENOMEM;
    for (size_t i = 0; i < n; i++)
        p[i] = product_at(w, first + i);
    for (; n > 1; n = n / 2 + n % 2) {
        for (size_t i = 0; i < n / 2; i++)
            p[i] = add(w, &w->m->accumulator, p[2 * i], p[2 * i + 1]);
        if (n % 2)
            p[n / 2] = p[n - 1];
    }
    *s = add(w, &w->m->accumulator, *s, p[0]);
    free(p);
    return MPSIM_OK;
}

/* The exact sum of the products and s, not rounded; `down` says how it will be. */
static mpsim_number exact(walk *w, size_t first, size_t n, mpsim_number s, int down)
{
    int nan = s.kind == MPSIM_NUMBER_NAN, infinities[2] = {0, 0}, signs[2] = {0, 0};
    mpsim_sum sum;
    unsigned flags = 0;
    mpsim_sum_init(&sum);
    signs[s.sign] = 1;
    if (s.kind == MPSIM_NUMBER_INF)
        infinities[s.sign] = 1;
    else if (!nan)
        mpsim_sum_add(&sum, mpsim_number_to_f64(s));
    for (size_t k = first; k < first + n; k++) {
        const mpsim_number x = number_at(&w->a, k), y = number_at(&w->b, k);
        signs[x.sign ^ y.sign] = 1;
        if (x.kind == MPSIM_NUMBER_FINITE && y.kind == MPSIM_NUMBER_FINITE)
            mpsim_sum_add_product(&sum, mpsim_number_to_f64(x), mpsim_number_to_f64(y));
        else if (x.kind == MPSIM_NUMBER_NAN || y.kind == MPSIM_NUMBER_NAN ||
                 mpsim_number_is_zero(x) || mpsim_number_is_zero(y))
            nan = 1;
        else
            infinities[x.sign ^ y.sign] = 1;
    }
    if (nan || (infinities[0] && infinities[1]))
        return mpsim_number_invalid(&flags);
    if (infinities[0] || infinities[1])
        return mpsim_number_infinity(infinities[1]);
    mpsim_number x = mpsim_sum_number(&sum);
    if (x.hi == 0)
        x.sign = signs[0] && signs[1] ? down : signs[1];
    return x;
}

static mpsim_number additions_fused(walk *w, size_t first, size_t n, mpsim_number s, int emin)
{
    const mpsim_model *m = w->m;
    const mpsim_fused p = {m->alignment, m->normalised, m->fraction, m->floor,
                           w->a.format->mbits + w->b.format->mbits};
    const int is_quads = m->order == MPSIM_ORDER_QUADS;
    const size_t total = is_quads ? m->chunk : n;
    mpsim_term a[MPSIM_FUSED_LENGTH], b[MPSIM_FUSED_LENGTH];
    for (size_t i = 0; i < total; i += m->length) {
        int terms = 0;
        for (size_t j = i; j < total && j < i + m->length; j++) {
            const size_t k = is_quads ? mpsim_fused_quads(j, m->chunk) : j;
            if (k >= n)
                continue; /* a zero that fills up a chunk */
            a[terms] = mpsim_scalar_term(w->a.format, m->operand_emin, code_at(&w->a, first + k));
            b[terms] = mpsim_scalar_term(w->b.format, m->operand_emin, code_at(&w->b, first + k));
            terms++;
        }
        unsigned flags = 0;
        const mpsim_number sum = mpsim_fused_sum(&p, a, b, terms, s, emin, &flags);
        const uint64_t code = mpsim_fused_round(&m->accumulator, sum, draw(w, &m->accumulator));
        s = mpsim_scalar_unpack(&m->accumulator.format, code);
        emin = mpsim_emin(&m->accumulator.format);
    }
    return s;
}

static mpsim_status run_chunk(walk *w, size_t first, size_t n, mpsim_number *s, int emin)
{
    const mpsim_model *m = w->m;
    switch (m->addition) {
    case MPSIM_ADDITION_EXACT:
        *s = exact(w, first, n, *s, m->accumulator.rounding.mode == MPSIM_ROUND_DOWN);
        *s = round_number(w, &m->accumulator, *s);
        return MPSIM_OK;
    case MPSIM_ADDITION_FMA:
        *s = chain_fma(w, first, n, *s);
        return MPSIM_OK;
    case MPSIM_ADDITION_MULADD:
        if (m->order == MPSIM_ORDER_PAIRWISE)
            return tree(w, first, n, s);
        *s = chain_muladd(w, first, n, *s);
        return MPSIM_OK;
    case MPSIM_ADDITION_FUSED:
    default:
        *s = additions_fused(w, first, n, *s, emin);
        return MPSIM_OK;
    }
}

/* ---- a dot product ---- */

mpsim_status mpsim_dot_reference(const mpsim_model *m, const mpsim_vector *a, const mpsim_vector *b,
                                 size_t n, mpsim_number c, const mpsim_rng *rng, uint64_t index,
                                 uint64_t *d)
{
    walk w = {m, *a, *b, rng, index};
    mpsim_number s = c;
    if (m->addition == MPSIM_ADDITION_EXACT && m->chunk == 0) {
        s = exact(&w, 0, n, s, m->result.rounding.mode == MPSIM_ROUND_DOWN);
    } else if (m->chunk == 0) {
        const mpsim_status status = run_chunk(&w, 0, n, &s, mpsim_emin(&m->result.format));
        if (status != MPSIM_OK)
            return status;
    } else {
        for (size_t k = 0; k < n; k += m->chunk) {
            mpsim_number t = mpsim_number_make(0, 0, 0);
            const mpsim_status status =
                run_chunk(&w, k, n - k < m->chunk ? n - k : m->chunk, &t,
                          mpsim_emin(&m->accumulator.format));
            if (status != MPSIM_OK)
                return status;
            s = add(&w, &m->outer, s, t);
        }
    }
    *d = round_code(&w, &m->result, s);
    return MPSIM_OK;
}

mpsim_status mpsim_dot_check(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb,
                             const mpsim_rng *rng)
{
    if (mpsim_model_check(m) != MPSIM_OK || mpsim_format_check(fa) != MPSIM_OK ||
        mpsim_format_check(fb) != MPSIM_OK)
        return MPSIM_EINVAL;
    if (!rng && (mpsim_is_stochastic(m->product.rounding.mode) ||
                 mpsim_is_stochastic(m->accumulator.rounding.mode) ||
                 mpsim_is_stochastic(m->outer.rounding.mode) ||
                 mpsim_is_stochastic(m->result.rounding.mode)))
        return MPSIM_EINVAL;
    if (m->addition == MPSIM_ADDITION_FUSED && fa->mbits + fb->mbits > MPSIM_FUSED_BITS)
        return MPSIM_ERANGE;
    return MPSIM_OK;
}

mpsim_status mpsim_dot(const mpsim_model *m, const mpsim_format *fa, const void *a,
                       const mpsim_format *fb, const void *b, size_t n, uint64_t c,
                       const mpsim_rng *rng, uint64_t *d)
{
    const mpsim_status s = mpsim_dot_check(m, fa, fb, rng);
    if (s != MPSIM_OK)
        return s;
    if (!d || (n > 0 && (!a || !b)))
        return MPSIM_EINVAL;
    const mpsim_vector va = {fa, a, mpsim_format_code_bytes(fa), 0, 1};
    const mpsim_vector vb = {fb, b, mpsim_format_code_bytes(fb), 0, 1};
    return mpsim_dot_reference(m, &va, &vb, n, mpsim_scalar_unpack(&m->result.format, c), rng,
                               rng ? rng->index : 0, d);
}
