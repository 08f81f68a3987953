/* table.c -- see table.h. */
#include "train.h"

#include "../text/words.h"
#include "decoder.h"
#include "describe.h"
#include "policy.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- words ---- */

static const char *percent_text(char *out, double x)
{
    snprintf(out, 32, "%.1f %%", 100 * x);
    return out;
}

static void print_layers(FILE *f, const train_run *r)
{
    char text[2048] = "";
    if (train_is_decoder(&r->settings)) {
        train_decoder_print_network(f, r);
        return;
    }
    for (size_t i = 0; i < r->n_layers; i++) {
        const train_layer *l = &r->layers[i];
        const int sized = l->type == TRAIN_LINEAR || l->type == TRAIN_CONV;
        text_add(text, sizeof text, "%s%s", i ? ", " : "", l->name);
        if (sized)
            text_add(text, sizeof text, " %" PRIu32 " to %" PRIu32, l->inputs, l->outputs);
    }
    text_wrapped(f, "network    ", text);
}

/* What of a table is a share, and of what. */
static void print_shares(FILE *f, const train_run *r)
{
    if (train_is_decoder(&r->settings))
        train_decoder_print_lost(f);
    else
        fputs("act, agrad, wgrad: lost, of the numbers that are not zero; updates: lost\n", f);
}

/* ---- one run ---- */

static void print_policy(train_report *r, const train_job *j)
{
    char line[1024];
    FILE *f = r->file;
    fprintf(f, "policy     %s\n", escape_text(line, sizeof line, j->name));
    if (j->policy && j->policy->source)
        text_wrapped(f, "source     ", j->policy->source);
    if (j->policy && j->policy->note)
        text_wrapped(f, "note       ", j->policy->note);
    for (size_t i = 0; i < j->run.n_plans; i++) {
        const train_plan *p = &j->run.plans[i];
        if (j->run.n_plans > 1)
            fprintf(f, "from step %" PRIu64 "\n", p->from + 1);
        text_wrapped(f, "plan       ", train_plan_text(line, sizeof line, j, i));
        if (i == 0 || memcmp(&p->optimizer, &p[-1].optimizer, sizeof p->optimizer) != 0) {
            step_print_variant(f, p->optimizer.variant, STEP_NO_RECORD);
            fprintf(f, "optimizer  %s\n", step_optimizer_text(line, sizeof line, &p->optimizer));
        }
    }
    if (j->policy && train_policy_notes(j->policy, &j->run, line, sizeof line)[0])
        for (const char *p = line; *p; p += strcspn(p, "\n"), p += *p == '\n')
            fprintf(f, "no use     %.*s\n", (int)strcspn(p, "\n"), p);
}

/* Whether a tensor is scaled by blocks: then what code and scale stand for is multiplied in bf16, or
 * (`promoted`) codes are. */
static int has_blocks(const train_run *r, int promoted)
{
    for (size_t i = 0; i < r->n_plans; i++)
        for (size_t k = 0; k < r->n_layers; k++)
            for (int role = 0; role < TRAIN_ROLES; role++) {
                const train_placement *p = &r->plans[i].layers[k];
                const mpsim_block_recipe *b = p->recipe[role];
                if (b && (b->block_rows || b->block_cols) && !p->promote == !promoted)
                    return 1;
            }
    return 0;
}

static void print_steps(FILE *f, const train_settings *s)
{
    fprintf(f, "run        %" PRIu64 " steps of %" PRIu32 " images, seed %" PRIu64, s->steps, s->batch, s->seed);
    if (strcmp(s->math, "binary32") != 0)
        fprintf(f, ", softmax and normalisation in %s", s->math);
}

void train_text_run(train_report *r, const train_job *j)
{
    const train_settings *s = &j->run.settings;
    char text[1024], number[32];
    FILE *f = r->file;
    print_layers(f, &j->run);
    fprintf(f, "parameters %s\n", text_count(number, train_count_parameters(&j->run)));
    print_policy(r, j);
    snprintf(text, sizeof text, "%s%s, ", s->arch, s->tf32 ? " with tf32" : "");
    const size_t n = strlen(text);
    train_products_text(text + n, sizeof text - n, &j->run);
    text_wrapped(f, "products   ", text);
    if (has_blocks(&j->run, 1))
        fputs("           block recipes: sums of codes, times their scales, added in fp32 at the end of each block\n",
              f);
    if (has_blocks(&j->run, 0))
        fputs("           operands of block recipes as bf16 numbers: block-scaled instructions are not modelled\n", f);
    if (train_is_decoder(s))
        train_decoder_print_steps(f, &j->run);
    else
        print_steps(f, s);
    if (s->loss_factor != 1)
        fprintf(f, ", loss times %g", s->loss_factor);
    if (s->gain != 1)
        fprintf(f, ", gain %g", s->gain);
    fprintf(f, "%s%s\n\n", r->resumed ? ", resumed from " : "",
            escape_text(text, sizeof text, r->resumed ? r->resumed : ""));
    r->rows = train_is_decoder(s) ? train_decoder_rows()
                                  : table_new(">step|>loss|1>accuracy|>test loss|>accuracy|>scale|>skipped|>act|>agrad|"
                                              ">wgrad|>updates");
}

void train_text_row(train_report *r, const train_row *row)
{
    char text[64];
    table *t = r->rows;
    table_cell(t, "%" PRIu64, row->step.step + 1);
    if (train_is_decoder(&r->job->run.settings)) {
        train_decoder_cells(t, row);
    } else {
        table_cell(t, "%s", train_loss_text(text, row->loss));
        table_cell(t, "%s", percent_text(text, row->accuracy));
        table_cell(t, "%s", train_loss_text(text, row->test_loss));
        table_cell(t, "%s", percent_text(text, row->test_accuracy));
    }
    table_cell(t, "%s", text_scale(text, row->step.scale));
    table_cell(t, "%s", row->skipped ? text_count(text, row->skipped) : "");
    table_share(t, row->act.lost, row->act.nonzero);
    table_share(t, row->agrad.lost, row->agrad.nonzero);
    table_share(t, row->wgrad.lost, row->wgrad.nonzero);
    table_share(t, row->lost, row->updates);
}

static void print_loss(FILE *f, const train_total *t, const train_run *r)
{
    char a[64], b[64];
    if (t->n_losses == 0)
        fputs("\nloss       none: no step was done", f);
    else
        fprintf(f, "\nloss       %s at step %" PRIu64 ", %s at the end (mean of %" PRIu64 " step%s)",
                train_loss_text(a, t->initial_loss), t->first, train_loss_text(b, t->final_loss), t->tail,
                text_plural(t->tail));
    if (train_is_decoder(&r->settings)) {
        train_decoder_print_loss(f, t, r);
        return;
    }
    if (isnan(t->test_accuracy)) { /* interrupted */
        fputs("\n", f);
        return;
    }
    fprintf(f, ", %s on the test images\n", train_loss_text(a, t->test_loss));
    fprintf(f, "accuracy   %.2f %% of the %d test images\n", 100 * t->test_accuracy, TRAIN_TESTS);
}

/* Reports of transformers count one of a kind as one. */
static const char *plural(const train_run *r, uint64_t n)
{
    return train_is_decoder(&r->settings) ? text_plural(n) : "s";
}

static void print_scaler(FILE *f, const train_total *t, const train_run *r)
{
    const uint64_t done = t->done + 1 - t->first;
    char a[64];
    fprintf(f,
            "scaler     %" PRIu64 " step%s: %" PRIu64 " skipped, %" PRIu64 " overflow%s, "
            "%" PRIu64 " backoff%s, %" PRIu64 " growth%s; next loss scale %s\n",
            done, plural(r, done), t->skipped, t->overflows, plural(r, t->overflows), t->backoffs,
            plural(r, t->backoffs), t->growths, plural(r, t->growths), text_scale(a, t->final_scale));
    if (t->first_skipped)
        fprintf(f, "skipped    first at step %" PRIu64 "%s%s\n", t->first_skipped,
                t->cause[0] ? ": Inf or NaN in " : "", t->cause);
    if (t->clipped)
        fprintf(f, "clipped    %" PRIu64 " of %" PRIu64 " step%s\n", t->clipped, done, plural(r, done));
}

static void print_lost(train_report *r, const train_total *t)
{
    static const char *const names[] = {"activations", "activation gradients", "weight gradients"};
    const train_counts *const counts[] = {&t->act, &t->agrad, &t->wgrad};
    char a[64];
    table *out = table_new("<kind|>results|>become zero|>overflow|>Inf, NaN");
    for (int i = 0; i < 3; i++) {
        table_cell(out, "%s", names[i]);
        table_cell(out, "%s", text_count(a, counts[i]->nonzero));
        table_share(out, counts[i]->lost, counts[i]->nonzero);
        table_share(out, counts[i]->overflow, counts[i]->nonzero);
        table_cell(out, "%s", counts[i]->nonfinite ? text_count(a, counts[i]->nonfinite) : "");
    }
    fputs("\nrounding over all steps: results that are not zero, and what becomes of them\n", r->file);
    table_print(out, r->file, "  ");
    table_free(out);
}

/* Millions a second, of few digits. */
static void print_rate(FILE *f, const char *before, double rate, const char *behind)
{
    fprintf(f, "%s%.*f %s", before, rate < 100 ? 1 : 0, rate, behind);
}

static void print_speed(FILE *f, const train_total *t)
{
    const double millions = 1e-6 * (double)t->products;
    char a[64];
    if (!isnan(t->tokens_per_second))
        fprintf(f, "speed      of the emulator: %s tokens a second\n",
                text_count(a, (uint64_t)(t->tokens_per_second + 0.5)));
    if (!isnan(t->ms_per_step)) {
        fprintf(f, "speed      of the emulator: %.3g ms a step, median\n", t->ms_per_step);
        return;
    }
    fprintf(f, "speed      of the emulator: %.1f million multiply-adds", millions);
    if (t->product_seconds > 0)
        print_rate(f, ", ", millions / t->product_seconds, "a second and core");
    if (t->seconds > 0)
        print_rate(f, "; ", millions / t->seconds, "with all else");
    fputc('\n', f);
}

void train_text_total(train_report *r, const train_total *t)
{
    char a[64], b[64], checked[1024];
    FILE *f = r->file;
    table_print(r->rows, f, "");
    table_free(r->rows);
    r->rows = NULL;
    fprintf(f, "loss, %sact, agrad, wgrad, updates: over the steps since the row above\n",
            train_is_decoder(&r->job->run.settings) ? "" : "accuracy, ");
    print_shares(f, &r->job->run);
    print_loss(f, t, &r->job->run);
    if (train_status(a, sizeof a, t)[0])
        fprintf(f, "status     %s\n", a);
    print_scaler(f, t, &r->job->run);
    print_lost(r, t);
    fputc('\n', f);
    if (t->updates)
        fprintf(f, "updates    %s of %s are lost: the weight that is kept%s does not move\n",
                text_share(a, t->lost, t->updates), text_count(b, t->updates), t->bytes.master ? " (the master)" : "");
    step_print_bytes(f, &t->bytes);
    escape_text(checked, sizeof checked, r->checked ? r->checked : "");
    if (r->checked && t->difference[0])
        fprintf(f, "digests    differ from %s: %s\n", checked, t->difference);
    else if (r->checked)
        fprintf(f, "digests    equal to %s in %" PRIu64 " step%s\n", checked, t->compared,
                plural(&r->job->run, t->compared));
    if (train_is_decoder(&r->job->run.settings))
        train_decoder_print_operations(f, r->job, t);
    print_speed(f, t);
}

/* ---- several runs ---- */

static void compare_results(train_report *r, const train_job *jobs, const train_total *totals, size_t n)
{
    char text[96];
    table *out = table_new("<policy|>loss|>at the end|>test loss|>accuracy|>skipped|>scale|>ms/step|<status");
    for (size_t i = 0; i < n; i++) {
        const train_total *t = &totals[i];
        table_cell(out, "%s", jobs[i].name);
        table_cell(out, "%s", train_loss_text(text, t->initial_loss));
        table_cell(out, "%s", train_loss_text(text, t->final_loss));
        table_cell(out, "%s", train_loss_text(text, t->test_loss));
        table_cell(out, "%s", percent_text(text, t->test_accuracy));
        table_cell(out, "%s", t->skipped ? text_count(text, t->skipped) : "");
        table_cell(out, "%s", text_scale(text, t->final_scale));
        if (isnan(t->ms_per_step))
            table_cell(out, "%s", "");
        else
            table_cell(out, "%.3g", t->ms_per_step);
        table_cell(out, "%s", train_status(text, sizeof text, t));
    }
    table_print(out, r->file, "");
    table_free(out);
}

static void compare_lost(train_report *r, const train_job *jobs, const train_total *totals, size_t n)
{
    table *out = table_new("<policy|>act|>agrad|>wgrad|>updates|>overflow|<clip|>clipped");
    char text[128];
    int clipped = 0, overflows = 0;
    for (size_t i = 0; i < n; i++) {
        const train_total *t = &totals[i];
        const uint64_t overflow = t->act.overflow + t->agrad.overflow + t->wgrad.overflow;
        table_cell(out, "%s", jobs[i].name);
        table_share(out, t->act.lost, t->act.nonzero);
        table_share(out, t->agrad.lost, t->agrad.nonzero);
        table_share(out, t->wgrad.lost, t->wgrad.nonzero);
        table_share(out, t->lost, t->updates);
        table_cell(out, "%s", overflow ? text_count(text, overflow) : "");
        table_cell(out, "%s", train_clip_text(text, sizeof text, &jobs[i].run));
        table_cell(out, "%s", t->clipped ? text_count(text, t->clipped) : "");
        clipped |= t->clipped != 0;
        overflows |= overflow != 0;
    }
    fputc('\n', r->file);
    table_print(out, r->file, "");
    table_free(out);
    print_shares(r->file, &jobs[0].run);
    if (overflows)
        fputs("overflow: numbers of these three that overflowed\n", r->file);
    fprintf(r->file, "clip: largest norm (rule), %s%s\n",
            r->as_published ? "as each policy says" : "the same for all but with --as-published",
            clipped ? "; clipped: steps" : "");
}

static void compare_images(train_report *r, const train_job *jobs, const train_total *totals, size_t n)
{
    const train_settings *s = &jobs[0].run.settings;
    FILE *f = r->file;
    char text[64];
    fprintf(f, "run        %" PRIu64 " steps of %" PRIu32 " images, seed %" PRIu64 ", %s, %s parameters\n\n", s->steps,
            s->batch, s->seed, s->arch, text_count(text, train_count_parameters(&jobs[0].run)));
    compare_results(r, jobs, totals, n);
    fprintf(f,
            "loss: of step 1; at the end: mean of the last %" PRIu64 " step%s; test loss and "
            "accuracy: of %d images\nscale: the next loss scale\n",
            totals[0].tail, text_plural(totals[0].tail), TRAIN_TESTS);
}

void train_text_compare(train_report *r, const train_job *jobs, const train_total *totals, size_t n)
{
    const train_settings *s = &jobs[0].run.settings;
    FILE *f = r->file;
    char text[64];
    if (n == 0)
        return;
    print_layers(f, &jobs[0].run);
    if (train_is_decoder(s)) {
        train_decoder_print_steps(f, &jobs[0].run);
        fprintf(f, "\nproducts   %s, %s parameters\n\n", s->arch,
                text_count(text, train_count_parameters(&jobs[0].run)));
        train_decoder_compare_results(r, jobs, totals, n);
    } else {
        compare_images(r, jobs, totals, n);
    }
    compare_lost(r, jobs, totals, n);
    table *out = record_table(&step_bytes_row, 0);
    for (size_t i = 0; i < n; i++)
        step_bytes_add(out, jobs[i].name, &totals[i].bytes);
    fputc('\n', f);
    table_print(out, f, "");
    table_free(out);
    if (train_is_decoder(s))
        train_decoder_compare_operations(r, jobs, totals, n);
}
