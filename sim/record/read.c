/* read.c -- structs from objects of JSON or from other structs, by the tables of their records; see record.h. The JSON may hold
 * anything. */
#include "field.h"

#include "../array/need.h"
#include "../text/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- where a value comes from ---- */

/* A value of JSON, or of a field of a struct; neither: there is none. */
typedef struct source {
    const json_t *json;
    record_field field;
    const void *value, *at; /* at: the struct, which has how many are in a list */
} source;

static source source_of(record_source from)
{
    return (source){.json = from.json, .field = {.type = FIELD_RECORD, .record = from.kind}, .value = from.at};
}

static int is_there(const source *s)
{
    return s->value || (s->json && !json_is_null(s->json));
}

static source member_of(const source *s, const char *key)
{
    const void *at = s->value;
    const record_field *f = at && s->field.type == FIELD_RECORD ? field_find(s->field.record, &at, key, IN_JSON) : NULL;
    if (!s->value)
        return (source){.json = json_object_get(s->json, key)};
    const void *value = f && !(f->in & FIELD_STREAM) ? field_at(f, at) : NULL;
    if (!value || (field_is_list(f) && !*(const void *const *)value))
        return (source){.json = NULL};
    return (source){.field = *f, .value = value, .at = at};
}

static field_value value_of(const source *s)
{
    const json_t *v = s->json;
    if (s->value)
        return field_value_of(&s->field, s->value);
    return json_is_string(v)    ? (field_value){VALUE_TEXT, .text = json_string_value(v)}
           : json_is_integer(v) ? (field_value){VALUE_INTEGER, .integer = json_integer_value(v)}
           : json_is_real(v)    ? (field_value){VALUE_REAL, .real = json_real_value(v)}
           : json_is_boolean(v) ? (field_value){VALUE_TRUTH, .truth = json_is_true(v)}
                                : (field_value){.is = VALUE_NONE};
}

/* The word of a set that n others are before. */
static const char *word_at(const source *s, size_t n)
{
    for (size_t i = 0; s->field.words[i]; i++)
        if (field_has(&s->field, s->value, i) && n-- == 0)
            return s->field.words[i];
    return NULL;
}

static int is_list(const source *s)
{
    return s->value ? s->field.type == FIELD_SET || field_is_list(&s->field) : json_is_array(s->json);
}

static size_t items_of(const source *s)
{
    size_t n = 0;
    if (!s->value)
        return json_array_size(s->json);
    if (s->field.type != FIELD_SET)
        return field_count(&s->field, s->at);
    while (word_at(s, n))
        n++;
    return n;
}

/* `word`: where that of a set is kept. */
static source item_of(const source *s, size_t i, const char **word)
{
    size_t size;
    if (!s->value)
        return (source){.json = json_array_get(s->json, i)};
    if (s->field.type == FIELD_SET) {
        *word = word_at(s, i);
        return (source){.field = {.type = FIELD_TEXT}, .value = word};
    }
    const record_field item = field_item(&s->field, &size);
    return (source){.field = item, .value = *(const char *const *)s->value + i * size};
}

size_t record_items(record_source from, const char *key)
{
    const source all = source_of(from), list = member_of(&all, key);
    return is_list(&list) ? items_of(&list) : 0;
}

record_source record_item(record_source from, const char *key, size_t i)
{
    const char *word;
    const source all = source_of(from), list = member_of(&all, key), item = item_of(&list, i, &word);
    return (record_source){item.json, item.field.record, item.value};
}

int record_has(record_source from, const char *key)
{
    const source all = source_of(from), part = member_of(&all, key);
    return is_there(&part);
}

record_source record_part(record_source from, const char *key)
{
    const source all = source_of(from), part = member_of(&all, key);
    return part.field.type == FIELD_RECORD ? (record_source){part.json, part.field.record, part.value}
                                           : (record_source){.json = part.json};
}

/* ---- values ---- */

static int is_count(const field_value *v, uint64_t *n)
{
    *n = v->is == VALUE_COUNT ? v->count : v->is == VALUE_INTEGER && v->integer >= 0 ? (uint64_t)v->integer : 0;
    return v->is == VALUE_COUNT || (v->is == VALUE_INTEGER && v->integer >= 0);
}

static int is_real(const field_value *v, double *x)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    const double values[] = {(double)NAN, HUGE_VAL, -HUGE_VAL};
    *x = v->is == VALUE_REAL      ? v->real
         : v->is == VALUE_COUNT   ? (double)v->count
         : v->is == VALUE_INTEGER ? (double)v->integer
                                  : (double)NAN;
    for (size_t i = 0; v->is == VALUE_TEXT && i < 3; i++)
        if (strcmp(v->text, words[i]) == 0) {
            *x = values[i];
            return 1;
        }
    return v->is == VALUE_REAL || v->is == VALUE_COUNT || v->is == VALUE_INTEGER;
}

/* Whether v is of the type of f; then it is in the struct, otherwise what means none. */
static int read_value(const record_field *f, field_value v, void *to)
{
    uint64_t n;
    int is = is_count(&v, &n);
    switch (f->type) {
    case FIELD_TEXT:
        *(const char **)to = v.is == VALUE_TEXT ? v.text : NULL;
        return v.is == VALUE_TEXT;
    case FIELD_BOOLEAN:
        *(int *)to = v.is == VALUE_TRUTH ? v.truth : -1;
        return v.is == VALUE_TRUTH;
    case FIELD_COUNT:
        *(uint64_t *)to = n;
        return is;
    case FIELD_STEP:
        is = is && n <= INT64_MAX;
        *(int64_t *)to = is ? (int64_t)n : -1;
        return is;
    case FIELD_INTEGER:
        is = v.is == VALUE_INTEGER && v.integer > INT_MIN && v.integer <= INT_MAX;
        *(int *)to = is ? (int)v.integer : FIELD_NONE;
        return is;
    case FIELD_REAL:
        return is_real(&v, to) && (!(f->in & FIELD_FINITE) || (v.is != VALUE_TEXT && *(double *)to >= 0));
    default: /* no other is read so far */
        return 0;
    }
}

static const char *wanted_of(const record_field *f)
{
    static const char *const words[] = {[FIELD_TEXT] = "a string",
                                        [FIELD_BOOLEAN] = "a boolean",
                                        [FIELD_COUNT] = "a count",
                                        [FIELD_STEP] = "a count",
                                        [FIELD_INTEGER] = "an integer",
                                        [FIELD_REAL] = "a number",
                                        [FIELD_RECORD] = "an object",
                                        [FIELD_LIST] = "an array",
                                        [FIELD_TEXTS] = "an array of strings",
                                        [FIELD_REALS] = "an array of numbers",
                                        [FIELD_COUNTS] = "an array of counts"};
    return f->in & FIELD_FINITE ? "a magnitude" : words[f->type];
}

/* ---- records ---- */

/* Where a record stands in what is read: "formats." of the items of a list, "policy." of a record. */
typedef struct place {
    const char *needs;
    char path[64];
} place;

/* Whether `needs` has, behind the path, this word. */
static int has_word(const place *p, const char *key)
{
    char word[128];
    const int n = snprintf(word, sizeof word, "%s%s", p->path, key);
    for (const char *at = p->needs; (at = strstr(at, word)); at += n)
        if ((at == p->needs || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return 1;
    return 0;
}

static int is_needed(const place *p, const record_field *f)
{
    return has_word(p, f->key) || has_word(p, "*");
}

static place inside(const place *p, const record_field *f)
{
    place in = *p;
    text_add(in.path, sizeof in.path, "%s.", f->key);
    return in;
}

static const char *read_object(const record_kind *r, const source *from, void *at, const place *p, const char **wanted);

static const char *read_list(const record_field *f, const source *from, void *at, const place *p, const char **wanted)
{
    size_t size;
    const record_field item = field_item(f, &size);
    const size_t n = items_of(from);
    char *items = need_memory(n, size);
    const place in = inside(p, f);
    const char *bad = NULL, *word;
    *(void **)(void *)((char *)at + f->at) = items;
    *(size_t *)(void *)((char *)at + f->of) = n;
    for (size_t i = 0; i < n && !bad; i++) {
        const source s = item_of(from, i, &word);
        if (f->type == FIELD_LIST)
            bad = read_object(f->record, &s, items + i * size, &in, wanted);
        else if (!read_value(&item, value_of(&s), items + i * size))
            bad = f->key;
    }
    return bad;
}

/* What is there has to be of the type, and what is needed has to be there; a record has what is in it. */
static const char *read_member(const record_field *f, const source *from, void *at, const place *p, const char **wanted)
{
    const source s = member_of(from, f->key);
    const int there = is_there(&s), is_null = f->in & FIELD_NULL && json_is_null(s.json);
    void *to = (char *)at + f->at;
    *wanted = wanted_of(f);
    if (f->in & FIELD_INLINE)
        return read_object(f->record, from, to, p, wanted);
    if (field_is_list(f) && is_list(&s))
        return read_list(f, &s, at, p, wanted);
    if (f->type == FIELD_RECORD && (!there || s.value || json_is_object(s.json))) {
        const place in = inside(p, f);
        return !there && is_needed(p, f) ? f->key : read_object(f->record, &s, to, &in, wanted);
    }
    const int fits = read_value(f, value_of(&s), to);
    return fits || (!there && (is_null || !is_needed(p, f))) ? NULL : f->key;
}

static const char *read_object(const record_kind *r, const source *from, void *at, const place *p, const char **wanted)
{
    const char *bad = NULL;
    for (const record_field *f = r->fields; !field_end(f) && !bad; f++)
        bad = read_member(f, from, at, p, wanted);
    return bad;
}

const char *record_read(const record_kind *r, record_source from, void *at, const char *needs, const char **wanted)
{
    const place p = {needs, ""};
    const source s = source_of(from);
    memset(at, 0, r->size);
    return read_object(r, &s, at, &p, wanted);
}

void record_forget(const record_kind *r, void *at)
{
    for (const record_field *f = r->fields; !field_end(f); f++) {
        char **items = (char **)(void *)((char *)at + f->at);
        if (f->type == FIELD_RECORD)
            record_forget(f->record, items);
        if (!field_is_list(f))
            continue;
        for (size_t i = 0; f->type == FIELD_LIST && *items && i < field_count(f, at); i++)
            record_forget(f->record, *items + i * f->record->size);
        free(*items);
        *items = NULL;
    }
}
