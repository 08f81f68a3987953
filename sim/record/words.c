/* words.c -- a record as words, and from words; see record.h. */
#include "field.h"

#include "../text/option.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Word k of a field: 1, or 0 where the field has no such word. */
static int field_word_at(const record_field *f, const void *at, size_t k, record_word *w)
{
    const void *value = field_at(f, at);
    const field_value v = value ? field_value_of(f, value) : (field_value){.is = VALUE_NONE};
    const uint64_t n = v.is == VALUE_TRUTH ? v.truth != 0 : v.is == VALUE_COUNT ? v.count : 0;
    w->key = f->key;
    w->is_flag = v.is == VALUE_TRUTH;
    snprintf(w->number, sizeof w->number, "%" PRIu64, n);
    w->text = n ? w->number : v.is == VALUE_TEXT ? v.text : NULL;
    if (f->type == FIELD_TEXTS && k < field_count(f, at))
        w->text = (*(const char *const *const *)value)[k];
    return w->text && (k == 0 || f->type == FIELD_TEXTS);
}

int record_word_at(const record_kind *r, const void *at, size_t i, record_word *w)
{
    for (const record_field *f = r->fields; !field_end(f); f++)
        for (size_t k = 0; field_word_at(f, at, k, w); k++)
            if (i-- == 0)
                return 1;
    return 0;
}

int record_put_word(const record_kind *r, void *at, const char *key, const char *text)
{
    const record_field *f = r->fields;
    uint64_t n = 0;
    while (!field_end(f) && strcmp(f->key, key) != 0)
        f++;
    if (field_end(f))
        return WORD_UNKNOWN;
    void *value = (char *)at + f->at;
    if (f->type == FIELD_TEXTS)
        return option_list_add(value, text) ? WORD_NO_MEMORY : 0;
    if (f->type == FIELD_TEXT)
        *(const char **)value = text;
    else if (parse_count(&n, text))
        return WORD_BAD;
    else if (f->type == FIELD_BOOLEAN)
        *(int *)value = n != 0;
    else
        *(uint64_t *)value = n;
    return 0;
}
