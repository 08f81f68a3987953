/* names.c -- see names.h: a table of hashes, at most half full. */
#include "names.h"

#include "../array/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct named {
    const char *name; /* NULL: free */
    uint64_t hash;
    size_t number;
} named;

typedef struct names {
    size_t places, n; /* places: a power of two */
    named *at;
} names;

static uint64_t hash_of(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return h ^ h >> 32;
}

/* The place of a name, or the free one where it belongs. */
static named *place_of(const names *t, uint64_t hash, const char *name)
{
    size_t i = (size_t)hash & (t->places - 1);
    while (t->at[i].name && (t->at[i].hash != hash || strcmp(t->at[i].name, name) != 0))
        i = (i + 1) & (t->places - 1);
    return &t->at[i];
}

ptrdiff_t nameindex_find(const nameindex *x, const char *name)
{
    const names *t = x->root;
    const named *found = t && t->n ? place_of(t, hash_of(name), name) : NULL;
    return found && found->name ? (ptrdiff_t)found->number : -1;
}

/* Twice as many places. */
static int grow(names *t)
{
    const names old = *t;
    named *at = calloc(old.places ? 2 * old.places : 64, sizeof *at);
    if (!at)
        return -1;
    t->places = old.places ? 2 * old.places : 64;
    t->at = at;
    for (size_t i = 0; i < old.places; i++)
        if (old.at[i].name)
            *place_of(t, old.at[i].hash, old.at[i].name) = old.at[i];
    free(old.at);
    return 0;
}

int nameindex_add(nameindex *x, const char *name, size_t number)
{
    if (!x->root && !(x->root = calloc(1, sizeof(names))))
        return -1;
    names *t = x->root;
    if (2 * (t->n + 1) > t->places && grow(t))
        return -1;
    const uint64_t hash = hash_of(name);
    named *to = place_of(t, hash, name);
    t->n += !to->name;
    if (!to->name)
        *to = (named){name, hash, number};
    return 0;
}

void *nameindex_item(nameindex *x, void *items, size_t *n, size_t size, const char *name)
{
    const ptrdiff_t known = nameindex_find(x, name);
    unsigned char *all;
    if (known < 0 && array_room(items, *n, size))
        return NULL;
    memcpy(&all, items, sizeof all);
    if (known >= 0)
        return all + (size_t)known * size;
    unsigned char *item = memset(all + *n * size, 0, size);
    char *copy = strdup(name);
    if (!copy || nameindex_add(x, copy, *n)) {
        free(copy);
        return NULL;
    }
    ++*n;
    return memcpy(item, &copy, sizeof copy);
}

void nameindex_clear(nameindex *x)
{
    names *t = x->root;
    if (t)
        free(t->at);
    free(t);
    x->root = NULL;
}
