/* compare.c -- see compare.h. */
#include "compare.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Noise is that of the second half: at first the loss falls faster than it varies. BLOCKS: a part is cut into so many
 * for the error of its mean, since neighbouring steps are not independent. */
enum { BLOCKS = 4 };

/* Two-sided 95 % of Student's t. */
static double student(size_t freedom)
{
    static const double table[] = {HUGE_VAL, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
    return freedom < sizeof table / sizeof table[0] ? table[freedom] : 1.96 + 2.4 / (double)freedom;
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

/* The standard deviation of one value that the steps between neighbours show, by their median, which a trend and single
 * jumps leave alone: of normal numbers the median of |x - y| is 0.954 of it. `of` gives the value at a step. */
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

/* How far the mean gap of a part is known, with 95 %, by those of its blocks. */
static double error_of(const log_runs *r, const run_part *p)
{
    const size_t n = p->to - p->from, blocks = n < BLOCKS ? n : BLOCKS;
    double squares = 0;
    for (size_t k = 0; k < blocks; k++) {
        const double d = mean_gap(r, p->from + k * n / blocks, p->from + (k + 1) * n / blocks) - p->gap;
        squares += d * d;
    }
    return blocks > 1 ? student(blocks - 1) * sqrt(squares / (double)(blocks - 1) / (double)blocks) : (double)INFINITY;
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
    p->error = error_of(r, p);
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
    c->reach = n > 1 ? student(n - 1) * c->spread * sqrt(1 + 1 / (double)n) : (double)NAN;
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
    if (!(fabs(end->gap) > end->error))
        return RUNS_NO_GAP;
    return fabs(end->gap) <= fmax(c->noise[0], c->noise[1]) ? RUNS_SMALL : RUNS_APART;
}

void log_compare(comparison *c, const log_runs *r)
{
    *c = (comparison){.first = first_difference(r)};
    for (size_t k = 0; k < PARTS; k++)
        find_part(&c->parts[k], r, k);
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

const char *run_verdict_name(run_verdict v)
{
    static const char *const names[] = {"the same",
                                        "one is lost",
                                        "too few steps",
                                        "no gap that shows",
                                        "a small gap",
                                        "apart",
                                        "within the spread of the others",
                                        "outside the spread of the others"};
    return names[v];
}
