/* logjudge.c -- see logjudge.h.
 *
 * A verdict names a relation that nearly all tokens show. The mean of p(B) / p(A) over tokens that were drawn from A is 1,
 * whatever B is: a mean that is not 1 shows that A's numbers are not the probabilities that the tokens were drawn from. */
#include "logjudge.h"

#include "../array/need.h"
#include "../record/cells.h"
#include "logcase.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define V(NAME, word, title) word,
const char *const diff_log_words[] = {LOG_VERDICT_LIST(V) NULL};
#undef V

#define V(NAME, word, title) title,
const char *const diff_log_titles[LOG_VERDICTS] = {LOG_VERDICT_LIST(V)};
#undef V

static log_judge *const judges[] = {diff_log_negated, diff_log_probabilities, diff_log_no_logarithms,
                                    diff_log_scaled,  diff_log_offset,        diff_log_shifted,
                                    diff_log_masked,  diff_log_renormalised,  diff_log_tempered,
                                    diff_log_stale,   diff_log_rounding,      diff_log_other_policy};

/* ---- tokens ---- */

static size_t without_padding(const double *a, const double *b, size_t n)
{
    while (n && ((a[n - 1] == 0 && b[n - 1] == 0) || (!isfinite(a[n - 1]) && !isfinite(b[n - 1]))))
        n--;
    return n;
}

void diff_log_add(log_tokens *t, int64_t step, const double *a, const double *b, size_t n)
{
    n = without_padding(a, b, n);
    n = n < LOG_MOST - t->n ? n : LOG_MOST - t->n;
    if (n == 0)
        return;
    need_room(&t->sequences, t->n_sequences, sizeof *t->sequences);
    t->sequences[t->n_sequences++] = (log_sequence){t->n, n, step};
    for (size_t i = 0; i < n; i++) {
        need_room(&t->a, t->n, sizeof *t->a);
        need_room(&t->b, t->n, sizeof *t->b);
        t->a[t->n] = a[i];
        t->b[t->n++] = b[i];
    }
}

void diff_log_clear(log_tokens *t)
{
    free(t->a);
    free(t->b);
    free(t->sequences);
    memset(t, 0, sizeof *t);
}

/* ---- a case ---- */

/* Mean of exp(sign d), and twice the standard error that independent tokens would have: tokens of a sequence are not. */
static void mean_ratio(const log_case *c, double sign, double *mean, double *error)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < c->n; i++) {
        const double r = expm1(sign * c->d[i]);
        sum += r;
        squares += r * r;
    }
    const double n = (double)c->n;
    *mean = 1 + sum / n;
    *error = 2 * sqrt(fmax(0, squares / n - sum / n * (sum / n)) / n);
}

static void add_moments(log_case *c)
{
    const double n = (double)c->n;
    double squares = 0, dd = 0, da = 0, aa = 0, sum_a = 0;
    for (size_t i = 0; i < c->n; i++) {
        const double free = fmax(1e-3, -expm1(fmin(0, fmax(c->a[i], c->b[i])))), z = c->d[i] / free;
        c->size[0] += fabs(c->a[i]) / n;
        c->size[1] += fabs(c->b[i]) / n;
        c->apart += fabs(c->d[i]) / n;
        c->mean += c->d[i] / n;
        squares += z * z / n;
        dd += c->d[i] * c->d[i] / n;
        da += c->d[i] * c->a[i] / n;
        aa += c->a[i] * c->a[i] / n;
        sum_a += c->a[i] / n;
        c->most_logits = fmax(c->most_logits, fabs(z) / 2);
    }
    c->rms = sqrt(dd);
    c->logits = sqrt(squares);
    c->correlation = (da - c->mean * sum_a) / sqrt((dd - c->mean * c->mean) * (aa - sum_a * sum_a));
    mean_ratio(c, 1, &c->ratio, &c->ratio_error);
    mean_ratio(c, -1, &c->back, &c->back_error);
}

static void case_open(log_case *c, const log_tokens *t)
{
    *c = (log_case){.t = t};
    c->a = need_memory(t->n, sizeof *c->a);
    c->b = need_memory(t->n, sizeof *c->b);
    c->d = need_memory(t->n, sizeof *c->d);
    for (size_t i = 0; i < t->n; i++) {
        const int x = isfinite(t->a[i]), y = isfinite(t->b[i]);
        c->one_sided += x != y;
        if (!x || !y)
            continue;
        c->a[c->n] = t->a[i];
        c->b[c->n] = t->b[i];
        c->d[c->n++] = t->b[i] - t->a[i];
    }
    if (c->n)
        add_moments(c);
}

static void case_close(log_case *c)
{
    free(c->a);
    free(c->b);
    free(c->d);
}

/* ---- judging ---- */

static void judge_unexplained(const log_case *c, log_finding *f)
{
    char a[32], b[32];
    f->verdict = LOG_UNEXPLAINED;
    diff_finding_say(&f->said, "the mean of p(B) / p(A) is %s, with a standard error of %s", text_number(a, c->ratio),
                     text_number(b, c->ratio_error));
    if (!(fabs(c->ratio - 1) > 3 * c->ratio_error))
        return;
    diff_finding_say(&f->said, ": A's numbers are not the probabilities that the tokens were drawn from");
    if (c->ratio < 1)
        diff_finding_say(&f->said, "; a sampler that renormalises after top-p or top-k keeps such a share?");
}

static void judge_case(log_case *c, log_finding *f)
{
    char a[32];
    if (c->rms == 0 && c->one_sided == 0) {
        f->verdict = LOG_EQUAL;
        return;
    }
    if (c->t->n < LOG_FEWEST) {
        f->verdict = LOG_TOO_FEW;
        diff_finding_say(&f->said, "%s of %d that a verdict needs", text_count(a, c->t->n), LOG_FEWEST);
        return;
    }
    for (size_t i = 0; i < sizeof judges / sizeof judges[0]; i++)
        if (judges[i](c, f))
            return;
    judge_unexplained(c, f);
}

void diff_log_judge(log_finding *f, const log_tokens *t)
{
    log_case c;
    memset(f, 0, sizeof *f);
    diff_finding_init(&f->said, VERDICT_CLOSE);
    case_open(&c, t);
    judge_case(&c, f);
    case_close(&c);
}
