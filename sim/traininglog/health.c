/* health.c -- see health.h. */
#include "health.h"

/* A loss rises, and jumps, from this factor on; a norm jumps from NORM on. A KL counts where it grows by GROWS, too.
 * LEAST: values of a metric that is judged. SEVERAL: finite norms that make the others exceptions. */
static const double rise = 1.2, jump = 1.3;
enum { NORM = 10, GROWS = 10, LEAST = 4, SEVERAL = 10 };

void health_find(health *h, const training_log *l)
{
    *h = (health){.metrics = &l->metrics};
    series_find(&h->loss, l, SERIES_LOSS);
    series_find(&h->norm, l, SERIES_NORM);
    series_find(&h->validation, l, SERIES_VALIDATION);
    for (unsigned i = 0; i < l->metrics.n_names; i++) {
        series_metric(&h->more[i], l, i);
        h->learns |= l->metrics.names[i].kind <= METRIC_REWARD;
    }
}

void health_clear(health *h)
{
    series_clear(&h->loss);
    series_clear(&h->norm);
    series_clear(&h->validation);
    for (unsigned i = 0; i < h->metrics->n_names; i++)
        series_clear(&h->more[i]);
}

/* ---- Inf and NaN ---- */

/* To the end, or in most lines. */
static int is_lost(const series *s)
{
    return s->ending > 1 || s->lost > s->n + s->others || (s->ending && s->groups == 1);
}

static health_finding by_lost(health *h)
{
    if (is_lost(&h->loss) || is_lost(&h->norm))
        return HEALTH_LOST;
    const uint64_t lines = h->norm.n + h->norm.others;
    if (h->loss.lost || (h->norm.lost && lines >= SEVERAL))
        return HEALTH_ISOLATED;
    if (h->norm.lost)
        return HEALTH_UNKNOWN;
    return is_lost(&h->validation) ? HEALTH_VALIDATION : HEALTH_WELL;
}

/* ---- numbers of reinforcement learning ---- */

/* Most of the last half is beyond the limit. */
static int is_beyond(const series *s, double limit, sample *middle)
{
    if (s->n < LEAST)
        return 0;
    *middle = series_median(s, s->n / 2, s->n);
    return middle->value > limit;
}

static health_finding by_metrics(health *h)
{
    static const health_finding found[] = {
        [METRIC_GAP] = HEALTH_GAP, [METRIC_KL] = HEALTH_KL, [METRIC_CLIP] = HEALTH_CLIP};
    for (unsigned kind = METRIC_GAP; kind <= METRIC_CLIP; kind++)
        for (unsigned i = 0; i < h->metrics->n_names; i++) {
            const series *s = &h->more[i];
            if (h->metrics->names[i].kind != (metric_kind)kind)
                continue;
            const double limit = h->metrics->names[i].limit;
            const int bad = kind == METRIC_KL ? series_rises(s, GROWS, &h->low, &h->high) && h->high.value > limit
                                              : is_beyond(s, limit, &h->high);
            if (bad || s->lost > s->n) {
                h->worst = s;
                h->limit = limit;
                return bad ? found[kind] : HEALTH_METRIC_LOST;
            }
        }
    return HEALTH_WELL;
}

/* ---- the course of the loss ---- */

static int all_are_zero(const series *s)
{
    return series_is_flat(s) && s->at[0].value == 0;
}

int health_is_flat(const health *h)
{
    const int flat = h->loss.n >= HEALTH_FLAT && series_is_flat(&h->loss) && !h->learns;
    return flat || (h->norm.n >= HEALTH_FLAT && all_are_zero(&h->norm) && !h->norm.lost);
}

static health_finding by_course(health *h)
{
    if (health_is_flat(h))
        return HEALTH_FLAT_LOSS;
    h->norm_jumps = series_jumps(&h->norm, NORM);
    if (!h->learns && series_rises(&h->loss, rise, &h->low, &h->high))
        return HEALTH_RISES;
    if (!h->learns)
        h->loss_jumps = series_jumps(&h->loss, jump);
    if (h->norm_jumps.n || h->loss_jumps.n)
        return HEALTH_JUMPS;
    size_t most = h->loss.n > h->norm.n ? h->loss.n : h->norm.n;
    for (unsigned i = 0; i < h->metrics->n_names; i++)
        most = h->more[i].n > most ? h->more[i].n : most;
    return most >= HEALTH_ENOUGH ? HEALTH_WELL : HEALTH_UNKNOWN;
}

health_finding health_judge(health *h)
{
    static health_finding (*const rules[])(health *) = {by_lost, by_metrics, by_course};
    health_finding found = HEALTH_WELL;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && found == HEALTH_WELL; i++)
        found = rules[i](h);
    return h->found = found;
}
