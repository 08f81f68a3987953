/* decodertable.c -- see decodertable.h. */
#include "train.h"

#include "../text/screen.h"
#include "../text/words.h"
#include "describe.h"
#include "operations.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void train_decoder_print_network(FILE *f, const train_run *r)
{
    const train_decoder *d = &r->settings.decoder;
    const train_text *t = r->text ? r->text : train_text_bundled();
    char text[512], trained[32], held[32];
    text_wrapped(f, "network    ", train_decoder_text(text, sizeof text, &r->settings));
    snprintf(text, sizeof text, "%s: %s token%s, %s held back, vocabulary %" PRIu32 ", context %" PRIu32, d->text,
             text_count(trained, t->trained), text_plural(t->trained), text_count(held, t->held), d->vocabulary,
             d->context);
    text_wrapped(f, "text       ", text);
}

static void print_schedule(FILE *f, const train_settings *s)
{
    const train_decoder *d = &s->decoder;
    fprintf(f, ", lr %s", train_decoder_say(d).decay);
    if (d->decay != TRAIN_CONSTANT)
        fprintf(f, " to %g", d->min_lr);
    if (d->warmup)
        fprintf(f, " after %" PRIu64, d->warmup);
    if (d->cooldown)
        fprintf(f, ", falling in the last %" PRIu64, d->cooldown);
    if (d->decay_all)
        fputs(", all decays", f);
}

static void print_math(FILE *f, const train_settings *s)
{
    const train_decoder *d = &s->decoder;
    if (strcmp(s->math, "binary32") != 0)
        fprintf(f, ", softmax, normalisation and activation in %s", s->math);
    if (d->math_norm[0] && strcmp(d->math_norm, s->math) != 0)
        fprintf(f, ", normalisation in %s", d->math_norm);
    if (d->math_softmax[0] && strcmp(d->math_softmax, s->math) != 0)
        fprintf(f, ", softmax of attention in %s", d->math_softmax);
}

void train_decoder_print_steps(FILE *f, const train_run *r)
{
    const train_settings *s = &r->settings;
    const train_decoder *d = &s->decoder;
    const uint64_t tokens = train_tokens_per_step(s);
    char text[32];
    fprintf(f, "run        %" PRIu64 " step%s of %s token%s, seed %" PRIu64, s->steps, text_plural(s->steps),
            text_count(text, tokens), text_plural(tokens), s->seed);
    print_schedule(f, s);
    print_math(f, s);
    if (d->accumulate > 1)
        fprintf(f, "\nbatches    %" PRIu32 " a step of %" PRIu32 " sequence%s, added in %s", d->accumulate, s->batch,
                text_plural(s->batch), d->accumulate_format);
    if (d->ranks > 1)
        fprintf(f, "\nranks      %" PRIu32 ", %s, wire %s, sums in %s", d->ranks, train_decoder_say(d).reduce, d->wire,
                d->sum);
}

table *train_decoder_rows(void)
{
    return table_new(">step|>loss|>validation|1>perplexity|2>lr|>scale|>skipped|>act|>agrad|>wgrad|>updates");
}

void train_decoder_cells(table *t, const train_row *row)
{
    char text[64];
    table_cell(t, "%s", train_loss_text(text, row->loss));
    table_cell(t, "%s", train_loss_text(text, row->test_loss));
    table_cell(t, "%.5g", train_perplexity(row->test_loss));
    table_cell(t, "%.4g", row->step.lr);
}

void train_decoder_print_loss(FILE *f, const train_total *t, const train_run *r)
{
    char a[64];
    if (isnan(t->test_accuracy)) { /* interrupted */
        fputs("\n", f);
        return;
    }
    fprintf(f, ", %s on what is held back\n", train_loss_text(a, t->test_loss));
    fprintf(f, "perplexity %.5g; %.2f %% of the next tokens are right (up to %" PRIu32 " sequence%s)\n",
            train_perplexity(t->test_loss), 100 * t->test_accuracy, r->settings.decoder.validation,
            text_plural(r->settings.decoder.validation));
}

/* In millions; as a count where that would be 0.0 or hardly more. */
static const char *millions(char *out, uint64_t n)
{
    if (n < 100000)
        return text_count(out, n);
    snprintf(out, 32, "%.1f M", 1e-6 * (double)n);
    return out;
}

void train_decoder_print_operations(FILE *f, const train_job *j, const train_total *t)
{
    train_operations o;
    char text[4096] = "", number[32];
    train_operations_count(&o, &j->run, train_last_plan(&j->run, t));
    for (size_t i = 0; i < o.count; i++)
        text_add(text, sizeof text, "%s%s %s", i ? ", " : "", o.rows[i].name, millions(number, o.rows[i].n));
    text_add(text, sizeof text, " multiply-adds");
    text_wrapped(f, "a step     ", text);
}

void train_decoder_compare_results(train_report *r, const train_job *jobs, const train_total *totals, size_t n)
{
    char text[96];
    table *out = table_new("<policy|>loss|>at the end|>validation|>perplexity|>skipped|>scale|>ms/step|>tokens/s|"
                           "<status");
    for (size_t i = 0; i < n; i++) {
        const train_total *t = &totals[i];
        const int device = !isnan(t->ms_per_step);
        table_cell(out, "%s", jobs[i].name);
        table_cell(out, "%s", train_loss_text(text, t->initial_loss));
        table_cell(out, "%s", train_loss_text(text, t->final_loss));
        table_cell(out, "%s", train_loss_text(text, t->test_loss));
        table_cell(out, "%.5g", train_perplexity(t->test_loss));
        table_cell(out, "%s", t->skipped ? text_count(text, t->skipped) : "");
        table_cell(out, "%s", text_scale(text, t->final_scale));
        snprintf(text, sizeof text, "%.3g", t->ms_per_step);
        table_cell(out, "%s", device ? text : "");
        snprintf(text, sizeof text, "%.4g", t->tokens_per_second);
        table_cell(out, "%s", device ? text : "");
        table_cell(out, "%s", train_status(text, sizeof text, t));
    }
    table_print(out, r->file, "");
    table_free(out);
    fprintf(r->file,
            "loss: of step 1; at the end: mean of the last %" PRIu64 " step%s; validation: of what is held "
            "back\nperplexity: e to the validation loss; ",
            totals[0].tail, text_plural(totals[0].tail));
    fputs("skipped: steps without an update; scale: the next loss scale\n", r->file);
    if (!isnan(totals[0].ms_per_step))
        fputs("ms/step, tokens/s: of the emulator, not of the training on its hardware\n", r->file);
}

void train_decoder_print_lost(FILE *f)
{
    screen_text(f, screen_columns(f),
                "act, agrad, wgrad: activations, their gradients and those of weights that rounding makes zero, "
                "as a\nshare of those that are not; updates: weights that would move in binary64 and do not\n");
}

void train_decoder_compare_operations(train_report *r, const train_job *jobs, const train_total *totals, size_t n)
{
    table *out = table_new("<policy|<operands|>multiply-adds|>share");
    char number[32];
    for (size_t i = 0; i < n; i++) {
        train_operations o;
        uint64_t all = 0;
        train_operations_count(&o, &jobs[i].run, train_last_plan(&jobs[i].run, &totals[i]));
        for (size_t k = 0; k < o.count; k++)
            all += o.rows[k].n;
        for (size_t k = 0; k < o.count; k++) {
            table_cell(out, "%s", k ? "" : jobs[i].name);
            table_cell(out, "%s", o.rows[k].name);
            table_cell(out, "%s", millions(number, o.rows[k].n));
            table_share(out, o.rows[k].n, all);
        }
    }
    fputs("bytes, in the formats of the policy; activations: what forward keeps for backward\n", r->file);
    fputs("\nmatrix products of a step, forward and back, by the formats of their operands\n", r->file);
    table_print(out, r->file, "  ");
    table_free(out);
}
