/* testimony.c -- see testimony.h. */
#include "testimony.h"

#include "healthtext.h"

#include "../report/report.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- evidence ---- */

__attribute__((format(printf, 4, 5))) static void say(log_judgement *j, uint64_t line, uint64_t last_line,
                                                      const char *format, ...)
{
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

void testimony_miss(log_judgement *j, const char *what)
{
    text_add(j->missing, sizeof j->missing, "%s%s", *j->missing ? "; " : "", what);
}

static const char *place_text(char out[64], const log_place *p)
{
    char a[32], b[32];
    out[0] = 0;
    if (p->step >= 0 && p->of >= 0)
        snprintf(out, 64, " at step %s of %s", text_count(a, (uint64_t)p->step), text_count(b, (uint64_t)p->of));
    else if (p->step >= 0)
        snprintf(out, 64, " at step %s", text_count(a, (uint64_t)p->step));
    return out;
}

static void say_episode(log_judgement *j, const episode *e)
{
    char n[32], a[32], b[32], at[64];
    if (isnan(e->before) || isnan(e->after))
        say(j, e->line, e->last_line, "%s overflow%s%s", text_count(n, e->n), text_plural(e->n),
            place_text(at, &e->first));
    else
        say(j, e->line, e->last_line, "%s overflow%s%s, scale %s to %s%s", text_count(n, e->n), text_plural(e->n),
            place_text(at, &e->first), text_scale(a, e->before), text_scale(b, e->after),
            e->inferred ? " (by the scale)" : "");
}

/* The first and the last of the overflows. */
static void say_overflows(log_judgement *j, const facts *f)
{
    const size_t n = f->e.count;
    if (n > 0)
        say_episode(j, &f->e.at[0]);
    if (f->spike && f->spike != &f->e.at[0] && (n < 2 || f->spike != &f->e.at[n - 1]))
        say_episode(j, f->spike);
    if (n > 1)
        say_episode(j, &f->e.at[n - 1]);
}

static void say_start(log_judgement *j, const facts *f)
{
    const episode *first = f->e.count ? &f->e.at[0] : NULL;
    char a[32], at[64];
    if (first && f->initial)
        say(j, first->line, first->line, "the first scale is %s, where %s", text_scale(a, first->before),
            isnan(f->declared) ? "its framework starts" : "the settings start");
    if (first && f->early)
        say(j, first->first.line ? first->first.line : first->line, 0, "the overflows begin%s, early in the run",
            place_text(at, &first->first));
}

/* Logs without an overflow, or with a scale that says all. */
static void say_scale(log_judgement *j, const facts *f)
{
    const track *t = f->t;
    char a[32], b[32];
    if (t->count == 0 || isnan(t->last) || (f->e.count && t->last > 1))
        return;
    const span *first = &t->spans[0], *last = &t->spans[t->count - 1];
    const double begin = isnan(first->scale) ? first->next : first->scale;
    if (begin == t->last && begin == 0)
        say(j, first->line, last->last_line, "the scale is printed as 0");
    else if (begin == t->last && begin == 1 && f->e.count == 0)
        say(j, first->line, last->last_line, "the scale is 1: the run does not scale its loss");
    else if (begin == t->last)
        say(j, first->line, last->last_line, "the scale is %s", text_scale(a, begin));
    else
        say(j, first->line, last->last_line, "the scale goes from %s to %s", text_scale(a, begin),
            text_scale(b, t->last));
}

/* Beside what is worse. */
static void say_scales(log_judgement *j, const facts *f)
{
    if (facts_scaleless(f))
        return;
    say_overflows(j, f);
    say_scale(j, f);
}

static void say_jumps(log_judgement *j, const facts *f)
{
    enum { MOST = 2 };
    const training_log *l = f->l;
    char a[32], b[32];
    for (size_t i = 0; i < l->n_jumps && i < MOST; i++)
        say(j, l->jumps[i].line, 0, "%sthe scale jumps from %s to %s",
            l->jumps[i].restart ? "the steps begin again, and " : "", text_scale(a, l->jumps[i].from),
            text_scale(b, l->jumps[i].to));
}

static void say_total(log_judgement *j, const facts *f)
{
    char a[32], b[32];
    if (f->total)
        say(j, f->total->line, 0, "%s of %s steps were skipped so far", text_count(a, (uint64_t)f->total->skipped),
            text_count(b, (uint64_t)f->total->step));
}

static void say_tail(log_judgement *j, const facts *f)
{
    char a[32], b[32];
    if (j->verdict == VERDICT_FLOOR && f->e.tail_lines == 0)
        return;
    if (f->e.count && f->e.tail_steps)
        say(j, f->e.tail_line, 0, "%s clean step%s after the last overflow%s%s", text_count(a, f->e.tail_steps),
            text_plural(f->e.tail_steps), isnan(f->t->last) ? "" : ", scale ",
            isnan(f->t->last) ? "" : text_scale(b, f->t->last));
    else if (f->e.count && f->e.tail_lines)
        say(j, f->e.tail_line, 0, "%s line%s with a finite loss or norm after the last overflow",
            text_count(a, f->e.tail_lines), text_plural(f->e.tail_lines));
}

/* Losses that are not finite: to the end of the log, or with finite ones between. */
static void say_lost(log_judgement *j, const training_log *l)
{
    const char *as = l->lost_as == VALUE_INF    ? "infinite"
                     : l->lost_as == VALUE_GONE ? "left out, as Megatron does where it is NaN,"
                                                : "NaN";
    char a[32];
    if (l->lost_since && l->lost_groups == 1)
        say(j, l->lost, 0, "the loss is %s from here on, in %s line%s", as, text_count(a, l->lost_lines),
            text_plural(l->lost_lines));
    else if (l->lost_lines)
        say(j, l->lost_first, l->lost_last, "the loss is %s in %s line%s, %s", as, text_count(a, l->lost_lines),
            text_plural(l->lost_lines), l->lost_since ? "finite between them" : "finite after");
}

static void say_loss(log_judgement *j, const facts *f)
{
    enum { JUMP = 10 }; /* of a loss that comes back: by this factor above both ends */
    char a[32], b[32];
    say_lost(j, f->l);
    if (f->loss.n < 2)
        return;
    if (f->loss.best > 0 && f->loss.most > JUMP * fmax(f->loss.first, f->loss.last))
        say(j, f->loss.most_line, 0, "the loss jumps to %s", text_number(a, f->loss.most));
    if (facts_loss_rises(f))
        say(j, f->loss.best_line, f->loss.last_line, "the loss rises from %s to %s", text_number(a, f->loss.best),
            text_number(b, f->loss.last));
    else
        say(j, f->loss.first_line, f->loss.end_line, "the loss is %s, after %s at first", text_number(a, f->loss.end),
            text_number(b, f->loss.first));
}

static void say_norm(log_judgement *j, const facts *f)
{
    char a[32];
    if (f->norm.lost)
        say(j, f->norm.line, f->norm.last_line,
            "the norm of the gradients is NaN or Inf in %s line%s that tell no overflow", text_count(a, f->norm.lost),
            text_plural(f->norm.lost));
}

static void say_marks(log_judgement *j, const facts *f)
{
    const span *stop = NULL;
    for (size_t i = 0; i < f->t->count && j->verdict == VERDICT_FLOOR; i++)
        if (f->t->spans[i].events & MPSIM_SCALER_RAISED)
            stop = &f->t->spans[i];
    if (f->resumed)
        say(j, f->resumed->line, 0, "a checkpoint is loaded");
    if (stop)
        say(j, stop->line, 0, "the framework's own error ends the run");
    else if (f->ended)
        say(j, f->ended->line, 0, "an error ends the run");
}

/* ---- what is missing ---- */

static void find_missing(log_judgement *j, const facts *f)
{
    if (j->by_health && !j->missing[0]) {
        testimony_miss(j, "more lines with a loss or a norm of the gradients");
        return;
    }
    if (f->t->steps == 0)
        testimony_miss(j, "the loss scale");
    if (f->l->unread_line && !j->missing[0])
        testimony_miss(j, "the scale of overflows whose lines cannot be read");
    if (f->e.count && !f->initial && isnan(f->declared))
        testimony_miss(j, "the scale at which the run began");
    if (f->e.count && f->e.at[0].first.step < 0)
        testimony_miss(j, "step numbers");
    if (f->e.count && !f->ends)
        testimony_miss(j, "lines after the last overflow");
    if (f->t->steps == 1 && !f->e.count)
        testimony_miss(j, "more than one line");
    if (f->loss.n == 0 && f->l->lost_lines == 0)
        testimony_miss(j, "the loss");
}

/* ---- verdicts ---- */

static void unclear_text(const log_judgement *j, const facts *f, char *text, size_t size)
{
    char a[32], b[32];
    if (f->t->steps == 0)
        snprintf(text, size, "no line tells a loss scale that can be read.");
    else if (j->missing[0])
        snprintf(text, size, "the scale alone looks well, but the log leaves a question.");
    else if (f->e.count == 0)
        snprintf(text, size, "one line tells a scale, and no overflow.");
    else if (isnan(f->t->last))
        snprintf(text, size, "%s overflow%s at unknown scales: the excerpt does not tell why.",
                 text_count(a, f->t->overflows), text_plural(f->t->overflows));
    else
        snprintf(text, size,
                 "%s overflow%s, down to a scale of %s: the excerpt does not tell whether this is "
                 "a search, growth or divergence.",
                 text_count(a, f->t->overflows), text_plural(f->t->overflows), text_scale(b, f->t->last));
}

static void diverging_text(const facts *f, char *text, size_t size)
{
    char a[32], b[32];
    if (facts_skips_most(f))
        snprintf(text, size, "%s of %s steps were skipped: the run does not train.",
                 text_count(a, (uint64_t)f->total->skipped), text_count(b, (uint64_t)f->total->step));
    else if (f->e.count == 0)
        snprintf(text, size,
                 "the norm of the gradients is NaN or Inf step after step, at a scale of %s: the run is lost.",
                 text_scale(a, f->t->last));
    else if (facts_loss_rises(f))
        snprintf(text, size, "overflows push the scale down to %s while the loss rises: the run diverges.",
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
                 "the scale jumps %s time%s without an overflow or growth: %s. See what the log does not explain.",
                 text_count(a, f->l->n_jumps), text_plural(f->l->n_jumps),
                 f->l->restarts ? "the scaler's state was lost on resume"
                                : "a new start without the scaler's state, or lines are missing");
}

static void spikes_text(const facts *f, char *text, size_t size)
{
    char a[32], b[32], c[32];
    if (facts_isolated(f)) {
        snprintf(text, size,
                 "%s of %s steps overflow and are skipped, one at a time, and the scale is constant at %s: it is too "
                 "large for these steps, or they hold Inf or NaN.",
                 text_count(a, f->t->overflows), text_count(b, f->t->steps), text_scale(c, f->t->last));
        return;
    }
    if (f->spikes)
        snprintf(text, size,
                 "%s of %s groups of overflows come where the scale had not grown before: "
                 "gradients spike, or some steps hold Inf or NaN.",
                 text_count(a, f->spikes), text_count(b, f->e.count));
    else
        snprintf(text, size, "steps overflow now and then, and the run goes on.");
    if (f->e.tail_steps == 0 && f->e.tail_lines == 0)
        text_add(text, size, " The last step overflows, too: what follows is not known.");
}

static void startup_text(const facts *f, char *text, size_t size)
{
    uint64_t overflows = 0;
    const uint64_t after = f->e.tail_steps ? f->e.tail_steps : f->e.tail_lines;
    char a[32], b[32];
    for (size_t i = 0; i < f->e.count; i++)
        overflows += f->e.at[i].n;
    snprintf(text, size,
             "%s overflow%s while the scale came down to what the gradients fit, then none in %s %s%s. This is normal.",
             text_count(a, overflows), text_plural(overflows), text_count(b, after), f->e.tail_steps ? "step" : "line",
             text_plural(after));
}

/* Inf or NaN in a log that tells a scale. */
static void not_finite_text(const facts *f, char *text, size_t size)
{
    char a[32], b[32];
    if (facts_isolated(f))
        snprintf(text, size,
                 "%s of %s steps had Inf or NaN in the gradients and were skipped, and the loss goes on: isolated bad "
                 "batches, and the weights are intact. The scale is 1 throughout: no loss scale is to blame.",
                 text_count(a, f->t->overflows), text_count(b, f->t->steps));
    else if (f->l->lost_lines && !f->l->lost_since)
        snprintf(text, size,
                 "the loss or the norm of the gradients is NaN or Inf now and then, with finite losses after: the "
                 "weights are intact, as NaN in them would stay. It comes from single batches, not from the loss "
                 "scale.");
    else
        snprintf(text, size,
                 "the loss or the norm of the gradients is NaN or Inf: it comes from "
                 "somewhere else than the loss scale.");
}

/* A scale that no overflow holds down, and how long it takes to come back up. */
static void low_text(const facts *f, char *text, size_t size)
{
    enum { WINDOW = 2000 }; /* of torch.amp.GradScaler, Apex and Keras */
    char a[32], b[32], c[32];
    const series *norms = &f->health.norm;
    const double norm = norms->n ? series_median(norms, 0, norms->n).value : 0;
    /* numbers of a log, however small: the largest power of two, and no more powers than between all binary64 numbers */
    const double fits = norm > 0 ? exp2(fmin(1023, floor(log2(65504) - log2(norm)))) : 1;
    const double powers = fmin(fmax(1, log2(fits) - log2(f->t->last)), 1023 + 1074);
    snprintf(text, size,
             "nothing overflows at a scale of %s, and nothing holds it there: %s %s, %.0f powers of two above. Small "
             "gradients become zero meanwhile. With a window of %s clean steps for each doubling it takes %s steps to "
             "come back.",
             text_scale(a, f->t->last), norm > 0 ? "the norm of the gradients fits at" : "no gradients need less than",
             text_scale(b, fits), powers, text_count(c, WINDOW), text_count((char[32]){0}, (uint64_t)powers * WINDOW));
}

static void find_text(const log_judgement *j, const facts *f, char *text, size_t size)
{
    if (j->by_health && j->verdict == health_verdict(f->found)) {
        health_text(&f->health, f->found, text, size);
        if (!facts_scaleless(f))
            text_add(text, size, " The loss scale alone would look better.");
        return;
    }
    switch (j->verdict) {
    case VERDICT_UNCLEAR:
        unclear_text(j, f, text, size);
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
    case VERDICT_STUCK:
        low_text(f, text, size);
        break;
    case VERDICT_NOT_FINITE:
        not_finite_text(f, text, size);
        break;
    case VERDICT_TAKEN:
        snprintf(text, size,
                 "the norm of the gradients is NaN or Inf at steps that the log tells "
                 "to have been taken: the weights are lost.");
        break;
    default:
        verdict_text(f->t, j->verdict, text, size);
        break;
    }
}

static void say_health(void *to, uint64_t line, uint64_t last_line, const char *says)
{
    say((log_judgement *)to, line, last_line, "%s", says);
}

void testimony_find(log_judgement *j, const facts *f)
{
    static void (*const say_all[])(log_judgement * j, const facts *f) = {
        say_jumps, say_start, say_overflows, say_scale, say_tail, say_total, say_loss, say_norm, say_marks};
    static void (*const say_rest[])(log_judgement * j, const facts *f) = {say_scales, say_total, say_marks};
    find_text(j, f, j->text, sizeof j->text);
    if (j->by_health)
        health_evidence(&f->health, say_health, j);
    for (size_t i = 0; i < sizeof say_all / sizeof say_all[0] && !j->by_health; i++)
        say_all[i](j, f);
    for (size_t i = 0; i < sizeof say_rest / sizeof say_rest[0] && j->by_health; i++)
        say_rest[i](j, f);
    if (j->sure == NOT_ENOUGH)
        find_missing(j, f);
}
