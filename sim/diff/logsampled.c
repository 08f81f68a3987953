/* logsampled.c -- relations of log-probabilities that follow from distributions: temperatures, dropped words, rounding, other
 * policies. */
#include "../array/need.h"
#include "../record/cells.h"
#include "logcase.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* ---- words that were dropped ---- */

static int is_mean_one(double mean, double error)
{
    return fabs(mean - 1) <= 3 * error + 1e-6;
}

void diff_log_say_sampler(const log_case *c, finding *f)
{
    const int of_a = is_mean_one(c->ratio, c->ratio_error), of_b = is_mean_one(c->back, c->back_error);
    char a[32], b[32];
    if (of_a != of_b)
        diff_finding_say(f, "; the tokens were drawn from %s: the mean of p(%s) / p(%s) is %s, the other way %s",
                         of_a ? "A" : "B", of_a ? "B" : "A", of_a ? "A" : "B",
                         text_number(a, of_a ? c->ratio : c->back), text_number(b, of_a ? c->back : c->ratio));
}

/* Of tokens that the side with fewer words calls certain: how many, and the other side's least likely. */
static size_t certain(const log_case *c, int which, double *least)
{
    const double *x = which ? c->b : c->a, *other = which ? c->a : c->b;
    size_t n = 0;
    *least = 0;
    for (size_t i = 0; i < c->n; i++)
        if (x[i] > -1e-5 && other[i] < -1e-3) {
            *least = fmin(*least, other[i]);
            n++;
        }
    return n;
}

/* p = P(word) / (share of the words that are kept): no token becomes less likely. */
int diff_log_renormalised(const log_case *c, log_finding *f)
{
    double *d = need_memory(c->n + 1, sizeof *d), least;
    size_t up = 0, down = 0;
    char a[32], b[32];
    for (size_t i = 0; i < c->n; i++)
        d[i] = fabs(c->d[i]);
    const double large = c->n ? diff_log_quantile(d, c->n, 0.95) : 0;
    free(d);
    for (size_t i = 0; i < c->n; i++) {
        up += c->d[i] > large / 10;
        down += c->d[i] < -large / 10;
    }
    const size_t few = up < down ? up : down, many = up < down ? down : up;
    const int which = up > down; /* that has fewer words */
    if (c->n < LOG_FEWEST || few > c->n / 50 || many < c->n / 5 || fabs(c->mean) < 0.003)
        return 0;
    f->verdict = LOG_RENORMALISED;
    diff_finding_say(&f->said, "%s of %s tokens are likelier in ", text_share(a, many, c->n), text_count(b, c->n));
    diff_finding_say(&f->said, "%s, %s less likely: %s is renormalised over the words that it keeps", which ? "B" : "A",
                     text_share(a, few, c->n), which ? "B" : "A");
    const double kept = which ? c->back : c->ratio;
    diff_finding_say(&f->said, ", a share of %s on average", text_number(a, kept));
    if (certain(c, which, &least) >= 4)
        diff_finding_say(&f->said, "; it keeps one word where that word has %s or more: top-p of about %s?",
                         text_number(a, exp(least)), text_number(b, exp(least)));
    return 1;
}

/* ---- temperatures ---- */

/* log(p / (1 - p)) */
static double odds(double log_p)
{
    return log_p - log(-expm1(log_p));
}

/* Ratios of the log odds of B and A, of likely tokens, and of unlikely ones. */
typedef struct odds_ratios {
    double *likely, *unlikely;
    size_t n_likely, n_unlikely;
} odds_ratios;

static void take_odds(odds_ratios *o, const log_case *c)
{
    o->likely = need_memory(c->n + 1, sizeof *o->likely);
    o->unlikely = need_memory(c->n + 1, sizeof *o->unlikely);
    for (size_t i = 0; i < c->n; i++) {
        const double u = odds(c->a[i]), v = odds(c->b[i]);
        if (u > 0.7 && u < 9 && isfinite(v))
            o->likely[o->n_likely++] = v / u;
        else if (u < -0.7 && isfinite(v))
            o->unlikely[o->n_unlikely++] = v / u;
    }
}

/* With p^t / sum p^t the log odds of a token are t times those before or more for t > 1, or less for t < 1, and t times
 * where one other word has the rest. So likely tokens bound t on one side, unlikely ones on the other. */
static int bound_exponent(odds_ratios *o, double *low, double *high)
{
    enum { FEWEST = 12 };
    if (o->n_likely < FEWEST || o->n_unlikely < FEWEST)
        return 0;
    *high = diff_log_quantile(o->likely, o->n_likely, 0.02);
    *low = diff_log_quantile(o->unlikely, o->n_unlikely, 0.98);
    if (*low > 1.03 && *low <= *high * 1.02)
        return *high < 2 * *low;
    *low = diff_log_quantile(o->likely, o->n_likely, 0.98);
    *high = diff_log_quantile(o->unlikely, o->n_unlikely, 0.02);
    return *high < 0.97 && *low <= *high * 1.02 && *high < 2 * *low;
}

int diff_log_tempered(const log_case *c, log_finding *f)
{
    odds_ratios o = {NULL, NULL, 0, 0};
    double low, high;
    char a[32], b[32];
    take_odds(&o, c);
    const int found = bound_exponent(&o, &low, &high);
    free(o.likely);
    free(o.unlikely);
    if (!found)
        return 0;
    const double t = sqrt(low * high);
    f->verdict = LOG_TEMPERED;
    f->said.scale = 1 / t;
    diff_finding_say(&f->said,
                     "the log odds of likely and of unlikely tokens change by one factor, between %s and %s: ",
                     text_number(a, fmin(low, high)), text_number(b, fmax(low, high)));
    diff_finding_say(&f->said, "B is A at a temperature of about %.2g, or A is B at about %.2g", 1 / t, t);
    diff_log_say_sampler(c, &f->said);
    return 1;
}

/* ---- steps ---- */

typedef struct step_size {
    int64_t step;
    double squares;
    size_t n;
} step_size;

/* Mean squares of d by step, in their order: how many steps. */
static size_t by_step(const log_tokens *t, step_size **list)
{
    size_t n = 0;
    *list = NULL;
    for (size_t s = 0; s < t->n_sequences; s++) {
        const log_sequence *q = &t->sequences[s];
        if (n == 0 || (*list)[n - 1].step != q->step) {
            need_room(list, n, sizeof **list);
            (*list)[n++] = (step_size){q->step, 0, 0};
        }
        for (size_t i = q->first; i < q->first + q->n; i++) {
            const double d = t->b[i] - t->a[i];
            (*list)[n - 1].squares += isfinite(d) ? d * d : 0;
            (*list)[n - 1].n += isfinite(d) != 0;
        }
    }
    return n;
}

static double size_of(const step_size *s)
{
    return s->n ? sqrt(s->squares / (double)s->n) : 0;
}

/* The share of pairs of steps of which the later one has the larger d. */
static double rising(const step_size *s, size_t n)
{
    size_t up = 0, all = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++, all++)
            up += size_of(&s[k]) > size_of(&s[i]);
    return (double)up / (double)(all ? all : 1);
}

static int grows_with_steps(const log_case *c, log_finding *f)
{
    enum { FEWEST = 4, MOST = 4096 };
    step_size *s;
    char a[32], b[32];
    const size_t n = by_step(c->t, &s);
    const int found = n >= FEWEST && n <= MOST && rising(s, n) >= 0.85 && size_of(&s[n - 1]) >= 2 * size_of(&s[0]);
    if (found) {
        f->verdict = LOG_STALE;
        diff_finding_say(&f->said, "the root mean square of B - A grows from %s at step %" PRId64,
                         text_number(a, size_of(&s[0])), s[0].step);
        diff_finding_say(&f->said, " to %s at step %" PRId64 ": the sampler's weights fall behind",
                         text_number(b, size_of(&s[n - 1])), s[n - 1].step);
    }
    free(s);
    return found;
}

int diff_log_stale(const log_case *c, log_finding *f)
{
    char a[32], b[32];
    for (int which = 0; which < 2; which++) {
        if (c->t->behind[which] == 0 || c->t->behind[which] < c->t->tensors)
            continue;
        f->verdict = LOG_STALE;
        diff_finding_say(&f->said, "%s is %s one step before, at %s", which ? "B" : "A", which ? "A" : "B",
                         text_count(a, c->t->behind[which]));
        diff_finding_say(&f->said, " of %s tensors: %s is a step behind", text_count(b, c->t->tensors),
                         which ? "B" : "A");
        return 1;
    }
    return grows_with_steps(c, f);
}

/* ---- rounding ---- */

/* Errors h of logits give a log-probability errors of at most 2 h (1 - p). */
static const struct {
    double h;
    const char *words;
} errors[] = {
    {0x1p-12, "what sums of binary32 in another order give"},
    {0x1p-6, "half an ULP of fp16 for logits below 64"},
    {0x1p-3, "half an ULP of bf16 for logits below 64"},
};

static void say_errors(const log_case *c, finding *f)
{
    char a[32];
    diff_finding_say(f, "logits that differ by %s explain every token", text_number(a, c->most_logits));
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (c->most_logits <= errors[i].h) {
            diff_finding_say(f, " (up to %s: %s)", text_number(a, errors[i].h), errors[i].words);
            return;
        }
    diff_finding_say(f, ", more than rounded logits alone: errors of all layers");
}

/* In the first and the last third of sequences. */
static void say_positions(const log_case *c, finding *f)
{
    double squares[3] = {0, 0, 0};
    size_t n[3] = {0, 0, 0};
    for (size_t s = 0; s < c->t->n_sequences; s++)
        for (size_t i = 0; i < c->t->sequences[s].n; i++) {
            const size_t at = c->t->sequences[s].first + i, third = i * 3 / c->t->sequences[s].n;
            const double d = c->t->b[at] - c->t->a[at];
            squares[third] += isfinite(d) ? d * d : 0;
            n[third] += isfinite(d) != 0;
        }
    const double first = sqrt(squares[0] / (double)(n[0] ? n[0] : 1)),
                 last = sqrt(squares[2] / (double)(n[2] ? n[2] : 1));
    if (n[0] < LOG_FEWEST || n[2] < LOG_FEWEST || first == 0)
        return;
    if (last > 2 * first)
        diff_finding_say(f, "; it grows along a sequence, %.2g times: errors of a cache?", last / first);
    else if (last < first / 2)
        diff_finding_say(f,
                         "; it is %.2g times larger at the beginning of a sequence: an older policy drew these tokens?",
                         first / last);
}

int diff_log_rounding(const log_case *c, log_finding *f)
{
    char a[32], b[32];
    if (c->n == 0 || !(c->logits <= errors[2].h) || !is_mean_one(c->ratio, c->ratio_error) ||
        fabs(c->correlation) * sqrt((double)c->n) > 12)
        return 0;
    f->verdict = LOG_ROUNDING;
    say_errors(c, &f->said);
    diff_finding_say(&f->said, "; the mean of p(B) / p(A) is %s, within its standard error of %s",
                     text_number(a, c->ratio), text_number(b, c->ratio_error));
    say_positions(c, &f->said);
    if (c->logits > errors[1].h)
        diff_finding_say(&f->said, ". A policy that one small update changed may be as near");
    return 1;
}

int diff_log_other_policy(const log_case *c, log_finding *f)
{
    char a[32], b[32];
    if (c->n == 0 || c->ratio_error > 0.1 || !is_mean_one(c->ratio, c->ratio_error))
        return 0;
    f->verdict = LOG_OTHER_POLICY;
    diff_finding_say(&f->said,
                     "A's numbers are the probabilities that the tokens were drawn from: the mean of p(B) / p(A) "
                     "is %s, within its standard error of %s",
                     text_number(a, c->ratio), text_number(b, c->ratio_error));
    diff_finding_say(&f->said, "; %s", c->logits <= errors[2].h ? "B - A goes along with A" : "rounding explains less");
    diff_finding_say(&f->said, " (correlation of B - A and A: %.2f): a stale policy, or weights in fewer bits?",
                     c->correlation);
    say_positions(c, &f->said);
    return 1;
}
