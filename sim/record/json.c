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

static void put_set(jsonout *o, const record_field *f, const void *value)
{
    jsonout_begin(o, f->key, '[');
    for (size_t i = 0; f->words[i]; i++)
        if (field_has(f, value, i))
            jsonout_text(o, NULL, f->words[i]);
    jsonout_end(o, ']');
}

static void put_value(jsonout *o, const record_field *f, const void *value, const void *at, unsigned in);

static void put_list(jsonout *o, const record_field *f, const void *list, size_t n, unsigned in)
{
    size_t size;
    const record_field item = field_item(f, &size);
    jsonout_begin(o, f->key, '[');
    for (size_t i = 0; i < n; i++)
        if (f->type == FIELD_PAIRS)
            put_pair(o, (const uint64_t *)list + 2 * i);
        else
            put_value(o, &item, (const char *)list + i * size, NULL, in);
    jsonout_end(o, ']');
}

/* What is no single value. */
static void put_tree(jsonout *o, const record_field *f, const void *value, const void *at, unsigned in)
{
    switch (f->type) {
    case FIELD_RECORD:
        record_json(o, f->key, f->record, value, in);
        break;
    case FIELD_SET:
        put_set(o, f, value);
        break;
    case FIELD_MAP:
    case FIELD_LISTS:
        jsonout_value(o, f->key, *(json_t *const *)value);
        break;
    case FIELD_TALLY:
        put_tally(o, f, *(const uint64_t *const *)value);
        break;
    default:
        put_list(o, f, *(const void *const *)value, field_count(f, at), in);
    }
}

static void put_value(jsonout *o, const record_field *f, const void *value, const void *at, unsigned in)
{
    const field_value v = field_value_of(f, value);
    switch (v.is) {
    case VALUE_TEXT:
        jsonout_text(o, f->key, v.text);
        break;
    case VALUE_TRUTH:
        jsonout_boolean(o, f->key, v.truth);
        break;
    case VALUE_COUNT:
        jsonout_count(o, f->key, v.count);
        break;
    case VALUE_INTEGER:
        jsonout_integer(o, f->key, v.integer);
        break;
    case VALUE_REAL:
        jsonout_real(o, f->key, v.real);
        break;
    case VALUE_NONE:
        put_tree(o, f, value, at, in);
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
