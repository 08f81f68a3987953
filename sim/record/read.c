/* read.c -- structs from JSON, by the table of their record; see record.h. The JSON may hold anything. */
#include "field.h"

#include "../array/need.h"
#include "../text/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where a record stands in what is read: "formats." of the items of a list. */
typedef struct place {
    const char *needs;
    char path[64];
} place;

/* Whether `needs` has the key of f, as one of its words. */
static int is_needed(const place *p, const record_field *f)
{
    char word[128];
    const int n = snprintf(word, sizeof word, "%s%s", p->path, f->key);
    for (const char *at = p->needs; (at = strstr(at, word)); at += n)
        if ((at == p->needs || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return 1;
    return 0;
}

int record_is_real(const json_t *v, double *x)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    const double values[] = {(double)NAN, HUGE_VAL, -HUGE_VAL};
    const char *text = json_string_value(v);
    *x = json_is_number(v) ? json_number_value(v) : (double)NAN;
    for (size_t i = 0; text && i < 3; i++)
        if (strcmp(text, words[i]) == 0) {
            *x = values[i];
            return 1;
        }
    return json_is_number(v);
}

static int is_count(const json_t *v)
{
    return json_is_integer(v) && json_integer_value(v) >= 0;
}

static const char *read_object(const record_kind *r, const json_t *from, void *at, place *p, const char **wanted);

static const char *read_list(const record_field *f, const json_t *v, void *at, const place *p, const char **wanted)
{
    const size_t n = json_array_size(v);
    char *items = need_memory(n, f->record->size);
    place in = *p;
    const char *bad = NULL;
    text_add(in.path, sizeof in.path, "%s.", f->key);
    *(void **)(void *)((char *)at + f->at) = items;
    *(size_t *)(void *)((char *)at + f->of) = n;
    for (size_t i = 0; i < n && !bad; i++)
        bad = read_object(f->record, json_array_get(v, i), items + i * f->record->size, &in, wanted);
    return bad;
}

/* Whether v is of the type of f; then it is in the struct. NULL: there is none. */
static int read_value(const record_field *f, const json_t *v, void *value)
{
    switch (f->type) {
    case FIELD_TEXT:
        *(const char **)value = json_string_value(v);
        return json_is_string(v);
    case FIELD_COUNT:
        *(uint64_t *)value = (uint64_t)json_integer_value(v);
        return is_count(v);
    case FIELD_STEP:
        *(int64_t *)value = v ? json_integer_value(v) : -1;
        return is_count(v);
    case FIELD_REAL:
        return record_is_real(v, value) && (!(f->in & FIELD_FINITE) || (json_is_number(v) && *(double *)value >= 0));
    case FIELD_MAP:
        *(const json_t **)value = v;
        return json_is_object(v);
    default: /* no other is read so far */
        return 0;
    }
}

static const char *wanted_of(const record_field *f)
{
    static const char *const words[] = {
        [FIELD_TEXT] = "a string", [FIELD_COUNT] = "a count", [FIELD_STEP] = "a count",
        [FIELD_REAL] = "a number", [FIELD_MAP] = "an object", [FIELD_LIST] = "an array"};
    return f->in & FIELD_FINITE ? "a magnitude" : words[f->type];
}

static const char *read_member(const record_field *f, const json_t *from, void *at, const place *p, const char **wanted)
{
    const json_t *found = json_object_get(from, f->key), *v = json_is_null(found) ? NULL : found;
    *wanted = wanted_of(f);
    if (f->type == FIELD_LIST && json_is_array(v))
        return read_list(f, v, at, p, wanted);
    const int fits = read_value(f, v, (char *)at + f->at);
    return fits || (!v && !is_needed(p, f)) ? NULL : f->key;
}

static const char *read_object(const record_kind *r, const json_t *from, void *at, place *p, const char **wanted)
{
    const char *bad = NULL;
    for (const record_field *f = r->fields; !field_end(f) && !bad; f++)
        bad = read_member(f, from, at, p, wanted);
    return bad;
}

const char *record_read(const record_kind *r, const json_t *from, void *at, const char *needs, const char **wanted)
{
    place p = {needs, ""};
    memset(at, 0, r->size);
    return read_object(r, from, at, &p, wanted);
}

void record_forget(const record_kind *r, void *at)
{
    for (const record_field *f = r->fields; !field_end(f); f++)
        if (f->type == FIELD_LIST) {
            char **items = (char **)(void *)((char *)at + f->at);
            for (size_t i = 0; *items && i < field_count(f, at); i++)
                record_forget(f->record, *items + i * f->record->size);
            free(*items);
            *items = NULL;
        }
}
