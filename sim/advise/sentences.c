/* sentences.c -- the advice in sentences, and what is to be kept wider; see advise.h. */
#include "advise.h"

#include "../record/cells.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { LINE = 1200 };

/* Who is told, and of what. */
typedef struct listener {
    void (*tell)(void *context, advise_topic topic, const char *text);
    void *context;
    advise_topic topic;
} listener;

__attribute__((format(printf, 2, 3))) static void line(const listener *to, const char *format, ...)
{
    char text[LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    to->tell(to->context, to->topic, text);
}

int advise_accumulates(const char *kind)
{
    return strcmp(kind, "weight") == 0 || strcmp(kind, "master") == 0 || strncmp(kind, "opt.", 4) == 0;
}

static double recorded_bytes(const advise_tensor *t)
{
    return (double)t->count * t->stored->bits / 8;
}

static double narrowest_bytes(const advise *a, const advise_tensor *t)
{
    const double bits = a->candidates.items[t->choice].bits;
    return (double)t->count * (bits < t->stored->bits ? bits : t->stored->bits) / 8;
}

int advise_kind_of(advise_kind *k, const advise *a, size_t i)
{
    *k = (advise_kind){.kind = a->tensors[i].kind};
    for (size_t j = 0; j < a->n_tensors; j++) {
        const advise_tensor *t = &a->tensors[j];
        if (strcmp(t->kind, k->kind) != 0 || !t->steps)
            continue;
        if (j < i)
            return 0;
        k->tensors++;
        k->elements += t->count;
        k->recorded += recorded_bytes(t);
        k->narrowest += narrowest_bytes(a, t);
        for (size_t c = 0; c < a->candidates.count; c++)
            k->fits[c] += t->fits >> c & 1;
    }
    return a->tensors[i].steps > 0;
}

static void say_weights(const advise *a, const listener *to)
{
    const advise_stall *s = &a->stall;
    char at[32], lost[32], lr[32], enough[32], more[160] = "", worst[32], bound[32], times[32];
    if (s->unknown) {
        line(to, "Weights: keep them in fp32, or fp32 masters: whether bf16 would do is not known: %s.", s->unknown);
        return;
    }
    snprintf(bound, sizeof bound, "%.3g %%", 100 * a->bounds.lost);
    if (s->no_lr)
        snprintf(more, sizeof more, "; the learning rate that would be large enough is not known: %s", s->no_lr);
    else if (!isnan(s->enough) && s->upwards)
        snprintf(more, sizeof more, "; a learning rate %s times as large (%s) would be needed to lose no more than %s",
                 text_scale(times, s->enough / s->lr), advise_lr(enough, s->enough), bound);
    else if (!isnan(s->enough))
        snprintf(more, sizeof more, "; the learning rate may fall to %s before more than %s are lost",
                 advise_lr(enough, s->enough), bound);
    if (s->keep)
        line(to,
             "Weights: keep fp32 masters, or round updates stochastically or with Kahan's compensation: in bf16 alone "
             "%s of the updates are lost%s (lr %s)%s. Most in %s: %s.",
             text_share(lost, s->lost, s->updates), advise_step(at, " at ", s->step), advise_lr(lr, s->lr), more,
             s->worst, text_share(worst, s->worst_lost, s->worst_updates));
    else
        line(to,
             "Weights: bf16 without fp32 masters loses %s%s of the updates%s (lr %s)%s. The share grows while "
             "a run settles and its learning rate falls.",
             s->lost ? "no more than " : "", s->lost ? text_share(lost, s->lost, s->updates) : "none",
             advise_step(at, ", at ", s->step), advise_lr(lr, s->lr), more);
}

static uint64_t kept_layers(const advise *a)
{
    uint64_t n = 0;
    for (size_t i = 0; i < a->n_layers; i++)
        n += a->layers[i].kept;
    return n;
}

static void say_compute(const advise *a, const listener *to)
{
    const uint64_t kept = kept_layers(a);
    char more[120] = "every tensor of a layer fits";
    if (kept)
        snprintf(more, sizeof more, "keep %" PRIu64 " layer%s in fp32, see below", kept, text_plural(kept));
    if (strcmp(a->compute, "binary32") == 0)
        line(to, "Compute in fp32: neither bf16 nor fp16 is among the formats that were tried.");
    else if (strcmp(a->compute, "bf16") == 0)
        line(to, "Compute in bf16, without a loss scale: %s.", more);
    else if (a->scale_low > a->scale_high)
        line(to, "Compute in fp16: %s.", more);
    else
        line(to, "Compute in fp16 with a loss scale from 2^%d: %s.", a->scale, more);
}

/* Bytes of the operands in a recipe. */
static double operand_bits(const advise *a, const advise_tensor *t)
{
    const char *name = t->role == ROLE_GRAD ? a->recipe->gradient : a->recipe->forward;
    return a->candidates.items[advise_candidates_find(&a->candidates, name)].bits;
}

static void say_recipe(const advise *a, const listener *to)
{
    double bytes = 0, wide = 0;
    char x[32], y[32];
    if (!a->recipe) {
        line(to, "FP8, FP4: %s.", a->no_recipe);
        return;
    }
    for (size_t i = 0; i < a->n_tensors; i++)
        if (a->tensors[i].in_recipe) {
            bytes += (double)a->tensors[i].count * operand_bits(a, &a->tensors[i]) / 8;
            wide += (double)a->tensors[i].count * 2;
        }
    line(to,
         "FP8, FP4: %s for %" PRIu64 " of %" PRIu64
         " linear layer%s: their operands take %s instead of %s in 16 bits%s.",
         a->recipe->name, a->fitting_layers, a->operand_layers, text_plural(a->operand_layers),
         text_bytes(x, (uint64_t)bytes), text_bytes(y, (uint64_t)wide),
         a->fitting_layers < a->operand_layers ? "; the others stay in 16 bits, see below" : "");
    if (a->unjudged_layers)
        line(
            to,
            "Of %" PRIu64
            " more linear layer%s the trace lacks weights, activations or activation gradients: left out of the recipe.",
            a->unjudged_layers, text_plural(a->unjudged_layers));
}

/* The first gradient that the window leaves out, and how many others. */
static const char *left_out(char *out, size_t size, const advise *a)
{
    char why[200];
    const uint64_t others = a->gradients - a->scale_fits - 1;
    out[0] = '\0';
    for (size_t i = 0; i < a->n_tensors && a->scale_fits < a->gradients && !*out; i++) {
        const advise_tensor *t = &a->tensors[i];
        if (t->gradient && t->steps && !t->at_scale)
            snprintf(out, size, "; not %.200s: %s%s", t->name, advise_scale_reason(why, sizeof why, a, t),
                     others ? "; and others" : "");
    }
    return out;
}

/* Names that tell no kind: the tensors may as well be weights. */
static void say_guessed(const advise *a, const listener *to)
{
    uint64_t guessed = 0;
    for (size_t i = 0; i < a->n_tensors; i++)
        guessed += a->tensors[i].gradient && a->tensors[i].steps && !*a->tensors[i].kind;
    if (guessed)
        line(to,
             "The names of %" PRIu64 " tensor%s do not say what the tensors are: they are taken as gradients. Say "
             "--map wgrad if they are, --map weight if they are weights.",
             guessed, guessed == 1 ? "" : "s");
}

static void say_scale(const advise *a, const listener *to)
{
    char low[32], high[32], least[300] = "", most[300] = "", out[480];
    if (!a->gradients)
        line(to, "Loss scale: not known: the trace has no gradients.");
    else if (advise_must_ask(a))
        line(to,
             "Loss scale: not known: %s gradients are numbers of fp16, as a backward pass in fp16 leaves them before "
             "they are unscaled, and the files do not say the loss scale. Give it as --loss-scale S: S is "
             "scaler.get_scale(), or 1 if the run had no scaler.",
             a->fp16_numbers == a->gradient_numbers ? "all" : "most");
    else if (a->bad_scale)
        line(to,
             "Loss scale: not known: gradients were recorded with a scale that is no power of two, or is not said.");
    else if (a->scale_low > a->scale_high)
        line(to, "Loss scale of fp16: none keeps a gradient within the bounds.");
    else {
        const advise_tensor *l = &a->tensors[a->needs_most], *h = &a->tensors[a->bears_least];
        if (a->needs_most < a->n_tensors && l->low.step >= 0 && l->low.exponent > SCALE_LOW)
            snprintf(least, sizeof least, "; %.200s needs 2^%d%s", l->name, l->low.exponent,
                     advise_step(low, " at ", l->low.step));
        if (a->bears_least < a->n_tensors && h->high.step >= 0 && h->high.exponent < SCALE_HIGH)
            snprintf(most, sizeof most, "; %.200s tolerates no more than 2^%d%s", h->name, h->high.exponent,
                     advise_step(high, " at ", h->high.step));
        line(to,
             "Loss scale, for fp16: 2^%d (2^%d to 2^%d%s) keeps %" PRIu64 " of %" PRIu64
             " gradients within the bounds%s%s%s.",
             a->scale, a->scale_low, a->scale_high,
             a->scale_low == SCALE_LOW || a->scale_high == SCALE_HIGH ? ", an end of what is tried" : "", a->scale_fits,
             a->gradients, least, most, left_out(out, sizeof out, a));
        if (a->unsaid)
            line(to,
                 "The files do not say whether these gradients are unscaled; they are taken as unscaled. If they were "
                 "saved between GradScaler's backward and unscale_, give the scale as --loss-scale S.");
        say_guessed(a, to);
    }
}

static void say_saved(const advise *a, const listener *to)
{
    double before = 0, after = 0;
    char x[32], y[32];
    for (size_t i = 0; i < a->n_tensors; i++) {
        if (advise_accumulates(a->tensors[i].kind))
            continue;
        before += recorded_bytes(&a->tensors[i]);
        after += narrowest_bytes(a, &a->tensors[i]);
    }
    if (before > 0)
        line(to, "Bytes: activations and gradients, %s as recorded, take %s in the narrowest format that fits each.",
             text_bytes(x, (uint64_t)before), text_bytes(y, (uint64_t)after));
}

/* ---- what stays wider ---- */

static void why_excluded(char *out, size_t size, const advise *a, const advise_tensor *t)
{
    const char *name = t->role == ROLE_GRAD ? a->recipe->gradient : a->recipe->forward;
    char reason[128];
    const int c = advise_candidates_find(&a->candidates, name);
    out[0] = '\0';
    if (!(t->fits >> c & 1))
        snprintf(out, size, "%s: %s", name, advise_reason(reason, sizeof reason, a, t, (size_t)c));
}

const char *advise_kept_in(char *why, size_t size, const advise *a, const advise_tensor *t)
{
    const advise_layer *l = &a->layers[nameindex_find(&a->layer_names, t->layer)];
    char reason[160];
    if (!t->steps)
        return NULL;
    if (t->keeps_layer && strcmp(a->compute, "fp16") == 0 && t->gradient) {
        snprintf(why, size, "fp16: %s", advise_scale_reason(reason, sizeof reason, a, t));
        return "fp32";
    }
    if (t->keeps_layer || t->choice + 1 == a->candidates.count) {
        const int c = advise_candidates_find(&a->candidates, strcmp(a->compute, "fp16") == 0 ? "fp16" : "bf16");
        snprintf(why, size, "%s: %s", c >= 0 ? a->candidates.items[c].name : "",
                 c >= 0 ? advise_reason(reason, sizeof reason, a, t, (size_t)c) : "nothing narrower fits");
        return "fp32";
    }
    if (a->recipe && t->is_operand && l->excluded && !l->kept) {
        why_excluded(why, size, a, t);
        return *why ? a->compute : NULL;
    }
    return NULL;
}

/* ---- all of it ---- */

void advise_sentences(const advise *a, void (*tell)(void *context, advise_topic topic, const char *text), void *context)
{
    static void (*const topics[ADVISE_TOPICS])(const advise *, const listener *) = {say_weights, say_compute,
                                                                                    say_recipe, say_scale, say_saved};
    for (advise_topic t = 0; t < ADVISE_TOPICS; t++) {
        const listener to = {tell, context, t};
        topics[t](a, &to);
    }
}

void advise_note_roundoff(const advise *a, void (*tell)(void *context, const char *text), void *context)
{
    char text[400], x[32], y[32];
    uint64_t tensors = 0;
    const advise_tensor *first = NULL;
    for (size_t i = a->n_tensors; i-- > 0;)
        if (a->tensors[i].roundoff) {
            first = &a->tensors[i];
            tensors++;
        }
    if (!first)
        return;
    snprintf(
        text, sizeof text,
        "%s of the %s elements of %.200s%s are nothing but what rounding left of sums that are 0 mathematically: left out",
        text_count(x, first->roundoff), text_count(y, first->count), first->name,
        tensors > 1 ? ", and elements of other tensors," : "");
    tell(context, text);
}

void advise_notes(const advise *a, void (*tell)(void *context, const char *text), void *context)
{
    char text[256];
    uint64_t broken = 0;
    for (size_t i = 0; i < a->n_tensors; i++)
        broken += a->tensors[i].broken > 0;
    snprintf(text, sizeof text, "%" PRIu64 " tensor%s without floating-point numbers left out", a->left_out,
             a->left_out == 1 ? "" : "s");
    if (a->left_out)
        tell(context, text);
    snprintf(text, sizeof text,
             "tensors whose names say no kind are left out, such as %.100s; --map RULE gives them one",
             a->kindless ? a->kindless : "");
    if (a->kindless)
        tell(context, text);
    snprintf(text, sizeof text, "gradients with Inf or NaN are left out: of %" PRIu64 " tensors, in some steps",
             broken);
    if (broken)
        tell(context, text);
    snprintf(text, sizeof text, "gradients were recorded in %s: what that had lost is not seen",
             a->low_stored ? a->low_stored : "");
    if (a->low_stored)
        tell(context, text);
}
