/* facts.c -- see facts.h. */
#include "facts.h"

#include <math.h>

/* EARLY: steps that are the beginning of a run, where it has ten times as many. */
enum { EARLY = 1000, EARLY_ALWAYS = 100 };

/* A loss counts as rising from its smallest by this factor. */
static const double rise = 1.2;

const episode *facts_first(const facts *f)
{
    return f->e.count ? &f->e.at[0] : NULL;
}

const episode *facts_last(const facts *f)
{
    return f->e.count ? &f->e.at[f->e.count - 1] : NULL;
}

static int is_early(const log_place *p)
{
    return p->step >= 0 && (p->epoch < 0 || p->epoch <= 1) && p->step <= EARLY &&
           (p->of < 0 || p->per_epoch || p->step <= EARLY_ALWAYS || p->step <= p->of / 10);
}

/* A place that is told behind the overflow says only that it was not later. */
int facts_late(const log_place *p, uint64_t seq)
{
    return p->seq <= seq && (p->epoch > 1 || (p->step >= 0 && !is_early(p)));
}

static void find_notes(facts *f)
{
    f->declared = (double)NAN;
    for (size_t i = 0; i < f->l->notes.count; i++) {
        const log_note *n = &f->l->notes.at[i];
        if (n->marks & (NOTE_RESUMED | NOTE_LOADED))
            f->resumed = n;
        if (n->marks & NOTE_ENDED)
            f->ended = n;
        if (n->skipped >= 0 && n->step > 0)
            f->total = n;
        if (!isnan(n->starts) && isnan(f->declared))
            f->declared = n->starts;
    }
}

/* Whether a first scale is one that a run begins with. */
static int is_start(const facts *f, const episode *first)
{
    return isnan(f->declared) ? log_dialect_starts(f->dialect, first->before) : first->before == f->declared;
}

/* Episodes of the search, of growth, of neither. */
static void sort_episodes(facts *f)
{
    int searching = f->initial || f->early;
    for (size_t i = 0; i < f->e.count; i++) {
        const episode *e = &f->e.at[i];
        const int above = i == 0 && isnan(f->declared) && log_dialect_grown(f->dialect, e->before); /* it has grown */
        if (searching && !facts_late(&e->first, e->seq) && !e->grown && e->clean <= EARLY_ALWAYS &&
            (i == 0 || is_early(&e->first))) {
            f->search++;
            continue;
        }
        searching = 0;
        if (i == 0 && f->begins && e->n <= FACTS_DEEP && !above)
            continue; /* what was before is not known */
        if ((e->grown || above) && e->n <= FACTS_DEEP && !e->reset) {
            f->probes++;
            f->highest = fmax(f->highest, e->before);
        } else {
            f->spikes++;
            if (!f->spike || e->n > f->spike->n)
                f->spike = e;
        }
    }
}

void facts_find(facts *f, const training_log *l)
{
    *f = (facts){.l = l,
                 .t = &l->recorded,
                 .by_sum = l->count && (l->entries[0].said.taken_only || l->entries[0].said.dialect == LOG_FAIRSEQ),
                 .dialect = l->count ? l->entries[0].said.dialect : LOG_VALUES};
    log_episodes_find(&f->e, l);
    f->loss = log_loss_course(f->l);
    f->lost_apart = log_lost_apart(f->l);
    f->norm = log_norm_course(f->l);
    health_find(&f->health, l);
    f->found = health_judge(&f->health);
    find_notes(f);
    if (f->e.count) {
        const episode *first = &f->e.at[0], *last = &f->e.at[f->e.count - 1];
        const uint64_t enough = last->n < FACTS_ENOUGH ? last->n : FACTS_ENOUGH;
        f->late = facts_late(&first->first, first->seq);
        f->early = is_early(&first->first);
        f->begins = first->clean <= (uint64_t)f->t->unknown_steps;
        f->initial = first->clean == 0 && !first->grown && is_start(f, first);
        f->ends = f->e.tail_steps >= enough || (f->e.tail_lines > 1 && f->e.tail_lines >= enough);
    }
    sort_episodes(f);
}

void facts_clear(facts *f)
{
    log_episodes_clear(&f->e);
    health_clear(&f->health);
}

int facts_loss_rises(const facts *f)
{
    return f->loss.n > 1 && f->loss.best > 0 && f->loss.last > rise * f->loss.best &&
           f->loss.last_seq > f->loss.best_seq;
}

int facts_skips_most(const facts *f)
{
    return f->total && f->total->step > EARLY_ALWAYS && f->total->skipped > f->total->step / 2;
}

int facts_constant(const facts *f)
{
    return f->t->steps > 0 && f->t->least == f->t->most;
}

int facts_scaleless(const facts *f)
{
    if (f->t->steps == 0)
        return f->l->total == 0 && (!f->total || f->total->skipped == 0);
    return facts_constant(f) && f->t->last == 1;
}

int facts_isolated(const facts *f)
{
    enum { RARE = 10 };
    const track *t = f->t;
    if (!facts_constant(f) || f->l->lost_since || facts_loss_rises(f) || t->taken || t->stop >= 0 ||
        f->e.tail_steps == 0)
        return 0;
    for (size_t i = 0; i < f->e.count; i++)
        if (f->e.at[i].n > FACTS_DEEP)
            return 0;
    return t->overflows > 0 && t->steps - t->overflows >= RARE * t->overflows;
}

int facts_stuck(const facts *f)
{
    const uint64_t clean = f->e.count ? f->e.tail_steps : f->t->steps;
    return f->t->last > 0 && f->t->last < FACTS_TINY && clean >= FACTS_MANY && !f->by_sum && f->loss.n >= FACTS_MANY &&
           !f->l->lost_since && !facts_loss_rises(f) && f->norm.lost == 0;
}
