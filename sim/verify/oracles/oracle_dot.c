/* oracle_dot.c -- see oracle_dot.h. */
#include "oracle_dot.h"
#include "../impl.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const oracle_format *oracle_dot_format(const char *name)
{
    static oracle_format layouts[64];
    const oracle_format *known = oracle_find(name);
    if (known)
        return known;
    size_t i = 0;
    for (; layouts[i].name[0]; i++)
        if (strcmp(layouts[i].name, name) == 0)
            return &layouts[i];
    int x, y, end = 0;
    if (sscanf(name, "e%dm%d%n", &x, &y, &end) != 2 || name[end] || x < 2 || x > 11 || y < 1 || y > 52)
        return NULL;
    assert(i + 1 < sizeof layouts / sizeof layouts[0]);
    const int bias = (1 << (x - 1)) - 1;
    const uint64_t inf = (((uint64_t)1 << x) - 1) << y;
    const uint64_t ones = inf + (((uint64_t)1 << y) - 1);
    layouts[i] = (oracle_format){.bits = 1 + x + y,
                                 .is_signed = 1,
                                 .precision = y + 1,
                                 .emin = 1 - bias,
                                 .zeros = 2,
                                 .max = ldexp(2 - ldexp(1, -y), bias),
                                 .inf = inf,
                                 .nan = inf + ((uint64_t)1 << (y - 1)),
                                 .nan_low = inf + 1,
                                 .nan_high = ones,
                                 .max_code = inf - 1};
    snprintf(layouts[i].name, sizeof layouts[i].name, "%s", name);
    return &layouts[i];
}

int oracle_model_init(oracle_model *om, const mpsim_model *m)
{
    *om = (oracle_model){.model = m, .result = oracle_dot_format(m->result.format.name)};
    int known = om->result != NULL;
    if (m->addition == MPSIM_ADDITION_MULADD) {
        om->product = oracle_dot_format(m->product.format.name);
        known &= om->product != NULL;
    }
    if (m->addition != MPSIM_ADDITION_EXACT || m->chunk || m->length) {
        om->accumulator = oracle_dot_format(m->accumulator.format.name);
        known &= om->accumulator != NULL;
    }
    if (m->chunk) {
        om->outer = oracle_dot_format(m->outer.format.name);
        known &= om->outer != NULL;
    }
    return known;
}

/* ---- rounding ----------------------------------------------------------------------------- */

/* One dot product: its model, and how many random words it has taken. */
typedef struct work {
    const oracle_model *om;
    oracle_word *word;
    void *self;
    uint64_t drawn;
} work;

static uint32_t draw(work *w, const mpsim_rounding *r)
{
    if (r->mode != MPSIM_ROUND_STOCHASTIC_A && r->mode != MPSIM_ROUND_STOCHASTIC_B &&
        r->mode != MPSIM_ROUND_STOCHASTIC_C)
        return 0;
    return w->word(w->self, w->drawn++);
}

/* The same with the next random word. In a fused addition an overflow is an infinity in every mode, and a zero is +0. */
static uint64_t round_code(work *w, const oracle_exact *x, const oracle_format *of, const mpsim_rounding *r,
                           int negative_zero, int fused)
{
    const uint64_t code = oracle_code(x, of, r, draw(w, r), negative_zero, fused);
    const int minus_zero = of->zeros == 2 && code == (uint64_t)1 << (of->bits - 1);
    return fused && minus_zero ? 0 : code;
}

static uint64_t round_added(work *w, const oracle_exact *x, const oracle_format *of, const mpsim_rounding *r)
{
    return round_code(w, x, of, r, oracle_is_negative_zero(x, r), 0);
}

/* A place before the result: here the traits of dot.h show. */
static double place(work *w, const oracle_exact *x, const oracle_format *of, const mpsim_rounding *r)
{
    const unsigned traits = w->om->model->traits;
    const uint32_t random = draw(w, r);
    oracle_exact y = *x;
    if (traits & MPSIM_TRAIT_NAN_MINUS && y.kind == NO_VALUE) {
        y.kind = NOT_A_NUMBER;
        y.negative = 1;
        y.payload = 0;
    }
    if (traits & MPSIM_TRAIT_FLUSH_SUMS && oracle_is_tiny(x, of, r, random)) {
        y.minus = mpz_sgn(oracle_total) < 0;
        y.plus = !y.minus;
        mpz_set_ui(oracle_total, 0);
    }
    return oracle_decode(
        of, oracle_code(&y, of, r, random, oracle_is_negative_zero(&y, r), !!(traits & MPSIM_TRAIT_OVERFLOW)));
}

static double add(work *w, double x, double y, const oracle_format *of, const mpsim_rounding *r)
{
    oracle_exact s;
    oracle_begin(&s);
    oracle_add(&s, x);
    oracle_add(&s, y);
    return place(w, &s, of, r);
}

/* ---- additions ---------------------------------------------------------------------------- */

/* A number in the words of dot.h: s 2^(e - p); e is not below emin, nor below `lowest` if that is
 * lower. */
typedef struct parts {
    uint64_t s;
    int e, p;
} parts;

static parts take_apart(const oracle_format *of, double v, int lowest)
{
    const int p = of->precision - 1, least = lowest < of->emin ? lowest : of->emin;
    int e = ilogb(fabs(v));
    if (of->zeros && e < least)
        e = least;
    return (parts){(uint64_t)ldexp(fabs(v), p - e), e, p};
}

/* A term of a fused addition: its value is +-S 2^w; e is what it has to say on the exponent. */
typedef struct fused_term {
    uint64_t s;
    long w, e;
    int negative;
    size_t k; /* which product of the addition */
} fused_term;

static int bit_length(uint64_t s)
{
    int n = 0;
    for (; s; s >>= 1)
        n++;
    return n;
}

/* oracle_total += the term in units of 2^unit. */
static void add_term(const fused_term *t, int alignment, long unit)
{
    oracle_add_aligned(t->s, t->negative, t->w, alignment, unit);
}

/* The finite products order[0..n-1], of which those from `end` on are zero, as terms; others go to *special. */
static size_t collect(work *w, fused_term *terms, oracle_exact *special, const oracle_format *fa, const double *a,
                      const oracle_format *fb, const double *b, const size_t *order, size_t n, size_t end)
{
    const mpsim_model *m = w->om->model;
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (order[i] >= end)
            continue;
        const double u = a[order[i]], v = b[order[i]];
        if (!isfinite(u) || !isfinite(v)) {
            oracle_add_product(special, u, v);
        } else if (u != 0 && v != 0) {
            const parts pu = take_apart(fa, u, m->operand_emin), pv = take_apart(fb, v, m->operand_emin);
            const int p = pu.p + pv.p;
            fused_term *t = &terms[count++];
            assert(p <= 60);
            *t = (fused_term){.s = pu.s * pv.s, .e = pu.e + pv.e, .negative = !!signbit(u) != !!signbit(v), .k = i};
            t->w = t->e - p;
            if (m->normalised)
                t->e = t->w + bit_length(t->s) - 1;
        }
    }
    return count;
}

/* s as a term, if it is a finite number but zero: 1, else 0. */
static size_t collect_addend(fused_term *t, oracle_exact *special, const oracle_format *fs, double s)
{
    if (!isfinite(s)) {
        oracle_add(special, s);
        return 0;
    }
    if (s == 0)
        return 0;
    const parts ps = take_apart(fs, s, INT_MAX);
    *t = (fused_term){.s = ps.s, .w = ps.e - ps.p, .e = ps.e, .negative = !!signbit(s)};
    return 1;
}

static double special_result(work *w, oracle_exact *special, int fused)
{
    oracle_forget_nan(special);
    return oracle_decode(w->om->accumulator,
                         round_code(w, special, w->om->accumulator, &w->om->model->accumulator.rounding, 0, fused));
}

static long largest_exponent(const fused_term *terms, size_t count, long least)
{
    for (size_t i = 0; i < count; i++)
        least = terms[i].e > least ? terms[i].e : least;
    return least;
}

/* The terms of groups of products: their sums are exact. */
static size_t group_terms(work *w, fused_term *terms, size_t count, const oracle_format *fa, const oracle_format *fb)
{
    const mpsim_model *m = w->om->model;
    const long base = (long)fa->emin - fa->precision + 1 + fb->emin - fb->precision + 1;
    fused_term groups[256];
    size_t found = 0;
    for (size_t i = 0; i < count; found++) {
        const size_t group = terms[i].k / m->group;
        oracle_exact x;
        oracle_begin(&x);
        for (; i < count && terms[i].k / m->group == group; i++)
            add_term(&terms[i], MPSIM_ALIGN_TRUNCATE, base);
        groups[found] = (fused_term){.w = base, .e = 0, .negative = mpz_sgn(oracle_total) < 0};
        assert(mpz_sizeinbase(oracle_total, 2) <= 62);
        mpz_abs(oracle_total, oracle_total);
        groups[found].s = oracle_integer(oracle_total);
    }
    memcpy(terms, groups, found * sizeof groups[0]);
    return found;
}

/* One fused or grouped addition. s is a number of format fs. */
static double fused_addition(work *w, const oracle_format *fa, const double *a, const oracle_format *fb,
                             const double *b, const size_t *order, size_t n, size_t end, const oracle_format *fs,
                             double s)
{
    const mpsim_model *m = w->om->model;
    fused_term terms[257]; /* length is a byte */
    oracle_exact x, special;
    oracle_begin(&special);
    size_t count = collect(w, terms, &special, fa, a, fb, b, order, n, end);
    if (special.kind == NUMBER && m->addition == MPSIM_ADDITION_GROUPED)
        count = group_terms(w, terms, count, fa, fb);
    count += collect_addend(&terms[count], &special, fs, s);
    if (special.kind != NUMBER)
        return special_result(w, &special, 1);

    oracle_begin(&x);
    if (count) {
        x.unit = largest_exponent(terms, count, m->floor == MPSIM_MODEL_NO_FLOOR ? LONG_MIN : m->floor) - m->fraction;
        for (size_t i = 0; i < count; i++)
            add_term(&terms[i], m->alignment, x.unit);
    }
    return oracle_decode(w->om->accumulator, round_code(w, &x, w->om->accumulator, &m->accumulator.rounding, 0, 1));
}

/* z 2^from in units of 2^to, toward -infinity. */
static void floor_to(mpz_ptr z, long from, long to)
{
    if (from >= to)
        mpz_mul_2exp(z, z, (mp_bitcnt_t)(from - to));
    else
        mpz_fdiv_q_2exp(z, z, (mp_bitcnt_t)(to - from));
}

/* Whether |S 2^w|, by the exponent that the term has to say, is beyond the numbers of a format. */
static int is_beyond(const fused_term *t, const oracle_format *of)
{
    const int p = (int)(t->e - t->w);
    return t->e + (t->s >> (p + 1) ? 1 : 0) > ilogb(of->max);
}

/* One addition in two stages. */
static double staged_addition(work *w, const oracle_format *fa, const double *a, const oracle_format *fb,
                              const double *b, const size_t *order, size_t n, const oracle_format *fs, double s)
{
    const mpsim_model *m = w->om->model;
    const oracle_format *to = w->om->accumulator;
    fused_term terms[257];
    oracle_exact x, special;
    long e[2] = {LONG_MIN, LONG_MIN}, e_products = LONG_MIN;
    mpz_t sums[2], all;
    mpz_inits(sums[0], sums[1], all, (mpz_ptr)0);
    oracle_begin(&special);
    const size_t count = collect(w, terms, &special, fa, a, fb, b, order, n, n + order[0]);
    const size_t addend = collect_addend(&terms[count], &special, fs, s);
    for (size_t i = 0; i < count; i++)
        if (is_beyond(&terms[i], to))
            oracle_add_infinity(&special, terms[i].negative);
    double result = 0;
    if (special.kind != NUMBER) {
        result = special_result(w, &special, 0);
        goto done;
    }
    for (int way = 0; way < m->ways; way++) {
        for (size_t i = 0; i < count; i++)
            if ((int)(terms[i].k % m->ways) == way && terms[i].e > e[way])
                e[way] = terms[i].e;
        oracle_begin(&x);
        for (size_t i = 0; i < count; i++)
            if ((int)(terms[i].k % m->ways) == way)
                add_term(&terms[i], MPSIM_ALIGN_TRUNCATE, e[way] - m->fraction);
        mpz_set(sums[way], oracle_total);
        e_products = e[way] > e_products ? e[way] : e_products;
    }
    for (int way = 0; way < m->ways; way++)
        if (e[way] != LONG_MIN) {
            floor_to(sums[way], e[way], e_products);
            mpz_add(all, all, sums[way]);
        }
    const long e_s = addend && terms[count].e > to->emin ? terms[count].e : to->emin;
    const long largest = e_products > e_s ? e_products : e_s;
    x.unit = largest - m->kept - 1;
    if (e_products != LONG_MIN)
        floor_to(all, e_products - m->fraction, x.unit);
    if (addend && !(m->drop && e_s < largest - m->fraction - 1)) {
        oracle_begin(&special);
        add_term(&terms[count], MPSIM_ALIGN_FLOOR, largest - m->fraction);
        floor_to(oracle_total, largest - m->fraction, x.unit);
        mpz_add(all, all, oracle_total);
    }
    x.kind = NUMBER;
    mpz_abs(oracle_total, all);
    const long own = (long)mpz_sizeinbase(oracle_total, 2) - 1 + x.unit,
               last = (own > to->emin ? own : to->emin) - m->kept;
    if (mpz_sgn(all) && last > x.unit) {
        floor_to(all, x.unit, last);
        x.unit = last;
    }
    mpz_set(oracle_total, all);
    result = oracle_decode(to, round_code(w, &x, to, &m->accumulator.rounding, 0, 0));
done:
    mpz_clears(sums[0], sums[1], all, (mpz_ptr)0);
    return result;
}

static double neighbours_sum(work *w, double *p, size_t n)
{
    const mpsim_model *m = w->om->model;
    while (n > 1) {
        for (size_t i = 0; i < n / 2; i++)
            p[i] = add(w, p[2 * i], p[2 * i + 1], w->om->accumulator, &m->accumulator.rounding);
        if (n % 2)
            p[n / 2] = p[n - 1];
        n = n / 2 + n % 2;
    }
    return p[0];
}

/* products, then sums of neighbours, level by level; products from `end` on are +0. */
static double pairwise_sum(work *w, const double *a, const double *b, size_t n, size_t end)
{
    double *p = malloc(n * sizeof *p);
    assert(p);
    for (size_t i = 0; i < n; i++) {
        oracle_exact x;
        oracle_begin(&x);
        oracle_add_product(&x, i < end ? a[i] : 0, i < end ? b[i] : 0);
        p[i] = place(w, &x, w->om->product, &w->om->model->product.rounding);
    }
    const double y = neighbours_sum(w, p, n);
    free(p);
    return y;
}

/* One product, the numbers u and v, and s. */
static double chain_step(work *w, double u, double v, double s)
{
    const mpsim_model *m = w->om->model;
    oracle_exact x;
    oracle_begin(&x);
    oracle_add_product(&x, u, v);
    if (m->addition == MPSIM_ADDITION_MULADD)
        return add(w, s, place(w, &x, w->om->product, &m->product.rounding), w->om->accumulator,
                   &m->accumulator.rounding);
    oracle_add(&x, s);
    return place(w, &x, w->om->accumulator, &m->accumulator.rounding);
}

static double lanes_sum(work *w, const double *a, const double *b, size_t n)
{
    double sums[256] = {0};
    const size_t length = w->om->model->length;
    for (size_t l = 0; l < length; l++) /* roundings count sum by sum */
        for (size_t k = l; k < n; k += length)
            sums[l] = chain_step(w, a[k], b[k], sums[l]);
    return neighbours_sum(w, sums, length);
}

/* The order in which the products of a chunk meet, zeros that fill it up included. */
static void set_order(size_t *order, size_t n, int how)
{
    size_t j = 0;
    if (how == MPSIM_ORDER_QUADS) {
        for (size_t k = 0; k < n; k++)
            if (k % 4 < 2)
                order[j++] = k;
        for (size_t k = 0; k < n; k++)
            if (k % 4 >= 2)
                order[j++] = k;
    } else if (how == MPSIM_ORDER_ODD_FIRST) {
        for (; j < n; j++)
            order[j] = j ^ 1;
    } else {
        for (; j < n; j++)
            order[j] = j;
    }
}

/* The additions over n products, from s. *fs is the format of s, before and after. */
static double additions(work *w, const oracle_format *fa, const double *a, const oracle_format *fb, const double *b,
                        size_t n, const oracle_format **fs, double s)
{
    const mpsim_model *m = w->om->model;
    const oracle_format *to = w->om->accumulator;
    const mpsim_rounding *r = &m->accumulator.rounding;
    if (n == 0)
        return s;
    const size_t filled = m->order == MPSIM_ORDER_QUADS ? m->chunk : m->order == MPSIM_ORDER_ODD_FIRST ? n + n % 2 : n;
    const int alone = m->traits & MPSIM_TRAIT_FILLED;
    size_t *order = malloc(filled * sizeof *order);
    assert(order);
    set_order(order, filled, m->order);
    oracle_exact x;
    switch (m->addition) {
    case MPSIM_ADDITION_EXACT: /* in chunks; oracle_dot has the one without */
        for (size_t i = 0, all = alone ? m->chunk : n; i < all;) {
            oracle_begin(&x);
            if (!alone)
                oracle_add(&x, s);
            for (size_t end = m->length && all - i > m->length ? i + m->length : all; i < end; i++)
                oracle_add_product(&x, i < n ? a[i] : 0, i < n ? b[i] : 0);
            oracle_forget_nan(&x);
            if (m->length && x.kind == NUMBER && mpz_sgn(oracle_total) == 0) { /* that zero is +0 */
                x.plus = 1;
                x.minus = 0;
            }
            s = place(w, &x, to, r);
        }
        break;
    case MPSIM_ADDITION_FMA:
    case MPSIM_ADDITION_MULADD:
        if (m->order == MPSIM_ORDER_PAIRWISE && alone)
            s = pairwise_sum(w, a, b, m->chunk, n);
        else if (m->order == MPSIM_ORDER_PAIRWISE)
            for (size_t i = 0; i < n;) {
                const size_t some = m->length && n - i > m->length ? m->length : n - i;
                s = add(w, s, pairwise_sum(w, a + i, b + i, some, some), to, r);
                i += some;
            }
        else if (m->order == MPSIM_ORDER_LANES)
            s = lanes_sum(w, a, b, n);
        else
            for (size_t i = 0; i < filled; i++)
                s = chain_step(w, order[i] < n ? a[order[i]] : 0, order[i] < n ? b[order[i]] : 0, s);
        break;
    default:
        for (size_t i = 0; i < filled; i += m->length) {
            const size_t some = filled - i < m->length ? filled - i : m->length;
            s = m->addition == MPSIM_ADDITION_STAGED
                    ? staged_addition(w, fa, a, fb, b, order + i, some, i ? to : *fs, s)
                    : fused_addition(w, fa, a, fb, b, order + i, some, n, i ? to : *fs, s);
        }
    }
    *fs = to;
    free(order);
    return s;
}

static double *decoded(const oracle_format *of, const uint64_t *codes, size_t n)
{
    double *v = malloc((n + 1) * sizeof *v);
    assert(v);
    for (size_t i = 0; i < n; i++)
        v[i] = oracle_decode(of, codes[i]);
    return v;
}

static double flushed(const mpsim_model *m, const oracle_format *of, double v)
{
    return fabs(v) < ldexp(1, of->emin) ? copysign(0, m->traits & MPSIM_TRAIT_PLUS_ZERO ? 1 : v) : v;
}

uint64_t oracle_dot(const oracle_model *om, const oracle_format *fa, const uint64_t *a, const oracle_format *fb,
                    const uint64_t *b, size_t n, uint64_t c, oracle_word *word, void *self)
{
    const mpsim_model *m = om->model;
    const oracle_format *fs = om->result;
    work w = {.om = om, .word = word, .self = self};
    double *u = decoded(fa, a, n), *v = decoded(fb, b, n);
    double s = oracle_decode(om->result, c);
    for (size_t k = 0; m->traits & MPSIM_TRAIT_FLUSH_OPERANDS && k < n; k++) {
        u[k] = flushed(m, fa, u[k]);
        v[k] = flushed(m, fb, v[k]);
    }
    if (m->traits & MPSIM_TRAIT_FLUSH_SUMS && n > 0)
        s = flushed(m, om->result, s);
    oracle_exact x;
    oracle_begin(&x);
    if (m->addition == MPSIM_ADDITION_EXACT && !m->chunk && !m->length) {
        oracle_add(&x, s);
        for (size_t k = 0; k < n; k++)
            oracle_add_product(&x, u[k], v[k]);
        oracle_forget_nan(&x);
    } else {
        if (!m->chunk)
            s = additions(&w, fa, u, fb, v, n, &fs, s);
        for (size_t k = 0; m->chunk && k < n; k += m->chunk) {
            const size_t some = n - k < m->chunk ? n - k : m->chunk;
            fs = om->accumulator;
            const double t = additions(&w, fa, u + k, fb, v + k, some, &fs, 0);
            s = add(&w, s, t, om->outer, &m->outer.rounding);
        }
        oracle_begin(&x);
        oracle_add(&x, s);
    }
    const uint64_t d = round_added(&w, &x, om->result, &m->result.rounding);
    free(u);
    free(v);
    return d;
}
