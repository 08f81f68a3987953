/* csv.c -- records as rows of CSV; see record.h. */
#include "field.h"

#include <inttypes.h>
#include <string.h>

/* What stands before a name or a value: a comma, if there is one before. */
typedef struct row {
    FILE *to;
    unsigned shows;
    int some;
} row;

static void separate(row *r)
{
    if (r->some)
        fputc(',', r->to);
    r->some = 1;
}

static void put_head(row *to, const record_kind *r, const char *prefix)
{
    for (const record_field *f = r->fields; !field_end(f); f++) {
        char longer[96];
        if (!(f->in & IN_CSV) || !field_shown(f, to->shows))
            continue;
        if (f->type == FIELD_RECORD) {
            snprintf(longer, sizeof longer, f->in & FIELD_INLINE ? "%s" : "%s%s_", prefix, f->key);
            put_head(to, f->record, longer);
            continue;
        }
        separate(to);
        const size_t n = strlen(prefix); /* a field without a name is the record itself */
        fprintf(to->to, "%.*s%s", (int)(*f->key || !n ? n : n - 1), prefix, f->key);
    }
}

void record_csv_head(FILE *to, const record_kind *r, unsigned shows)
{
    row head = {to, shows, 0};
    put_head(&head, r, "");
}

/* One of our own words is none of a spreadsheet's formulas. */
static void put_text(FILE *to, const record_field *f, const char *text)
{
    if (f->words && !strpbrk(text, ",\""))
        fputs(text, to);
    else
        csv_text(to, text);
}

/* The words of a set. */
static void put_set(FILE *to, const record_field *f, const void *value)
{
    int some = 0;
    for (size_t i = 0; f->words[i]; i++)
        if (field_has(f, value, i))
            fprintf(to, "%s%s", some++ ? "+" : "", f->words[i]);
}

static void put_real(FILE *to, const record_field *f, double x)
{
    if (f->csv)
        fprintf(to, f->csv, x);
    else
        csv_double(to, x);
}

static void put_value(FILE *to, const record_field *f, const void *value, const void *at)
{
    static const char *const truths[2][2] = {{"no", "yes"}, {"0", "1"}};
    char text[FIELD_COUNTS_TEXT];
    const field_value v = field_value_of(f, value);
    switch (v.is) {
    case VALUE_TEXT:
        put_text(to, f, v.text);
        break;
    case VALUE_TRUTH:
        fputs(truths[(f->in & FIELD_DIGIT) != 0][v.truth != 0], to);
        break;
    case VALUE_COUNT:
        fprintf(to, "%" PRIu64, v.count);
        break;
    case VALUE_INTEGER:
        fprintf(to, "%" PRId64, v.integer);
        break;
    case VALUE_REAL:
        put_real(to, f, v.real);
        break;
    case VALUE_NONE:
        if (f->type == FIELD_SET)
            put_set(to, f, value);
        else
            csv_text(to, field_counts(text, f, at));
    }
}

static void put_row(row *to, const record_kind *r, const void *at)
{
    for (const record_field *f = r->fields; !field_end(f); f++) {
        if (!(f->in & IN_CSV) || !field_shown(f, to->shows))
            continue;
        const void *value = field_at(f, at);
        if (f->type == FIELD_RECORD) {
            put_row(to, f->record, value);
            continue;
        }
        separate(to);
        if (value)
            put_value(to->to, f, value, at);
    }
}

void record_csv(FILE *to, const record_kind *r, const void *at, unsigned shows)
{
    row line = {to, shows, 0};
    put_row(&line, r, at);
}
