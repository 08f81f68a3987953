/* healthtext.c -- see healthtext.h. */
#include "healthtext.h"

#include "../report/report.h"
#include "../text/words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
    verdict verdict;
    const char *advice;
} known[] = {
    [HEALTH_UNKNOWN] = {VERDICT_UNCLEAR, "Give more lines, with the loss and the norm of the gradients."},
    [HEALTH_LOST] = {VERDICT_LOST,
                     "Go back to a checkpoint from before that line. Find the first tensor with Inf or NaN (mpsim "
                     "stat on recorded tensors): data, a division, a logarithm of 0, an overflow in the forward pass."},
    [HEALTH_ISOLATED] = {VERDICT_LOST,
                         "Look at the batches of these steps, and skip a step whose norm is not finite: one that is "
                         "taken makes every weight NaN."},
    [HEALTH_VALIDATION] = {VERDICT_LOST,
                           "Evaluate in binary32, or bf16: what is NaN only there overflows in the evaluation's "
                           "narrower format, or in averaged weights."},
    [HEALTH_METRIC_LOST] = {VERDICT_LOST,
                            "Look at what this number is computed from: a logarithm of 0, a division by a length or a "
                            "deviation of 0, a sampler that returns NaN."},
    [HEALTH_GAP] = {VERDICT_MISMATCH,
                    "Make both sides compute alike: the same format (no fp8 on one side only), weights that have "
                    "arrived, the same temperature and mask; or correct by importance weights."},
    [HEALTH_KL] = {VERDICT_DIVERGING,
                   "Go back to a checkpoint from before; lower the learning rate, or raise the KL penalty."},
    [HEALTH_CLIP] = {VERDICT_DIVERGING,
                     "Lower the learning rate, or take fewer updates of the same samples: what is clipped teaches "
                     "nothing."},
    [HEALTH_RISES] = {VERDICT_DIVERGING,
                      "Stop, go back to a checkpoint from before the rise, lower the learning rate or clip the "
                      "gradients."},
    [HEALTH_FLAT_LOSS] = {VERDICT_UNLEARNED,
                          "Look whether the loss depends on the weights (detached or frozen, labels that are all "
                          "masked), whether gradients vanish in their format, and whether the learning rate is 0."},
    [HEALTH_JUMPS] = {VERDICT_SPIKES,
                      "Look at the batches of these steps; clip the gradients, or lower the learning rate, if it goes "
                      "on."},
    [HEALTH_WELL] = {VERDICT_WELL, "Go on, with the loss and the norm of the gradients in the log."},
};

verdict health_verdict(health_finding found)
{
    return known[found].verdict;
}

const char *health_advice(health_finding found)
{
    return known[found].advice;
}

static const char *lost_as(const series *s)
{
    return s->as == VALUE_INF ? "infinite" : s->as == VALUE_GONE ? "left out" : "NaN";
}

/* ---- the verdict ---- */

static void lost_text(const series *s, char *text, size_t size)
{
    char a[32], b[32], c[32];
    if (s->n + s->others == 0)
        snprintf(text, size, "the %s is %s in all %s lines that tell it.", s->name, lost_as(s), text_count(a, s->lost));
    else if (s->ending && s->groups == 1)
        snprintf(text, size, "the %s is %s from line %s on, in %s line%s.", s->name, lost_as(s),
                 text_count(a, s->since), text_count(b, s->ending), text_plural(s->ending));
    else
        snprintf(text, size, "the %s is %s in %s of %s lines, first in line %s.", s->name, lost_as(s),
                 text_count(a, s->lost), text_count(b, s->lost + s->n), text_count(c, s->first_lost));
}

static int is_zero_at_last(const series *s)
{
    return s->n && s->at[s->n - 1].value == 0;
}

/* What norms that are not finite mean beside their losses. */
static const char *norm_meaning(const health *h)
{
    return h->norm.lost == 0 || h->loss.lost ? ""
           : is_zero_at_last(&h->loss)
               ? " The loss of 0 beside it is NaN, too, as Hugging Face's Trainer prints it (logging_nan_inf_filter)."
           : h->learns ? " The loss is finite: the backward pass makes it."
                       : " The loss is finite: the backward pass makes it, or in fp16 too large a loss scale.";
}

static void gap_text(const health *h, char *text, size_t size)
{
    char a[32], b[32];
    snprintf(text, size,
             "trainer and sampler do not agree about the log-probabilities of the same tokens: %s is %s in the last "
             "half, beyond %s. The gradients are those of another policy than the one that sampled.",
             h->worst->name, text_number(a, h->high.value), text_number(b, h->limit));
}

static void metrics_text(const health *h, health_finding found, char *text, size_t size)
{
    char a[32], b[32];
    if (found == HEALTH_GAP)
        gap_text(h, text, size);
    else if (found == HEALTH_KL)
        snprintf(text, size, "the KL (%s) rises from %s to %s: the policy runs away from its reference.",
                 h->worst->name, text_number(a, h->low.value), text_number(b, h->high.value));
    else if (found == HEALTH_CLIP)
        snprintf(text, size,
                 "the clip fraction (%s) is %s in the last half: the updates leave the range that they are clipped to.",
                 h->worst->name, text_number(a, h->high.value));
    else
        lost_text(h->worst, text, size);
}

static void jumps_text(const health *h, char *text, size_t size)
{
    char a[32], b[32], c[32];
    if (h->norm_jumps.n)
        snprintf(text, size,
                 "in %s line%s the norm of the gradients is ten times what is usual or more, up to %s, and comes back.",
                 text_count(a, h->norm_jumps.n), text_plural(h->norm_jumps.n),
                 text_number(b, h->norm_jumps.largest.value));
    else
        snprintf(text, size, "in %s line%s the loss jumps, up to %s, and comes back.", text_count(a, h->loss_jumps.n),
                 text_plural(h->loss_jumps.n), text_number(c, h->loss_jumps.largest.value));
}

static void flat_text(const health *h, char *text, size_t size)
{
    char a[32], b[32], c[32];
    if (h->loss.n && series_is_flat(&h->loss))
        snprintf(text, size, "the loss is %s in all %s lines%s: nothing is learned.",
                 text_number(a, h->loss.at[0].value), text_count(b, h->loss.n),
                 h->norm.n && series_is_flat(&h->norm) && h->norm.at[0].value == 0 ? ", and the norm of the gradients 0"
                                                                                   : "");
    else
        snprintf(text, size, "the norm of the gradients is 0 in all %s lines: nothing is learned.",
                 text_count(c, h->norm.n));
}

void health_text(const health *h, health_finding found, char *text, size_t size)
{
    char a[32], b[32];
    const series *lost = h->loss.lost ? &h->loss : &h->norm;
    switch (found) {
    case HEALTH_LOST: {
        char first[256];
        lost_text(lost, first, sizeof first);
        snprintf(text, size, "%s%s", first, norm_meaning(h));
        break;
    }
    case HEALTH_ISOLATED:
        snprintf(text, size,
                 "the %s is %s in %s line%s, with finite ones after: the weights are intact, as NaN in them would "
                 "stay. Single bad batches, or steps that were skipped.",
                 lost->name, lost_as(lost), text_count(a, lost->lost), text_plural(lost->lost));
        break;
    case HEALTH_VALIDATION:
        lost_text(&h->validation, text, size);
        break;
    case HEALTH_RISES:
        snprintf(text, size, "the loss rises from %s to %s, and does not come back.", text_number(a, h->low.value),
                 text_number(b, h->high.value));
        break;
    case HEALTH_FLAT_LOSS:
        flat_text(h, text, size);
        break;
    case HEALTH_JUMPS:
        jumps_text(h, text, size);
        break;
    case HEALTH_WELL:
        snprintf(text, size, "nothing is Inf or NaN, nothing jumps, nothing runs away.");
        break;
    case HEALTH_UNKNOWN:
        snprintf(text, size, "too few lines tell a loss or a norm of the gradients.");
        break;
    default:
        metrics_text(h, found, text, size);
        break;
    }
}

/* ---- evidence ---- */

typedef struct speaker {
    health_say say;
    void *context;
} speaker;

__attribute__((format(printf, 4, 5))) static void say(const speaker *to, uint64_t line, uint64_t last_line,
                                                      const char *format, ...)
{
    char text[256];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    to->say(to->context, line, last_line, text);
}

static void say_lost(const speaker *to, const series *s)
{
    char a[32];
    if (s->lost && s->groups == 1 && s->ending)
        say(to, s->since, s->last_lost, "the %s is %s from here on, in %s line%s", s->name, lost_as(s),
            text_count(a, s->lost), text_plural(s->lost));
    else if (s->lost)
        say(to, s->first_lost, s->last_lost, "the %s is %s in %s line%s%s", s->name, lost_as(s), text_count(a, s->lost),
            text_plural(s->lost), s->n + s->others == 0 ? "" : ", finite between or after");
}

/* From the first to the last, or that it does not move. */
static void say_course(const speaker *to, const series *s)
{
    char a[32], b[32];
    if (s->n == 0)
        return;
    const sample first = s->at[0], last = s->at[s->n - 1];
    if (s->n > 1 && series_is_flat(s))
        say(to, first.line, last.line, "the %s is %s in %s lines", s->name, text_number(a, first.value),
            text_count(b, s->n));
    else if (s->n > 1)
        say(to, first.line, last.line, "the %s goes from %s to %s", s->name, text_number(a, first.value),
            text_number(b, last.value));
    else
        say(to, first.line, first.line, "the %s is %s", s->name, text_number(a, first.value));
}

static void say_jump(const speaker *to, const series *s, size_t jumps, sample which)
{
    char a[32], b[32];
    if (jumps)
        say(to, which.line, which.line, "the %s is %s, where %s is usual", s->name, text_number(a, which.value),
            text_number(b, series_median(s, 0, s->n).value));
}

/* A loss that rises, and the norm of the gradients where that is large meanwhile. */
static void say_rise(const speaker *to, const health *h)
{
    char a[32], b[32];
    if (h->found != HEALTH_RISES)
        return;
    say(to, h->low.line, h->high.line, "the loss rises from %s to %s", text_number(a, h->low.value),
        text_number(b, h->high.value));
    say_jump(to, &h->norm, h->norm_jumps.n, h->norm_jumps.first);
}

void health_evidence(const health *h, health_say to_say, void *context)
{
    const speaker to = {to_say, context};
    const series *all[] = {&h->loss, &h->norm, &h->validation};
    for (size_t i = 0; i < 3; i++) {
        say_lost(&to, all[i]);
        say_course(&to, all[i]);
    }
    say_rise(&to, h);
    if (h->found == HEALTH_JUMPS)
        say_jump(&to, &h->norm, h->norm_jumps.n, h->norm_jumps.largest);
    say_jump(&to, &h->loss, h->loss_jumps.n, h->loss_jumps.largest);
    for (unsigned i = 0; i < h->metrics->n_names; i++) {
        series named = h->more[i];
        char name[96];
        snprintf(name, sizeof name, "%s (%s)", h->more[i].name, metric_kind_name(h->metrics->names[i].kind));
        named.name = name;
        say_lost(&to, &named);
        say_course(&to, &named);
    }
}
