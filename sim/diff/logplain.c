/* logplain.c -- relations of log-probabilities that hold for each token by itself, but for the noise of two engines. */
#include "../array/need.h"
#include "../record/cells.h"
#include "logcase.h"

#include <math.h>
#include <stdlib.h>

#define LEFT 0.05 /* of what is to be explained, at most */

/* ---- signs and exponents ---- */

int diff_log_negated(const log_case *c, log_finding *f)
{
    double sum = 0;
    char a[32];
    for (size_t i = 0; i < c->n; i++)
        sum += fabs(c->a[i] + c->b[i]) / (double)c->n;
    if (c->n < LOG_FEWEST || c->apart == 0 || !(sum <= LEFT * c->apart))
        return 0;
    f->verdict = LOG_NEGATED;
    f->said.scale = -1;
    diff_finding_say(&f->said, "B = -A but for %s on average: one side has negative log-probabilities (losses)",
                     text_number(a, sum));
    return 1;
}

int diff_log_probabilities(const log_case *c, log_finding *f)
{
    for (int which = 0; which < 2; which++) {
        const double *p = which ? c->b : c->a, *log = which ? c->a : c->b;
        double sum = 0, p_sum = 0;
        size_t logs = 0;
        for (size_t i = 0; i < c->n; i++) {
            sum += fabs(p[i] - exp(log[i]));
            p_sum += fabs(p[i]);
            logs += p[i] >= 0 && p[i] <= 1 && log[i] <= 0;
        }
        if (c->n < LOG_FEWEST || logs < c->n || !(sum <= LEFT * p_sum))
            continue;
        f->verdict = LOG_PROBABILITIES;
        diff_finding_say(&f->said, "%s", which ? "A is the logarithm of B" : "B is the logarithm of A");
        return 1;
    }
    return 0;
}

int diff_log_no_logarithms(const log_case *c, log_finding *f)
{
    size_t above[2] = {0, 0};
    char a[32], b[32];
    for (size_t i = 0; i < c->n; i++) {
        above[0] += c->a[i] > 0.01;
        above[1] += c->b[i] > 0.01;
    }
    if (above[0] + above[1] <= c->n / 100)
        return 0;
    f->verdict = LOG_NO_LOGARITHMS;
    diff_finding_say(&f->said, "%s numbers of A and %s of B are above 0", text_count(a, above[0]),
                     text_count(b, above[1]));
    return 1;
}

/* ---- a ratio, a difference ---- */

static const struct {
    double ratio;
    const char *words;
} bases[] = {
    {1.4426950408889634, "B's are of base 2, A's of base e"},
    {0.6931471805599453, "A's are of base 2, B's of base e"},
    {0.4342944819032518, "B's are of base 10, A's of base e"},
    {2.302585092994046, "A's are of base 10, B's of base e"},
};

static void say_scale(log_finding *f, double scale, double left)
{
    char a[32], b[32];
    f->verdict = LOG_SCALED;
    f->said.scale = scale;
    diff_finding_say(&f->said, "B = A times %s, but for %s of B (root mean squares)", text_number(a, scale),
                     text_number(b, left));
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++)
        if (fabs(scale / bases[i].ratio - 1) < 0.01) {
            f->verdict = LOG_BASE;
            diff_finding_say(&f->said, ": %s", bases[i].words);
        }
}

/* Constants have any ratio. */
int diff_log_scaled(const log_case *c, log_finding *f)
{
    double ab = 0, aa = 0, bb = 0;
    const double n = (double)c->n;
    for (size_t i = 0; i < c->n; i++) {
        ab += c->a[i] * c->b[i];
        aa += c->a[i] * c->a[i];
        bb += c->b[i] * c->b[i];
    }
    const double scale = ab / aa, left = sqrt(fmax(0, 1 - ab * ab / (aa * bb)));
    if (c->n < LOG_FEWEST || bb == 0 || aa - n * c->size[0] * c->size[0] < aa / 1000 || !(left <= LEFT) ||
        !(fabs(scale - 1) > 2 * LEFT) || !(left * sqrt(bb / n) <= 0.25 * c->rms))
        return 0;
    say_scale(f, scale, left);
    return 1;
}

int diff_log_offset(const log_case *c, log_finding *f)
{
    double *d = need_memory(c->n + 1, sizeof *d);
    char a[32], b[32];
    for (size_t i = 0; i < c->n; i++)
        d[i] = c->d[i];
    const double middle = c->n ? diff_log_quantile(d, c->n, 0.5) : 0, low = c->n ? diff_log_quantile(d, c->n, 0.05) : 0,
                 high = c->n ? diff_log_quantile(d, c->n, 0.95) : 0;
    free(d);
    if (c->n < LOG_FEWEST || fabs(middle) < 1e-6 || !(high - low <= fabs(middle) / 4))
        return 0;
    f->verdict = LOG_OFFSET;
    diff_finding_say(&f->said, "B = A %s %s: nine of ten tokens within %s of each other", middle > 0 ? "+" : "-",
                     text_number(a, fabs(middle)), text_number(b, high - low));
    diff_finding_say(&f->said, ": one side does not sum over all words?");
    return 1;
}

/* ---- places ---- */

/* Mean |b[i + shift] - a[i]| in sequences, and mean |b[i] - a[i]| of the same tokens. */
static size_t apart_at(const log_tokens *t, int shift, double *shifted, double *here)
{
    size_t n = 0;
    *shifted = *here = 0;
    for (size_t s = 0; s < t->n_sequences; s++)
        for (size_t i = shift < 0; i + (size_t)(shift > 0) < t->sequences[s].n; i++) {
            const size_t at = t->sequences[s].first + i, to = shift < 0 ? at - 1 : at + 1;
            if (!isfinite(t->a[at]) || !isfinite(t->b[to]) || !isfinite(t->b[at]))
                continue;
            *shifted += fabs(t->b[to] - t->a[at]);
            *here += fabs(t->b[at] - t->a[at]);
            n++;
        }
    *shifted /= (double)(n ? n : 1);
    *here /= (double)(n ? n : 1);
    return n;
}

int diff_log_shifted(const log_case *c, log_finding *f)
{
    double shifted, here;
    char a[32], b[32];
    for (int shift = -1; shift < 2; shift += 2) {
        if (apart_at(c->t, shift, &shifted, &here) < LOG_FEWEST / 2 || here == 0 || !(shifted <= here / 4))
            continue;
        f->verdict = LOG_SHIFTED;
        f->said.shift = shift;
        diff_finding_say(&f->said,
                         "B has A's numbers one token %s: the mean magnitude of B - A is %s there, and %s in place",
                         shift > 0 ? "later" : "earlier", text_number(a, shifted), text_number(b, here));
        return 1;
    }
    return 0;
}

/* ---- constants ---- */

/* The number that a side has most often, as long as the other side has another one there. */
static double most_often(const log_case *c, int which, size_t *times)
{
    const double *x = which ? c->b : c->a;
    double *sorted = need_memory(c->n + 1, sizeof *sorted), found = NAN;
    size_t n = 0;
    *times = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->d[i] != 0)
            sorted[n++] = x[i];
    if (n)
        (void)diff_log_quantile(sorted, n, 0);
    for (size_t i = 0, first = 0; i < n; i++) {
        first = sorted[i] == sorted[first] ? first : i;
        if (i - first + 1 > *times) {
            *times = i - first + 1;
            found = sorted[i];
        }
    }
    free(sorted);
    return found;
}

/* Of the tokens with the constant: how many the other side calls unlikely; the rest's mean |d|. */
static size_t look_at_others(const log_case *c, int which, double constant, double *rest)
{
    const double *x = which ? c->b : c->a, *other = which ? c->a : c->b;
    size_t unlikely = 0, n = 0;
    *rest = 0;
    for (size_t i = 0; i < c->n; i++)
        if (x[i] == constant && c->d[i] != 0)
            unlikely += other[i] < -0.7;
        else {
            *rest += fabs(c->d[i]);
            n++;
        }
    *rest /= (double)(n ? n : 1);
    return unlikely;
}

static int masked_by_constant(const log_case *c, log_finding *f, int which)
{
    size_t times;
    double rest;
    char a[32], b[32];
    const double constant = most_often(c, which, &times);
    if (times < 4 || times < c->n / 50)
        return 0;
    const size_t unlikely = look_at_others(c, which, constant, &rest);
    if (unlikely < times / 10 + 2 || !(rest <= c->apart / 4))
        return 0;
    f->verdict = LOG_MASKED;
    diff_finding_say(&f->said, "%s has %s at %s tokens", which ? "B" : "A", text_number(a, constant),
                     text_count(b, times));
    diff_finding_say(&f->said, ", %s of them unlikely on the other side; elsewhere the mean magnitude of B - A is %s",
                     text_count(a, unlikely), text_number(b, rest));
    return 1;
}

int diff_log_masked(const log_case *c, log_finding *f)
{
    char a[32];
    if (masked_by_constant(c, f, 0) || masked_by_constant(c, f, 1))
        return 1;
    if (c->one_sided < 4 || c->one_sided < c->t->n / 100)
        return 0;
    f->verdict = LOG_MASKED;
    diff_finding_say(&f->said,
                     "%s tokens have a finite number on one side only: a mask, or words that top-p or top-k "
                     "dropped on one side",
                     text_count(a, c->one_sided));
    return 1;
}
