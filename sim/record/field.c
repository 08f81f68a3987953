/* field.c -- see field.h. */
#include "field.h"

#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int field_end(const record_field *f)
{
    return !f->key && !f->title;
}

size_t field_count(const record_field *f, const void *at)
{
    return *(const size_t *)(const void *)((const char *)at + f->of);
}

static uint64_t count_in(const record_field *f, const void *at, size_t i)
{
    const void *list = *(const void *const *)(const void *)((const char *)at + f->at);
    return f->type == FIELD_SIZES ? ((const size_t *)list)[i] : ((const uint64_t *)list)[i];
}

const char *field_counts(char out[FIELD_COUNTS_TEXT], const record_field *f, const void *at)
{
    const size_t n = field_count(f, at);
    snprintf(out, FIELD_COUNTS_TEXT, "[");
    for (size_t i = 0; i < n; i++)
        text_add(out, FIELD_COUNTS_TEXT, "%s%" PRIu64, i ? ", " : "", count_in(f, at, i));
    text_add(out, FIELD_COUNTS_TEXT, "]");
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
    case FIELD_LIST:
    case FIELD_TEXTS:
    case FIELD_CODES:
    case FIELD_SIZES:
    case FIELD_REALS:
    case FIELD_REALS32:
    case FIELD_LONGS:
    case FIELD_COUNTS:
    case FIELD_PAIRS:
    case FIELD_MAP:
    case FIELD_LISTS:
    case FIELD_TALLY:
        return lacks && !*(const void *const *)value;
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
        return 0;
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

static const record_field *find(const record_kind *r, const void **at, const char *key)
{
    for (const record_field *f = r->fields; *at && !field_end(f); f++) {
        const void *inner = f->in & FIELD_INLINE ? field_at(f, *at) : NULL;
        const record_field *found = inner ? find(f->record, &inner, key) : NULL;
        if (!found && !(f->key && strcmp(f->key, key) == 0))
            continue;
        *at = found ? inner : *at;
        return found ? found : f;
    }
    return NULL;
}

double record_number(const record_kind *r, const void *at, const char *key)
{
    const record_field *f = find(r, &at, key);
    const void *value = f ? field_at(f, at) : NULL;
    if (!value)
        return (double)NAN;
    return f->type == FIELD_REAL ? *(const double *)value : (double)*(const uint64_t *)value;
}
