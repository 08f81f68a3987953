/* facts.c -- the facts of a log about its loss scale; see facts.h. */
#include "facts.h"

#include "impl.h"

#include <math.h>

/* EARLY: steps that are the beginning of a run, where it has ten times as many. RARE: clean steps for each overflow that is
 * an exception. COLLAPSE: overflows in a row, late, that no search explains; ENDLESS: at any time after a clean step.
 * MUCH_LOWER: a fall of the scale, in spite of growth, that a steady run does not have. */
enum { EARLY = 1000, EARLY_ALWAYS = 100, RARE = 10, COLLAPSE = 4, ENDLESS = 10, MUCH_LOWER = 32 };

static const episode *first_of(const facts *f)
{
    return f->e.count ? &f->e.at[0] : NULL;
}

const episode *traininglog_facts_last(const facts *f)
{
    return f->e.count ? &f->e.at[f->e.count - 1] : NULL;
}

/* ---- places ---- */

static int is_early(const log_place *p)
{
    return p->step >= 0 && (p->epoch < 0 || p->epoch <= 1) && p->step <= EARLY &&
           (p->of < 0 || p->per_epoch || p->step <= EARLY_ALWAYS || p->step <= p->of / 10);
}

/* A place that is told behind the overflow says only that it was not later. */
static int is_late(const log_place *p, uint64_t seq)
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
        if (n->marks & NOTE_LOST_MEAN)
            f->lost_mean = n;
        if (n->skipped >= 0 && n->step > 0)
            f->total = n;
        if (!isnan(n->starts) && isnan(f->declared))
            f->declared = n->starts;
    }
}

/* Whether a first scale is one that a run begins with. */
static int is_start(const facts *f, const episode *first)
{
    return isnan(f->declared) ? traininglog_dialect_starts(f->dialect, first->before) : first->before == f->declared;
}

/* Whether the first line that tells a place is at the beginning of the run. */
static int begins_early(const facts *f)
{
    for (size_t i = 0; i < f->l->notes.count; i++)
        if (f->l->notes.at[i].step >= 0) {
            const log_place p = traininglog_place_at(f->l, f->e.whole, f->l->notes.at[i].seq);
            return p.step >= 0 && p.step <= EARLY_ALWAYS && p.epoch <= 1;
        }
    return f->initial || f->early;
}

/* ---- overflows ---- */

typedef struct sorted {
    uint64_t search, probes;
    double highest; /* scale at which a growth led to one */
    int begins;     /* the log begins with its first overflows */
} sorted;

/* Episodes of the search, of growth, of neither; of the first it may not be known. */
static void sort_episodes(facts *f, sorted *s)
{
    int searching = f->initial || f->early;
    for (size_t i = 0; i < f->e.count; i++) {
        const episode *e = &f->e.at[i];
        const int above = i == 0 && isnan(f->declared) &&
                          traininglog_dialect_grown(f->dialect, e->before); /* it has grown */
        searching = searching && !is_late(&e->first, e->seq) && !e->grown &&
                    e->clean <= (i || e->n <= FACTS_DEEP ? EARLY_ALWAYS : FACTS_MANY) &&
                    (i == 0 || is_early(&e->first));
        if (searching) {
            s->search++;
        } else if (i == 0 && s->begins && e->n <= FACTS_DEEP && !above) {
            continue;
        } else if ((e->grown || above) && e->n <= FACTS_DEEP && !e->reset) {
            s->probes++;
            s->highest = fmax(s->highest, e->before);
        } else {
            f->spikes++;
            if (!f->spike || e->n > f->spike->n)
                f->spike = e;
        }
    }
}

/* Whether lines tell growth in words. */
static int tells_growth(const facts *f)
{
    for (size_t i = 0; i < f->l->count; i++)
        if (f->l->entries[i].said.what & LOG_GROWTH)
            return 1;
    return 0;
}

/* What explains the overflows. Unexplained are those that come to overflow far below where the scale did, too. */
static uint64_t cause_facts(facts *f)
{
    sorted s = {.begins = f->e.count && f->e.at[0].clean <= (uint64_t)f->t->unknown_steps};
    sort_episodes(f, &s);
    const episode *last = traininglog_facts_last(f);
    if (!last)
        return 0;
    if (s.search == f->e.count)
        return FACT(SEARCH) | traininglog_if_so(f->early || f->e.tail_lines || f->late, FACT(PLACED)) |
               traininglog_if_so(f->initial && f->early && f->e.tail_steps >= FACTS_ENOUGH, FACT(SURE_SCALE));
    const int spiky = f->spikes > s.probes / 10 || (s.probes && last->after < s.highest / MUCH_LOWER);
    if (s.probes && !spiky)
        return traininglog_if_so((f->set & FACT(ENDS)) || ((s.probes > 1 || tells_growth(f)) && last->n <= FACTS_DEEP),
                                 FACT(PROBES)) |
               traininglog_if_so(s.probes > 1 && (f->set & FACT(ENDS)) && !f->t->unknown_steps, FACT(SURE_SCALE));
    const int unknown = (f->spikes == 0 && s.probes == 0) || (f->e.count == 1 && s.begins && !f->late);
    return traininglog_if_so(!unknown, FACT(SPIKES));
}

/* ---- the end ---- */

/* A progress bar that is drawn once more behind the error is no step: a run that goes on tells losses. */
static int has_stopped(const facts *f)
{
    return f->t->stop >= 0 && (f->e.tail_steps < FACTS_ENOUGH || f->e.tail_lines == 0);
}

static int skips_most(const facts *f)
{
    return f->total && f->total->step > EARLY_ALWAYS && f->total->skipped > f->total->step / 2;
}

static int is_isolated(const facts *f)
{
    const track *t = f->t;
    if (!(f->set & FACT(CONSTANT)) || f->set & (FACT(LOSS_GONE) | FACT(ENDING) | FACT(RISES) | FACT(TAKEN)) ||
        t->stop >= 0 || f->e.tail_steps == 0)
        return 0;
    if (f->e.count == 1 && f->e.at[0].clean == 0 && f->early && t->last > 1)
        return 0; /* the scale before it is not told: it may have come down */
    for (size_t i = 0; i < f->e.count; i++)
        if (f->e.at[i].n > FACTS_DEEP)
            return 0;
    return t->overflows > 0 && t->steps - t->overflows >= RARE * t->overflows;
}

static int is_low(const facts *f)
{
    const episode *last = traininglog_facts_last(f);
    if (isnan(f->t->last))
        return 0;
    if (f->t->last < FACTS_TINY || (f->t->last <= 1 && f->set & FACT(ENDING) && f->t->most > 1))
        return 1;
    if (!last || isnan(last->after) || f->t->last > 1)
        return 0;
    return last->after < 1 || (last->after == 1 && last->before <= 1);
}

static int runs_away(const facts *f)
{
    const episode *last = traininglog_facts_last(f);
    const int clean_before = f->e.count > 1 || (last && last->clean);
    return is_low(f) || (last && !(f->set & FACT(ENDS)) && last->n >= ENDLESS &&
                         (clean_before || last->floored >= 3 || is_late(&last->first, last->seq)));
}

/* Overflows push the scale down while the loss rises; or many come in a row in the middle of a run. */
static int collapses(const facts *f)
{
    const episode *last = traininglog_facts_last(f);
    const int ends = (f->set & FACT(ENDS)) != 0;
    if (!last)
        return 0;
    if ((f->t->last < f->t->most || !ends) &&
        (f->set & FACT(RISES) || (f->set & FACT(MAY_RISE) && traininglog_numbers_rise(&f->of_loss))) &&
        !(f->set & FACT(STARTING)) && f->of_loss.end.line + FACTS_DEEP >= last->line)
        return 1;
    return !ends && last->n >= COLLAPSE && is_late(&last->first, last->seq);
}

/* A scale that is far below what any gradients need, and nothing holds it there. */
static int is_far(const facts *f)
{
    const uint64_t clean = f->e.count ? f->e.tail_steps : f->t->steps;
    const uint64_t lost = FACT(ENDING) | FACT(RISES) | FACT(NORM_GONE) | FACT(NORM_APART);
    return f->t->last > 0 && f->t->last < FACTS_TINY && clean >= FACTS_MANY && !f->by_sum && f->loss.n >= FACTS_MANY &&
           !(f->set & lost) && f->norm.apart == 0;
}

/* A jump; or a search after a checkpoint was loaded, as the settings of a fine-tuning may do, too,
 * but not late, and not as a run that is resumed. */
static int is_resumed(const facts *f)
{
    const episode *first = first_of(f);
    for (size_t i = 0; i < f->l->n_jumps; i++)
        if (!f->l->jumps[i].gap || (f->resumed && traininglog_dialect_starts(f->dialect, f->l->jumps[i].to)))
            return 1;
    if (f->set & FACT(SEARCH) && f->resumed && f->resumed->marks & NOTE_RESUMED && first->n > 1 &&
        f->resumed->seq < first->seq)
        return 1;
    return f->resumed && f->initial && f->late;
}

/* A norm that is NaN at steps that the log tells to have been taken. */
static int is_taken(const facts *f)
{
    const log_entry *last = f->l->count ? &f->l->entries[f->l->count - 1] : NULL;
    return f->norm.apart_ending > 1 && last && last->said.what & LOG_SKIPS && f->loss.lost == 0;
}

static uint64_t end_facts(const facts *f)
{
    const track *t = f->t;
    const int far = is_far(f), isolated = is_isolated(f);
    return traininglog_if_so(skips_most(f), FACT(SKIPS_MOST)) | traininglog_if_so(has_stopped(f), FACT(STOPPED)) |
           traininglog_if_so(far, FACT(LOW)) | traininglog_if_so(isolated, FACT(ISOLATED)) |
           traininglog_if_so(!isolated && !far && runs_away(f), FACT(RUNS_AWAY)) |
           traininglog_if_so(!isolated && collapses(f), FACT(COLLAPSES)) |
           traininglog_if_so(is_taken(f), FACT(NORM_TAKEN)) | traininglog_if_so(is_resumed(f), FACT(RESUMED)) |
           traininglog_if_so(f->e.tail_skipped > f->e.tail_steps / 50, FACT(LOST_BETWEEN)) |
           traininglog_if_so(t->last < FACTS_TINY || t->run >= ENDLESS || f->set & FACT(ENDING), FACT(ENDLESS));
}

/* ---- the log ---- */

static uint64_t doubt_facts(const facts *f)
{
    const training_log *l = f->l;
    const int whole = !l->unread_line && !l->reader.cut && !l->recorded.truncated && !l->n_unread;
    return traininglog_if_so(l->unread_line != 0, FACT(UNREAD)) | traininglog_if_so(l->last_bad, FACT(BAD_LAST)) |
           traininglog_if_so(l->reader.hidden != 0, FACT(HIDDEN)) |
           traininglog_if_so(f->e.count && f->t->last <= 1, FACT(DOWN_AT_ONE)) |
           traininglog_if_so(f->t->last < 1 && (!f->by_sum || f->loss.n < 2), FACT(BELOW_ONE)) |
           traininglog_if_so(f->ended != NULL, FACT(ENDED)) |
           traininglog_if_so(f->lost_mean && !(f->set & FACT(SCALED)), FACT(LOST_MEAN)) |
           traininglog_if_so(f->t->steps < 2 && f->e.tail_lines < 2, FACT(ONE_LINE)) |
           traininglog_if_so(whole, FACT(READ)) | traininglog_if_so(l->restarts != 0, FACT(RESTARTS)) |
           traininglog_if_so(l->apart.lines != 0, FACT(RANKS));
}

/* The log tells no loss scale, and no skipped step that would be one's work; or one that is 1 all the time. */
static int is_scaleless(const facts *f)
{
    if (f->t->steps == 0)
        return f->l->total == 0 && (!f->total || f->total->skipped == 0);
    return f->set & FACT(CONSTANT) && f->t->last == 1;
}

static uint64_t place_facts(facts *f)
{
    const episode *first = first_of(f), *last = traininglog_facts_last(f);
    if (!first)
        return 0;
    const uint64_t enough = last->n < FACTS_ENOUGH ? last->n : FACTS_ENOUGH;
    const int ends = f->e.tail_steps >= enough || (f->e.tail_lines > 1 && f->e.tail_lines >= enough);
    f->late = is_late(&first->first, first->seq);
    f->early = is_early(&first->first);
    f->initial = first->clean == 0 && !first->grown && is_start(f, first);
    return FACT(OVERFLOWS) | traininglog_if_so(ends, FACT(ENDS)) | traininglog_if_so(f->e.tail_unsure, FACT(UNSURE));
}

void traininglog_facts_of_log(facts *f, const training_log *l)
{
    *f = (facts){.l = l,
                 .t = &l->recorded,
                 .by_sum = l->count && (l->entries[0].said.taken_only || l->entries[0].said.dialect == LOG_FAIRSEQ),
                 .dialect = l->count ? l->entries[0].said.dialect : LOG_VALUES};
    const track *t = f->t;
    traininglog_episodes_find(&f->e, l);
    find_notes(f);
    f->set = traininglog_if_so(t->steps > 0, FACT(STEPS)) |
             traininglog_if_so(t->steps > 0 && t->least == t->most, FACT(CONSTANT)) |
             traininglog_if_so(t->taken > 0, FACT(TAKEN)) | traininglog_if_so(t->last <= 1, FACT(AT_ONE));
    f->set |= traininglog_if_so(!is_scaleless(f), FACT(SCALED));
    f->set |= place_facts(f);
    f->set |= traininglog_if_so(begins_early(f), FACT(AT_START));
    traininglog_numbers_find(f);
    f->set |= cause_facts(f);
    f->set |= end_facts(f);
    f->set |= doubt_facts(f);
}

void traininglog_facts_clear(facts *f)
{
    traininglog_episodes_clear(&f->e);
    traininglog_series_clear(&f->loss);
    traininglog_series_clear(&f->norm);
    traininglog_series_clear(&f->validation);
    for (size_t i = 0; i < f->n_more; i++)
        traininglog_series_clear(&f->more[i]);
}
