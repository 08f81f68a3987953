/* report.c -- the advice as text; see advise.h. */
#include "advise.h"

#include "../report/report.h"
#include "../text/escape.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { WIDTH = 100, FEW = 12, LINE = 1200 };

/* ---- numbered lines ---- */

__attribute__((format(printf, 3, 4))) static void line(FILE *to, int *n, const char *format, ...)
{
    char text[LINE], safe[2 * LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const int at = fprintf(to, "%d. ", ++*n);
    text_wrap(to, at, WIDTH, " ", escape_text(safe, sizeof safe, text));
}

static void print_weights(const advise *a, FILE *to, int *n)
{
    const advise_stall *s = &a->stall;
    char at[32], lost[32], lr[32], enough[32], more[160] = "", worst[32], bound[32], times[32];
    if (s->unknown) {
        line(to, n, "Weights: keep them in fp32, or fp32 masters: whether bf16 would do is not known: %s.", s->unknown);
        return;
    }
    snprintf(bound, sizeof bound, "%.3g %%", 100 * a->bounds.lost);
    if (s->no_lr)
        snprintf(more, sizeof more, "; from which learning rate on is not known: %s", s->no_lr);
    else if (!isnan(s->enough) && s->upwards)
        snprintf(more, sizeof more, "; no more than %s only from lr %s, %s times as large", bound,
                 advise_lr(enough, s->enough), text_scale(times, s->enough / s->lr));
    else if (!isnan(s->enough))
        snprintf(more, sizeof more, "; no more than %s down to lr %s", bound, advise_lr(enough, s->enough));
    if (s->keep)
        line(to, n,
             "Weights: keep fp32 masters, or round updates stochastically or with Kahan's compensation: in bf16 alone "
             "%s of the updates are lost%s (lr %s)%s. Most in %s: %s.",
             text_share(lost, s->lost, s->updates), advise_step(at, " at ", s->step), advise_lr(lr, s->lr), more,
             s->worst, text_share(worst, s->worst_lost, s->worst_updates));
    else
        line(to, n,
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

static void print_compute(const advise *a, FILE *to, int *n)
{
    const uint64_t kept = kept_layers(a);
    char more[120] = "every tensor of a layer fits";
    if (kept)
        snprintf(more, sizeof more, "keep %" PRIu64 " layer%s in fp32, see below", kept, text_plural(kept));
    if (strcmp(a->compute, "binary32") == 0)
        line(to, n, "Compute in fp32: neither bf16 nor fp16 is among the formats that were tried.");
    else if (strcmp(a->compute, "bf16") == 0)
        line(to, n, "Compute in bf16, without a loss scale: %s.", more);
    else if (a->scale_low > a->scale_high)
        line(to, n, "Compute in fp16: %s.", more);
    else
        line(to, n, "Compute in fp16 with a loss scale from 2^%d: %s.", a->scale, more);
}

/* Bytes of the operands in a recipe. */
static double operand_bits(const advise *a, const advise_tensor *t)
{
    const char *name = t->role == ROLE_GRAD ? a->recipe->gradient : a->recipe->forward;
    return a->candidates.items[candidates_find(&a->candidates, name)].bits;
}

static void print_recipe(const advise *a, FILE *to, int *n)
{
    double bytes = 0, wide = 0;
    char x[32], y[32];
    if (!a->recipe) {
        line(to, n, "FP8, FP4: %s.", a->no_recipe);
        return;
    }
    for (size_t i = 0; i < a->n_tensors; i++)
        if (a->tensors[i].in_recipe) {
            bytes += (double)a->tensors[i].count * operand_bits(a, &a->tensors[i]) / 8;
            wide += (double)a->tensors[i].count * 2;
        }
    line(to, n,
         "FP8, FP4: %s for %" PRIu64 " of %" PRIu64
         " linear layer%s: their operands take %s instead of %s in 16 bits%s.",
         a->recipe->name, a->fitting_layers, a->operand_layers, text_plural(a->operand_layers),
         text_bytes(x, (uint64_t)bytes), text_bytes(y, (uint64_t)wide),
         a->fitting_layers < a->operand_layers ? "; the others stay in 16 bits, see below" : "");
    if (a->unjudged_layers)
        line(
            to, n,
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

static void print_scale(const advise *a, FILE *to, int *n)
{
    char low[32], high[32], least[300] = "", most[300] = "", out[480];
    if (!a->gradients)
        line(to, n, "Loss scale: not known: the trace has no gradients.");
    else if (a->bad_scale)
        line(to, n,
             "Loss scale: not known: gradients were recorded with a scale that is no power of two, or is not said.");
    else if (a->scale_low > a->scale_high)
        line(to, n, "Loss scale of fp16: none keeps a gradient within the bounds.");
    else {
        const advise_tensor *l = &a->tensors[a->needs_most], *h = &a->tensors[a->bears_least];
        if (a->needs_most < a->n_tensors && l->low.step >= 0 && l->low.exponent > SCALE_LOW)
            snprintf(least, sizeof least, "; %.200s needs 2^%d%s", l->name, l->low.exponent,
                     advise_step(low, " at ", l->low.step));
        if (a->bears_least < a->n_tensors && h->high.step >= 0 && h->high.exponent < SCALE_HIGH)
            snprintf(most, sizeof most, "; %.200s bears no more than 2^%d%s", h->name, h->high.exponent,
                     advise_step(high, " at ", h->high.step));
        line(to, n,
             "Loss scale, for fp16: 2^%d (2^%d to 2^%d%s) keeps %" PRIu64 " of %" PRIu64
             " gradients within the bounds%s%s%s.",
             a->scale, a->scale_low, a->scale_high,
             a->scale_low == SCALE_LOW || a->scale_high == SCALE_HIGH ? ", an end of what is tried" : "", a->scale_fits,
             a->gradients, least, most, left_out(out, sizeof out, a));
    }
}

/* ---- tables ---- */

/* Weights, masters and moments take up updates from step to step: that a format holds them once does not say that it can keep
 * them. */
static int accumulates(const char *kind)
{
    return strcmp(kind, "weight") == 0 || strcmp(kind, "master") == 0 || strncmp(kind, "opt.", 4) == 0;
}

static double recorded_bytes(const advise_tensor *t)
{
    return (double)t->count * t->stored->bits / 8;
}

static double advised_bytes(const advise *a, const advise_tensor *t)
{
    const double bits = a->candidates.items[t->choice].bits;
    return (double)t->count * (bits < t->stored->bits ? bits : t->stored->bits) / 8;
}

static void print_saved(const advise *a, FILE *to, int *n)
{
    double before = 0, after = 0;
    char x[32], y[32];
    for (size_t i = 0; i < a->n_tensors; i++) {
        if (accumulates(a->tensors[i].kind))
            continue;
        before += recorded_bytes(&a->tensors[i]);
        after += advised_bytes(a, &a->tensors[i]);
    }
    if (before > 0)
        line(to, n, "Bytes: activations and gradients, %s as recorded, take %s in the narrowest format that fits each.",
             text_bytes(x, (uint64_t)before), text_bytes(y, (uint64_t)after));
}

/* A kind: how many of its tensors fit each candidate. */
static void print_kind(const advise *a, table *out, const char *kind)
{
    uint64_t tensors = 0, elements = 0, fits[CANDIDATES_MOST] = {0};
    size_t all = 0;
    double before = 0, after = 0;
    char n[32];
    for (size_t i = 0; i < a->n_tensors; i++) {
        const advise_tensor *t = &a->tensors[i];
        if (strcmp(t->kind, kind) != 0 || !t->steps)
            continue;
        tensors++;
        elements += t->count;
        before += recorded_bytes(t);
        after += advised_bytes(a, t);
        for (size_t c = 0; c < a->candidates.count; c++)
            fits[c] += t->fits >> c & 1;
    }
    while (all + 1 < a->candidates.count && fits[all] < tensors)
        all++;
    table_cell(out, "%s", *kind ? kind : "-");
    table_cell(out, "%s", text_count(n, tensors));
    table_cell(out, "%s", text_count(n, elements));
    for (size_t c = 0; c + 1 < a->candidates.count; c++)
        table_cell(out, "%s", text_count(n, fits[c]));
    table_cell(out, "%s", a->candidates.items[all].name);
    table_cell(out, "%s", text_bytes(n, (uint64_t)before));
    table_cell(out, "%s", accumulates(kind) ? "" : text_bytes(n, (uint64_t)after));
}

static int is_first(const advise *a, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (a->tensors[j].steps && strcmp(a->tensors[j].kind, a->tensors[i].kind) == 0)
            return 0;
    return a->tensors[i].steps > 0;
}

static void print_kinds(const advise *a, FILE *to)
{
    char columns[256];
    size_t n = (size_t)snprintf(columns, sizeof columns, "<kind|>tensors|>elements");
    for (size_t c = 0; c + 1 < a->candidates.count; c++)
        n += (size_t)snprintf(columns + n, sizeof columns - n, "|>%s", a->candidates.items[c].name);
    snprintf(columns + n, sizeof columns - n, "|<all fit|>recorded|>narrowest");
    table *out = table_new(columns);
    int copies = 0;
    for (size_t i = 0; i < a->n_tensors; i++)
        if (is_first(a, i)) {
            print_kind(a, out, a->tensors[i].kind);
            copies |= accumulates(a->tensors[i].kind);
        }
    fputs("\nBy kind: tensors that fit each format in every step\n", to);
    table_print(out, to, "  ");
    table_free(out);
    if (copies)
        fputs(
            "  weights, masters, moments: of a copy; where they take up updates, a format that holds them may lose these\n",
            to);
}

/* ---- what stays wider ---- */

static void why_excluded(char *out, size_t size, const advise *a, const advise_tensor *t)
{
    const char *name = t->role == ROLE_GRAD ? a->recipe->gradient : a->recipe->forward;
    char reason[128];
    const int c = candidates_find(&a->candidates, name);
    out[0] = '\0';
    if (!(t->fits >> c & 1))
        snprintf(out, size, "%s: %s", name, advise_reason(reason, sizeof reason, a, t, (size_t)c));
}

/* What a tensor is to be kept in, and why; NULL: nothing. */
static const char *kept_in(char *why, size_t size, const advise *a, const advise_tensor *t)
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
        const int c = candidates_find(&a->candidates, strcmp(a->compute, "fp16") == 0 ? "fp16" : "bf16");
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

static void print_wider(const advise *a, int all, FILE *to)
{
    table *out = table_new("<tensor|<keep in|<why");
    char why[400];
    size_t n = 0;
    for (size_t i = 0; i < a->n_tensors; i++) {
        const char *in = kept_in(why, sizeof why, a, &a->tensors[i]);
        if (!in || (n++ >= FEW && !all))
            continue;
        table_cell(out, "%s", a->tensors[i].name);
        table_cell(out, "%s", in);
        table_cell(out, "%s", why);
    }
    if (n) {
        fputs("\nTo be kept wider\n", to);
        table_print(out, to, "  ");
    }
    if (n > FEW && !all)
        fprintf(to, "  and %zu more (--tensors lists all)\n", n - FEW);
    table_free(out);
}

/* ---- every tensor ---- */

static void worst_cell(table *out, const advise_worst *w, int decibels)
{
    if (isnan(w->value))
        table_cell(out, "%s", "");
    else if (decibels && isinf(w->value))
        table_cell(out, "exact");
    else if (decibels)
        table_cell(out, "%.1f", w->value);
    else if (w->value > 0)
        table_cell(out, "%.3g %%", 100 * w->value);
    else
        table_cell(out, "0");
}

static void print_tensor(const advise *a, table *out, const advise_tensor *t)
{
    const advise_evidence *e = &t->of[t->choice];
    char n[32], reason[128] = "", at[32];
    table_cell(out, "%s", t->name);
    table_cell(out, "%s", text_count(n, t->count));
    table_cell(out, "%s", t->steps ? a->candidates.items[t->choice].name : "not known");
    if (!t->steps) {
        table_cell(out, "%s", ""), table_cell(out, "%s", ""), table_cell(out, "%s", "");
        table_cell(out, "Inf or NaN in every step");
        table_cell(out, "%s", "");
        return;
    }
    worst_cell(out, &e->underflow, 0);
    worst_cell(out, &e->sqnr, 1);
    table_cell(out, "%s", advise_step(at, "", e->sqnr.step) + (e->sqnr.step >= 0 ? strlen("step ") : 0));
    if (t->choice)
        table_cell(out, "%s: %s", a->candidates.items[t->choice - 1].name,
                   advise_reason(reason, sizeof reason, a, t, t->choice - 1));
    else
        table_cell(out, "%s", "");
    if (t->gradient && t->scales && !a->bad_scale)
        table_cell(out, "2^%d to 2^%d", t->low.exponent, t->high.exponent);
    else
        table_cell(out, "%s", t->gradient && !a->bad_scale ? "none" : "");
}

static void print_tensors(const advise *a, FILE *to)
{
    table *out = table_new("<tensor|>elements|<narrowest|>underflow|>SQNR dB|>at step|<not|<fp16 scales");
    for (size_t i = 0; i < a->n_tensors; i++)
        print_tensor(a, out, &a->tensors[i]);
    fputs("\nBy tensor: the narrowest format that fits every step, and its worst numbers\n", to);
    table_print(out, to, "  ");
    table_free(out);
}

/* ---- what was held back ---- */

static void print_kept(const advise *a, FILE *to, const char *what, const advise_kept *k)
{
    char x[32], y[32], z[32], at[32], name[512];
    if (!k->judged)
        return;
    fprintf(to, "  %-28s kept in %s of %s, %s", what, text_count(x, k->kept), text_count(y, k->judged),
            text_share(z, k->kept, k->judged));
    if (k->kept < k->judged) {
        escape_text(name, sizeof name, a->tensors[k->tensor].name);
        fprintf(to, "; first not by %s%s", name, advise_step(at, " at ", k->step));
    }
    fputc('\n', to);
}

static void print_held(const advise *a, FILE *to)
{
    if (!a->hold_back)
        return;
    fprintf(to,
            "\nHeld back: %" PRIu64 " step%s that the advice does not know, and how often its bounds are kept there\n",
            a->held_steps, text_plural(a->held_steps));
    print_kept(a, to, "narrowest format of a tensor", &a->kept_choice);
    print_kept(a, to, "loss scale of a gradient", &a->kept_scale);
    print_kept(a, to, "recipe of an operand", &a->kept_recipe);
}

static void print_head(const advise *a, FILE *to)
{
    char x[32], y[32], z[32];
    const uint64_t used = a->steps - a->held_steps;
    if (a->hold_back)
        fprintf(to, "%s of %s steps", text_count(x, used), text_count(z, a->steps));
    else if (a->steps > 1)
        fprintf(to, "%s steps", text_count(x, used));
    if (a->steps > 1)
        fprintf(to, " from %" PRId64 " to %" PRId64 ", ", a->first_step, a->last_step);
    else if (a->last_step >= 0)
        fprintf(to, "step %" PRId64 ", ", a->last_step);
    fprintf(to, "%s tensor%s\n", text_count(y, a->n_tensors), text_plural(a->n_tensors));
    fprintf(
        to,
        "Bounds: underflow up to %.3g %%, overflow up to %.3g %%, SQNR from %.3g dB, updates lost up to %.3g %%\n\n",
        100 * a->bounds.underflow, 100 * a->bounds.overflow, a->bounds.sqnr, 100 * a->bounds.lost);
}

void advise_print(const advise *a, int tensors, FILE *to)
{
    int n = 0;
    print_head(a, to);
    print_weights(a, to, &n);
    print_compute(a, to, &n);
    print_recipe(a, to, &n);
    print_scale(a, to, &n);
    print_saved(a, to, &n);
    print_wider(a, tensors, to);
    print_kinds(a, to);
    if (tensors)
        print_tensors(a, to);
    print_held(a, to);
}
