/* report.c -- reports whose rows are written as they come; see record.h. */
#include "field.h"

#include <mpsim/mpsim.h>

static int has_member(const record_field *f, const void *at)
{
    return f->in & IN_JSON && !field_lacks(f, at);
}

/* A member of the record `at`, on a line. */
static void put_member(const record_writer *w, const record_field *f, const void *at)
{
    jsonout o = {.to = w->to, .depth = 1}; /* commas between the members of an inline record */
    field_json(&o, f, at, IN_JSON);
}

/* The members of a record from f on up to the first row of a list, which it returns, and those behind the last one. */
static const record_field *begin_list(const record_writer *w, const record_field *f, const void *at)
{
    for (; !(f->in & FIELD_STREAM); f++)
        if (has_member(f, at)) {
            put_member(w, f, at);
            fputs(",\n", w->to);
        }
    fprintf(w->to, "\"%s\": [", f->key);
    return f;
}

static void end_list(const record_writer *w, const record_field *list, const void *at)
{
    fputc(']', w->to);
    for (const record_field *f = list + 1; !field_end(f); f++)
        if (has_member(f, at)) {
            fputs(",\n", w->to);
            put_member(w, f, at);
        }
    fputc('}', w->to);
}

/* The next list whose rows come one by one. */
static const record_field *stream_from(const record_field *f)
{
    while (!(f->in & FIELD_STREAM))
        f++;
    return f;
}

static void take(const record_writer *w, const char *list, const record_kind *r, const void *row)
{
    w->sink->take(w->sink->to, list, r, row);
}

const record_kind *record_rows(const report_kind *kind)
{
    const record_field *list = field_rows(kind->document);
    return list->rows ? list->rows : list->record;
}

void record_begin(record_writer *w)
{
    const record_kind *r = record_rows(w->kind);
    switch (w->style) {
    case REPORT_TEXT:
        if (r)
            w->rows = record_table(r, w->shows);
        break;
    case REPORT_JSON:
        if (w->sink) {
            w->list = stream_from(w->kind->document->fields);
            break;
        }
        fprintf(w->to, "{\"schema\": \"%s\",\n\"mpsim\": \"%s\",\n", w->kind->schema,
                w->version ? w->version : mpsim_version());
        w->list = begin_list(w, w->kind->document->fields, w->document);
        break;
    case REPORT_CSV:
        record_csv_head(w->to, r, w->shows);
        fputc('\n', w->to);
        break;
    case REPORT_NDJSON:
        break;
    }
}

void record_row_of(record_writer *w, const record_kind *r, const void *row)
{
    jsonout o = {.to = w->to};
    if (w->sink) {
        take(w, w->opened ? field_rows(w->kind->document)->key : w->list->key, r, row);
        return;
    }
    switch (w->style) {
    case REPORT_TEXT:
        record_cells(w->rows, r, row, w->shows);
        break;
    case REPORT_JSON:
        fprintf(w->to, "%s\n%s", w->written ? "," : "", w->opened ? "" : " ");
        record_json(&o, NULL, r, row, IN_JSON);
        break;
    case REPORT_NDJSON:
        record_json(&o, NULL, r, row, IN_LINE);
        fputc('\n', w->to);
        break;
    case REPORT_CSV:
        record_csv(w->to, r, row, w->shows);
        fputc('\n', w->to);
        break;
    }
    w->written++;
}

void record_row(record_writer *w, const void *row)
{
    record_row_of(w, field_rows(w->kind->document)->record, row);
}

void record_end(record_writer *w)
{
    if (w->sink) {
        take(w, NULL, w->kind->document, w->document);
    } else if (w->style == REPORT_JSON) {
        end_list(w, w->list, w->document);
        fputc('\n', w->to);
    }
    table_free(w->rows);
    w->rows = NULL;
}

void record_next(record_writer *w)
{
    w->written = 0;
    if (w->style != REPORT_JSON)
        return;
    if (w->sink) {
        w->list = stream_from(w->list + 1);
        return;
    }
    fputs("],\n", w->to);
    w->list = begin_list(w, w->list + 1, w->document);
}

void record_open(record_writer *w, const void *item)
{
    w->written = 0;
    if (w->style != REPORT_JSON)
        return;
    if (w->sink) {
        w->opened++;
        take(w, w->list->key, w->list->record, item);
        return;
    }
    fputs(w->opened++ ? ",\n{" : "\n{", w->to);
    (void)begin_list(w, field_stream(w->kind->document)->record->fields, item);
}

void record_close(record_writer *w, const void *item)
{
    if (w->style == REPORT_JSON && !w->sink)
        end_list(w, field_stream(field_stream(w->kind->document)->record), item);
}
