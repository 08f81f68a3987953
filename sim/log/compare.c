/* compare.c -- see compare.h. */
#include "compare.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Noise is that of the second half: at first the loss falls faster than it varies. */

/* Two-sided 95 % of Student's t; between whole degrees of freedom by a power. */
static double student(double freedom)
{
    static const double table[] = {HUGE_VAL, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
    enum { LAST = sizeof table / sizeof table[0] - 1 };
    if (freedom >= LAST)
        return 1.96 + 2.4 / freedom;
    const size_t i = freedom < 1 ? 1 : (size_t)freedom;
    return freedom < 1 ? table[1] : table[i] * pow(table[i + 1] / table[i], freedom - (double)i);
}

/* A number in units of 2^unit: its squares and sums are numbers, too. */
static double value(const log_runs *r, size_t k, size_t i)
{
    return ldexp(r->run[k].at[i].value, -r->unit);
}

/* A result in such units as it is told; what is beyond the largest number is told as that. */
static void tell(double *x, const log_runs *r)
{
    const double told = ldexp(*x, r->unit);
    *x = isinf(told) && isfinite(*x) ? copysign(DBL_MAX, told) : told;
}

/* What the last run is compared with. */
static double others(const log_runs *r, size_t i)
{
    double sum = 0;
    for (size_t k = 0; k + 1 < r->count; k++)
        sum += value(r, k, i);
    return sum / (double)(r->count - 1);
}

static double last(const log_runs *r, size_t i)
{
    return value(r, r->count - 1, i);
}

static double gap_at(const log_runs *r, size_t i)
{
    return last(r, i) - others(r, i);
}

/* ---- noise ---- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of the moves between neighbours, which a trend and single jumps leave alone, over 0.954: for normal noise that is the
 * standard deviation of one value. `of` gives the value at a step. */
static double noise_of(const log_runs *r, size_t k, double (*of)(const log_runs *, size_t))
{
    enum { MOST = 4096 };
    static double steps[MOST];
    const size_t every = r->n / MOST + 1;
    size_t n = 0;
    for (size_t i = r->n / 2 + 1; i < r->n && n < MOST; i += every)
        steps[n++] = of ? fabs(of(r, i) - of(r, i - 1)) : fabs(value(r, k, i) - value(r, k, i - 1));
    qsort(steps, n, sizeof *steps, by_size);
    return n ? steps[n / 2] / 0.954 : 0;
}

/* The correlation of the moves from step to step: near 1 where both runs see the same batches. */
static double moves_together(const log_runs *r)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = r->n / 2 + 1; i < r->n; i++) {
        const double a = value(r, 0, i) - value(r, 0, i - 1), b = last(r, i) - last(r, i - 1);
        ab += a * b;
        aa += a * a;
        bb += b * b;
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : (double)NAN;
}

/* ---- parts ---- */

static double mean_gap(const log_runs *r, size_t from, size_t to)
{
    double sum = 0;
    for (size_t i = from; i < to; i++)
        sum += gap_at(r, i);
    return sum / (double)(to - from);
}

/* What the gaps of neighbouring steps have in common, in the parts but the first, without their trend. */
typedef struct relation {
    double near;  /* the correlation of a gap with the next one                 */
    double share; /* the variance of the mean of a part, of that of one gap     */
    double error; /* of the mean of a part: its standard deviation              */
} relation;

/* Squares around the mean of a part are too small by that much. */
static double correction(double share)
{
    const double most = 5;
    return fmin(1 / (1 - share), most);
}

/* The variance of the mean of n numbers, of which each goes on from the one before by the factor r, of that of one of them. */
static double share_of_mean(double r, size_t n)
{
    double sum = 1, power = r;
    for (size_t k = 1; k < n && power > 1e-12; k++, power *= r)
        sum += 2 * (1 - (double)k / (double)n) * power;
    return sum / (double)n;
}

/* The correlation of which n numbers around their own mean show `seen`: less, since the mean follows them. */
static double unbiased(double seen, size_t n)
{
    enum { TURNS = 30 };
    const double most = 0.9995;
    double r = fmin(fmax(seen, 0), most);
    for (int i = 0; i < TURNS; i++) {
        const double share = share_of_mean(r, n);
        const double shows = (r * (double)(n - 1) / (double)n - share) / (1 - share);
        r = fmin(fmax(r + (seen - shows) / 2, 0), most);
    }
    return r;
}

/* What is left of values from `from` on without their trend: their slope by least squares. */
static double slope_of(const log_runs *r, size_t from, double (*of)(const log_runs *, size_t))
{
    const double n = (double)(r->n - from), middle = (n - 1) / 2;
    double products = 0;
    for (size_t i = from; i < r->n; i++)
        products += ((double)(i - from) - middle) * of(r, i);
    return n > 1 ? products * 12 / (n * (n * n - 1)) : 0;
}

static void find_relation(relation *x, const log_runs *r, const run_part parts[PARTS])
{
    const size_t length = (r->n - parts[1].from) / (PARTS - 1);
    const double slope = slope_of(r, parts[1].from, gap_at);
    double squares = 0, products = 0;
    for (size_t k = 1; k < PARTS; k++) {
        const double middle = (double)(parts[k].to - parts[k].from - 1) / 2;
        double before = 0;
        for (size_t i = parts[k].from; i < parts[k].to; i++) {
            const double d = gap_at(r, i) - parts[k].gap - slope * ((double)(i - parts[k].from) - middle);
            squares += d * d;
            products += d * before;
            before = d;
        }
    }
    x->near = length > 1 && squares > 0 ? unbiased(products / squares, length) : 0;
    x->share = length > 1 ? share_of_mean(x->near, length) : 1;
    x->error = r->n > parts[1].from ? sqrt(squares / (double)(r->n - parts[1].from) * correction(x->share) * x->share)
                                    : 0;
}

/* How far the mean gap of a part is known, with 95 %: as that of 1 / share independent ones. In the first part gaps vary more, as the
 * loss falls. */
static double error_of(const log_runs *r, const run_part *p, const relation *x)
{
    const size_t n = p->to - p->from;
    double squares = 0;
    for (size_t i = p->from; i < p->to; i++)
        squares += (gap_at(r, i) - p->gap) * (gap_at(r, i) - p->gap);
    const double own = p->from ? 0 : sqrt(squares / (double)n * correction(x->share) * x->share);
    return n < 2 ? (double)INFINITY : student(fmax(1 / x->share - 1, 2)) * fmax(own, x->error);
}

static void find_part(run_part *p, const log_runs *r, size_t k)
{
    *p = (run_part){.from = k * r->n / PARTS, .to = (k + 1) * r->n / PARTS};
    if (p->to == p->from)
        return;
    for (size_t i = p->from; i < p->to; i++) {
        p->a += others(r, i) / (double)(p->to - p->from);
        p->b += last(r, i) / (double)(p->to - p->from);
    }
    p->gap = mean_gap(r, p->from, p->to);
}

/* ---- where they part ---- */

static size_t first_difference(const log_runs *r)
{
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 1; k < r->count; k++)
            if (r->run[k].at[i].value != r->run[0].at[i].value)
                return i;
    return r->n;
}

/* The step behind the last one whose gap is within three times the noise, or of the other sign; only if enough
 * follow. */
static size_t stays_apart(const comparison *c, const log_runs *r)
{
    const double limit = 3 * fmax(c->noise[0], c->noise[r->count - 1]), end = gap_at(r, r->n - 1);
    size_t i = r->n;
    while (i > 0 && fabs(gap_at(r, i - 1)) > limit && gap_at(r, i - 1) * end > 0)
        i--;
    return r->n - i >= ENOUGH_STEPS / 2 ? i : r->n;
}

static run_trend find_trend(const comparison *c)
{
    const run_part *early = &c->parts[1], *late = &c->parts[PARTS - 1];
    const double error = hypot(early->error, late->error);
    const double least = fmax(error, fmax(fabs(early->gap), fabs(late->gap)) / 4);
    return !(fabs(late->gap - early->gap) > least) ? TREND_NONE
           : fabs(late->gap) > fabs(early->gap)    ? TREND_GROWS
                                                   : TREND_SHRINKS;
}

/* ---- several others ---- */

static void find_spread(comparison *c, const log_runs *r)
{
    const run_part *p = &c->parts[PARTS - 1];
    const size_t n = r->count - 1;
    for (size_t k = 0; k < r->count; k++)
        for (size_t i = p->from; i < p->to; i++)
            c->ends[k] += value(r, k, i) / (double)(p->to - p->from);
    for (size_t k = 0; k < n; k++)
        c->middle += c->ends[k] / (double)n;
    for (size_t k = 0; k < n; k++)
        c->spread += (c->ends[k] - c->middle) * (c->ends[k] - c->middle);
    c->spread = n > 1 ? sqrt(c->spread / (double)(n - 1)) : (double)NAN;
    c->reach = n > 1 ? student((double)(n - 1)) * c->spread * sqrt(1 + 1 / (double)n) : (double)NAN;
}

/* ---- the verdict ---- */

/* Whether one run is Inf or NaN at its end and another is not. */
static int is_lost(const log_runs *r)
{
    int lost = 0, well = 0;
    for (size_t k = 0; k < r->count; k++) {
        lost |= r->run[k].all.ending > 1;
        well |= r->run[k].all.ending == 0;
    }
    return lost && well;
}

static double first_run(const log_runs *r, size_t i)
{
    return value(r, 0, i);
}

/* Whether the last run is far from the first to the end, as one that diverges: by three times what the first varies, and longer than
 * neighbouring steps depend on each other. */
static int is_gone(const comparison *c, const log_runs *r)
{
    enum { LAST = 8, TIMES = 3 };
    const size_t half = r->n / 2;
    const double slope = slope_of(r, half, first_run), end = gap_at(r, r->n - 1);
    double mean = 0, squares = 0;
    for (size_t i = half; i < r->n; i++)
        mean += (first_run(r, i) - slope * (double)i) / (double)(r->n - half);
    for (size_t i = half; i < r->n; i++)
        squares += pow(first_run(r, i) - slope * (double)i - mean, 2);
    const double limit = TIMES * fmax(sqrt(squares / (double)(r->n - half)), c->noise[0]);
    for (size_t i = r->n - r->n / LAST; i < r->n; i++)
        if (!(fabs(gap_at(r, i)) > limit) || gap_at(r, i) * end < 0)
            return 0;
    return 1;
}

static run_verdict decide(const comparison *c, const log_runs *r)
{
    const run_part *end = &c->parts[PARTS - 1];
    if (is_lost(r))
        return RUNS_LOST;
    if (c->first == r->n)
        return RUNS_SAME;
    if (r->n < ENOUGH_STEPS)
        return RUNS_FEW;
    if (r->count > 2)
        return fabs(c->ends[r->count - 1] - c->middle) <= c->reach ? RUNS_WITHIN : RUNS_OUTSIDE;
    if (is_gone(c, r))
        return RUNS_APART;
    if (!(fabs(end->gap) > end->error))
        return RUNS_NO_GAP;
    return fabs(end->gap) <= fmax(c->noise[0], c->noise[1]) ? RUNS_SMALL : RUNS_APART;
}

void log_compare(comparison *c, const log_runs *r)
{
    *c = (comparison){.first = first_difference(r)};
    for (size_t k = 0; k < PARTS; k++)
        find_part(&c->parts[k], r, k);
    relation x;
    find_relation(&x, r, c->parts);
    for (size_t k = 0; k < PARTS; k++)
        c->parts[k].error = error_of(r, &c->parts[k], &x);
    c->near = x.near;
    for (size_t k = 0; k < r->count; k++)
        c->noise[k] = noise_of(r, k, NULL);
    c->own = noise_of(r, 0, gap_at);
    c->together = moves_together(r);
    c->apart = stays_apart(c, r);
    c->trend = r->n < ENOUGH_STEPS ? TREND_NONE : find_trend(c);
    find_spread(c, r);
    c->verdict = decide(c, r);
    for (size_t k = 0; k < PARTS; k++) {
        run_part *p = &c->parts[k];
        tell(&p->a, r), tell(&p->b, r), tell(&p->gap, r), tell(&p->error, r);
    }
    for (size_t k = 0; k < r->count; k++)
        tell(&c->noise[k], r), tell(&c->ends[k], r);
    tell(&c->own, r), tell(&c->middle, r), tell(&c->spread, r), tell(&c->reach, r);
}

const char *const log_run_verdicts[] = {"the same",
                                        "one is lost",
                                        "too few steps",
                                        "no gap that shows",
                                        "a small gap",
                                        "apart",
                                        "within the spread of the others",
                                        "outside the spread of the others",
                                        NULL};
