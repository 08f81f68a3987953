/* dropout.c -- see dropout.h. */
#include "impl.h"

#include "../record/cells.h"

#include <math.h>

enum { FEWEST = 16 };

/* Whether `got` of n is what a probability leaves. */
static int is_share(double got, double n, double p)
{
    return fabs(got - n * p) <= 5 * sqrt(n * p * (1 - p)) + 1;
}

/* Zeros on one side, which is the other one times 1 / (1 - p). */
static int masked(const verdict_case *c, finding *f, int from)
{
    const measure *m = &c->all;
    const double low = m->scale_min[from], high = m->scale_max[from], scale = low + (high - low) / 2;
    const uint64_t zeros = from ? m->filled : m->zeroed, others = from ? m->zeroed : m->filled;
    const double n = (double)(m->count - m->zero[from]), p = 1 - 1 / scale;
    char a[32], b[32];
    if (!(low > 1.001) || !(low <= high) || m->ratio_min < 0 || others || zeros < 4 || m->ratios < FEWEST ||
        m->broke + m->mended || m->levels[from].n <= MEASURE_LEVELS || !is_share((double)zeros, n, p))
        return 0;
    diff_finding_init(f, VERDICT_DROPOUT);
    f->scale = from ? 1 / scale : scale;
    diff_finding_say(f, "%s is zero in %s of the elements that are not zero in %s, elsewhere it is", from ? "A" : "B",
                     text_share(a, zeros, m->count - m->zero[from]), from ? "B" : "A");
    diff_finding_say(f, " %s times as large: dropout with p = %.3g?", text_number(b, scale), p);
    return 1;
}

/* Zeros at other places on both sides. */
static int masked_twice(const verdict_case *c, finding *f)
{
    const measure *m = &c->all;
    const uint64_t common = m->zero[1] - m->zeroed, kept = m->count - m->zeroed - m->filled - common;
    const double n = (double)(m->count - common), p = (double)(m->zeroed + m->filled) / (2 * n);
    char a[32], b[32];
    if (m->zeroed < 4 || m->filled < 4 || m->differ != m->zeroed + m->filled || kept < FEWEST || p > 0.375 ||
        m->levels[0].n <= MEASURE_LEVELS || !is_share((double)m->zeroed, n, p) || !is_share((double)m->filled, n, p))
        return 0;
    diff_finding_init(f, VERDICT_DROPOUT);
    diff_finding_say(f, "B alone is zero in %s of the elements, A alone in %s, elsewhere they are equal",
                     text_share(a, m->zeroed, m->count), text_share(b, m->filled, m->count));
    diff_finding_say(f, ": dropout with other masks?");
    return 1;
}

int diff_dropout_masks(verdict_case *c, finding *f, trace_error *error)
{
    (void)error;
    return masked(c, f, 0) || masked(c, f, 1) || masked_twice(c, f);
}
