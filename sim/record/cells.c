/* cells.c -- records as rows of a table for people; see record.h. */
#include "field.h"

#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

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

/* ---- cells ---- */

enum { CELL = FIELD_COUNTS_TEXT };

static const char *real_text(char *out, const record_field *f, double x, int sorts)
{
    if (x == 0 && f->in & FIELD_BLANK)
        return sorts && f->lacking ? f->lacking : "";
    if (isnan(x))
        return f->lacking ? f->lacking : "nan";
    if (f->in & FIELD_PERCENT)
        snprintf(out + 32, 32, "%s%s", text_percent(out, x), sorts ? "" : " %");
    if (f->format)
        snprintf(out, CELL, f->format, x);
    return f->in & FIELD_PERCENT   ? out + 32
           : f->format             ? out
           : f->in & FIELD_DECIBEL ? text_decibels(out, x)
           : f->in & FIELD_SCALE   ? text_scale(out, x)
                                   : text_number(out, x);
}

static const char *units_text(char *out, double x)
{
    snprintf(out, CELL, x < 0.0005 ? "%.1e" : x < 10 ? "%.3f" : "%.2f", x);
    return out;
}

static const char *count_text(char *out, const record_field *f, uint64_t n, int sorts)
{
    if (n == 0 && (f->in & FIELD_BLANK || (f->in & FIELD_BYTES && f->unit == 0)))
        return sorts ? "0" : "";
    if (f->in & FIELD_PLAIN)
        snprintf(out, CELL, "%" PRIu64, n);
    return f->unit != 0          ? units_text(out, (double)n / f->unit)
           : f->in & FIELD_BYTES ? text_bytes(out, n)
           : f->in & FIELD_PLAIN ? out
                                 : text_count(out, n);
}

static const char *share_text(char *out, const record_field *f, uint64_t part, uint64_t whole, int sorts)
{
    if (whole == 0)
        return f->in & FIELD_ZERO ? "0" : sorts && f->lacking ? f->lacking : "";
    if (sorts)
        return text_percent(out, (double)part / (double)whole);
    return part == 0 && f->in & FIELD_BLANK ? "" : text_share(out, part, whole);
}

static const char *integer_text(char *out, int64_t n)
{
    snprintf(out, CELL, "%" PRId64, n);
    return out;
}

static const char *cell_text(char out[CELL], const record_field *f, const void *at, int sorts)
{
    const void *value = field_at(f, at);
    if (!value)
        return f->lacking ? f->lacking : "";
    const field_value v = field_value_of(f, value);
    switch (v.is) {
    case VALUE_TEXT:
        return v.text;
    case VALUE_TRUTH:
        return v.truth ? "yes" : "no";
    case VALUE_COUNT:
        return f->type == FIELD_SHARE ? share_text(out, f, v.count, field_whole(f, at), sorts)
                                      : count_text(out, f, v.count, sorts);
    case VALUE_INTEGER:
        return integer_text(out, v.integer);
    case VALUE_REAL:
        return real_text(out, f, v.real, sorts);
    default:
        return field_counts(out, f, at);
    }
}

void record_cells(table *t, const record_kind *r, const void *at, unsigned shows)
{
    const record_field *columns[FIELD_COLUMNS_MOST];
    const size_t n = field_columns(columns, r, shows);
    char text[CELL];
    for (size_t i = 0; i < n; i++)
        if (columns[i]->type == FIELD_RECORD)
            record_cells(t, columns[i]->record, field_at(columns[i], at), shows);
        else
            table_cell(t, "%s", cell_text(text, columns[i], at, 0));
}

/* ---- cells that a reader sorts ---- */

/* Whether the share of a count stands beside it, without a title: there it stands alone, under that of the count. */
static int has_share(const record_field *const *columns, size_t n, size_t i)
{
    const record_field *f = columns[i], *next = i + 1 < n ? columns[i + 1] : f;
    return f->type == FIELD_COUNT && next->type == FIELD_SHARE && next->at == f->at && !next->title[1];
}

static void put_titles(const record_kind *r, const char *above, unsigned shows, record_title_put *put, void *to)
{
    const record_field *columns[FIELD_COLUMNS_MOST];
    const size_t n = field_columns(columns, r, shows);
    char title[128], what[FIELD_SENTENCE];
    for (size_t i = 0; i < n; i++) {
        const record_field *f = columns[i];
        if (f->type == FIELD_RECORD) {
            put_titles(f->record, *f->title ? f->title : above, shows, put, to);
            continue;
        }
        i += (size_t)has_share(columns, n, i);
        const int percent = columns[i]->type == FIELD_SHARE || f->in & FIELD_PERCENT;
        snprintf(title, sizeof title, "%s%s", f->title + 1, percent ? ", %" : "");
        put(to, &(record_title){above, title, field_sentence(what, r, f), *f->title == '<'});
    }
}

void record_titles(const record_kind *r, unsigned shows, record_title_put *put, void *to)
{
    put_titles(r, "", shows, put, to);
}

void record_texts(const record_kind *r, const void *at, unsigned shows, record_text_put *put, void *to)
{
    const record_field *columns[FIELD_COLUMNS_MOST];
    const size_t n = field_columns(columns, r, shows);
    char text[CELL];
    for (size_t i = 0; i < n; i++)
        if (columns[i]->type == FIELD_RECORD)
            record_texts(columns[i]->record, field_at(columns[i], at), shows, put, to);
        else if (!has_share(columns, n, i))
            put(to, columns[i], cell_text(text, columns[i], at, 1));
}
