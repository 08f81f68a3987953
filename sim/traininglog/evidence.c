/* evidence.c -- see evidence.h. */
#include "impl.h"

#include "../record/cells.h"
#include "../text/words.h"
#include "sentences.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

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

static void miss(log_judgement *j, const char *what)
{
    text_add(j->missing, sizeof j->missing, "%s%s", *j->missing ? "; " : "", what);
}

/* ---- the scale ---- */

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

static void say_ranks(log_judgement *j, const facts *f)
{
    const log_apart *p = &f->l->apart;
    char a[32], b[32];
    if (p->lines)
        say(j, p->line, 0, "the scale is %s on rank %lld, where it is %s on rank %lld", text_scale(a, p->other_scale),
            (long long)p->other, text_scale(b, p->scale), (long long)p->rank);
}

/* ---- other numbers ---- */

static void say_lost(log_judgement *j, const series *s)
{
    char a[32];
    if (s->lost && s->groups == 1 && s->ending)
        say(j, s->since, s->last_lost, "the %s is %s from here on, in %s line%s", s->name,
            traininglog_sentence_lost_as(s), text_count(a, s->lost), text_plural(s->lost));
    else if (s->lost)
        say(j, s->first_lost, s->last_lost, "the %s is %s in %s line%s%s", s->name, traininglog_sentence_lost_as(s),
            text_count(a, s->lost), text_plural(s->lost),
            s->n + s->others == 0 ? ""
            : s->ending           ? ", finite between"
                                  : ", finite between or after");
}

/* From the first to the last, or that it does not move. */
static void say_course(log_judgement *j, const series *s)
{
    char a[32], b[32];
    if (s->n == 0)
        return;
    const sample first = s->at[0], last = s->at[s->n - 1];
    size_t same = 1;
    while (same < s->n && s->at[same].value == first.value)
        same++;
    if (s->n == 1)
        say(j, first.line, first.line, "the %s is %s", s->name, text_number(a, first.value));
    else if (same == s->n)
        say(j, first.line, last.line, "the %s is %s in %s lines", s->name, text_number(a, first.value),
            text_count(b, same));
    else
        say(j, first.line, last.line, "the %s goes from %s to %s", s->name, text_number(a, first.value),
            text_number(b, last.value));
}

/* What the loss does between its first value and its last. */
static void say_levels(log_judgement *j, const facts *f)
{
    const course *c = &f->of_loss;
    char a[32], b[32];
    const sample low = f->set & FACT(RISES) ? c->best : c->low, high = f->set & FACT(RISES) ? c->end : c->high;
    if (f->set & (FACT(RISES) | FACT(MAY_RISE)))
        say(j, low.line, high.line, "the loss rises from %s to %s", text_number(a, low.value),
            text_number(b, high.value));
    if (f->set & FACT(STARTING) ||
        (c->jumps == 0 && !(f->set & FACT(LEARNS)) && c->most.value > 10 * fmax(c->first.value, c->end.value)))
        say(j, c->most.line, c->most.line, "the loss is %s", text_number(a, c->most.value));
}

static void say_jump(log_judgement *j, const series *s, const course *c, sample which)
{
    char a[32], b[32];
    if (c->jumps)
        say(j, which.line, which.line, "the %s is %s, where %s is usual", s->name, text_number(a, which.value),
            text_number(b, c->usual.value));
}

static void say_numbers(log_judgement *j, const facts *f)
{
    const series *all[] = {&f->loss, &f->norm, &f->validation};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        say_lost(j, all[i]);
        say_course(j, all[i]);
    }
    say_levels(j, f);
    say_jump(j, &f->norm, &f->of_norm, f->set & FACT(RISES) ? f->of_norm.jump : f->of_norm.highest);
    if (!(f->set & (FACT(LEARNS) | FACT(RISES))))
        say_jump(j, &f->loss, &f->of_loss, f->of_loss.highest);
    for (size_t i = 0; i < f->n_more; i++) {
        series named = f->more[i];
        char name[96];
        snprintf(name, sizeof name, "%s (%s)", named.name, traininglog_metric_kind_name(f->l->metrics.names[i].kind));
        named.name = name;
        say_lost(j, &named);
        say_course(j, &named);
    }
}

static void say_all_of_scale(log_judgement *j, const facts *f)
{
    static void (*const all[])(log_judgement * j, const facts *f) = {say_ranks,     say_jumps, say_start,
                                                                     say_overflows, say_scale, say_tail};
    for (size_t i = 0; i < sizeof all / sizeof all[0] && f->set & FACT(STEPS); i++)
        all[i](j, f);
}

void traininglog_evidence_find(log_judgement *j, const facts *f, int by_numbers)
{
    if (!by_numbers)
        say_all_of_scale(j, f);
    say_numbers(j, f);
    if (by_numbers && f->set & FACT(SCALED))
        say_all_of_scale(j, f);
    say_total(j, f);
    say_marks(j, f);
}

/* ---- what is missing ---- */

void traininglog_evidence_miss(log_judgement *j, const facts *f, int by_numbers)
{
    const char *doubt = traininglog_verdict_doubt(f);
    if (j->sure == NOT_ENOUGH && doubt)
        miss(j, doubt);
    if (j->sure != NOT_ENOUGH)
        return;
    if (by_numbers) {
        if (!j->missing[0] || f->set & FACT(FEW))
            miss(j, "more lines with a loss or a norm of the gradients");
        return;
    }
    const struct {
        int missing;
        const char *what;
    } all[] = {
        {f->t->steps == 0, "the loss scale"},
        {f->l->unread_line && !doubt, "the scale of overflows whose lines cannot be read"},
        {f->e.count && !f->initial && isnan(f->declared), "the scale at which the run began"},
        {f->e.count && f->e.at[0].first.step < 0, "step numbers"},
        {f->e.count && !(f->set & FACT(ENDS)), "lines after the last overflow"},
        {f->t->steps == 1 && !f->e.count, "more than one line"},
        {f->loss.n == 0 && f->loss.lost == 0, "the loss"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].missing)
            miss(j, all[i].what);
}
