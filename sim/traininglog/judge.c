/* judge.c -- see judge.h. */
#include "judge.h"

#include "healthtext.h"

#include <math.h>

/* COLLAPSE: overflows in a row, late, that no search explains; ENDLESS: at any time after a clean
 * step. Of fewer losses than SEVERAL a larger rise is chance. MUCH_LOWER: a fall of the scale, in
 * spite of growth, that a steady run does not have. */
enum { COLLAPSE = 4, ENDLESS = 10, SEVERAL = 6, MUCH_LOWER = 32 };

/* ---- rules, in their order: the first that holds ---- */

/* A progress bar that is drawn once more behind the error is no step: a run that goes on tells
 * losses. */
static int has_stopped(const facts *f)
{
    return f->t->stop >= 0 && (f->e.tail_steps < FACTS_ENOUGH || f->e.tail_lines == 0);
}

static int is_low(const facts *f)
{
    const episode *last = facts_last(f);
    if (isnan(f->t->last))
        return 0;
    if (f->t->last < FACTS_TINY || (f->t->last <= 1 && f->l->lost_since && f->t->most > 1))
        return 1;
    if (!last || isnan(last->after) || f->t->last > 1)
        return 0;
    return last->after < 1 || (last->after == 1 && last->before <= 1);
}

static int runs_away(const facts *f)
{
    const episode *last = facts_last(f);
    const int clean_before = f->e.count > 1 || (last && last->clean);
    return is_low(f) || (last && !f->ends && last->n >= ENDLESS &&
                         (clean_before || last->floored >= 3 || facts_late(&last->first, last->seq)));
}

static int diverges(const facts *f)
{
    const episode *last = facts_last(f);
    if (f->norm.run > 1 && f->t->last <= 1)
        return 1;
    if (!last)
        return 0;
    const int falls = f->t->last < f->t->most || !f->ends;
    if (falls && facts_loss_rises(f) && f->loss.last_seq + FACTS_DEEP >= last->seq)
        return 1;
    return !f->ends && last->n >= COLLAPSE && facts_late(&last->first, last->seq);
}

static int is_not_finite(const facts *f)
{
    return f->l->lost_since || f->lost_apart > 0 || f->l->other_lost > 0 ||
           (f->norm.run > 1 && f->norm.run >= f->norm.finite / 10) || f->norm.lost > f->norm.finite;
}

/* A norm that is NaN at steps that the log tells to have been taken. */
static int is_taken(const facts *f)
{
    const log_entry *last = f->l->count ? &f->l->entries[f->l->count - 1] : NULL;
    return f->norm.run > 1 && last && last->said.what & LOG_SKIPS && f->l->lost_lines == 0;
}

/* A jump; or a search after a checkpoint was loaded, as the settings of a fine-tuning may do, too,
 * but not late, and not as a run that is resumed. */
static int is_resumed(const facts *f)
{
    const episode *first = facts_first(f);
    for (size_t i = 0; i < f->l->n_jumps; i++)
        if (!f->l->jumps[i].gap || (f->resumed && log_dialect_starts(f->dialect, f->l->jumps[i].to)))
            return 1;
    if (f->search && f->resumed && f->resumed->marks & NOTE_RESUMED && first->n > 1 && f->resumed->seq < first->seq)
        return 1;
    return (f->resumed && f->initial && f->late);
}

/* Unexplained overflows, or a scale that comes to overflow far below where it did. */
static int has_spikes(const facts *f)
{
    const episode *last = facts_last(f);
    return f->spikes > f->probes / 10 || (f->probes && last->after < f->highest / MUCH_LOWER);
}

/* The verdict of a log whose overflows are ordinary, or too few to tell. */
static verdict ordinary(const facts *f)
{
    const episode *first = facts_first(f);
    const episode *last = facts_last(f);
    if (!first && f->t->last < 1 && (f->loss.n < 2 || facts_loss_rises(f)))
        return VERDICT_UNCLEAR;
    if (!first)
        return f->t->steps > 1 || f->e.tail_lines > 1 ? VERDICT_CLEAN : VERDICT_UNCLEAR;
    if (f->e.tail_skipped > f->e.tail_steps / 50 || f->l->lost_lines)
        return VERDICT_SPIKES;
    if (f->search == f->e.count)
        return f->ends && f->e.tail_unsure              ? VERDICT_UNCLEAR
               : f->ends                                ? VERDICT_STARTUP
               : f->early || f->e.tail_lines || f->late ? VERDICT_SEARCHING
                                                        : VERDICT_UNCLEAR;
    if (f->probes && !has_spikes(f))
        return f->ends || (f->probes > 1 && last->n <= FACTS_DEEP) ? VERDICT_STEADY : VERDICT_UNCLEAR;
    if ((f->spikes == 0 && f->probes == 0) || (f->e.count == 1 && f->begins && !f->late))
        return VERDICT_UNCLEAR;
    return VERDICT_SPIKES;
}

static verdict by_rules(const facts *f)
{
    if (facts_skips_most(f))
        return VERDICT_DIVERGING;
    if (f->t->steps == 0)
        return is_not_finite(f) ? VERDICT_NOT_FINITE : VERDICT_UNCLEAR;
    return has_stopped(f)      ? VERDICT_FLOOR
           : f->t->taken       ? VERDICT_TAKEN
           : facts_stuck(f)    ? VERDICT_STUCK
           : facts_isolated(f) ? (f->t->last <= 1 ? VERDICT_NOT_FINITE : VERDICT_SPIKES)
           : runs_away(f)      ? VERDICT_RUNAWAY
           : diverges(f)       ? VERDICT_DIVERGING
           : is_taken(f)       ? VERDICT_TAKEN
           : is_not_finite(f)  ? VERDICT_NOT_FINITE
           : is_resumed(f)     ? VERDICT_RESUMED
                               : ordinary(f);
}

/* What forbids to reassure, although the scale alone looks well; NULL: nothing. */
static const char *doubt(const facts *f)
{
    const double much = f->loss.n < SEVERAL ? 3 : 1.5;
    return f->l->unread_line     ? "overflows whose scale cannot be read"
           : f->l->last_bad      ? "the last scale, which cannot be read"
           : f->l->reader.hidden ? "the rest of lines that are too long, which tell of scales"
           : f->loss.n > 1 && f->loss.best > 0 && f->loss.last > much * f->loss.best ? "why the loss rises"
           : f->loss.zeros > 1                                                       ? "why the loss is exactly 0"
           : f->e.count && f->t->last <= 1                                           ? "why the scale is down at 1"
           : f->t->last < 1 && !f->by_sum                                            ? "why the scale is below 1"
           : f->ended                                                                ? "the error that ends the run"
                                                                                     : NULL;
}

/* Of two decimals at most a loss may stand still by its printing alone: beside a scale that is no evidence, unless the
 * norm is 0. */
static int is_flat_in_digits(const health *h)
{
    const double x = h->loss.n ? 100 * h->loss.at[0].value : 0;
    return fabs(x - round(x)) > 1e-6 || (h->norm.n && h->norm.at[0].value == 0);
}

/* Whether what the log tells besides a scale is worse than what the scale is taken for; now and then something is the
 * worse one only where all else is well. */
static int is_worse(const facts *f, verdict v)
{
    const health_finding found = f->found;
    const int fine = v == VERDICT_CLEAN || v == VERDICT_STARTUP || v == VERDICT_STEADY;
    const int rare = found == HEALTH_JUMPS;
    const int by_rules_above = found == HEALTH_LOST || found == HEALTH_ISOLATED; /* they know what is an overflow */
    if (!facts_scaleless(f) && (by_rules_above || (found == HEALTH_FLAT_LOSS && !is_flat_in_digits(&f->health))))
        return 0;
    return found != HEALTH_WELL && found != HEALTH_UNKNOWN &&
           (fine || ((v == VERDICT_SPIKES || v == VERDICT_UNCLEAR || v == VERDICT_SEARCHING) && !rare));
}

/* Whether that decides: of a run without a scaler, or where it is worse. */
static int is_by_health(const facts *f, verdict v)
{
    return f->t->steps == 0 ? facts_scaleless(f) && !facts_skips_most(f) : is_worse(f, v);
}

static verdict decide(log_judgement *j, const facts *f)
{
    verdict v = by_rules(f);
    j->by_health = is_by_health(f, v);
    if (j->by_health)
        v = health_verdict(f->found);
    const int fine = v == VERDICT_CLEAN || v == VERDICT_STARTUP || v == VERDICT_STEADY;
    const char *why = fine ? doubt(f) : v == VERDICT_WELL && f->ended ? "the error that ends the run" : NULL;
    if (why)
        testimony_miss(j, why);
    return why ? VERDICT_UNCLEAR : v;
}

static confidence how_sure(const facts *f, verdict v)
{
    const int unread = f->l->unread_line || f->l->reader.cut || f->l->recorded.truncated;
    switch (v) {
    case VERDICT_UNCLEAR:
    case VERDICT_SEARCHING:
    case VERDICT_NONE:
        return NOT_ENOUGH;
    case VERDICT_FLOOR:
        return CERTAIN;
    case VERDICT_RUNAWAY:
        return f->t->last < FACTS_TINY || f->t->run >= ENDLESS || f->l->lost_since ? CERTAIN : LIKELY;
    case VERDICT_NOT_FINITE:
    case VERDICT_LOST:
        return f->l->lost_since ? CERTAIN : LIKELY;
    case VERDICT_UNLEARNED:
        return f->health.norm.n ? CERTAIN : LIKELY;
    case VERDICT_WELL:
        return f->loss.n >= FACTS_MANY && f->health.norm.n >= FACTS_MANY && !unread ? CERTAIN : LIKELY;
    case VERDICT_STARTUP:
        return f->initial && f->early && f->e.tail_steps >= FACTS_ENOUGH && !unread ? CERTAIN : LIKELY;
    case VERDICT_STEADY:
        return f->probes > 1 && f->ends && !f->t->unknown_steps && !unread ? CERTAIN : LIKELY;
    case VERDICT_CLEAN:
        return f->t->steps >= FACTS_ENOUGH && f->loss.n > 1 && !unread ? CERTAIN : LIKELY;
    case VERDICT_RESUMED:
        return f->l->restarts ? CERTAIN : LIKELY;
    default:
        return LIKELY;
    }
}

/* What to do, by the verdict. */
static const struct {
    const char *class, *advice;
} known[] = {
    [VERDICT_NONE] = {"not-enough", "Log the scale of every step, with its number."},
    [VERDICT_CLEAN] = {"fine-steady", "Nothing."},
    [VERDICT_STARTUP] = {"fine-startup", "Nothing. A lower first scale would save the skipped steps."},
    [VERDICT_SEARCHING] = {"not-enough", "Look at the next lines: overflows that go on below a scale of 1 are no "
                                         "search."},
    [VERDICT_STEADY] = {"fine-steady", "Nothing."},
    [VERDICT_SPIKES] = {"warn-spikes", "Look at the batches, the learning rate and the norm of the gradients at "
                                       "these steps; clip, or use bf16, if they go on."},
    [VERDICT_NOT_FINITE] = {"warn-nonfinite", "Find the first tensor with Inf or NaN (mpsim stat on recorded "
                                              "tensors): data, a division, an overflow in the forward pass. No loss "
                                              "scale helps."},
    [VERDICT_RUNAWAY] = {"warn-diverging", "Stop the run. Find the first tensor with Inf or NaN: data, forward pass, "
                                           "a division; go back to a checkpoint from before; bf16 if activations "
                                           "exceed fp16."},
    [VERDICT_FLOOR] = {"stopped", "Go back to a checkpoint from before the overflows and find where Inf or "
                                  "NaN comes from; a lower floor only delays the end."},
    [VERDICT_TAKEN] = {"taken", "Go back to a checkpoint from before: the weights hold NaN. Skip such steps."},
    [VERDICT_DIVERGING] = {"warn-diverging", "Stop, go back to a checkpoint from before, lower the learning rate or "
                                             "clip; bf16 if activations exceed fp16. The loss scale is the symptom."},
    [VERDICT_RESUMED] = {"warn-resume", "Save and load the scaler's state with the checkpoint "
                                        "(scaler.state_dict(), amp.state_dict())."},
    [VERDICT_UNCLEAR] = {"not-enough", "Give the whole log, from the beginning of the run to now."},
    [VERDICT_STUCK] = {"warn-stuck",
                       "Start again from the last checkpoint with a new scaler, whose first scale is what fits; a "
                       "shorter window, or a floor, keeps it from falling so far."},
    [VERDICT_LOST] = {"warn-nonfinite", NULL},
    [VERDICT_WELL] = {"fine-steady", NULL},
    [VERDICT_UNLEARNED] = {"warn-not-learning", NULL},
    [VERDICT_MISMATCH] = {"warn-mismatch", NULL},
};

static const char *advice_of(const log_judgement *j, const facts *f)
{
    const verdict v = j->verdict;
    if (j->by_health)
        return health_advice(f->found);
    if (v == VERDICT_CLEAN && facts_scaleless(f))
        return health_advice(HEALTH_WELL);
    if (v == VERDICT_DIVERGING && facts_scaleless(f) && f->found == HEALTH_LOST)
        return health_advice(HEALTH_LOST); /* there is no loss scale that could be a symptom */
    if (facts_isolated(f) && v == VERDICT_NOT_FINITE)
        return health_advice(HEALTH_ISOLATED);
    if (facts_isolated(f) && v == VERDICT_SPIKES)
        return "Look at the batches of these steps. If it goes on, take a smaller constant scale, or a dynamic one, "
               "which finds it.";
    return v == VERDICT_UNCLEAR && f->t->steps == 0
               ? "Log the loss scale, too (scaler.get_scale(), optimizer.loss_scale), or give the "
                 "part of the log that has it."
               : known[v].advice;
}

const char *log_class(verdict v)
{
    return known[v].class;
}

const char *confidence_name(confidence c)
{
    static const char *const names[] = {"not enough", "likely", "certain"};
    return names[c];
}

void log_judge(log_judgement *j, const training_log *l)
{
    facts f;
    *j = (log_judgement){.verdict = VERDICT_UNCLEAR};
    facts_find(&f, l);
    j->verdict = decide(j, &f);
    j->sure = how_sure(&f, j->verdict);
    j->advice = advice_of(j, &f);
    testimony_find(j, &f);
    facts_clear(&f);
}
