/* sentences.c -- see sentences.h. */
#include "sentences.h"

#include "../record/cells.h"
#include "../text/words.h"
#include "impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

typedef char number[32];

/* Where a run of overflows has brought the scale; nothing where no line tells the scale. */
static const char *down_to(char out[64], double scale, const char *text)
{
    out[0] = 0;
    if (!isnan(scale))
        snprintf(out, 64, ", down to a scale of %s", text);
    return out;
}

/* ---- the scale ---- */

void traininglog_says_skips(const facts *f, char *text, size_t size)
{
    number a, b;
    snprintf(text, size, "%s of %s steps were skipped: the run does not train.",
             text_count(a, (uint64_t)f->total->skipped), text_count(b, (uint64_t)f->total->step));
}

void traininglog_says_floor(const facts *f, char *text, size_t size)
{
    const track *t = f->t;
    const int unknown = t->least > t->most; /* no line tells a scale */
    char where[64] = "";
    number a;
    if (!t->recorded) /* of a log the evidence tells where */
        snprintf(where, sizeof where, " at step %" PRId64, t->stop);
    snprintf(text, size, "%s: the framework stops training with an error%s. ",
             unknown ? "steps overflow again and again" : "the scale is down at its floor and a step overflows again",
             where);
    if (!t->recorded && traininglog_stuck_fits(t) > 0)
        text_add(text, size, "The gradients fit at a scale of %s: the floor is at fault, not Inf or NaN.",
                 text_scale(a, traininglog_stuck_fits(t)));
    else
        text_add(text, size,
                 "What overflows %s is mostly Inf or NaN from somewhere else: a lower floor only delays the end.",
                 unknown ? "at every scale" : "at such a scale");
}

void traininglog_says_taken(const facts *f, char *text, size_t size)
{
    const track *t = f->t;
    number a;
    snprintf(text, size, "%s step%s with Inf or NaN in the gradients %s taken: the weights are lost.%s",
             text_count(a, t->taken), text_plural(t->taken), t->taken == 1 ? "is" : "are",
             traininglog_stuck_fits(t) > 0 ? " A smaller scale fits: the constant one is at fault." : "");
}

/* A scale that no overflow holds down, and how long it takes to come back up. */
void traininglog_says_low(const facts *f, char *text, size_t size)
{
    enum { WINDOW = 2000 }; /* of torch.amp.GradScaler, Apex and Keras */
    number a, b, c, d;
    const double norm = f->norm.n ? traininglog_series_median(&f->norm, 0, f->norm.n).value : 0;
    /* numbers of a log, however small: the largest power of two, and no more powers than between all binary64 numbers */
    const double fits = norm > 0 ? exp2(fmin(1023, floor(log2(65504) - log2(norm)))) : 1;
    const double powers = fmin(fmax(1, log2(fits) - log2(f->t->last)), 1023 + 1074);
    snprintf(text, size,
             "nothing overflows at a scale of %s, and nothing holds it there: %s %s, %.0f powers of two above. Small "
             "gradients become zero meanwhile. With a window of %s clean steps for each doubling it takes %s steps to "
             "come back.",
             text_scale(a, f->t->last), norm > 0 ? "the norm of the gradients fits at" : "no gradients need less than",
             text_scale(b, fits), powers, text_count(c, WINDOW), text_count(d, (uint64_t)powers * WINDOW));
}

/* Why a simulated scale that is too small comes up late, or never. */
static void stuck_low_text(const track *t, char *text, size_t size)
{
    const mpsim_scaler_config *c = &t->scaler.config;
    const double wanted = traininglog_stuck_wanted(t), ratio = wanted / t->last,
                 times = ceil(log(ratio) / log(c->growth));
    const uint64_t steps = (uint64_t)fmin(times * (double)c->window, 1e18);
    number a, b, d, e;
    snprintf(text, size,
             "the scale is stuck at %s, %.0f powers of two below %s, which %s. Small gradients become zero meanwhile.",
             text_scale(a, t->last), log2(ratio), text_scale(b, wanted),
             t->clean_fits == wanted ? "fits" : "it began with");
    if (t->last >= c->ceiling)
        text_add(text, size, " At fault is its ceiling: it never comes back.");
    else if (!(c->growth > 1))
        text_add(text, size, " At fault is its growth, a factor of %s: it never comes back.",
                 text_number(d, c->growth));
    else if (t->last >= t->begin)
        text_add(text, size,
                 " At fault is the first scale, %s: with a growth after %s clean steps the way up takes %s steps.",
                 text_scale(a, t->begin), text_count(d, c->window), text_count(e, steps));
    else
        text_add(text, size,
                 " At fault are the window and %s: with a growth after %s clean steps the way back takes %s steps.",
                 c->floor > 0 ? "a low floor" : "the missing floor", text_count(d, c->window), text_count(e, steps));
}

static void stuck_high_text(const track *t, char *text, size_t size)
{
    const mpsim_scaler_config *c = &t->scaler.config;
    number a, b, d, e;
    snprintf(
        text, size,
        "%s of %s steps overflow and are skipped, where all of them fit a scale of %s: no Inf or NaN, but the settings. "
        "The scale grows after %s clean step%s",
        text_count(a, t->overflows), text_count(b, t->steps), text_scale(d, t->all_fit), text_count(e, c->window),
        text_plural(c->window));
    if (c->hysteresis > 1)
        text_add(text, size, ", and comes down only after %s overflows", text_count(a, c->hysteresis));
    text_add(text, size, ". A longer window%s fewer.", c->hysteresis > 1 ? " and a smaller hysteresis skip" : " skips");
}

void traininglog_says_stuck(const facts *f, char *text, size_t size)
{
    const track *t = f->t;
    number a, b, c, d, e;
    if (f->stuck == STUCK_LOW)
        stuck_low_text(t, text, size);
    else if (f->stuck == STUCK_HIGH)
        stuck_high_text(t, text, size);
    else if (f->stuck == STUCK_INFINITE)
        snprintf(text, size,
                 "the scale has grown to infinity: every gradient times it is Inf or NaN, and half of it is "
                 "infinity, too. Give the scaler a ceiling, or its guard (guard=1).");
    else if (f->stuck == STUCK_FLOOR)
        snprintf(text, size,
                 "the last %s steps overflow, %s of them at the floor, a scale of %s, where %s fits: the floor is at "
                 "fault. Lower it to %s or less.",
                 text_count(a, t->run), text_count(b, t->run_floored), text_scale(c, t->last),
                 text_scale(d, t->run_fits), text_scale(e, exp2(floor(log2(t->run_fits)))));
    else if (traininglog_stuck_fits(t) > 0)
        snprintf(
            text, size,
            "%s of %s steps overflow at the constant scale of %s, where %s fits: the constant is at fault. A dynamic "
            "scaler finds it.",
            text_count(a, t->overflows), text_count(b, t->steps), text_scale(c, t->last), text_scale(d, t->run_fits));
    else
        snprintf(text, size,
                 "%s of %s steps overflow at the constant scale of %s, which never moves. A smaller one, or a dynamic "
                 "scaler, shows whether it is the scale or Inf and NaN from somewhere else.",
                 text_count(a, t->overflows), text_count(b, t->steps), text_scale(c, t->last));
}

void traininglog_says_isolated(const facts *f, char *text, size_t size)
{
    const track *t = f->t;
    number a, b, c;
    if (f->set & FACT(AT_ONE))
        snprintf(text, size,
                 "%s of %s steps had Inf or NaN in the gradients and were skipped, and the loss goes on: isolated bad "
                 "batches, and the weights are intact. The scale is 1 throughout: no loss scale is to blame.",
                 text_count(a, t->overflows), text_count(b, t->steps));
    else
        snprintf(
            text, size,
            "%s of %s steps overflow and are skipped, one at a time, and the scale is constant at %s: it is too large "
            "for these steps, or they hold Inf or NaN.",
            text_count(a, t->overflows), text_count(b, t->steps), text_scale(c, t->last));
}

void traininglog_says_runaway(const facts *f, char *text, size_t size)
{
    enum { ENDLESS = 10 };
    const track *t = f->t;
    static const char elsewhere[] =
        "Inf or NaN comes from somewhere else (data, forward pass, a division): no loss scale helps.";
    number a, b, c;
    char down[64];
    if (t->recorded && t->least == t->most && t->most > 1)
        snprintf(
            text, size,
            "the last %s steps all overflow at a constant scale of %s, which never moves. A smaller one, or a dynamic "
            "scaler, shows whether it is the scale or Inf and NaN from somewhere else.",
            text_count(a, t->run), text_number(c, t->last));
    else if (!t->recorded && t->run_floored && t->last > 1)
        snprintf(
            text, size,
            "the last %s steps all overflow, %s of them at the floor, a scale of %s. A lower floor shows whether it is "
            "the scale or Inf and NaN from somewhere else.",
            text_count(a, t->run), text_count(b, t->run_floored), text_scale(c, t->last));
    else if (t->run < ENDLESS)
        snprintf(text, size, "the scale is down to %s, far below what gradients need%s. %s", text_number(c, t->last),
                 t->recorded ? "" : ": every step overflowed on the way there", elsewhere);
    else
        snprintf(text, size, "the last %s steps all overflow%s. %s", text_count(a, t->run),
                 down_to(down, t->last, text_number(c, t->last)), elsewhere);
}

void traininglog_says_collapse(const facts *f, char *text, size_t size)
{
    const episode *last = traininglog_facts_last(f);
    number a, b;
    if (f->set & FACT(GONE_AT_ONE) || !last)
        snprintf(text, size,
                 "the norm of the gradients is NaN or Inf step after step, at a scale of %s: the run is lost.",
                 text_scale(a, f->t->last));
    else if (f->set & (FACT(RISES) | FACT(MAY_RISE)))
        snprintf(text, size, "overflows push the scale down to %s while the loss rises: the run diverges.",
                 text_scale(a, f->t->last));
    else
        snprintf(text, size,
                 "%s overflows in a row in the middle of the run%s%s: no search and no growth explains them.",
                 text_count(a, last->n), isnan(f->t->last) ? ", at scales that are not told" : ", down to a scale of ",
                 isnan(f->t->last) ? "" : text_scale(b, f->t->last));
}

void traininglog_says_not_finite(const facts *f, char *text, size_t size)
{
    number a, b;
    snprintf(
        text, size,
        "%s of %s overflows are steps whose gradients hold Inf or NaN already: they come from somewhere else (data, "
        "forward pass, a division), not from the loss scale.",
        text_count(a, f->t->not_finite_steps), text_count(b, f->t->overflows));
}

void traininglog_says_ranks(const facts *f, char *text, size_t size)
{
    const log_apart *p = &f->l->apart;
    number a, b, c;
    snprintf(text, size,
             "the ranks have different scales: %s on rank %" PRId64 " and %s on rank %" PRId64
             " at the same step, in %s line%s. "
             "A step that one rank skips and another takes leaves them with different weights.",
             text_scale(a, p->scale), p->rank, text_scale(b, p->other_scale), p->other, text_count(c, p->lines),
             text_plural(p->lines));
}

void traininglog_says_resumed(const facts *f, char *text, size_t size)
{
    number a;
    if (f->l->n_jumps == 0)
        snprintf(text, size,
                 "a checkpoint was loaded, and the scale begins anew: the scaler's state was not in it, and its "
                 "search skips steps again.");
    else
        snprintf(text, size,
                 "the scale jumps %s time%s without an overflow or growth: %s. See what the log does not explain.",
                 text_count(a, f->l->n_jumps), text_plural(f->l->n_jumps),
                 f->l->restarts ? "the scaler's state was lost on resume"
                                : "a new start without the scaler's state, or lines are missing");
}

/* The start, where the scale comes down. */
void traininglog_says_searching(const facts *f, char *text, size_t size)
{
    const track *t = f->t;
    number a, b;
    char down[64];
    if (t->run == t->steps && t->run_floored)
        snprintf(
            text, size,
            "every step overflows so far; the scale is %s, its floor, and comes down no further. A lower floor shows "
            "whether it is the scale or Inf and NaN from somewhere else.",
            text_scale(b, t->last));
    else if (t->run == t->steps && isnan(t->last))
        snprintf(text, size,
                 "every step overflows so far, at scales that no line tells. Start lower, or give it more steps.");
    else if (t->run == t->steps)
        snprintf(
            text, size,
            "every step overflows so far; the scale is %s and still coming down. Start lower, or give it more steps.",
            text_scale(b, t->last));
    else if (t->run == 0)
        snprintf(
            text, size,
            "the scale comes down to %s, and too few lines follow the last overflow. A few at the start are normal; if "
            "they go on, Inf or NaN comes from somewhere else.",
            text_scale(b, t->last));
    else
        snprintf(text, size, "%s in %s overflow%s%s: what follows is not known. ",
                 t->recorded ? "the log ends" : "the steps end", t->run == 1 ? "an" : text_count(a, t->run),
                 text_plural(t->run), down_to(down, t->last, text_scale(b, t->last)));
    if (t->run && t->run != t->steps && traininglog_stuck_fits(t) > 0)
        text_add(text, size, "A scale of %s fits: the search goes on.", text_scale(a, traininglog_stuck_fits(t)));
    else if (t->run && t->run != t->steps)
        text_add(text, size, "A few at the start are normal; if they go on, Inf or NaN comes from somewhere else.");
}

void traininglog_says_spikes(const facts *f, char *text, size_t size)
{
    const track *t = f->t;
    const uint64_t all = f->l ? f->e.count : t->overflows;
    const int over = f->l ? f->e.tail_steps == 0 && f->e.tail_lines == 0 : t->run > 0;
    number a, b, c;
    if (!f->l && f->set & FACT(CONSTANT))
        snprintf(
            text, size,
            "%s of %s steps overflow at the constant scale of %s and are skipped: it is too large for them, or they "
            "hold Inf or NaN.",
            text_count(a, t->overflows), text_count(b, t->steps), text_scale(c, t->last));
    else if (f->spikes)
        snprintf(
            text, size,
            "%s of %s %s come where the scale had not grown before: gradients spike, or some steps hold Inf or NaN.",
            text_count(a, f->spikes), text_count(b, all), f->l ? "groups of overflows" : "overflows");
    else
        snprintf(text, size, "steps overflow now and then, and the run goes on.");
    if (over && !(f->set & FACT(CONSTANT)))
        text_add(text, size, " The last step overflows, too: what follows is not known.");
}

void traininglog_says_startup(const facts *f, char *text, size_t size)
{
    static const char came[] = "while the scale came down to what the gradients fit, then none";
    const uint64_t after = f->e.tail_steps ? f->e.tail_steps : f->e.tail_lines;
    uint64_t overflows = f->l ? 0 : f->t->overflows;
    number a, b;
    for (size_t i = 0; i < f->e.count; i++)
        overflows += f->e.at[i].n;
    snprintf(text, size, "%s overflow%s %s", text_count(a, overflows), text_plural(overflows), came);
    if (f->l)
        text_add(text, size, " in %s %s%s", text_count(b, after), f->e.tail_steps ? "step" : "line",
                 text_plural(after));
    text_add(text, size, ". This is normal.");
}

void traininglog_says_steady(const facts *f, char *text, size_t size)
{
    const track *t = f->t;
    number a, b, share;
    snprintf(
        text, size,
        "after the start overflows come only where the scale has grown: %s of %s growth%s led to one. This is what a "
        "dynamic scaler does all the time",
        text_count(a, t->after_growth), text_count(b, t->growths), text_plural(t->growths));
    if (t->unknown_steps)
        text_add(text, size, ".");
    else
        text_add(text, size, "; it skips %s of the steps.%s", text_share(share, t->skipped, t->steps),
                 t->skipped > t->steps / 50 ? " A longer window would skip fewer." : "");
}

void traininglog_sentence_rest(const facts *f, int lost, int jumps, char *text, size_t size)
{
    const series *s = &f->loss;
    uint64_t n = 0;
    number a;
    for (size_t i = 0; i < f->l->n_jumps; i++)
        n += !f->l->jumps[i].gap;
    if (lost && s->ending)
        text_add(text, size, " The loss is %s from line %" PRIu64 " on.", traininglog_sentence_lost_as(s), s->since);
    else if (lost && s->lost)
        text_add(text, size, " In %s line%s the loss is %s.", text_count(a, s->lost), text_plural(s->lost),
                 traininglog_sentence_lost_as(s));
    if (jumps && n)
        text_add(text, size,
                 " But the scale jumps %s time%s without an overflow or growth: see what the log does not explain.",
                 text_count(a, n), text_plural(n));
}

/* ---- Inf and NaN ---- */

const char *traininglog_sentence_lost_as(const series *s)
{
    return s->as == VALUE_INF ? "infinite" : s->as == VALUE_GONE ? "left out" : "NaN";
}

static void lost_text(const series *s, char *text, size_t size)
{
    number a, b, c;
    if (s->n + s->others == 0)
        snprintf(text, size, "the %s is %s in %s%s line%s that tell%s it.", s->name, traininglog_sentence_lost_as(s),
                 s->lost == 1 ? "the " : "all ", text_count(a, s->lost), text_plural(s->lost), s->lost == 1 ? "s" : "");
    else if (s->ending && s->groups == 1)
        snprintf(text, size, "the %s is %s from line %s on, in %s line%s.", s->name, traininglog_sentence_lost_as(s),
                 text_count(a, s->since), text_count(b, s->ending), text_plural(s->ending));
    else
        snprintf(text, size, "the %s is %s in %s of %s lines, first in line %s.", s->name,
                 traininglog_sentence_lost_as(s), text_count(a, s->lost), text_count(b, s->lost + s->n),
                 text_count(c, s->first_lost));
}

/* What norms that are not finite mean beside their losses. */
static const char *norm_meaning(const facts *f)
{
    return f->norm.lost == 0 || f->loss.lost || f->loss.n == 0 ? ""
           : f->loss.at[f->loss.n - 1].value == 0
               ? " The loss of 0 beside it is NaN, too, as Hugging Face's Trainer prints it (logging_nan_inf_filter)."
           : f->set & FACT(LEARNS) ? " The loss is finite: the backward pass makes it."
           : f->set & FACT(SCALED)
               ? " The loss is finite: the backward pass makes it."
               : " The loss is finite: the backward pass makes it, or in fp16 too large a loss scale.";
}

static const series *lost_series(const facts *f)
{
    return f->loss.lost ? &f->loss : &f->norm;
}

void traininglog_says_lost(const facts *f, char *text, size_t size)
{
    lost_text(lost_series(f), text, size);
    text_add(text, size, "%s%s", norm_meaning(f),
             f->set & FACT(SCALED) ? " It comes from somewhere else than the loss scale." : "");
}

void traininglog_says_apart(const facts *f, char *text, size_t size)
{
    const series *s = lost_series(f);
    number a;
    if (s->lost == 0)
        snprintf(text, size,
                 "the loss of another rank is NaN or Inf: it comes from somewhere else than the loss scale.");
    else
        snprintf(
            text, size,
            "the %s is %s in %s line%s, with finite ones after: the weights are intact, as NaN in them would stay. "
            "Single bad batches, or steps that were skipped%s.",
            s->name, traininglog_sentence_lost_as(s), text_count(a, s->lost), text_plural(s->lost),
            f->set & FACT(SCALED) ? "; it comes from somewhere else than the loss scale" : "");
}

void traininglog_says_validation(const facts *f, char *text, size_t size)
{
    lost_text(&f->validation, text, size);
}

void traininglog_says_metric_lost(const facts *f, char *text, size_t size)
{
    lost_text(f->worst, text, size);
}

/* ---- numbers of reinforcement learning ---- */

void traininglog_says_gap(const facts *f, char *text, size_t size)
{
    number a, b;
    snprintf(
        text, size,
        "trainer and sampler do not agree about the log-probabilities of the same tokens: %s is %s in the last half, "
        "beyond %s. The gradients are those of another policy than the one that sampled.",
        f->worst->name, text_number(a, f->high.value), text_number(b, f->limit));
}

void traininglog_says_kl(const facts *f, char *text, size_t size)
{
    number a, b;
    snprintf(text, size, "the KL (%s) rises from %s to %s: the policy runs away from its reference.", f->worst->name,
             text_number(a, f->of_worst.best.value), text_number(b, f->high.value));
}

void traininglog_says_clip(const facts *f, char *text, size_t size)
{
    number a;
    snprintf(text, size,
             "the clip fraction (%s) is %s in the last half: the updates leave the range that they are clipped to.",
             f->worst->name, text_number(a, f->high.value));
}

/* ---- the course of the loss ---- */

void traininglog_says_flat(const facts *f, char *text, size_t size)
{
    const course *loss = &f->of_loss, *norm = &f->of_norm;
    number a, b;
    if (loss->flat)
        snprintf(text, size, "the loss is %s in all %s lines%s: nothing is learned.", text_number(a, loss->first.value),
                 text_count(b, loss->n),
                 norm->flat && norm->first.value == 0 ? ", and the norm of the gradients 0" : "");
    else
        snprintf(text, size, "the norm of the gradients is 0 in all %s lines: nothing is learned.",
                 text_count(b, norm->n));
}

void traininglog_says_rise(const facts *f, char *text, size_t size)
{
    const course *c = &f->of_loss;
    number a, b;
    snprintf(text, size, "the loss rises from %s to %s, and does not come back.", text_number(a, c->best.value),
             text_number(b, c->end.value));
}

void traininglog_says_may_rise(const facts *f, char *text, size_t size)
{
    const course *c = &f->of_loss;
    number a, b, d;
    snprintf(
        text, size,
        "the loss is %s in line %s and %s at the end. If it stays there, or goes on, the run is lost; losses that vary so "
        "much may look like this, too.",
        text_number(a, c->low.value), text_count(d, c->low.line), text_number(b, c->high.value));
}

void traininglog_says_starting(const facts *f, char *text, size_t size)
{
    const course *c = &f->of_loss;
    number a, b, d;
    snprintf(
        text, size,
        "too early to tell: the loss goes from %s up to %s and is %s at the end%s. A start may look like this, and a run "
        "that diverges.",
        text_number(a, c->first.value), text_number(b, c->most.value), text_number(d, c->end.value),
        c->falls ? ", where it falls" : "");
}

void traininglog_says_jumps(const facts *f, char *text, size_t size)
{
    const int norm = f->of_norm.jumps > 0;
    const course *c = norm ? &f->of_norm : &f->of_loss;
    const char *after = c->open ? ", and has not come back at the end" : ", and comes back";
    number a, b;
    snprintf(text, size, "in %s line%s the %s%s, up to %s%s.", text_count(a, c->jumps), text_plural(c->jumps),
             norm ? "norm of the gradients is ten times what is usual or more" : "loss jumps", "",
             text_number(b, c->highest.value), after);
}

void traininglog_says_well(const facts *f, char *text, size_t size)
{
    const course *c = &f->of_loss;
    const int level = c->n >= FACTS_FEW && !(f->set & FACT(LEARNS)) &&
                      c->first.value - c->best.value < fabs(c->best.value) / 20;
    snprintf(text, size, "nothing is Inf or NaN, nothing jumps, nothing runs away.%s%s",
             f->set & FACT(ZERO_LOSS) ? " A loss near 0 is no fault: in GRPO it is beta times the KL by construction."
                                      : "",
             level       ? " The loss neither falls nor rises: these lines do not show whether the model gets better."
             : c->n == 0 ? " No loss was read."
                         : "");
}

/* ---- what is not known ---- */

void traininglog_says_doubt(const facts *f, char *text, size_t size)
{
    snprintf(text, size, "%s looks well, but the log leaves a question.",
             f->set & FACT(SCALED) ? "the scale alone" : "what the log tells");
}

/* Few lines: what they mean under a condition. */
void traininglog_says_few(const facts *f, char *text, size_t size)
{
    const int lost = f->loss.lost || f->norm.lost;
    number a, b, d;
    if (lost)
        snprintf(
            text, size,
            "the %s is %s in %s of %s lines. If this is the start under mixed precision, this is normal: the scale is "
            "being searched, and such steps are skipped. If it goes on, or comes later, the run is lost.",
            lost_series(f)->name, traininglog_sentence_lost_as(lost_series(f)), text_count(a, lost_series(f)->lost),
            text_count(b, lost_series(f)->lost + lost_series(f)->n));
    else if (f->loss.n > 1)
        snprintf(text, size, "the loss goes from %s to %s; %s lines are too few to tell more.",
                 text_number(a, f->of_loss.first.value), text_number(b, f->of_loss.last.value),
                 text_count(d, f->loss.n));
    else
        snprintf(text, size, "too few lines tell a loss or a norm of the gradients.");
}

void traininglog_says_unclear(const facts *f, char *text, size_t size)
{
    const track *t = f->t;
    const int grown = f->e.count && traininglog_dialect_grown(f->dialect, f->e.at[0].before);
    const char *start =
        grown ? " If the scale had grown to that, this is normal: the growth is taken back."
              : " If this is the start under mixed precision, this is normal: the scale is being searched.";
    number a, b;
    if (t->steps == 0)
        snprintf(text, size, "no line tells a loss scale that can be read.");
    else if (f->e.count == 0)
        snprintf(text, size, "one line tells a scale, and no overflow.");
    else if (isnan(t->last))
        snprintf(text, size, "%s overflow%s at unknown scales: the excerpt does not tell why.%s",
                 text_count(a, t->overflows), text_plural(t->overflows), start);
    else
        snprintf(text, size,
                 "%s overflow%s, down to a scale of %s: the excerpt does not tell whether this is a search, growth or "
                 "divergence.%s",
                 text_count(a, t->overflows), text_plural(t->overflows), text_scale(b, t->last),
                 t->last > 1 && !f->late ? start : "");
}
