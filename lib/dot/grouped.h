/* grouped.h -- THE reference of MPSIM_ADDITION_GROUPED: see mpsim/dot.h. Integers only; written to be read. */
#pragma once

#include "scalar.h"

typedef struct mpsim_grouped {
    mpsim_fused fused;  /* alignment, fraction and floor; bits: p_a + p_b          */
    int group;          /* products                                                */
    int emin_a, emin_b; /* smallest exponents of operands                          */
} mpsim_grouped;

/* The scales of both blocks together: an exact product of significands, which is not a number where one
 * of them is NaN. */
typedef struct mpsim_scale_pair {
    int nan, e, bits;
    uint64_t s;
} mpsim_scale_pair;

/* An operand in units of the last bit of its smallest number. */
static inline MPSIM_HD int64_t mpsim_grouped_integer(mpsim_term t, int emin)
{
    const int64_t x = (int64_t)(t.s << (t.s ? t.e - emin : 0));
    return t.sign ? -x : x;
}

/* A group as a term: sum 2^w; e is what it has to say on the exponent. */
typedef struct mpsim_group_term {
    int any, w, e;
    int64_t sum;
} mpsim_group_term;

static inline MPSIM_HD mpsim_group_term mpsim_grouped_none(const mpsim_grouped *p, mpsim_scale_pair x)
{
    const mpsim_group_term t = {0, p->emin_a + p->emin_b - p->fused.bits + x.e - x.bits, x.e, 0};
    return t;
}

/* A product, before the sum is multiplied by x.s. */
static inline MPSIM_HD void mpsim_grouped_take(const mpsim_grouped *p, mpsim_group_term *t, mpsim_term a, mpsim_term b,
                                               mpsim_scale_pair x)
{
    t->any |= a.s != 0 && b.s != 0 && x.s != 0;
    t->sum += mpsim_grouped_integer(a, p->emin_a) * mpsim_grouped_integer(b, p->emin_b);
}

static inline MPSIM_HD mpsim_group_term mpsim_grouped_term(const mpsim_grouped *p, const mpsim_term *a,
                                                           const mpsim_term *b, int n, mpsim_scale_pair x)
{
    mpsim_group_term t = mpsim_grouped_none(p, x);
    for (int k = 0; k < n; k++)
        mpsim_grouped_take(p, &t, a[k], b[k], x);
    t.sum *= (int64_t)x.s;
    return t;
}

/* One addition: n products, scales[i] of group i, and s; still to be rounded. *flags receives INVALID. */
static inline MPSIM_HD mpsim_number mpsim_grouped_sum(const mpsim_grouped *p, const mpsim_term *a, const mpsim_term *b,
                                                      int n, const mpsim_scale_pair *scales, mpsim_number s, int emin,
                                                      unsigned *flags)
{
    mpsim_group_term terms[MPSIM_FUSED_LENGTH];
    mpsim_fused_terms look = mpsim_fused_look(&p->fused, a, b, n, s, emin);
    const int groups = (n + p->group - 1) / p->group, s_e = s.exp > emin ? s.exp : emin;
    int any = s.kind == MPSIM_NUMBER_FINITE && s.hi != 0, largest = p->fused.floor;
    if (any && s_e > largest)
        largest = s_e;
    for (int i = 0; i < groups; i++) {
        const int first = i * p->group, some = n - first < p->group ? n - first : p->group;
        look.nan |= scales[i].nan;
        terms[i] = mpsim_grouped_term(p, a + first, b + first, some, scales[i]);
        any |= terms[i].any;
        largest = terms[i].any && terms[i].e > largest ? terms[i].e : largest;
        for (int k = first; scales[i].s == 0 && k < first + some; k++) /* an infinity times a zero */
            look.nan |= a[k].kind == MPSIM_NUMBER_INF || b[k].kind == MPSIM_NUMBER_INF;
    }
    if (look.nan || (look.infinities[0] && look.infinities[1]))
        return mpsim_number_invalid(flags);
    if (look.infinities[0] || look.infinities[1])
        return mpsim_number_infinity(look.infinities[1]);
    if (!any)
        return mpsim_number_make(0, 0, 0);

    const int unit = largest - p->fused.fraction;
    int64_t total = mpsim_fused_accumulator(&p->fused, s, unit);
    for (int i = 0; i < groups; i++) {
        const int64_t t = terms[i].sum;
        if (terms[i].any) /* zeros have no place, however large their scales */
            total += mpsim_fused_align(p->fused.alignment, t < 0, t < 0 ? (uint64_t)-t : (uint64_t)t,
                                       terms[i].w - unit);
    }
    return mpsim_number_make(total < 0, total < 0 ? (uint64_t)-total : (uint64_t)total, unit);
}
