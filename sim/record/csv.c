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

static void put_boolean(FILE *to, const record_field *f, int is)
{
    static const char *const words[2][2] = {{"no", "yes"}, {"0", "1"}};
    fputs(words[(f->in & FIELD_DIGIT) != 0][is != 0], to);
}

/* The words of a set. */
static void put_set(FILE *to, const record_field *f, const void *value)
{
    int some = 0;
    for (size_t i = 0; f->words[i]; i++)
        if (field_has(f, value, i))
            fprintf(to, "%s%s", some++ ? "+" : "", f->words[i]);
}

/* The counts of a list, as [2, 3]. */
static void put_counts(FILE *to, const record_field *f, const void *at)
{
    char text[FIELD_COUNTS_TEXT];
    csv_text(to, field_counts(text, f, at));
}

static void put_value(FILE *to, const record_field *f, const void *value, const void *at)
{
    switch (f->type) {
    case FIELD_TEXT:
        put_text(to, f, *(const char *const *)value);
        break;
    case FIELD_CHARS:
    case FIELD_CODE:
        csv_text(to, value);
        break;
    case FIELD_BOOLEAN:
        put_boolean(to, f, *(const int *)value);
        break;
    case FIELD_FLAG:
        put_boolean(to, f, *(const uint8_t *)value);
        break;
    case FIELD_INTEGER:
        fprintf(to, "%d", *(const int *)value);
        break;
    case FIELD_STEP:
    case FIELD_LONG:
        fprintf(to, "%" PRId64, *(const int64_t *)value);
        break;
    case FIELD_COUNT:
    case FIELD_SHARE:
        fprintf(to, "%" PRIu64, *(const uint64_t *)value);
        break;
    case FIELD_COUNT32:
        fprintf(to, "%" PRIu32, *(const uint32_t *)value);
        break;
    case FIELD_WORD:
    case FIELD_WORD8:
        fputs(field_word(f, value), to);
        break;
    case FIELD_SET:
        put_set(to, f, value);
        break;
    case FIELD_SIZE:
        fprintf(to, "%zu", *(const size_t *)value);
        break;
    case FIELD_REAL:
        if (f->csv)
            fprintf(to, f->csv, *(const double *)value);
        else
            csv_double(to, *(const double *)value);
        break;
    case FIELD_REAL32:
        csv_double(to, (double)*(const float *)value);
        break;
    case FIELD_SIZES:
    case FIELD_COUNTS:
        put_counts(to, f, at);
        break;
    default: /* other lists are in JSON only */
        break;
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
