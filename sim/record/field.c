/* field.c -- see field.h. */
#include "field.h"

#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

int field_end(const record_field *f)
{
    return !f->key && !f->title;
}

size_t field_count(const record_field *f, const void *at)
{
    return *(const size_t *)(const void *)((const char *)at + f->of);
}

field_value field_value_of(const record_field *f, const void *value)
{
    switch (f->type) {
    case FIELD_TEXT:
        return (field_value){VALUE_TEXT, .text = *(const char *const *)value};
    case FIELD_CHARS:
    case FIELD_CODE:
        return (field_value){VALUE_TEXT, .text = value};
    case FIELD_WORD:
    case FIELD_WORD8:
        return (field_value){VALUE_TEXT, .text = field_word(f, value)};
    case FIELD_BOOLEAN:
        return (field_value){VALUE_TRUTH, .truth = *(const int *)value};
    case FIELD_FLAG:
        return (field_value){VALUE_TRUTH, .truth = *(const uint8_t *)value};
    case FIELD_COUNT:
    case FIELD_SHARE:
        return (field_value){VALUE_COUNT, .count = *(const uint64_t *)value};
    case FIELD_COUNT32:
        return (field_value){VALUE_COUNT, .count = *(const uint32_t *)value};
    case FIELD_SIZE:
        return (field_value){VALUE_COUNT, .count = *(const size_t *)value};
    case FIELD_INTEGER:
        return (field_value){VALUE_INTEGER, .integer = *(const int *)value};
    case FIELD_STEP:
    case FIELD_LONG:
        return (field_value){VALUE_INTEGER, .integer = *(const int64_t *)value};
    case FIELD_REAL:
        return (field_value){VALUE_REAL, .real = *(const double *)value};
    case FIELD_REAL32:
        return (field_value){VALUE_REAL, .real = (double)*(const float *)value};
    default:
        return (field_value){.is = VALUE_NONE};
    }
}

record_field field_item(const record_field *f, size_t *size)
{
    static const struct {
        field_type type;
        size_t size;
    } items[] = {[FIELD_TEXTS] = {FIELD_TEXT, sizeof(char *)},    [FIELD_CODES] = {FIELD_TEXT, sizeof(char *)},
                 [FIELD_SIZES] = {FIELD_SIZE, sizeof(size_t)},    [FIELD_REALS] = {FIELD_REAL, sizeof(double)},
                 [FIELD_REALS32] = {FIELD_REAL32, sizeof(float)}, [FIELD_LONGS] = {FIELD_LONG, sizeof(int64_t)},
                 [FIELD_COUNTS] = {FIELD_COUNT, sizeof(uint64_t)}};
    *size = f->type == FIELD_LIST ? f->record->size : items[f->type].size;
    return (record_field){.type = f->type == FIELD_LIST ? FIELD_RECORD : items[f->type].type, .record = f->record};
}

int field_is_list(const record_field *f)
{
    return f->type >= FIELD_LIST && f->type <= FIELD_COUNTS;
}

const char *field_counts(char out[FIELD_COUNTS_TEXT], const record_field *f, const void *at)
{
    size_t size;
    out[0] = '\0';
    if (f->type != FIELD_SIZES && f->type != FIELD_COUNTS)
        return out;
    const record_field item = field_item(f, &size);
    const char *list = *(const char *const *)(const void *)((const char *)at + f->at);
    for (size_t i = 0; i < field_count(f, at); i++)
        text_add(out, FIELD_COUNTS_TEXT, "%s%" PRIu64, i ? ", " : "[", field_value_of(&item, list + i * size).count);
    text_add(out, FIELD_COUNTS_TEXT, "%s]", *out ? "" : "[");
    return out;
}

const record_field *field_stream(const record_kind *r)
{
    for (const record_field *f = r->fields; !field_end(f); f++)
        if (f->in & FIELD_STREAM)
            return f;
    return NULL;
}

const record_field *field_rows(const record_kind *r)
{
    const record_field *list = field_stream(r), *inner = list && list->record ? field_stream(list->record) : NULL;
    return inner ? inner : list;
}

const char *field_word(const record_field *f, const void *value)
{
    const unsigned which = f->type == FIELD_WORD8 ? *(const uint8_t *)value : *(const unsigned *)value;
    for (unsigned i = 0; f->words[i]; i++)
        if (i == which)
            return f->words[i];
    return NULL;
}

int field_has(const record_field *f, const void *value, size_t i)
{
    return *f->words[i] && *(const unsigned *)value >> i & 1;
}

/* Whether a value says that there is none: FIELD_NONE, a truth below 0, NaN where null is possible, a text that is NULL, a list that
 * is not merely empty. */
static int is_none(const record_field *f, const void *value)
{
    const unsigned lacks = f->in & (FIELD_NULL | FIELD_OPTIONAL);
    switch (f->type) {
    case FIELD_TEXT:
        return !*(const void *const *)value;
    case FIELD_INTEGER:
        return *(const int *)value == FIELD_NONE;
    case FIELD_STEP:
        return *(const int64_t *)value < 0;
    case FIELD_WORD:
    case FIELD_WORD8:
        return !field_word(f, value);
    case FIELD_BOOLEAN:
        return *(const int *)value < 0;
    case FIELD_REAL:
        return lacks && !(f->in & FIELD_IF) && isnan(*(const double *)value);
    default:
        return f->type >= FIELD_LIST && lacks && !*(const void *const *)value;
    }
}

const void *field_at(const record_field *f, const void *at)
{
    if (!at || f->in & FIELD_FOREIGN || (f->in & FIELD_IF && field_count(f, at) == 0))
        return NULL;
    const void *value = (const char *)at + f->at;
    if (f->in & FIELD_POINTER)
        return *(const void *const *)value;
    return is_none(f, value) ? NULL : value;
}

int field_lacks(const record_field *f, const void *at)
{
    return f->in & (FIELD_OPTIONAL | FIELD_INLINE) && !field_at(f, at);
}

uint64_t field_whole(const record_field *f, const void *at)
{
    return *(const uint64_t *)(const void *)((const char *)at + f->of);
}

int field_shown(const record_field *f, unsigned shows)
{
    return !f->when || (f->when & shows);
}

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

const record_field *field_find(const record_kind *r, const void **at, const char *key, unsigned in)
{
    for (const record_field *f = r->fields; *at && !field_end(f); f++) {
        const void *inner = f->in & FIELD_INLINE && f->in & in ? field_at(f, *at) : NULL;
        const record_field *found = inner ? field_find(f->record, &inner, key, in) : NULL;
        if (!found && !(f->key && f->in & in && strcmp(f->key, key) == 0))
            continue;
        *at = found ? inner : *at;
        return found ? found : f;
    }
    return NULL;
}

double record_number(const record_kind *r, const void *at, const char *key)
{
    const record_field *f = field_find(r, &at, key, IN_ALL);
    const void *value = f ? field_at(f, at) : NULL;
    const field_value v = value ? field_value_of(f, value) : (field_value){VALUE_REAL, .real = (double)NAN};
    return v.is == VALUE_REAL ? v.real : (double)v.count;
}
