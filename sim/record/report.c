/* report.c -- reports whose rows are written as they come; see record.h. */
#include "field.h"

static const record_field *stream_of(const record_writer *w)
{
    const record_field *f = w->kind->document->fields;
    while (!(f->in & FIELD_STREAM))
        f++;
    return f;
}

static int has_member(const record_writer *w, const record_field *f)
{
    return f->in & IN_JSON && !field_lacks(f, w->document);
}

static void put_member(const record_writer *w, const record_field *f)
{
    jsonout o = {.to = w->to};
    field_json(&o, f, w->document, IN_JSON);
}

static void begin_json(const record_writer *w)
{
    const record_field *list = stream_of(w);
    json_begin(w->to, w->kind->schema);
    for (const record_field *f = w->kind->document->fields; f != list; f++)
        if (has_member(w, f)) {
            put_member(w, f);
            fputs(",\n", w->to);
        }
    fprintf(w->to, "\"%s\": [", list->key);
}

static void end_json(const record_writer *w)
{
    fputc(']', w->to);
    for (const record_field *f = stream_of(w) + 1; !field_end(f); f++)
        if (has_member(w, f)) {
            fputs(",\n", w->to);
            put_member(w, f);
        }
    fputs("}\n", w->to);
}

void record_begin(record_writer *w)
{
    const record_kind *r = stream_of(w)->record;
    switch (w->style) {
    case REPORT_TEXT:
        if (r)
            w->rows = record_table(r, w->shows);
        break;
    case REPORT_JSON:
        begin_json(w);
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
    switch (w->style) {
    case REPORT_TEXT:
        record_cells(w->rows, r, row, w->shows);
        break;
    case REPORT_JSON:
        fputs(w->written ? ",\n " : "\n ", w->to);
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
    record_row_of(w, stream_of(w)->record, row);
}

void record_end(record_writer *w)
{
    if (w->style == REPORT_JSON)
        end_json(w);
    table_free(w->rows);
    w->rows = NULL;
}
