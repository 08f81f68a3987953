/* unread.c -- see unread.h. A run has the same tensors in each step: equal ones are put together whenever the list has become
 * twice as long. */
#include "unread.h"

#include "../array/array.h"
#include "../record/cells.h"
#include "../text/words.h"
#include "../cli/options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FULL = 1024 };

/* ---- equal ones ---- */

static int compare_items(const void *pa, const void *pb)
{
    const unread_item *a = pa, *b = pb;
    int c = strcmp(a->name, b->name);
    c = c ? c : strcmp(a->dtype, b->dtype);
    c = c ? c : strcmp(a->reason, b->reason);
    return c ? c : (a->at > b->at) - (a->at < b->at);
}

static int compare_places(const void *pa, const void *pb)
{
    const unread_item *a = pa, *b = pb;
    return (a->at > b->at) - (a->at < b->at);
}

static int same(const unread_item *a, const unread_item *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->dtype, b->dtype) == 0 && strcmp(a->reason, b->reason) == 0;
}

void unread_settle(unread_list *l)
{
    size_t n = 0;
    if (l->count)
        qsort(l->items, l->count, sizeof *l->items, compare_items);
    for (size_t i = 0; i < l->count; i++) {
        if (n && same(&l->items[n - 1], &l->items[i])) {
            l->items[n - 1].tensors += l->items[i].tensors;
            free(l->items[i].name);
        } else {
            l->items[n++] = l->items[i];
        }
    }
    l->count = n;
    if (n)
        qsort(l->items, n, sizeof *l->items, compare_places);
    l->full = 2 * n < FULL ? FULL : 2 * n;
}

/* ---- adding ---- */

/* The four texts in one piece of memory, which begins with the name; NULL without memory. */
static char *copy_texts(unread_item *item, const char *const texts[4])
{
    char **const to[4] = {&item->name, &item->dtype, &item->reason, &item->file};
    size_t n = 0;
    for (int i = 0; i < 4; i++)
        n += strlen(texts[i]) + 1;
    char *at = malloc(n);
    for (int i = 0; i < 4 && at; i++) {
        *to[i] = i ? at : (item->name = at);
        at = stpcpy(at, texts[i]) + 1;
    }
    return item->name;
}

static void say_first(unread_list *l, const unread_item *x)
{
    char name[256], dtype[80];
    snprintf(l->first, sizeof l->first, "'%s' of %s (%.250s)",
             escape_text(name, sizeof name, x->name[0] ? x->name : x->file), escape_text(dtype, sizeof dtype, x->dtype),
             x->reason);
}

int unread_add(unread_list *l, const char *file, const trace_tensor *x)
{
    const char *const texts[4] = {x->name, x->dtype, x->unread, file};
    unread_item item = {.name = NULL, .tensors = 1, .at = l->tensors, .unseen = x->unseen};
    if (!x->unread)
        return 0;
    if (l->count && l->count >= (l->full ? l->full : FULL))
        unread_settle(l);
    if (!copy_texts(&item, texts) || array_room(&l->items, l->count, sizeof *l->items)) {
        free(item.name);
        return host_no_memory();
    }
    l->tensors++;
    if (item.unseen && l->unseen++ == 0)
        say_first(l, &item);
    l->items[l->count++] = item;
    return 0;
}

void unread_clear(unread_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i].name);
    free(l->items);
    *l = (unread_list){.count = 0};
}

/* ---- reports ---- */

#define AT(member) offsetof(unread_item, member)
static const record_field item_fields[] = {
    FIELD(TEXT, "name", IN_TREE, AT(name), NULL),
    FIELD(TEXT, "dtype", IN_TREE, AT(dtype), NULL),
    FIELD(TEXT, "reason", IN_TREE, AT(reason), NULL),
    FIELD(TEXT, "file", IN_TREE, AT(file), "The first file that has it."),
    FIELD(COUNT, "tensors", IN_TREE, AT(tensors), "Tensors of this name, dtype and reason."),
    FIELD(BOOLEAN, "unseen", IN_TREE, AT(unseen), "Whether it may hold floating-point numbers or packed weights."),
    {0}};
#undef AT
const record_kind unread_record = {"unread", "Tensors whose numbers were not read.", sizeof(unread_item), item_fields};

static const record_field list_fields[] = {
    FIELD(LIST, "unread", IN_TREE, offsetof(unread_list, items),
          "Selected tensors whose numbers were not read; tensors of several files are one item.",
          .of = offsetof(unread_list, count), .record = &unread_record),
    {0}};
const record_kind unread_list_record = {"unread_list", NULL, sizeof(unread_list), list_fields};

void unread_put(jsonout *o, const unread_list *l)
{
    record_members(o, &unread_list_record, l, IN_JSON);
}

static const char *others(const unread_list *l)
{
    return l->unseen > 1 ? " and others" : "";
}

const char *unread_sentence(char *out, size_t size, const unread_list *l)
{
    char n[32];
    if (l->unseen == 0)
        return NULL;
    snprintf(out, size, "%s tensor%s that may hold numbers %s not read: %s%s", text_count(n, l->unseen),
             text_plural(l->unseen), l->unseen == 1 ? "is" : "are", l->first, others(l));
    return out;
}

void unread_print(FILE *to, const unread_list *l)
{
    char text[UNREAD_SENTENCE];
    if (unread_sentence(text, sizeof text, l))
        fprintf(to, "%s\n", text);
}

int unread_gate(const unread_list *l, const char *verb)
{
    char n[32];
    return l->unseen ? fail(EXIT_PARTIAL, "%s: --fail-if could not check %s tensor%s: %s%s", verb,
                            text_count(n, l->unseen), text_plural(l->unseen), l->first, others(l))
                     : 0;
}

int unread_lacks(const unread_list *l, const char *verb)
{
    return l->unseen ? fail(EXIT_PARTIAL, "%s: the output lacks %" PRIu64 " tensor%s: %s%s", verb, l->unseen,
                            text_plural(l->unseen), l->first, others(l))
                     : 0;
}
