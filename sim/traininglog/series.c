/* series.c -- see series.h. */
#include "series.h"

#include "../array/need.h"

#include <stdlib.h>

/* `apart`: no overflow is told where the value is not finite. */
static void add_lost(series *s, uint64_t line, value_kind kind, int apart)
{
    if (!s->lost++) {
        s->first_lost = line;
        s->as = kind;
    }
    s->groups += !s->ending;
    s->since = s->ending++ ? s->since : line;
    s->last_lost = line;
    if (!apart)
        return;
    s->apart_first = s->apart++ ? s->apart_first : line;
    s->apart_ending++;
}

static void add(series *s, uint64_t line, int64_t step, value_kind kind, double value, int apart)
{
    if (kind == VALUE_FINITE) {
        s->since = s->ending = s->apart_ending = 0;
        need_room(&s->at, s->n, sizeof *s->at);
        s->at[s->n++] = (sample){line, step, value};
    } else if (kind != VALUE_UNSAID) {
        add_lost(s, line, kind, apart);
    }
}

/* Whether an overflow is told by the line, or by one close to it; *at: the span to look from. */
static int is_by_an_overflow(const training_log *l, size_t *at, uint64_t seq)
{
    enum { CLOSE = 3 };
    const track *t = &l->recorded;
    while (*at < t->count && t->spans[*at].last_seq + CLOSE < seq)
        ++*at;
    for (size_t i = *at; i < t->count && t->spans[i].seq <= seq + CLOSE; i++)
        if (t->spans[i].events & MPSIM_SCALER_OVERFLOW)
            return 1;
    return 0;
}

/* Where only messages tell of it, a line with a loss and without one is of a step that went well. */
static void add_norm(series *s, const log_note *n, int apart)
{
    if (n->norm == VALUE_UNSAID && n->loss == VALUE_FINITE && s->n == 0) {
        s->others++;
        s->since = s->ending = s->apart_ending = 0;
    }
    add(s, n->line, n->about, n->norm, n->norm_value, apart);
}

/* The loss of an evaluation counts where there is no other. */
static int has_other_losses(const training_log *l)
{
    for (size_t i = 0; i < l->notes.count; i++)
        if (l->notes.at[i].loss && !l->notes.at[i].aside)
            return 1;
    return 0;
}

/* "validation loss at iteration 200 | lm loss value: 6.5": the loss of such a line is that on validation data. */
static void add_validation(series *s, const log_note *n, int other, int apart)
{
    const int aside = other && n->aside && n->validation == VALUE_UNSAID;
    add(s, n->line, n->about, aside ? n->loss : n->validation, aside ? n->loss_value : n->validation_value, apart);
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

void traininglog_series_find(series *s, const training_log *l, series_of what)
{
    static const char *const names[] = {"loss", "norm of the gradients", "loss on validation data"};
    const int other = what != SERIES_NORM && has_other_losses(l);
    size_t at = 0;
    *s = (series){.name = names[what]};
    for (size_t i = 0; i < l->notes.count; i++) {
        const log_note *n = &l->notes.at[i];
        const int apart = !is_by_an_overflow(l, &at, n->seq);
        if (what == SERIES_LOSS && !(other && n->aside))
            add(s, n->line, n->about, n->loss, n->loss_value, apart);
        else if (what == SERIES_NORM)
            add_norm(s, n, apart);
        else if (what == SERIES_VALIDATION)
            add_validation(s, n, other, apart);
    }
    count_all_lost(s, l, what);
}

void traininglog_series_metric(series *s, const training_log *l, unsigned which)
{
    *s = (series){.name = l->metrics.names[which].name + l->metrics.names[which].shown};
    for (size_t i = 0; i < l->metrics.count; i++) {
        const metric_value *v = &l->metrics.at[i];
        if (v->metric == which)
            add(s, v->line, v->step, v->kind, v->value, 1);
    }
}

void traininglog_series_clear(series *s)
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

sample traininglog_series_median(const series *s, size_t a, size_t b)
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
