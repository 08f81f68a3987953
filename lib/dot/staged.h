/* staged.h -- THE reference of MPSIM_ADDITION_STAGED: see mpsim/dot.h. Integers only; written to be read. */
#pragma once

#include "scalar.h"

enum {
    MPSIM_STAGED_BITS = 48, /* p_a + p_b: products stay below 2^50                    */
    MPSIM_STAGED_KEPT = 40, /* with it and length 128 sums stay below 2^52            */
    MPSIM_STAGED_FRACTION = 40
};

typedef struct mpsim_staged {
    int ways, fraction, kept, drop;
    int bits;       /* p_a + p_b                                            */
    int emin, emax; /* of the accumulator                                   */
} mpsim_staged;

/* t 2^from in units of 2^to, toward -infinity. */
static inline MPSIM_HD int64_t mpsim_staged_floor(int64_t t, int from, int to)
{
    const uint64_t m = t < 0 ? (uint64_t)-t : (uint64_t)t;
    return mpsim_fused_align(MPSIM_ALIGN_FLOOR, t < 0, m, from - to);
}

enum { MPSIM_STAGED_WAYS = 2, MPSIM_STAGED_NO_TERM = -100000 };

/* The sums of products, in units of 2^(e - fraction); e is their largest exponent, NO_TERM where all are zero. */
typedef struct mpsim_staged_sums {
    int64_t sum[MPSIM_STAGED_WAYS];
    int e[MPSIM_STAGED_WAYS];
} mpsim_staged_sums;

static inline MPSIM_HD mpsim_staged_sums mpsim_staged_none(void)
{
    const mpsim_staged_sums s = {{0, 0}, {MPSIM_STAGED_NO_TERM, MPSIM_STAGED_NO_TERM}};
    return s;
}

/* First every product says its exponent, then each is added. */
static inline MPSIM_HD void mpsim_staged_look(mpsim_staged_sums *s, int way, mpsim_term a, mpsim_term b)
{
    if (a.s != 0 && b.s != 0 && a.e + b.e > s->e[way])
        s->e[way] = a.e + b.e;
}

static inline MPSIM_HD void mpsim_staged_take(const mpsim_staged *p, mpsim_staged_sums *s, int way, mpsim_term a,
                                              mpsim_term b)
{
    if (a.s != 0 && b.s != 0)
        s->sum[way] += mpsim_fused_align(MPSIM_ALIGN_TRUNCATE, a.sign ^ b.sign, a.s * b.s,
                                         a.e + b.e - p->bits - (s->e[way] - p->fraction));
}

/* Whether a product of finite numbers is beyond the accumulator's range. */
static inline MPSIM_HD int mpsim_staged_beyond(const mpsim_staged *p, mpsim_term a, mpsim_term b)
{
    return a.s != 0 && b.s != 0 && a.e + b.e + (int)(a.s * b.s >> (p->bits + 1)) > p->emax;
}

/* Both sums and s, whose format has the smallest normal exponent `emin`, still to be rounded. */
static inline MPSIM_HD mpsim_number mpsim_staged_finish(const mpsim_staged *p, const mpsim_staged_sums *sums,
                                                        mpsim_number s, int emin)
{
    const int *e = sums->e;
    const int e_products = e[0] > e[1] ? e[0] : e[1];
    int64_t products = 0;
    for (int way = 0; way < p->ways; way++)
        if (e[way] != MPSIM_STAGED_NO_TERM)
            products += mpsim_staged_floor(sums->sum[way], e[way], e_products);

    /* with the accumulator, in units of 2^unit */
    const int e_own = s.exp > emin ? s.exp : emin, e_s = s.hi && e_own > p->emin ? e_own : p->emin;
    const int largest = e_products > e_s ? e_products : e_s, unit = largest - p->kept - 1;
    int64_t total = e_products == MPSIM_STAGED_NO_TERM ? 0
                                                       : mpsim_staged_floor(products, e_products - p->fraction, unit);
    if (s.hi && !(p->drop && e_s < largest - p->fraction - 1)) {
        const int64_t c = mpsim_fused_align(MPSIM_ALIGN_FLOOR, s.sign, s.hi, s.exp - 63 - (largest - p->fraction));
        total += mpsim_staged_floor(c, largest - p->fraction, unit);
    }
    if (total == 0)
        return mpsim_number_make(0, 0, 0);
    const uint64_t magnitude = total < 0 ? (uint64_t)-total : (uint64_t)total;
    const int own = 63 - mpsim_clz64(magnitude) + unit, last = (own > p->emin ? own : p->emin) - p->kept;
    if (last > unit) {
        total = mpsim_staged_floor(total, unit, last);
        return mpsim_number_make(total < 0, total < 0 ? (uint64_t)-total : (uint64_t)total, last);
    }
    return mpsim_number_make(total < 0, magnitude, unit);
}

/* One addition of n products and s. *flags receives INVALID. */
static inline MPSIM_HD mpsim_number mpsim_staged_sum(const mpsim_staged *p, const mpsim_term *a, const mpsim_term *b,
                                                     int n, mpsim_number s, int emin, unsigned *flags)
{
    const mpsim_fused look = {MPSIM_ALIGN_TRUNCATE, 0, p->fraction, p->emin, p->bits};
    mpsim_fused_terms t = mpsim_fused_look(&look, a, b, n, s, emin);
    mpsim_staged_sums sums = mpsim_staged_none();
    for (int k = 0; k < n; k++)
        if (a[k].kind == MPSIM_NUMBER_FINITE && b[k].kind == MPSIM_NUMBER_FINITE && mpsim_staged_beyond(p, a[k], b[k]))
            t.infinities[a[k].sign ^ b[k].sign] = 1;
    if (t.nan || (t.infinities[0] && t.infinities[1]))
        return mpsim_number_invalid(flags);
    if (t.infinities[0] || t.infinities[1])
        return mpsim_number_infinity(t.infinities[1]);
    for (int k = 0; k < n; k++)
        mpsim_staged_look(&sums, k % p->ways, a[k], b[k]);
    for (int k = 0; k < n; k++)
        mpsim_staged_take(p, &sums, k % p->ways, a[k], b[k]);
    return mpsim_staged_finish(p, &sums, s, emin);
}
