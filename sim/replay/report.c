/* report.c -- see report.h. */
#include "impl.h"

#include "../array/need.h"
#include "../text/screen.h"
#include "../text/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* JSON and its lines are records as they come; of CSV a row is of a step, a tensor or a policy. */
static int has_rows(const replay_report *r)
{
    return r->style == REPORT_JSON || r->style == REPORT_NDJSON;
}

static void csv_row(const replay_report *r, const record_kind *kind, const void *row)
{
    if (row)
        record_csv(r->file, kind, row, 0);
    else
        record_csv_head(r->file, kind, 0);
    fputc('\n', r->file);
}

void replay_report_begin(replay_report *r)
{
    r->out = (record_writer){.kind = &replay_kind, .to = r->file, .style = r->style, .document = &r->document};
    if (has_rows(r))
        record_begin(&r->out);
    else if (r->style == REPORT_CSV)
        csv_row(r, r->compare ? &replay_total_record : r->tensors ? &replay_cast_record : &replay_step_record, NULL);
}

/* ---- a policy ---- */

static void text_policy(replay_report *r, const policy *p)
{
    char line[512];
    int master = 0;
    fprintf(r->file, "policy   %s\n", p->name);
    if (p->source)
        text_wrapped(r->file, "source   ", p->source);
    if (p->note)
        text_wrapped(r->file, "note     ", p->note);
    for (size_t i = 0; i < p->count; i++) {
        if (p->count > 1)
            fprintf(r->file, "from step %" PRIu64 "\n", p->plans[i].from);
        text_wrapped(r->file, "plan     ", policy_plan_describe(&p->plans[i], line, sizeof line));
        master |= p->plans[i].master != TRAIN_NO_MASTER;
    }
    fputc('\n', r->file);
    r->shows = master ? SHOW_MASTER : SHOW_F64;
    r->steps = record_table(&replay_step_record, r->shows);
}

void replay_report_policy(replay_report *r, const policy *p)
{
    r->policy = p;
    if (has_rows(r)) {
        replay_run_row_fill(&r->run, p);
        record_open(&r->out, &r->run);
    } else if (r->amp && r->several) {
        fprintf(r->file, "# policy %s\n", p->name);
    } else if (r->style == REPORT_TEXT && !r->compare && !r->amp) {
        text_policy(r, p);
    }
}

/* ---- a step ---- */

static void amp_step(const replay_report *r, const replay_step *s)
{
    fprintf(r->file, "[AMP] step %" PRId64 ": scale %.17g, growth_tracker %" PRIu64 ", skipped %s\n", s->step,
            s->next_scale, s->tracker, s->events & (MPSIM_SCALER_SKIP | MPSIM_SCALER_RAISED) ? "Y" : "n");
}

void replay_report_step(replay_report *r, const replay_step *s)
{
    replay_step_row row;
    if (r->compare || (!s->trains && !has_rows(r)))
        return;
    replay_step_row_fill(&row, r->policy, s);
    if (r->amp)
        amp_step(r, s);
    else if (has_rows(r))
        record_row(&r->out, &row);
    else if (r->style == REPORT_TEXT)
        record_cells(r->steps, &replay_step_record, &row, r->shows);
    else if (!r->tensors)
        csv_row(r, &replay_step_record, &row);
    for (size_t i = 0; i < s->n_casts && r->style == REPORT_CSV && r->tensors; i++)
        csv_row(r, &replay_cast_record, &row.casts[i]);
    replay_step_row_clear(&row);
}

/* ---- totals ---- */

static double share_lost(const replay_tensor *t)
{
    const replay_counts *c = &t->counts;
    return (double)(c->underflow + c->overflow) / (double)(c->count + 1);
}

static int by_loss(const void *a, const void *b)
{
    const replay_tensor *x = *(const replay_tensor *const *)a;
    const replay_tensor *y = *(const replay_tensor *const *)b;
    const double lx = share_lost(x), ly = share_lost(y);
    if (lx != ly)
        return lx > ly ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void text_tensors(replay_report *r, const replay_total *t)
{
    enum { WORST = 8 };
    const replay_tensor **order = need_memory(t->n_tensors, sizeof *order);
    table *out = record_table(&replay_tensor_record, 0);
    size_t n = 0, rows = 0;
    for (size_t i = 0; i < t->n_tensors; i++)
        order[n++] = &t->tensors[i];
    if (!r->tensors)
        qsort(order, n, sizeof *order, by_loss);
    for (; rows < n; rows++) {
        const replay_tensor_row row = replay_tensor_row_of(order[rows]);
        if (!r->tensors && (rows == WORST || row.t.counts.underflow + row.t.counts.overflow == 0))
            break;
        record_cells(out, &replay_tensor_record, &row, 0);
    }
    if (rows) {
        fprintf(r->file,
                "\ntensors%s, over all steps%s\n"
                "(SQNR: of the worst step; scale: FP8, of the last step)\n",
                r->tensors ? "" : " that lose or overflow most", r->tensors ? "" : "; --tensors: all");
        table_print(out, r->file, "  ");
    }
    table_free(out);
    free(order);
}

static void text_groups(const replay_report *r, const replay_total *t)
{
    table *out = record_table(&replay_group_record, 0);
    for (int g = 0; g < REPLAY_GROUPS; g++) {
        const replay_group_row row = replay_group_row_of((replay_group)g, &t->groups[g]);
        if (row.c.count)
            record_cells(out, &replay_group_record, &row, 0);
    }
    fputs("\nover all steps (from \"become zero\" on: of the numbers that are not zero)\n", r->file);
    table_print(out, r->file, "  ");
    table_free(out);
}

static void text_total(replay_report *r, const replay_total *t)
{
    char a[64], b[64];
    if (r->steps) {
        table_print(r->steps, r->file, "");
        table_free(r->steps);
        r->steps = NULL;
        fputs("act, agrad, wgrad: lost, of the numbers that are not zero; updates: lost\n", r->file);
        if (t->from_record)
            fputs("* with the recorded weights; else the run's own\n", r->file);
    }
    text_tensors(r, t);
    text_groups(r, t);
    fprintf(r->file,
            "\nscaler     %" PRIu64 " steps: %" PRIu64 " skipped, %" PRIu64 " overflows, "
            "%" PRIu64 " backoffs, %" PRIu64 " growths; next loss scale %s\n",
            t->steps, t->skipped, t->overflows, t->backoffs, t->growths, text_scale(a, t->final_scale));
    if (t->raised)
        fputs("           the framework raises its error there, and training ends: later steps are left out\n",
              r->file);
    replay_text_optimizer(r->file, t);
    replay_text_muon(r->file, t);
    replay_text_moments(r->file, t);
    if (t->reduces && t->ranks <= 1)
        fputs("ranks      one, or reduced before they were recorded: grad_reduce has no effect\n", r->file);
    if (t->unmatched[0])
        text_wrapped(r->file, "patterns   fit no layer here: ", t->unmatched);
    if (t->updates)
        fprintf(r->file, "updates    %s of %s are lost: the weight that is kept%s does not move\n",
                text_share(a, t->lost, t->updates), text_count(b, t->updates), t->bytes.master ? " (the master)" : "");
    replay_text_movement(r->file, t);
    char line[512];
    if (t->unknown) {
        snprintf(line, sizeof line,
                 "%" PRIu64 " steps were recorded with Inf or NaN at a larger scale, what they "
                 "would have given here is not known, they count as clean and move nothing",
                 t->unknown);
        text_wrapped(r->file, "not known  ", line);
    }
    replay_text_record(r->file, t);
    step_print_bytes(r->file, &t->bytes);
}

void replay_report_total(replay_report *r, const replay_total *t)
{
    if (has_rows(r)) {
        replay_total_row_fill(&r->run.total, r->policy, t);
        record_close(&r->out, &r->run);
        replay_report_abandon(r);
    } else if (r->style == REPORT_TEXT && !r->compare && !r->amp) {
        text_total(r, t);
    }
}

static void text_unmatched(const replay_report *r, const policy *p, const replay_total *t, size_t n)
{
    char title[96];
    int any = 0;
    for (size_t i = 0; i < n; i++) {
        if (!t[i].unmatched[0])
            continue;
        if (!any++)
            fputs("\npatterns that fit no layer here\n", r->file);
        snprintf(title, sizeof title, "  %.80s: ", p[i].name);
        text_wrapped(r->file, title, t[i].unmatched);
    }
}

static void text_compare(const replay_report *r, table *rows, table *bytes)
{
    table_print(rows, r->file, "");
    screen_text(r->file, screen_columns(r->file),
                "act, agrad, wgrad: lost, of the numbers that are not zero; updates: lost; moved: in the "
                "mean, of\nwhat binary64 would move; scale: the next loss scale\n\n");
    table_print(bytes, r->file, "");
}

void replay_report_compare(replay_report *r, const policy *p, const replay_total *t, size_t n)
{
    table *rows = record_table(&replay_total_record, 0), *bytes = record_table(&step_bytes_row, 0);
    for (size_t i = 0; i < n; i++) {
        replay_total_row *row = &r->run.total;
        replay_total_row_fill(row, &p[i], &t[i]);
        if (r->style == REPORT_CSV)
            csv_row(r, &replay_total_record, row);
        record_cells(rows, &replay_total_record, row, 0);
        step_bytes_add(bytes, p[i].name, &t[i].bytes);
        replay_total_row_clear(row);
    }
    if (r->style == REPORT_TEXT) {
        text_compare(r, rows, bytes);
        text_unmatched(r, p, t, n);
    }
    table_free(rows);
    table_free(bytes);
}

void replay_report_abandon(replay_report *r)
{
    table_free(r->steps);
    r->steps = NULL;
    free(r->run.plans);
    r->run.plans = NULL;
    replay_total_row_clear(&r->run.total);
}

int replay_report_end(replay_report *r)
{
    if (has_rows(r))
        record_end(&r->out);
    return ferror(r->file) ? -1 : 0;
}
