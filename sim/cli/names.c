/* names.c -- see names.h: the C library's balanced trees. */
#include "names.h"

#include "../array/array.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

typedef struct named {
    const char *name;
    size_t number;
} named;

static int compare(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

ptrdiff_t nameindex_find(const nameindex *x, const char *name)
{
    const named key = {.name = name};
    named *const *found = tfind(&key, &x->root, compare);
    return found ? (ptrdiff_t)(*found)->number : -1;
}

int nameindex_add(nameindex *x, const char *name, size_t number)
{
    named *e = malloc(sizeof *e);
    if (!e)
        return -1;
    e->name = name;
    e->number = number;
    if (tsearch(e, &x->root, compare))
        return 0;
    free(e);
    return -1;
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
    tdestroy(x->root, free);
    x->root = NULL;
}
