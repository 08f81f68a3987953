/* dot.c -- dot products by the reference; see mpsim/dot.h. */
#include "../base/extent.h"
#include "dot.h"

#include "../base/codes.h"
#include "../round/rng.h"
#include "../stats/sum.h"
#include "grouped.h"
#include "staged.h"

#include <stdlib.h>

/* One dot product on its way. */
typedef struct walk {
    const mpsim_model *m;
    mpsim_vector a, b, scales_a, scales_b;
    const mpsim_rng *rng;
    uint64_t index;                                         /* of the next random word */
    void (*see)(void *context, const mpsim_dot_step *step); /* or NULL */
    void *context;
} walk;

/* ---- steps, for those who want to see them ---- */

/* x, y: the numbers that were added; code: of the result, rounded at `place`. */
static void show(const walk *w, mpsim_dot_step step, const mpsim_rounded *place, mpsim_number x, mpsim_number y,
                 uint64_t code)
{
    step.place = place;
    step.x = mpsim_number_to_f64(x);
    step.y = mpsim_number_to_f64(y);
    step.code = code;
    step.value = mpsim_number_to_f64(mpsim_scalar_unpack(&place->format, code));
    w->see(w->context, &step);
}

static mpsim_dot_step step_of(mpsim_dot_event event, size_t first, size_t n)
{
    const mpsim_dot_step step = {.event = event, .first = first, .n = n};
    return step;
}

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

/* The same at a place before the result, with the traits of the model; `invalid`: x is the NaN of an operation
 * without a value. */
static uint64_t round_trait(walk *w, const mpsim_rounded *p, mpsim_number x, int invalid)
{
    const unsigned traits = w->m->traits;
    const uint32_t random = draw(w, p);
    unsigned flags;
    if (traits & MPSIM_TRAIT_NAN_MINUS && invalid)
        x.sign = 1;
    if (traits & MPSIM_TRAIT_FLUSH_SUMS && mpsim_scalar_tiny(&p->format, &p->rounding, x, random) & MPSIM_TINY_AFTER)
        x = mpsim_number_make(x.sign, 0, 0);
    return traits & MPSIM_TRAIT_OVERFLOW
               ? mpsim_round_to_infinity(p, x, random)
               : mpsim_scalar_encode(&p->format, &p->rounding, p->rounding.mode, x, random, &flags);
}

/* x as it is read: a subnormal number of f is a zero if the model has that trait. */
static mpsim_number read_number(const walk *w, const mpsim_format *f, mpsim_number x, unsigned trait)
{
    if (!(w->m->traits & trait) || x.kind != MPSIM_NUMBER_FINITE)
        return x;
    if (x.hi != 0 && x.exp < mpsim_emin(f))
        x = mpsim_number_make(x.sign, 0, 0);
    if (x.hi == 0 && w->m->traits & MPSIM_TRAIT_PLUS_ZERO)
        x.sign = 0;
    return x;
}

static const mpsim_number none = {MPSIM_NUMBER_FINITE, 0, 0, 0, 0};

/* `sum` rounded at p, a step with x and y; flags: of the operation. */
static mpsim_number round_step(walk *w, const mpsim_rounded *p, mpsim_number sum, unsigned flags, mpsim_dot_step step,
                               mpsim_number x, mpsim_number y)
{
    const uint64_t code = round_trait(w, p, sum, !!(flags & MPSIM_FLAG_INVALID));
    if (w->see)
        show(w, step, p, x, y, code);
    return mpsim_scalar_unpack(&p->format, code);
}

/* place(x + y) */
static mpsim_number add(walk *w, const mpsim_rounded *p, mpsim_number x, mpsim_number y, mpsim_dot_step step)
{
    unsigned flags = 0;
    const mpsim_number sum = mpsim_number_add(x, y, p->rounding.mode == MPSIM_ROUND_DOWN, &flags);
    return round_step(w, p, sum, flags, step, x, y);
}

static uint64_t code_at(const mpsim_vector *v, size_t k)
{
    return mpsim_code_load(v->codes, v->bytes, v->first + k * v->stride);
}

static mpsim_number number_at(const mpsim_vector *v, size_t k)
{
    return mpsim_scalar_unpack(v->format, code_at(v, k));
}

/* Operand k; +0 where k is beyond the operands and fills an instruction up. */
static mpsim_number operand(const walk *w, const mpsim_vector *v, size_t k, size_t end)
{
    return k < end ? read_number(w, v->format, number_at(v, k), MPSIM_TRAIT_FLUSH_OPERANDS) : none;
}

static mpsim_number product_at(walk *w, size_t k, size_t end)
{
    unsigned flags = 0;
    const mpsim_number product = mpsim_number_mul(operand(w, &w->a, k, end), operand(w, &w->b, k, end), &flags);
    return round_step(w, &w->m->product, product, flags, step_of(MPSIM_DOT_PRODUCT, k, k < end), none, none);
}

/* ---- one chunk: products first to first + n - 1, from s ---- */

/* s and product k. */
static mpsim_number take_up(walk *w, size_t k, size_t end, mpsim_number s)
{
    const mpsim_rounded *acc = &w->m->accumulator;
    const mpsim_dot_step step = step_of(MPSIM_DOT_ADDITION, k, k < end);
    unsigned flags = 0;
    if (w->m->addition == MPSIM_ADDITION_MULADD)
        return add(w, acc, s, product_at(w, k, end), step);
    const mpsim_number sum = mpsim_number_fma(operand(w, &w->a, k, end), operand(w, &w->b, k, end), s,
                                              acc->rounding.mode == MPSIM_ROUND_DOWN, &flags);
    return round_step(w, acc, sum, flags, step, s, none);
}

static mpsim_number chain(walk *w, size_t first, size_t n, mpsim_number s)
{
    const size_t end = first + n;
    for (size_t k = first; k < end && w->m->order != MPSIM_ORDER_ODD_FIRST; k++)
        s = take_up(w, k, end, s);
    for (size_t k = first; k < end && w->m->order == MPSIM_ORDER_ODD_FIRST; k += 2)
        s = take_up(w, k, end, take_up(w, k + 1, end, s));
    return s;
}

/* p[0] becomes the sum of n numbers: neighbours are added, again and again. */
static void add_neighbours(walk *w, size_t first, mpsim_number *p, size_t n)
{
    for (; n > 1; n = n / 2 + n % 2) {
        for (size_t i = 0; i < n / 2; i++)
            p[i] = add(w, &w->m->accumulator, p[2 * i], p[2 * i + 1], step_of(MPSIM_DOT_ADDITION, first, 0));
        if (n % 2)
            p[n / 2] = p[n - 1];
    }
}

/* With the trait FILLED *s is what comes of the products alone. */
static mpsim_status tree(walk *w, size_t first, size_t n, mpsim_number *s)
{
    const int filled = w->m->traits & MPSIM_TRAIT_FILLED;
    const size_t terms = filled ? w->m->chunk : n;
    if (n == 0)
        return MPSIM_OK;
    mpsim_number *p = (mpsim_number *)malloc(terms * sizeof *p);
    if (!p)
        return MPSIM_ENOMEM;
    for (size_t i = 0; i < terms; i++)
        p[i] = product_at(w, first + i, first + n);
    add_neighbours(w, first, p, terms);
    *s = filled ? p[0] : add(w, &w->m->accumulator, *s, p[0], step_of(MPSIM_DOT_ADDITION, first, 0));
    free(p);
    return MPSIM_OK;
}

/* One after the other, of `length` products each. */
static mpsim_status trees(walk *w, size_t first, size_t n, mpsim_number *s)
{
    const size_t length = w->m->length ? w->m->length : n;
    mpsim_status status = MPSIM_OK;
    for (size_t i = 0; i < n && status == MPSIM_OK; i += length)
        status = tree(w, first + i, n - i < length ? n - i : length, s);
    return status;
}

static mpsim_number lanes(walk *w, size_t first, size_t n)
{
    mpsim_number sum[MPSIM_FUSED_LENGTH];
    const size_t length = w->m->length;
    for (size_t l = 0; l < length; l++) {
        sum[l] = none;
        for (size_t k = first + l; k < first + n; k += length)
            sum[l] = take_up(w, k, first + n, sum[l]);
    }
    add_neighbours(w, first, sum, length);
    return sum[0];
}

/* The exact sum of the products and s, not rounded; `down` says how it will be. With the trait FILLED s is
 * not there. */
static mpsim_number exact(walk *w, size_t first, size_t n, mpsim_number s, int down, unsigned *flags)
{
    const int filled = w->m->traits & MPSIM_TRAIT_FILLED;
    int nan = s.kind == MPSIM_NUMBER_NAN, infinities[2] = {0, 0}, signs[2] = {0, 0};
    mpsim_sum sum;
    mpsim_sum_init(&sum);
    signs[s.sign] = !filled;
    signs[0] |= filled && n < w->m->chunk;
    if (s.kind == MPSIM_NUMBER_INF)
        infinities[s.sign] = 1;
    else if (!nan)
        mpsim_sum_add(&sum, mpsim_number_to_f64(s));
    for (size_t k = first; k < first + n; k++) {
        const mpsim_number x = operand(w, &w->a, k, first + n), y = operand(w, &w->b, k, first + n);
        signs[x.sign ^ y.sign] = 1;
        if (x.kind == MPSIM_NUMBER_FINITE && y.kind == MPSIM_NUMBER_FINITE)
            mpsim_sum_add_product(&sum, mpsim_number_to_f64(x), mpsim_number_to_f64(y));
        else if (x.kind == MPSIM_NUMBER_NAN || y.kind == MPSIM_NUMBER_NAN || mpsim_number_is_zero(x) ||
                 mpsim_number_is_zero(y))
            nan = 1;
        else
            infinities[x.sign ^ y.sign] = 1;
    }
    if (nan || (infinities[0] && infinities[1]))
        return mpsim_number_invalid(flags);
    if (infinities[0] || infinities[1])
        return mpsim_number_infinity(infinities[1]);
    mpsim_number x = mpsim_sum_number(&sum);
    if (x.hi == 0)
        x.sign = w->m->length ? 0 : signs[0] && signs[1] ? down : signs[1];
    return x;
}

/* The same, `length` products at a time. */
static mpsim_number additions_exact(walk *w, size_t first, size_t n, mpsim_number s)
{
    const mpsim_rounded *to = &w->m->accumulator;
    const size_t length = w->m->length ? w->m->length : n;
    for (size_t i = 0; i < n; i += length) {
        const size_t some = n - i < length ? n - i : length;
        unsigned flags = 0;
        const mpsim_number sum = exact(w, first + i, some, s, to->rounding.mode == MPSIM_ROUND_DOWN, &flags);
        s = round_step(w, to, sum, flags, step_of(MPSIM_DOT_ADDITION, first + i, some), s, none);
    }
    return s;
}

static void show_fused(const walk *w, const mpsim_fused *p, const mpsim_term *a, const mpsim_term *b,
                       const size_t *places, int n, mpsim_number s, int emin, uint64_t code)
{
    const mpsim_fused_terms t = mpsim_fused_look(p, a, b, n, s, emin);
    mpsim_dot_step step = step_of(MPSIM_DOT_ADDITION, n ? places[0] : 0, (size_t)n);
    int64_t terms[MPSIM_FUSED_LENGTH] = {0};
    step.places = places;
    step.terms = terms;
    step.aligned = w->m->addition == MPSIM_ADDITION_FUSED && t.any && !t.nan && !t.infinities[0] && !t.infinities[1];
    if (step.aligned) {
        step.unit = t.largest - p->fraction;
        step.sum = step.accumulator = mpsim_fused_accumulator(p, s, step.unit);
        for (int i = 0; i < n; i++)
            step.sum += terms[i] = mpsim_fused_product(p, a[i], b[i], step.unit);
    }
    show(w, step, &w->m->accumulator, s, none, code);
}

/* The scale of element k. */
static mpsim_term scale_at(const walk *w, const mpsim_vector *v, size_t k)
{
    static const mpsim_term one = {MPSIM_NUMBER_FINITE, 0, 0, 1};
    if (!v->format)
        return one;
    return mpsim_scalar_term(v->format, MPSIM_MODEL_OWN_EMIN,
                             code_at(v, k / w->m->block) & mpsim_magnitude_mask(v->format));
}

static mpsim_scale_pair scales_at(const walk *w, size_t k)
{
    const mpsim_term x = scale_at(w, &w->scales_a, k), y = scale_at(w, &w->scales_b, k);
    const int bits_x = w->scales_a.format ? w->scales_a.format->mbits : 0;
    const int bits_y = w->scales_b.format ? w->scales_b.format->mbits : 0;
    const mpsim_scale_pair p = {x.kind != MPSIM_NUMBER_FINITE || y.kind != MPSIM_NUMBER_FINITE, x.e + y.e,
                                bits_x + bits_y, x.s * y.s};
    return p;
}

/* An operand times a scale that is a power of two. */
static mpsim_term scaled(mpsim_term t, mpsim_term scale)
{
    if (scale.kind != MPSIM_NUMBER_FINITE)
        t.kind = MPSIM_NUMBER_NAN;
    t.e += scale.e;
    return t;
}

/* The sum of an addition of n products of elements places[0] to places[n - 1], and its code. */
static uint64_t addition(walk *w, const mpsim_term *a, const mpsim_term *b, const size_t *places, int n, mpsim_number s,
                         int emin)
{
    const mpsim_model *m = w->m;
    const mpsim_rounded *to = &m->accumulator;
    const mpsim_format *fa = w->a.format, *fb = w->b.format;
    const mpsim_fused fused = {m->alignment, m->normalised, m->fraction, m->floor, fa->mbits + fb->mbits};
    unsigned flags = 0;
    if (m->addition == MPSIM_ADDITION_STAGED) {
        const mpsim_staged p = {m->ways,
                                m->fraction,
                                m->kept,
                                m->drop,
                                fused.bits,
                                mpsim_emin(&to->format),
                                (int)(to->format.max_finite >> to->format.mbits) - to->format.bias};
        return round_code(w, to, mpsim_staged_sum(&p, a, b, n, s, emin, &flags));
    }
    if (m->addition == MPSIM_ADDITION_GROUPED) {
        const mpsim_grouped p = {fused, m->group, mpsim_emin(fa), mpsim_emin(fb)};
        mpsim_scale_pair scales[MPSIM_FUSED_LENGTH];
        for (int i = 0; i < n; i += m->group)
            scales[i / m->group] = scales_at(w, places[i]);
        return mpsim_fused_round(to, mpsim_grouped_sum(&p, a, b, n, scales, s, emin, &flags), draw(w, to));
    }
    return mpsim_fused_round(to, mpsim_fused_sum(&fused, a, b, n, s, emin, &flags), draw(w, to));
}

/* Additions of `length` products: FUSED and its kin. */
static mpsim_number additions(walk *w, size_t first, size_t n, mpsim_number s, int emin)
{
    const mpsim_model *m = w->m;
    const int is_quads = m->order == MPSIM_ORDER_QUADS, is_grouped = m->addition == MPSIM_ADDITION_GROUPED;
    const int least = m->addition == MPSIM_ADDITION_FUSED ? m->operand_emin : MPSIM_MODEL_OWN_EMIN;
    const size_t total = is_quads ? m->chunk : n;
    mpsim_term a[MPSIM_FUSED_LENGTH], b[MPSIM_FUSED_LENGTH];
    size_t places[MPSIM_FUSED_LENGTH];
    for (size_t i = 0; i < total; i += m->length) {
        int terms = 0;
        for (size_t j = i; j < total && j < i + m->length; j++) {
            const size_t k = is_quads ? mpsim_fused_quads(j, m->chunk) : j;
            if (k >= n)
                continue; /* a zero that fills up a chunk */
            a[terms] = mpsim_scalar_term(w->a.format, least, code_at(&w->a, first + k));
            b[terms] = mpsim_scalar_term(w->b.format, least, code_at(&w->b, first + k));
            if (w->scales_a.format && !is_grouped) {
                a[terms] = scaled(a[terms], scale_at(w, &w->scales_a, first + k));
                b[terms] = scaled(b[terms], scale_at(w, &w->scales_b, first + k));
            }
            places[terms++] = first + k;
        }
        const uint64_t code = addition(w, a, b, places, terms, s, emin);
        if (w->see) {
            const mpsim_fused p = {m->alignment, m->normalised, m->fraction, m->floor,
                                   w->a.format->mbits + w->b.format->mbits};
            show_fused(w, &p, a, b, places, terms, s, emin, code);
        }
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
        *s = additions_exact(w, first, n, *s);
        return MPSIM_OK;
    case MPSIM_ADDITION_FMA:
    case MPSIM_ADDITION_MULADD:
        if (m->order == MPSIM_ORDER_PAIRWISE)
            return trees(w, first, n, s);
        *s = m->order == MPSIM_ORDER_LANES ? lanes(w, first, n) : chain(w, first, n, *s);
        return MPSIM_OK;
    case MPSIM_ADDITION_FUSED:
    case MPSIM_ADDITION_STAGED:
    case MPSIM_ADDITION_GROUPED:
    default:
        *s = additions(w, first, n, *s, emin);
        return MPSIM_OK;
    }
}

/* ---- a dot product ---- */

/* A checked dot product, with w filled. */
static mpsim_status run(walk *w, size_t n, mpsim_number c, uint64_t *d)
{
    const mpsim_model *m = w->m;
    mpsim_dot_step last = step_of(MPSIM_DOT_RESULT, 0, 0);
    mpsim_number s = n ? read_number(w, &m->result.format, c, MPSIM_TRAIT_FLUSH_SUMS) : c, x = s;
    if (m->addition == MPSIM_ADDITION_EXACT && m->chunk == 0 && m->length == 0) {
        unsigned flags = 0;
        s = exact(w, 0, n, s, m->result.rounding.mode == MPSIM_ROUND_DOWN, &flags);
        last.n = n;
    } else if (m->chunk == 0) {
        const mpsim_status status = run_chunk(w, 0, n, &s, mpsim_emin(&m->result.format));
        if (status != MPSIM_OK)
            return status;
        x = s;
    } else {
        for (size_t k = 0; k < n; k += m->chunk) {
            mpsim_number t = mpsim_number_make(0, 0, 0);
            const mpsim_status status = run_chunk(w, k, n - k < m->chunk ? n - k : m->chunk, &t,
                                                  mpsim_emin(&m->accumulator.format));
            if (status != MPSIM_OK)
                return status;
            s = add(w, &m->outer, s, t, step_of(MPSIM_DOT_CHUNK, k, n - k < m->chunk ? n - k : m->chunk));
        }
        x = s;
    }
    *d = round_code(w, &m->result, s);
    if (w->see)
        show(w, last, &m->result, x, none, *d);
    return MPSIM_OK;
}

mpsim_status mpsim_dot_reference(const mpsim_model *m, const mpsim_vectors *v, size_t n, mpsim_number c,
                                 const mpsim_rng *rng, uint64_t index, uint64_t *d)
{
    walk w = {m, v->a, v->b, v->scales_a, v->scales_b, rng, index, NULL, NULL};
    return run(&w, n, c, d);
}

/* The number of bits of the largest sum of a grouped addition, in units of its last bit before it is aligned
 * and after: see grouped.h. */
static int grouped_fits(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    const int high = (int)(fa->max_finite >> fa->mbits) - fa->bias + 1 + (int)(fb->max_finite >> fb->mbits) - fb->bias +
                     1;
    const int low = mpsim_emin(fa) - fa->mbits + mpsim_emin(fb) - fb->mbits;
    const int carry = 8 /* 128 products */, scales = 2 * 4 + 2;
    return high - low + carry + scales <= 60 && high + carry + 2 + m->fraction <= 60;
}

mpsim_status mpsim_dot_check(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb, const mpsim_rng *rng)
{
    if (mpsim_model_check(m) != MPSIM_OK || mpsim_format_check(fa) != MPSIM_OK || mpsim_format_check(fb) != MPSIM_OK)
        return MPSIM_EINVAL;
    if (!rng && (mpsim_is_stochastic(m->product.rounding.mode) || mpsim_is_stochastic(m->accumulator.rounding.mode) ||
                 mpsim_is_stochastic(m->outer.rounding.mode) || mpsim_is_stochastic(m->result.rounding.mode)))
        return MPSIM_EINVAL;
    if (m->addition == MPSIM_ADDITION_FUSED && fa->mbits + fb->mbits > MPSIM_FUSED_BITS)
        return MPSIM_ERANGE;
    if (m->addition == MPSIM_ADDITION_STAGED && fa->mbits + fb->mbits > MPSIM_STAGED_BITS)
        return MPSIM_ERANGE;
    if (m->addition == MPSIM_ADDITION_GROUPED && !grouped_fits(m, fa, fb))
        return MPSIM_ERANGE;
    return MPSIM_OK;
}

mpsim_status mpsim_scales_check(const mpsim_model *m, const mpsim_scales *s)
{
    if (m->block == 0 || !s || !s->codes || mpsim_format_check(s->format) != MPSIM_OK)
        return MPSIM_EINVAL;
    const int most = m->addition == MPSIM_ADDITION_GROUPED ? 3 : 0;
    const int e = (int)(s->format->max_finite >> s->format->mbits) - s->format->bias;
    return s->format->mbits <= most && mpsim_emin(s->format) >= -200 && e <= 200 ? MPSIM_OK : MPSIM_ERANGE;
}

static mpsim_vector vector_of(const mpsim_format *f, const void *codes)
{
    const mpsim_vector v = {f, codes, f ? mpsim_format_code_bytes(f) : 0, 0, 1};
    return v;
}

static int are_vectors(const mpsim_format *fa, const void *a, const mpsim_format *fb, const void *b, size_t n)
{
    return n == 0 ||
           (a && b && mpsim_fits(n, mpsim_format_code_bytes(fa)) && mpsim_fits(n, mpsim_format_code_bytes(fb)));
}

mpsim_status mpsim_dot_steps(const mpsim_model *m, const mpsim_format *fa, const void *a, const mpsim_format *fb,
                             const void *b, size_t n, uint64_t c, const mpsim_rng *rng, uint64_t *d,
                             void (*see)(void *context, const mpsim_dot_step *step), void *context)
{
    const mpsim_status s = mpsim_dot_check(m, fa, fb, rng);
    if (s != MPSIM_OK)
        return s;
    if (!are_vectors(fa, a, fb, b, n) || !d)
        return MPSIM_EINVAL;
    walk w = {m,
              vector_of(fa, a),
              vector_of(fb, b),
              vector_of(NULL, NULL),
              vector_of(NULL, NULL),
              rng,
              rng ? rng->index : 0,
              see,
              context};
    return run(&w, n, mpsim_scalar_unpack(&m->result.format, c), d);
}

mpsim_status mpsim_dot(const mpsim_model *m, const mpsim_format *fa, const void *a, const mpsim_format *fb,
                       const void *b, size_t n, uint64_t c, const mpsim_rng *rng, uint64_t *d)
{
    return mpsim_dot_steps(m, fa, a, fb, b, n, c, rng, d, NULL, NULL);
}

mpsim_status mpsim_dot_scaled(const mpsim_model *m, const mpsim_format *fa, const void *a, const mpsim_scales *sa,
                              const mpsim_format *fb, const void *b, const mpsim_scales *sb, size_t n, uint64_t c,
                              const mpsim_rng *rng, uint64_t *d)
{
    mpsim_status s = mpsim_dot_check(m, fa, fb, rng);
    if (s == MPSIM_OK)
        s = mpsim_scales_check(m, sa);
    if (s == MPSIM_OK)
        s = mpsim_scales_check(m, sb);
    if (s != MPSIM_OK)
        return s;
    if (!are_vectors(fa, a, fb, b, n) || !d)
        return MPSIM_EINVAL;
    const mpsim_vectors v = {vector_of(fa, a), vector_of(fb, b), vector_of(sa->format, sa->codes),
                             vector_of(sb->format, sb->codes)};
    return mpsim_dot_reference(m, &v, n, mpsim_scalar_unpack(&m->result.format, c), rng, rng ? rng->index : 0, d);
}
