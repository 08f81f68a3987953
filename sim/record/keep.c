/* keep.c -- a report as a struct in memory: its rows, as they come, become items of the struct's lists; see record.h. */
#include "field.h"

#include "../array/need.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* A copy of the text that k has, one of equal texts. */
static const char *own_text(record_keep *k, const char *text)
{
    char **copy = need(tsearch(text, &k->texts, compare));
    if (*copy == text)
        *copy = need_text(text);
    return *copy;
}

static void own_list(record_keep *k, const record_field *f, void *at);

static void own_texts(record_keep *k, const record_kind *r, void *at)
{
    for (const record_field *f = r->fields; !field_end(f); f++) {
        void *value = (char *)at + f->at;
        if (f->type == FIELD_RECORD)
            own_texts(k, f->record, value);
        else if (f->type == FIELD_TEXT && *(const char **)value)
            *(const char **)value = own_text(k, *(const char **)value);
        else if (f->type == FIELD_LIST || f->type == FIELD_TEXTS)
            own_list(k, f, at);
    }
}

static void own_list(record_keep *k, const record_field *f, void *at)
{
    char *items = *(char **)(void *)((char *)at + f->at);
    for (size_t i = 0; i < field_count(f, at); i++)
        if (f->type == FIELD_LIST)
            own_texts(k, f->record, items + i * f->record->size);
        else
            ((const char **)(void *)items)[i] = own_text(k, ((const char **)(void *)items)[i]);
}

/* ---- rows ---- */

/* What the struct has no member for is not kept; what it cannot hold would be a bug of ours, and is told. */
static void keep(record_keep *k, const record_kind *to, void *at, const record_kind *r, const void *row)
{
    const char *wanted, *bad = record_read(to, (record_source){.kind = r, .at = row}, at, "", &wanted);
    k->bad = k->bad ? k->bad : bad;
    own_texts(k, to, at);
}

static const record_field *list_of(const record_kind *r, const char *key)
{
    for (const record_field *f = r->fields; !field_end(f); f++)
        if (f->type == FIELD_LIST && strcmp(f->key, key) == 0)
            return f;
    return NULL;
}

/* Of the struct, or of the item of its list that was the last. */
static void keep_row(record_keep *k, const char *list, const record_kind *r, const void *row)
{
    const record_field *f = list_of(k->kind, list);
    char *of = f || !k->last ? k->at : k->last;
    if (!f && k->last)
        f = list_of(k->last_kind, list);
    if (!f)
        return;
    char **items = (char **)(void *)(of + f->at);
    size_t *n = (size_t *)(void *)(of + f->of);
    need_room(items, *n, f->record->size);
    char *item = *items + *n * f->record->size;
    keep(k, f->record, item, r, row);
    ++*n;
    if (of == k->at) {
        k->last = item;
        k->last_kind = f->record;
    }
}

/* At the end: all but the lists that rows have filled. */
static void keep_document(record_keep *k, const record_kind *r, const void *document)
{
    char *whole = need_memory(1, k->kind->size);
    keep(k, k->kind, whole, r, document);
    for (const record_field *f = k->kind->fields; !field_end(f); f++)
        if (f->type == FIELD_LIST && !*(void **)(void *)(whole + f->at)) {
            memcpy(whole + f->at, k->at + f->at, sizeof(void *));
            memcpy(whole + f->of, k->at + f->of, sizeof(size_t));
        }
    free(k->at);
    k->at = whole;
    k->last = NULL;
}

static void take(void *to, const char *list, const record_kind *r, const void *row)
{
    record_keep *k = to;
    if (list)
        keep_row(k, list, r, row);
    else
        keep_document(k, r, row);
}

void record_keep_begin(record_keep *k, const record_kind *kind)
{
    *k = (record_keep){.sink = {take, k}, .kind = kind, .at = need_memory(1, kind->size)};
}

void record_keep_clear(record_keep *k)
{
    if (k->at)
        record_forget(k->kind, k->at);
    free(k->at);
    tdestroy(k->texts, free);
    *k = (record_keep){.at = NULL};
}
