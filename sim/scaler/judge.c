/* judge.c -- see judge.h. */
#include "judge.h"

#include "../report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* EARLY: steps that are the beginning of a run, where it has ten times as many. COLLAPSE: overflows
 * in a row, late, that no search explains; ENDLESS: at any time after a clean step. DEEP: more of
 * them after a growth than hysteresis explains. */
enum { EARLY = 1000, EARLY_ALWAYS = 100, COLLAPSE = 4, ENDLESS = 10, DEEP = 3, ENOUGH = 5,
       SEVERAL = 6, MUCH_LOWER = 32 };

/* A loss counts as rising from its smallest by this factor. */
static const double rise = 1.2;

/* No gradients are that large. */
static const double tiny = 0x1p-6;

/* What is known of a log, for the rules. */
typedef struct facts {
    const training_log *l;
    const track *t;
    log_judgement *j;
    log_episodes e;
    loss_course loss;
    norm_course norm;
    int begins;         /* the log begins with its first overflows                   */
    uint64_t lost_apart; /* losses that are not finite at other steps                */
    int initial;        /* the first overflow is at the scale the run starts at      */
    int early;          /* the first overflows are in the beginning of the run       */
    int late;           /* they are known not to be                                  */
    int ends;           /* clean steps follow the last overflow, enough of them      */
    uint64_t search;    /* episodes of the search                                    */
    uint64_t probes;    /* that a growth explains                                    */
    uint64_t spikes;    /* that nothing explains                                     */
    double highest;     /* scale at which one of these came                          */
    const episode *spike;
    const log_note *total; /* the last that tells how many steps were skipped        */
    const log_note *resumed, *ended;
    double declared;    /* the first scale of the settings; NaN                      */
} facts;

/* ---- evidence ---- */

__attribute__((format(printf, 4, 5)))
static void say(facts *f, uint64_t line, uint64_t last_line, const char *format, ...)
{
    log_judgement *j = f->j;
    va_list values;
    if (j->n_evidence == EVIDENCE_MAX || line == 0)
        return;
    log_evidence *e = &j->evidence[j->n_evidence++];
    e->line = line;
    e->last_line = last_line > line ? last_line : line;
    va_start(values, format);
    vsnprintf(e->says, sizeof e->says, format, values);
    va_end(values);
}

static void miss(facts *f, const char *what)
{
    char *missing = f->j->missing;
    const size_t n = strlen(missing);
    snprintf(missing + n, sizeof f->j->missing - n, "%s%s", n ? "; " : "", what);
}

static const char *place_text(char out[64], const log_place *p)
{
    char a[32], b[32];
    out[0] = 0;
    if (p->step >= 0 && p->of >= 0)
        snprintf(out, 64, " at step %s of %s", text_count(a, (uint64_t)p->step),
                 text_count(b, (uint64_t)p->of));
    else if (p->step >= 0)
        snprintf(out, 64, " at step %s", text_count(a, (uint64_t)p->step));
    return out;
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void say_episode(facts *f, const episode *e)
{
    char n[32], a[32], b[32], at[64];
    if (isnan(e->before) || isnan(e->after))
        say(f, e->line, e->last_line, "%s overflow%s%s", text_count(n, e->n), plural(e->n),
            place_text(at, &e->first));
    else
        say(f, e->line, e->last_line, "%s overflow%s%s, scale %s to %s%s", text_count(n, e->n),
            plural(e->n), place_text(at, &e->first), text_scale(a, e->before),
            text_scale(b, e->after), e->inferred ? " (by the scale)" : "");
}

/* The first and the last of the overflows. */
static void say_overflows(facts *f)
{
    const size_t n = f->e.count;
    if (n > 0)
        say_episode(f, &f->e.at[0]);
    if (f->spike && f->spike != &f->e.at[0] && (n < 2 || f->spike != &f->e.at[n - 1]))
        say_episode(f, f->spike);
    if (n > 1)
        say_episode(f, &f->e.at[n - 1]);
}

static void say_start(facts *f)
{
    const episode *first = f->e.count ? &f->e.at[0] : NULL;
    char a[32], at[64];
    if (first && f->initial)
        say(f, first->line, first->line, "the first scale is %s, where %s",
            text_scale(a, first->before),
            isnan(f->declared) ? "its framework starts" : "the settings start");
    if (first && f->early)
        say(f, first->first.line ? first->first.line : first->line, 0,
            "the overflows begin%s, early in the run", place_text(at, &first->first));
}

/* Logs without an overflow, or with a scale that says all. */
static void say_scale(facts *f)
{
    const track *t = f->t;
    char a[32], b[32];
    if (t->count == 0 || isnan(t->last) || (f->e.count && t->last > 1))
        return;
    const span *first = &t->spans[0], *last = &t->spans[t->count - 1];
    const double begin = isnan(first->scale) ? first->next : first->scale;
    if (begin == t->last)
        say(f, first->line, last->last_line, "the scale is %s", text_scale(a, begin));
    else
        say(f, first->line, last->last_line, "the scale goes from %s to %s", text_scale(a, begin),
            text_scale(b, t->last));
}

static void say_total(facts *f)
{
    char a[32], b[32];
    if (f->total)
        say(f, f->total->line, 0, "%s of %s steps were skipped so far",
            text_count(a, (uint64_t)f->total->skipped), text_count(b, (uint64_t)f->total->step));
}

static void say_tail(facts *f)
{
    char a[32], b[32];
    if (f->e.count && f->e.tail_steps)
        say(f, f->e.tail_line, 0, "%s clean step%s after the last overflow%s%s",
            text_count(a, f->e.tail_steps), plural(f->e.tail_steps),
            isnan(f->t->last) ? "" : ", scale ",
            isnan(f->t->last) ? "" : text_scale(b, f->t->last));
    else if (f->e.count && f->e.tail_lines)
        say(f, f->e.tail_line, 0, "%s line%s with a finite loss or norm after the last overflow",
            text_count(a, f->e.tail_lines), plural(f->e.tail_lines));
}

static int loss_rises(const facts *f)
{
    return f->loss.n > 1 && f->loss.best > 0 && f->loss.last > rise * f->loss.best &&
           f->loss.last_seq > f->loss.best_seq;
}

static void say_loss(facts *f)
{
    char a[32], b[32];
    const training_log *l = f->l;
    if (l->lost_lines)
        say(f, l->lost, 0, "the loss is %s%s",
            l->lost_as == VALUE_INF    ? "infinite"
            : l->lost_as == VALUE_GONE ? "left out, as Megatron does where it is NaN,"
                                       : "NaN",
            l->lost_since ? " from here on" : "");
    if (f->loss.n < 2)
        return;
    if (loss_rises(f))
        say(f, f->loss.best_line, f->loss.last_line, "the loss rises from %s to %s",
            text_number(a, f->loss.best), text_number(b, f->loss.last));
    else
        say(f, f->loss.last_line, 0, "the loss is %s, after %s at first",
            text_number(a, f->loss.last), text_number(b, f->loss.first));
}

static void say_norm(facts *f)
{
    char a[32];
    if (f->norm.lost)
        say(f, f->norm.line, f->norm.last_line,
            "the norm of the gradients is NaN or Inf in %s line%s that tell no overflow",
            text_count(a, f->norm.lost), plural(f->norm.lost));
}

/* ---- facts ---- */

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
        if (n->marks & NOTE_RESUMED)
            f->resumed = n;
        if (n->marks & NOTE_ENDED)
            f->ended = n;
        if (n->skipped >= 0 && n->step > 0)
            f->total = n;
        if (!isnan(n->starts) && isnan(f->declared))
            f->declared = n->starts;
    }
}

static log_dialect dialect_of(const training_log *l)
{
    return l->count ? l->entries[0].said.dialect : LOG_VALUES;
}

/* Whether a first scale is one that a run begins with. */
static int is_start(const facts *f, const episode *first)
{
    return isnan(f->declared) ? log_dialect_starts(dialect_of(f->l), first->before)
                              : first->before == f->declared;
}

/* Episodes of the search, of growth, of neither. */
static void sort_episodes(facts *f)
{
    int searching = f->initial || f->early;
    for (size_t i = 0; i < f->e.count; i++) {
        const episode *e = &f->e.at[i];
        const int above = i == 0 && isnan(f->declared) &&
                          log_dialect_grown(dialect_of(f->l), e->before); /* it has grown */
        if (searching && !is_late(&e->first, e->seq) && !e->grown && e->clean <= EARLY_ALWAYS &&
            (i == 0 || is_early(&e->first))) {
            f->search++;
            continue;
        }
        searching = 0;
        if (i == 0 && f->begins && e->n <= DEEP && !above)
            continue; /* what was before is not known */
        if ((e->grown || above) && e->n <= DEEP && !e->reset) {
            f->probes++;
            f->highest = fmax(f->highest, e->before);
        } else {
            f->spikes++;
            if (!f->spike || e->n > f->spike->n)
                f->spike = e;
        }
    }
}

static void find_facts(facts *f)
{
    f->loss = log_loss_course(f->l);
    f->lost_apart = log_lost_apart(f->l);
    f->norm = log_norm_course(f->l);
    find_notes(f);
    if (f->e.count) {
        const episode *first = &f->e.at[0], *last = &f->e.at[f->e.count - 1];
        const uint64_t enough = last->n < ENOUGH ? last->n : ENOUGH;
        f->late = is_late(&first->first, first->seq);
        f->early = is_early(&first->first);
        f->begins = first->clean <= (uint64_t)f->t->unknown_steps;
        f->initial = first->clean == 0 && !first->grown && is_start(f, first);
        f->ends = f->e.tail_steps >= enough || f->e.tail_lines > 1;
    }
    sort_episodes(f);
}

/* ---- rules, in their order: the first that holds ---- */

static int has_stopped(const facts *f)
{
    return f->t->stop >= 0 && f->e.tail_steps < ENOUGH;
}

static int is_low(const facts *f)
{
    const episode *last = f->e.count ? &f->e.at[f->e.count - 1] : NULL;
    if (isnan(f->t->last))
        return 0;
    if (f->t->last < tiny || (f->t->last <= 1 && f->l->lost_since && f->t->most > 1))
        return 1;
    if (!last || isnan(last->after) || f->t->last > 1)
        return 0;
    return last->after < 1 || (last->after == 1 && last->before <= 1);
}

static int runs_away(const facts *f)
{
    const episode *last = f->e.count ? &f->e.at[f->e.count - 1] : NULL;
    const int clean_before = f->e.count > 1 || (last && last->clean);
    return is_low(f) || (last && !f->ends && last->n >= ENDLESS &&
                         (clean_before || last->floored >= 3 ||
                          is_late(&last->first, last->seq)));
}

static int diverges(const facts *f)
{
    const episode *last = f->e.count ? &f->e.at[f->e.count - 1] : NULL;
    if (f->norm.run > 1 && f->t->last <= 1)
        return 1;
    if (!last)
        return 0;
    const int falls = f->t->last < f->t->most || !f->ends;
    if (falls && loss_rises(f) && f->loss.last_seq + DEEP >= last->seq)
        return 1;
    return !f->ends && last->n >= COLLAPSE && is_late(&last->first, last->seq);
}

static int is_not_finite(const facts *f)
{
    return f->l->lost_since || f->lost_apart > 0 || f->l->other_lost > 0 || (f->norm.run > 1 && f->norm.run >= f->norm.finite / 10) ||
           f->norm.lost > f->norm.finite;
}

/* More than half of all steps of a run that is under way. */
static int skips_most(const facts *f)
{
    return f->total && f->total->step > EARLY_ALWAYS &&
           f->total->skipped > f->total->step / 2;
}

/* A norm that is NaN at steps that the log tells to have been taken. */
static int is_taken(const facts *f)
{
    const log_entry *last = f->l->count ? &f->l->entries[f->l->count - 1] : NULL;
    return f->norm.run > 1 && last && last->said.what & LOG_SKIPS && f->l->lost_lines == 0;
}

static int is_resumed(const facts *f)
{
    for (size_t i = 0; i < f->l->n_jumps; i++)
        if (!f->l->jumps[i].gap ||
            (f->resumed && log_dialect_starts(dialect_of(f->l), f->l->jumps[i].to)))
            return 1;
    return (f->resumed && f->initial && f->late);
}

/* Unexplained overflows, or a scale that comes to overflow far below where it did. */
static int has_spikes(const facts *f)
{
    const episode *last = f->e.count ? &f->e.at[f->e.count - 1] : NULL;
    return f->spikes > f->probes / 10 || (f->probes && last->after < f->highest / MUCH_LOWER);
}

/* The verdict of a log whose overflows are ordinary, or too few to tell. */
static verdict ordinary(const facts *f)
{
    const episode *first = f->e.count ? &f->e.at[0] : NULL;
    const episode *last = f->e.count ? &f->e.at[f->e.count - 1] : NULL;
    if (!first && f->t->last < 1 && (f->loss.n < 2 || loss_rises(f)))
        return VERDICT_UNCLEAR;
    if (!first)
        return f->t->steps > 1 || f->e.tail_lines > 1 ? VERDICT_CLEAN : VERDICT_UNCLEAR;
    if (f->e.tail_skipped > f->e.tail_steps / 50 || f->l->lost_lines)
        return VERDICT_SPIKES;
    if (f->search == f->e.count)
        return f->ends                                ? VERDICT_STARTUP
               : f->early || f->e.tail_lines || f->late ? VERDICT_SEARCHING
                                                        : VERDICT_UNCLEAR;
    if (f->probes && !has_spikes(f))
        return f->ends || (f->probes > 1 && last->n <= DEEP) ? VERDICT_STEADY : VERDICT_UNCLEAR;
    if (f->spikes == 0 || (f->e.count == 1 && f->begins && !f->late))
        return VERDICT_UNCLEAR;
    return VERDICT_SPIKES;
}

static verdict by_rules(const facts *f)
{
    if (skips_most(f))
        return VERDICT_DIVERGING;
    if (f->t->steps == 0)
        return is_not_finite(f) ? VERDICT_NOT_FINITE : VERDICT_UNCLEAR;
    return has_stopped(f)     ? VERDICT_FLOOR
           : f->t->taken      ? VERDICT_TAKEN
           : runs_away(f)     ? VERDICT_RUNAWAY
           : diverges(f)      ? VERDICT_DIVERGING
           : is_taken(f)      ? VERDICT_TAKEN
           : is_not_finite(f) ? VERDICT_NOT_FINITE
           : is_resumed(f)    ? VERDICT_RESUMED
                              : ordinary(f);
}

/* What forbids to reassure, although the scale alone looks well; NULL: nothing. */
static const char *doubt(const facts *f)
{
    const double much = f->loss.n < SEVERAL ? 3 : 1.5;
    return f->l->unread_line    ? "overflows whose scale cannot be read"
           : f->l->last_bad     ? "the last scale, which cannot be read"
           : f->l->reader.hidden ? "the rest of lines that are too long, which tell of scales"
           : f->loss.n > 1 && f->loss.best > 0 && f->loss.last > much * f->loss.best
               ? "why the loss rises"
           : f->loss.zeros > 1 && f->loss.first > 0 ? "why the loss is exactly 0"
           : f->e.count && f->t->last <= 1          ? "why the scale is down at 1"
                                                    : NULL;
}

static verdict decide(facts *f)
{
    const verdict v = by_rules(f);
    const int fine = v == VERDICT_CLEAN || v == VERDICT_STARTUP || v == VERDICT_STEADY;
    const char *why = fine ? doubt(f) : NULL;
    if (why)
        miss(f, why);
    return why ? VERDICT_UNCLEAR : v;
}

/* ---- what is missing, how sure, in words ---- */

static void find_missing(facts *f)
{
    if (f->t->steps == 0)
        miss(f, "the loss scale");
    if (f->l->unread_line && !f->j->missing[0])
        miss(f, "the scale of overflows whose lines cannot be read");
    if (f->e.count && !f->initial && isnan(f->declared))
        miss(f, "the scale at which the run began");
    if (f->e.count && f->e.at[0].first.step < 0)
        miss(f, "step numbers");
    if (f->e.count && !f->ends)
        miss(f, "lines after the last overflow");
    if (f->t->steps == 1 && !f->e.count)
        miss(f, "more than one line");
    if (f->loss.n == 0 && f->l->lost_lines == 0)
        miss(f, "the loss");
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
        return f->t->last < tiny || f->t->run >= ENDLESS || f->l->lost_since ? CERTAIN : LIKELY;
    case VERDICT_NOT_FINITE:
        return f->l->lost_since ? CERTAIN : LIKELY;
    case VERDICT_STARTUP:
        return f->initial && f->early && f->e.tail_steps >= ENOUGH && !unread ? CERTAIN : LIKELY;
    case VERDICT_STEADY:
        return f->probes > 1 && f->ends && !f->t->unknown_steps && !unread ? CERTAIN : LIKELY;
    case VERDICT_CLEAN:
        return f->t->steps >= ENOUGH && f->loss.n > 1 && !unread ? CERTAIN : LIKELY;
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
    [VERDICT_STARTUP] = {"fine-startup",
                         "Nothing. A lower first scale would save the skipped steps."},
    [VERDICT_SEARCHING] = {"not-enough",
                           "Look at the next lines: overflows that go on below a scale of 1 are no "
                           "search."},
    [VERDICT_STEADY] = {"fine-steady", "Nothing."},
    [VERDICT_SPIKES] = {"warn-spikes",
                        "Look at the batches, the learning rate and the norm of the gradients at "
                        "these steps; clip, or use bf16, if they go on."},
    [VERDICT_NOT_FINITE] = {"warn-nonfinite",
                            "Find the first tensor with Inf or NaN (mpsim stat on recorded "
                            "tensors): data, a division, an overflow in the forward pass. No loss "
                            "scale helps."},
    [VERDICT_RUNAWAY] = {"warn-diverging",
                         "Stop the run. Find the first tensor with Inf or NaN: data, forward pass, "
                         "a division; go back to a checkpoint from before; bf16 if activations "
                         "exceed fp16."},
    [VERDICT_FLOOR] = {"stopped",
                       "Go back to a checkpoint from before the overflows and find where Inf or "
                       "NaN comes from; a lower floor only delays the end."},
    [VERDICT_TAKEN] = {"taken",
                       "Go back to a checkpoint from before: the weights hold NaN. Skip such "
                       "steps."},
    [VERDICT_DIVERGING] = {"warn-diverging",
                           "Stop, go back to a checkpoint from before, lower the learning rate or "
                           "clip; bf16 if activations exceed fp16. The loss scale is the symptom."},
    [VERDICT_RESUMED] = {"warn-resume",
                         "Save and load the scaler's state with the checkpoint "
                         "(scaler.state_dict(), amp.state_dict())."},
    [VERDICT_UNCLEAR] = {"not-enough",
                         "Give the whole log, from the beginning of the run to now."},
};

const char *log_class(verdict v)
{
    return known[v].class;
}

const char *confidence_name(confidence c)
{
    static const char *const names[] = {"not enough", "likely", "certain"};
    return names[c];
}

static void unclear_text(const facts *f, char *text, size_t size)
{
    char a[32], b[32];
    if (f->t->steps == 0)
        snprintf(text, size, "no line tells a loss scale that can be read.");
    else if (f->j->missing[0])
        snprintf(text, size, "the scale alone looks well, but the log leaves a question.");
    else if (f->e.count == 0)
        snprintf(text, size, "one line tells a scale, and no overflow.");
    else if (isnan(f->t->last))
        snprintf(text, size, "%s overflow%s at unknown scales: the excerpt does not tell why.",
                 text_count(a, f->t->overflows), plural(f->t->overflows));
    else
        snprintf(text, size,
                 "%s overflow%s, down to a scale of %s: the excerpt does not tell whether they are "
                 "a search, growth or divergence.", text_count(a, f->t->overflows),
                 plural(f->t->overflows), text_scale(b, f->t->last));
}

static void diverging_text(const facts *f, char *text, size_t size)
{
    char a[32], b[32];
    if (skips_most(f))
        snprintf(text, size, "%s of %s steps were skipped: the run does not train.",
                 text_count(a, (uint64_t)f->total->skipped),
                 text_count(b, (uint64_t)f->total->step));
    else if (f->e.count == 0)
        snprintf(text, size,
                 "the norm of the gradients is NaN or Inf step after step, at a scale of %s: the "
                 "run is lost.", text_scale(a, f->t->last));
    else if (loss_rises(f))
        snprintf(text, size,
                 "overflows push the scale down to %s while the loss rises: the run diverges.",
                 text_scale(a, f->t->last));
    else
        snprintf(text, size,
                 "%s overflows in a row in the middle of the run, down to a scale of %s: no search "
                 "and no growth explains them.",
                 text_count(a, f->e.at[f->e.count - 1].n), text_scale(b, f->t->last));
}

static void resumed_text(const facts *f, char *text, size_t size)
{
    char a[32];
    if (f->l->n_jumps == 0)
        snprintf(text, size,
                 "a checkpoint was loaded, and the scale begins anew: the scaler's state was not "
                 "in it, and its search skips steps again.");
    else
        snprintf(text, size,
                 "the scale jumps %s time%s without an overflow or growth: %s. See what the log "
                 "does not explain.", text_count(a, f->l->n_jumps), plural(f->l->n_jumps),
                 f->l->restarts ? "the scaler's state was lost on resume"
                                : "a new start without the scaler's state, or lines are missing");
}

static void spikes_text(const facts *f, char *text, size_t size)
{
    char a[32], b[32];
    int n;
    if (f->spikes)
        n = snprintf(text, size,
                     "%s of %s groups of overflows come where the scale had not grown before: "
                     "gradients spike, or some steps hold Inf or NaN.", text_count(a, f->spikes),
                     text_count(b, f->e.count));
    else
        n = snprintf(text, size, "steps overflow now and then, and the run goes on.");
    if (f->e.tail_steps == 0 && f->e.tail_lines == 0)
        snprintf(text + n, size - (size_t)n,
                 " The last step overflows, too: what follows is not known.");
}

static void startup_text(const facts *f, char *text, size_t size)
{
    uint64_t overflows = 0;
    char a[32];
    for (size_t i = 0; i < f->e.count; i++)
        overflows += f->e.at[i].n;
    snprintf(text, size,
             "%s overflow%s while the scale came down to what the gradients fit, then none. This "
             "is normal.", text_count(a, overflows), plural(overflows));
}

static void find_text(const facts *f, char *text, size_t size)
{
    switch (f->j->verdict) {
    case VERDICT_UNCLEAR:
        unclear_text(f, text, size);
        break;
    case VERDICT_STARTUP:
        startup_text(f, text, size);
        break;
    case VERDICT_SPIKES:
        spikes_text(f, text, size);
        break;
    case VERDICT_DIVERGING:
        diverging_text(f, text, size);
        break;
    case VERDICT_RESUMED:
        resumed_text(f, text, size);
        break;
    case VERDICT_NOT_FINITE:
        snprintf(text, size, "the loss or the norm of the gradients is NaN or Inf: it comes from "
                             "somewhere else than the loss scale.");
        break;
    case VERDICT_TAKEN:
        snprintf(text, size, "the norm of the gradients is NaN or Inf at steps that the log tells "
                             "to have been taken: the weights are lost.");
        break;
    default:
        verdict_text(f->t, f->j->verdict, text, size);
        break;
    }
}

int log_judge(log_judgement *j, const training_log *l)
{
    facts f = {.l = l, .t = &l->recorded, .j = j};
    *j = (log_judgement){.verdict = VERDICT_UNCLEAR};
    if (log_episodes_find(&f.e, l)) {
        log_episodes_clear(&f.e);
        return -1;
    }
    find_facts(&f);
    j->verdict = decide(&f);
    j->sure = how_sure(&f, j->verdict);
    j->advice = known[j->verdict].advice;
    find_text(&f, j->text, sizeof j->text);
    say_start(&f);
    say_overflows(&f);
    say_scale(&f);
    say_tail(&f);
    say_total(&f);
    say_loss(&f);
    say_norm(&f);
    for (size_t i = 0; i < l->n_jumps && i < 2; i++)
        say(&f, l->jumps[i].line, 0, "the scale jumps");
    if (f.resumed)
        say(&f, f.resumed->line, 0, "a checkpoint is loaded");
    if (f.ended)
        say(&f, f.ended->line, 0, "an error ends the run");
    if (j->sure == NOT_ENOUGH)
        find_missing(&f);
    log_episodes_clear(&f.e);
    return 0;
}
