/* series.c -- see series.h. */
#include "series.h"

#include "../array/need.h"

#include <math.h>
#include <stdlib.h>

/* WINDOWS: a series is looked at in so many parts, of LEAST samples at least. BEFORE: samples that a jump is seen from.
 * NOISY: how many times the noise is no noise, of a median; JUMPY: of a single sample. */
enum { WINDOWS = 8, LEAST = 3, BEFORE = 9, NOISY = 6, JUMPY = 10 };

static void add(series *s, uint64_t line, int64_t step, value_kind kind, double value)
{
    if (kind == VALUE_UNSAID)
        return;
    if (kind == VALUE_FINITE) {
        s->since = s->ending = 0;
        need_room(&s->at, s->n, sizeof *s->at);
        s->at[s->n++] = (sample){line, step, value};
        return;
    }
    if (!s->lost++) {
        s->first_lost = line;
        s->as = kind;
    }
    s->groups += !s->ending;
    s->since = s->ending++ ? s->since : line;
    s->last_lost = line;
}

/* Where only messages tell of it, a line with a loss and without one is of a step that went well. */
static void add_norm(series *s, const log_note *n)
{
    if (n->norm == VALUE_UNSAID && n->loss == VALUE_FINITE && s->n == 0) {
        s->others++;
        s->since = s->ending = 0;
    }
    add(s, n->line, n->about, n->norm, n->norm_value);
}

/* The loss of an evaluation counts where there is no other. */
static int has_other_losses(const training_log *l)
{
    for (size_t i = 0; i < l->notes.count; i++)
        if (l->notes.at[i].loss && !l->notes.at[i].aside)
            return 1;
    return 0;
}

/* Of long logs not all notes are kept, but those of what is not finite are counted. */
static void count_all_lost(series *s, const training_log *l, series_of what)
{
    const uint64_t lost[] = {l->lost_lines, l->lost_norms, l->lost_validations};
    if (l->notes.stride < 2 || s->lost >= lost[what])
        return;
    s->lost = lost[what];
    s->ending = s->ending && s->groups == 1 ? s->lost : s->ending;
}

void series_find(series *s, const training_log *l, series_of what)
{
    static const char *const names[] = {"loss", "norm of the gradients", "loss on validation data"};
    const int other = what == SERIES_LOSS && has_other_losses(l);
    *s = (series){.name = names[what]};
    for (size_t i = 0; i < l->notes.count; i++) {
        const log_note *n = &l->notes.at[i];
        if (what == SERIES_LOSS && !(other && n->aside))
            add(s, n->line, n->about, n->loss, n->loss_value);
        else if (what == SERIES_NORM)
            add_norm(s, n);
        else if (what == SERIES_VALIDATION)
            add(s, n->line, n->about, n->validation, n->validation_value);
    }
    count_all_lost(s, l, what);
}

void series_metric(series *s, const training_log *l, unsigned which)
{
    *s = (series){.name = l->metrics.names[which].name + l->metrics.names[which].shown};
    for (size_t i = 0; i < l->metrics.count; i++) {
        const metric_value *v = &l->metrics.at[i];
        if (v->metric == which)
            add(s, v->line, v->step, v->kind, v->value);
    }
}

void series_clear(series *s)
{
    free(s->at);
    s->at = NULL;
    s->n = 0;
}

/* ---- medians ---- */

static int by_value(const void *a, const void *b)
{
    const sample *x = a, *y = b;
    return x->value != y->value ? (x->value > y->value) - (x->value < y->value)
                                : (x->line > y->line) - (x->line < y->line);
}

sample series_median(const series *s, size_t a, size_t b)
{
    enum { MOST = 4096 };
    static sample sorted[MOST];
    const size_t every = (b - a + MOST - 1) / MOST;
    size_t n = 0;
    for (size_t i = a; i < b; i += every)
        sorted[n++] = s->at[i];
    qsort(sorted, n, sizeof *sorted, by_value);
    return sorted[(n - 1) / 2];
}

double series_noise(const series *s)
{
    sample steps[512];
    const size_t every = s->n / 512 + 1;
    size_t n = 0;
    for (size_t i = 1; i < s->n && n < 512; i += every)
        steps[n++] = (sample){.value = fabs(s->at[i].value - s->at[i - 1].value)};
    const series all = {.at = steps, .n = n};
    return n ? series_median(&all, 0, n).value : 0;
}

int series_is_flat(const series *s)
{
    for (size_t i = 1; i < s->n; i++)
        if (s->at[i].value != s->at[0].value)
            return 0;
    return s->n > 0;
}

/* ---- courses ---- */

int series_rises(const series *s, double factor, sample *low, sample *high)
{
    const size_t width = s->n / WINDOWS > LEAST ? s->n / WINDOWS : LEAST;
    if (s->n < 2 * width)
        return 0;
    *high = series_median(s, s->n - width, s->n);
    *low = series_median(s, 0, width);
    for (size_t i = width; i + width <= s->n; i += width) {
        const sample x = series_median(s, i, i + width);
        *low = x.value < low->value ? x : *low;
    }
    return low->value > 0 && high->line > low->line && high->value > factor * low->value &&
           high->value - low->value > NOISY * series_noise(s);
}

series_peaks series_jumps(const series *s, double factor)
{
    const double noise = series_noise(s);
    series_peaks found = {.n = 0};
    for (size_t i = s->n / 10 > LEAST ? s->n / 10 : LEAST; i < s->n; i++) {
        const double usual = series_median(s, i > BEFORE ? i - BEFORE : 0, i).value, x = s->at[i].value;
        if (!(usual > 0) || !(x > factor * usual) || !(x - usual > JUMPY * noise))
            continue;
        if (!found.n++)
            found.first = s->at[i];
        if (found.n == 1 || x > found.largest.value)
            found.largest = s->at[i];
    }
    return found;
}
