/* json.c -- records as JSON; see record.h and field.h. */
#include "field.h"

/* ---- values ---- */

static void put_pair(jsonout *o, const uint64_t *pair)
{
    jsonout_begin(o, NULL, '[');
    jsonout_count(o, NULL, pair[0]);
    jsonout_count(o, NULL, pair[1]);
    jsonout_end(o, ']');
}

static void put_tally(jsonout *o, const record_field *f, const uint64_t *counts)
{
    jsonout_begin(o, f->key, '{');
    for (size_t i = 0; f->words[i]; i++)
        if (counts[i])
            jsonout_count(o, f->words[i], counts[i]);
    jsonout_end(o, '}');
}

static void put_list(jsonout *o, const record_field *f, const void *value, size_t n, unsigned in)
{
    const char *const item = *(const char *const *)value;
    jsonout_begin(o, f->key, '[');
    for (size_t i = 0; i < n; i++)
        switch (f->type) {
        case FIELD_TEXTS:
        case FIELD_CODES:
            jsonout_text(o, NULL, (*(const char *const *const *)value)[i]);
            break;
        case FIELD_SIZES:
            jsonout_count(o, NULL, (*(const size_t *const *)value)[i]);
            break;
        case FIELD_REALS:
            jsonout_real(o, NULL, (*(const double *const *)value)[i]);
            break;
        case FIELD_REALS32:
            jsonout_real(o, NULL, (double)(*(const float *const *)value)[i]);
            break;
        case FIELD_LONGS:
            jsonout_integer(o, NULL, (*(const int64_t *const *)value)[i]);
            break;
        case FIELD_COUNTS:
            jsonout_count(o, NULL, (*(const uint64_t *const *)value)[i]);
            break;
        case FIELD_PAIRS:
            put_pair(o, *(const uint64_t *const *)value + 2 * i);
            break;
        default:
            record_json(o, NULL, f->record, item + i * f->record->size, in);
        }
    jsonout_end(o, ']');
}

static void put_set(jsonout *o, const record_field *f, const void *value)
{
    jsonout_begin(o, f->key, '[');
    for (size_t i = 0; f->words[i]; i++)
        if (field_has(f, value, i))
            jsonout_text(o, NULL, f->words[i]);
    jsonout_end(o, ']');
}

static void put_value(jsonout *o, const record_field *f, const void *value, const void *at, unsigned in)
{
    switch (f->type) {
    case FIELD_TEXT:
        jsonout_text(o, f->key, *(const char *const *)value);
        break;
    case FIELD_CHARS:
    case FIELD_CODE:
        jsonout_text(o, f->key, value);
        break;
    case FIELD_BOOLEAN:
        jsonout_boolean(o, f->key, *(const int *)value);
        break;
    case FIELD_FLAG:
        jsonout_boolean(o, f->key, *(const uint8_t *)value);
        break;
    case FIELD_COUNT:
    case FIELD_SHARE:
        jsonout_count(o, f->key, *(const uint64_t *)value);
        break;
    case FIELD_WORD:
    case FIELD_WORD8:
        jsonout_text(o, f->key, field_word(f, value));
        break;
    case FIELD_SET:
        put_set(o, f, value);
        break;
    case FIELD_SIZE:
        jsonout_count(o, f->key, *(const size_t *)value);
        break;
    case FIELD_COUNT32:
        jsonout_count(o, f->key, *(const uint32_t *)value);
        break;
    case FIELD_INTEGER:
        jsonout_integer(o, f->key, *(const int *)value);
        break;
    case FIELD_STEP:
    case FIELD_LONG:
        jsonout_integer(o, f->key, *(const int64_t *)value);
        break;
    case FIELD_REAL:
        jsonout_real(o, f->key, *(const double *)value);
        break;
    case FIELD_REAL32:
        jsonout_real(o, f->key, (double)*(const float *)value);
        break;
    case FIELD_RECORD:
        record_json(o, f->key, f->record, value, in);
        break;
    case FIELD_LIST:
    case FIELD_TEXTS:
    case FIELD_CODES:
    case FIELD_SIZES:
    case FIELD_REALS:
    case FIELD_REALS32:
    case FIELD_LONGS:
    case FIELD_COUNTS:
    case FIELD_PAIRS:
        put_list(o, f, value, field_count(f, at), in);
        break;
    case FIELD_MAP:
    case FIELD_LISTS:
        jsonout_value(o, f->key, *(json_t *const *)value);
        break;
    case FIELD_TALLY:
        put_tally(o, f, *(const uint64_t *const *)value);
        break;
    }
}

void field_json(jsonout *o, const record_field *f, const void *at, unsigned in)
{
    const void *value = field_at(f, at);
    if (f->in & FIELD_INLINE)
        record_members(o, f->record, value, in);
    else if (value)
        put_value(o, f, value, at, in);
    else if (!(f->in & (FIELD_OPTIONAL | FIELD_FOREIGN)))
        jsonout_null(o, f->key);
}

void record_members(jsonout *o, const record_kind *r, const void *at, unsigned in)
{
    for (const record_field *f = r->fields; at && !field_end(f); f++)
        if (f->in & in)
            field_json(o, f, at, in);
}

void record_json(jsonout *o, const char *key, const record_kind *r, const void *at, unsigned in)
{
    jsonout_begin(o, key, '{');
    record_members(o, r, at, in);
    jsonout_end(o, '}');
}
