/* cells.c -- records as rows of a table for people; see record.h. */
#include "field.h"

#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

size_t field_columns(const record_field *to[FIELD_COLUMNS_MOST], const record_kind *r, unsigned shows)
{
    size_t n = 0;
    for (const record_field *f = r->fields; !field_end(f); f++) {
        if (!f->title || !field_shown(f, shows) || n == FIELD_COLUMNS_MOST)
            continue;
        size_t i = n++;
        for (; i > 0 && to[i - 1]->column > f->column; i--)
            to[i] = to[i - 1];
        to[i] = f;
    }
    return n;
}

/* Titles, with that of a record above the first of its own. */
static void add_titles(char *out, size_t size, const record_kind *r, const char *above, unsigned spare, unsigned shows)
{
    const record_field *columns[FIELD_COLUMNS_MOST];
    const size_t n = field_columns(columns, r, shows);
    for (size_t i = 0; i < n; i++) {
        const char *title = columns[i]->title;
        if (columns[i]->type == FIELD_RECORD) {
            add_titles(out, size, columns[i]->record, title, columns[i]->spare, shows);
            continue;
        }
        if (columns[i]->spare)
            text_add(out, size, "%s%u", *out ? "|" : "", columns[i]->spare + spare);
        text_add(out, size, "%s%.1s%s%s%s", *out && !columns[i]->spare ? "|" : "", title, above, *above ? "\n" : "",
                 title + 1);
        above = "";
    }
}

table *record_table(const record_kind *r, unsigned shows)
{
    char titles[2048] = "";
    add_titles(titles, sizeof titles, r, "", 0, shows);
    return table_new(titles);
}

static void put_real(table *t, const record_field *f, double x)
{
    char text[32];
    if (x == 0 && f->in & FIELD_BLANK)
        table_cell(t, "%s", "");
    else if (isnan(x))
        table_cell(t, "%s", f->lacking ? f->lacking : "nan");
    else if (f->format)
        table_cell(t, f->format, x);
    else
        table_cell(t, "%s", f->in & FIELD_SCALE ? text_scale(text, x) : text_number(text, x));
}

static void put_units(table *t, double x)
{
    table_cell(t, x < 0.0005 ? "%.1e" : x < 10 ? "%.3f" : "%.2f", x);
}

static void put_count(table *t, const record_field *f, uint64_t n)
{
    char text[32];
    if (n == 0 && f->in & FIELD_BLANK)
        table_cell(t, "%s", "");
    else if (f->unit != 0)
        put_units(t, (double)n / f->unit);
    else if (f->in & FIELD_BYTES)
        table_bytes(t, n);
    else if (f->in & FIELD_PLAIN)
        table_cell(t, "%" PRIu64, n);
    else
        table_cell(t, "%s", text_count(text, n));
}

static void put_share(table *t, const record_field *f, uint64_t part, uint64_t whole)
{
    if (whole == 0 && f->in & FIELD_ZERO)
        table_cell(t, "%s", "0");
    else
        table_share(t, part, part == 0 && f->in & FIELD_BLANK ? 0 : whole);
}

static void put_cell(table *t, const record_field *f, const void *value, const void *at)
{
    char text[FIELD_COUNTS_TEXT];
    const field_value v = field_value_of(f, value);
    switch (v.is) {
    case VALUE_TEXT:
        table_cell(t, "%s", v.text);
        break;
    case VALUE_TRUTH:
        table_cell(t, "%s", v.truth ? "yes" : "no");
        break;
    case VALUE_COUNT:
        if (f->type == FIELD_SHARE)
            put_share(t, f, v.count, field_whole(f, at));
        else
            put_count(t, f, v.count);
        break;
    case VALUE_INTEGER:
        table_cell(t, "%" PRId64, v.integer);
        break;
    case VALUE_REAL:
        put_real(t, f, v.real);
        break;
    case VALUE_NONE:
        table_cell(t, "%s", field_counts(text, f, at));
    }
}

void record_cells(table *t, const record_kind *r, const void *at, unsigned shows)
{
    const record_field *columns[FIELD_COLUMNS_MOST];
    const size_t n = field_columns(columns, r, shows);
    for (size_t i = 0; i < n; i++) {
        const void *value = field_at(columns[i], at);
        if (columns[i]->type == FIELD_RECORD)
            record_cells(t, columns[i]->record, value, shows);
        else if (value)
            put_cell(t, columns[i], value, at);
        else
            table_cell(t, "%s", columns[i]->lacking ? columns[i]->lacking : "");
    }
}
