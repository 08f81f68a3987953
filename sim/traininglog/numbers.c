/* numbers.c -- see numbers.h. */
#include "impl.h"

#include <math.h>

/* A loss rises from this factor on, and jumps; where it may be noise, by `question`; from `doubt` on it is a question. A norm jumps
 * from NORM on; a KL counts where it grows by GROWS. SEVERAL: finite norms that make others exceptions. RETURNS: a loss that fell more
 * often from as high as its end varies so. FLAT: lines in which a number of few digits is the same by no chance. */
static const double doubt = 1.1, rise = 1.2, question = 1.5, jump = 1.3;
enum { NORM = 10, GROWS = 10, SEVERAL = 10, FLAT = 10, UNSURE_NOISE = 5, SURE_NOISE = 20, RETURNS = 3 };

/* ---- Inf and NaN ---- */

/* To the end, or in most lines. Beside a scale its overflows explain a norm. */
static int is_gone(const series *s, int beside_scale)
{
    if (!beside_scale)
        return s->ending > 1 || s->lost > s->n + s->others || (s->ending && s->groups == 1);
    return s->apart > s->n + s->others || (s->apart_ending > 1 && s->apart_ending >= s->n / 10);
}

static uint64_t lost_facts(const facts *f)
{
    const series *loss = &f->loss, *norm = &f->norm;
    const int scaled = (f->set & FACT(SCALED)) != 0;
    const uint64_t lines = norm->n + norm->others + norm->lost;
    const int zero = loss->n > 0 && loss->at[loss->n - 1].value == 0; /* it stands for NaN, beside one */
    const int gone = scaled ? loss->ending > 0 : is_gone(loss, 0);
    const int norm_gone = (lines >= FACTS_FEW || zero) && is_gone(norm, scaled);
    const int first = norm->lost && norm->groups == 1 && !norm->ending && norm->n && norm->last_lost < norm->at[0].line;
    const int few_first = (first || f->set & FACT(AT_START)) && lines < SEVERAL;
    return traininglog_if_so(gone, FACT(LOSS_GONE)) |
           traininglog_if_so(loss->apart > 0 || f->l->other_lost, FACT(LOSS_APART)) |
           traininglog_if_so(norm_gone, FACT(NORM_GONE)) | traininglog_if_so(loss->ending > 0, FACT(ENDING)) |
           traininglog_if_so(norm->apart > 0 && !few_first && lines >= FACTS_FEW, FACT(NORM_APART)) |
           traininglog_if_so(norm->apart > 0, FACT(NORM_LOST)) |
           traininglog_if_so(norm->apart_ending > 1 && f->t->last <= 1, FACT(GONE_AT_ONE)) |
           traininglog_if_so(is_gone(&f->validation, 0), FACT(VALIDATION_GONE)) |
           traininglog_if_so(scaled && loss->lost > 0, FACT(LOST_BETWEEN));
}

/* ---- numbers of reinforcement learning ---- */

/* Most of the last half is beyond the limit. */
static int is_beyond(facts *f, const series *s, double limit)
{
    if (s->n < FACTS_FEW)
        return 0;
    f->high = traininglog_series_median(s, s->n / 2, s->n);
    return f->high.value > limit;
}

static int runs_away(facts *f, const series *s, double limit)
{
    traininglog_course_find(&f->of_worst, s, jump);
    f->high = f->of_worst.end;
    return traininglog_course_rises(&f->of_worst, GROWS) && f->high.value > limit;
}

/* The first kind of them that is beyond its limit. */
static uint64_t metric_facts(facts *f)
{
    static const uint64_t found[] = {[METRIC_GAP] = FACT(GAP), [METRIC_KL] = FACT(KL), [METRIC_CLIP] = FACT(CLIP)};
    for (unsigned kind = METRIC_GAP; kind <= METRIC_CLIP; kind++)
        for (unsigned i = 0; i < f->n_more; i++) {
            const series *s = &f->more[i];
            const double limit = f->l->metrics.names[i].limit;
            if (f->l->metrics.names[i].kind != (metric_kind)kind)
                continue;
            const int bad = kind == METRIC_KL ? runs_away(f, s, limit) : is_beyond(f, s, limit);
            if (bad || s->lost > s->n) {
                f->worst = s;
                f->limit = limit;
                return bad ? found[kind] : FACT(METRIC_GONE);
            }
        }
    return 0;
}

static int learns(const facts *f)
{
    for (unsigned i = 0; i < f->n_more; i++)
        if (f->l->metrics.names[i].kind <= METRIC_REWARD)
            return 1;
    return 0;
}

/* ---- the courses of loss and norm ---- */

/* Of two decimals at most a number may stand still by its printing alone. */
static int has_digits(double x)
{
    return fabs(100 * x - round(100 * x)) > 1e-6;
}

/* The same loss in all lines, or norms of 0: where steps overflow the gradients are not 0. */
static int is_flat(const facts *f)
{
    const course *c = &f->of_loss, *norm = &f->of_norm;
    const int zero_norm = norm->flat && norm->first.value == 0 && norm->n >= FACTS_FEW && !f->norm.lost;
    const int scaled = (f->set & FACT(SCALED)) != 0;
    if (zero_norm && !(f->set & FACT(OVERFLOWS)))
        return 1;
    if (!c->flat || c->n < FACTS_FEW || f->set & FACT(LEARNS) || f->loss.lost)
        return 0;
    return has_digits(c->first.value) || c->first.value == 0 || (!scaled && c->n >= FLAT);
}

/* The first loss is that of an untrained model: where the loss goes up from there at the start and comes down by half, what
 * follows is not known; by a quarter, where it went up step by step and the log is known to begin with the run. */
static int is_starting(const facts *f, int rises)
{
    const course *c = &f->of_loss;
    const int known = (f->set & FACT(AT_START)) != 0;
    const double down = c->most.value - c->end.value, up = c->most.value - c->best.value;
    if (!rises) /* never below the first, and down from its height */
        return c->low.line == c->first.line && c->most.value > question * c->high.value;
    return !f->late && !c->learned && c->falls && (known || !c->steep) && down > up / (known && !c->steep ? 4 : 2);
}

static int is_near_zero(const facts *f)
{
    const double near = 0.01;
    return f->loss.n && fabs(traininglog_series_median(&f->loss, 0, f->loss.n).value) < near &&
           f->of_loss.most.value < 10 * near;
}

int traininglog_numbers_rise(const course *c)
{
    return c->open ||
           (c->n > 1 && c->rise > UNSURE_NOISE && c->best.value > 0 && c->end.value > question * c->best.value);
}

static uint64_t course_facts(facts *f)
{
    const course *c = &f->of_loss;
    const int counts = !(f->set & FACT(LEARNS)),
              rises = counts && traininglog_course_rises(c, rise) &&
                      (c->rise > SURE_NOISE || (traininglog_course_rises(c, question) && c->returns <= RETURNS));
    const int sure = c->rise > SURE_NOISE && c->n >= FACTS_MANY && c->stays >= FACTS_ENOUGH &&
                     c->end.value > question * c->best.value;
    const int settled = !counts || c->end.value - c->best.value <= (rise - 1) * fabs(c->best.value) || c->rise < 2;
    const int may_rise = counts &&
                         (traininglog_course_may_rise(c, doubt, rise, question) || traininglog_course_rises(c, rise) ||
                          (c->rise > 2 * NOISY && traininglog_course_rises(c, doubt)) || traininglog_numbers_rise(c));
    const int starting = may_rise && is_starting(f, rises);
    return traininglog_if_so(rises && !starting, FACT(RISES)) | traininglog_if_so(starting, FACT(STARTING)) |
           traininglog_if_so(sure, FACT(SURE_RISE)) | traininglog_if_so(settled, FACT(SETTLED)) |
           traininglog_if_so(may_rise, FACT(MAY_RISE)) |
           traininglog_if_so(counts && (c->zeros > 1 || (c->flat && c->n > 1 && !(f->set & FACT(SCALED)))),
                             FACT(ZEROS)) |
           traininglog_if_so(is_flat(f), FACT(FLAT)) |
           traininglog_if_so(f->of_norm.jumps || (counts && c->jumps), FACT(JUMPS)) |
           traininglog_if_so(!counts && is_near_zero(f), FACT(ZERO_LOSS));
}

/* ---- how much there is ---- */

static uint64_t amount_facts(const facts *f)
{
    size_t most = f->loss.n > f->norm.n ? f->loss.n : f->norm.n;
    for (unsigned i = 0; i < f->n_more; i++)
        most = f->more[i].n > most ? f->more[i].n : most;
    return traininglog_if_so(most < FACTS_FEW, FACT(FEW)) |
           traininglog_if_so(f->loss.n >= FACTS_MANY && f->norm.n >= FACTS_MANY, FACT(MANY)) |
           traininglog_if_so(f->norm.n > 0 && f->loss.n >= FLAT, FACT(NORM_TOLD)) |
           traininglog_if_so(f->t->steps >= FACTS_ENOUGH && f->loss.n >= FACTS_ENOUGH, FACT(LONG));
}

void traininglog_numbers_find(facts *f)
{
    traininglog_series_find(&f->loss, f->l, SERIES_LOSS);
    traininglog_series_find(&f->norm, f->l, SERIES_NORM);
    traininglog_series_find(&f->validation, f->l, SERIES_VALIDATION);
    for (f->n_more = 0; f->n_more < f->l->metrics.n_names; f->n_more++)
        traininglog_series_metric(&f->more[f->n_more], f->l, (unsigned)f->n_more);
    traininglog_course_find(&f->of_loss, &f->loss, jump);
    traininglog_course_find(&f->of_norm, &f->norm, NORM);
    f->set |= traininglog_if_so(learns(f), FACT(LEARNS));
    f->set |= lost_facts(f) | metric_facts(f) | course_facts(f) | amount_facts(f);
}
