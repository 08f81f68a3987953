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

/* The sum of products k = way, way + ways, ..., in units of 2^(*e - fraction); *e is their largest exponent,
 * or stays as it is where all are zero. */
static inline MPSIM_HD int64_t mpsim_staged_way(const mpsim_staged *p, const mpsim_term *a, const mpsim_term *b, int n,
                                                int way, int *e)
{
    int64_t total = 0;
    for (int k = way; k < n; k += p->ways)
        if (a[k].s != 0 && b[k].s != 0 && a[k].e + b[k].e > *e)
            *e = a[k].e + b[k].e;
    for (int k = way; k < n; k += p->ways)
        if (a[k].s != 0 && b[k].s != 0)
            total += mpsim_fused_align(MPSIM_ALIGN_TRUNCATE, a[k].sign ^ b[k].sign, a[k].s * b[k].s,
                                       a[k].e + b[k].e - p->bits - (*e - p->fraction));
    return total;
}

/* Whether a product of finite numbers is beyond the accumulator's range. */
static inline MPSIM_HD int mpsim_staged_beyond(const mpsim_staged *p, mpsim_term a, mpsim_term b)
{
    return a.s != 0 && b.s != 0 && a.e + b.e + (int)(a.s * b.s >> (p->bits + 1)) > p->emax;
}

/* One addition of finite terms: the sum of n products and s, whose format has the smallest normal exponent `emin`,
 * still to be rounded. */
static inline MPSIM_HD mpsim_number mpsim_staged_finite(const mpsim_staged *p, const mpsim_term *a, const mpsim_term *b,
                                                        int n, mpsim_number s, int emin)
{
    enum { NONE = -100000, WAYS = 2 };
    int64_t sums[WAYS] = {0, 0}, products = 0;
    int e[WAYS] = {NONE, NONE}, e_products = NONE;
    for (int way = 0; way < p->ways; way++) {
        sums[way] = mpsim_staged_way(p, a, b, n, way, &e[way]);
        e_products = e[way] > e_products ? e[way] : e_products;
    }
    for (int way = 0; way < p->ways; way++)
        if (e[way] != NONE)
            products += mpsim_staged_floor(sums[way], e[way], e_products);

    /* with the accumulator, in units of 2^unit */
    const int e_own = s.exp > emin ? s.exp : emin, e_s = s.hi && e_own > p->emin ? e_own : p->emin;
    const int largest = e_products > e_s ? e_products : e_s, unit = largest - p->kept - 1;
    int64_t total = e_products == NONE ? 0 : mpsim_staged_floor(products, e_products - p->fraction, unit);
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

/* The same of any terms. *flags receives INVALID. */
static inline MPSIM_HD mpsim_number mpsim_staged_sum(const mpsim_staged *p, const mpsim_term *a, const mpsim_term *b,
                                                     int n, mpsim_number s, int emin, unsigned *flags)
{
    const mpsim_fused look = {MPSIM_ALIGN_TRUNCATE, 0, p->fraction, p->emin, p->bits};
    mpsim_fused_terms t = mpsim_fused_look(&look, a, b, n, s, emin);
    for (int k = 0; k < n; k++)
        if (a[k].kind == MPSIM_NUMBER_FINITE && b[k].kind == MPSIM_NUMBER_FINITE && mpsim_staged_beyond(p, a[k], b[k]))
            t.infinities[a[k].sign ^ b[k].sign] = 1;
    if (t.nan || (t.infinities[0] && t.infinities[1]))
        return mpsim_number_invalid(flags);
    if (t.infinities[0] || t.infinities[1])
        return mpsim_number_infinity(t.infinities[1]);
    return mpsim_staged_finite(p, a, b, n, s, emin);
}
