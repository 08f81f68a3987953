/* report.c -- see report.h; text is table.c. */
#include "train.h"

#include <stdlib.h>

static int has_rows(const train_report *r)
{
    return r->style != REPORT_TEXT && !r->compare;
}

static unsigned shows(const train_report *r)
{
    return r->decoder ? SHOW_TRANSFORMERS : SHOW_IMAGES;
}

void train_report_begin(train_report *r, const train_settings *s)
{
    r->config = train_config_of(s);
    r->out = (record_writer){
        .kind = &train_kind, .to = r->file, .style = r->style, .document = &r->config, .shows = shows(r)};
    if (has_rows(r))
        record_begin(&r->out);
}

void train_report_run(train_report *r, const train_job *j)
{
    r->job = j;
    if (has_rows(r)) {
        train_run_row_fill(&r->run, j);
        record_open(&r->out, &r->run);
    } else if (r->style == REPORT_TEXT && !r->compare) {
        train_text_run(r, j);
    }
}

void train_report_step(const train_row *step, void *report)
{
    train_report *r = report;
    if (!has_rows(r))
        return;
    const train_step_row row = train_step_row_of(r->job, step);
    record_row(&r->out, &row);
}

void train_report_row(const train_row *row, void *report)
{
    train_report *r = report;
    if (r->style == REPORT_TEXT && !r->compare)
        train_text_row(r, row);
}

void train_report_total(train_report *r, const train_total *t)
{
    if (has_rows(r)) {
        train_total_row_fill(&r->run.total, r->job, t);
        record_close(&r->out, &r->run);
        free(r->run.plans);
        r->run.plans = NULL;
    } else if (r->style == REPORT_TEXT && !r->compare) {
        train_text_total(r, t);
    }
}

static void csv_compare(const train_report *r, const train_job *jobs, const train_total *totals, size_t n)
{
    record_csv_head(r->file, &train_total_record, shows(r));
    fputc('\n', r->file);
    for (size_t i = 0; i < n; i++) {
        train_total_row row;
        train_total_row_fill(&row, &jobs[i], &totals[i]);
        record_csv(r->file, &train_total_record, &row, shows(r));
        fputc('\n', r->file);
    }
}

void train_report_compare(train_report *r, const train_job *jobs, const train_total *totals, size_t n)
{
    if (r->style == REPORT_CSV)
        csv_compare(r, jobs, totals, n);
    else if (r->style == REPORT_TEXT)
        train_text_compare(r, jobs, totals, n);
}

void train_report_abandon(train_report *r)
{
    table_free(r->rows);
    r->rows = NULL;
    free(r->run.plans);
    r->run.plans = NULL;
}

void train_report_end(train_report *r)
{
    if (has_rows(r))
        record_end(&r->out);
}
