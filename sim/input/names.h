/* names.h -- from names to numbers, for traces of very many tensors. */
#pragma once

#include <stddef.h>

typedef struct nameindex {
    void *root; /* NULL: empty */
} nameindex;

/* nameindex_find -- the number of a name, or -1. */
ptrdiff_t nameindex_find(const nameindex *x, const char *name);
/* nameindex_add -- a new name; the text is not copied and must outlive the index. */
void nameindex_add(nameindex *x, const char *name, size_t number);
/* nameindex_item -- the item of a name: of an array of structures that begin with their name, whose numbers x has, or a
 * new one behind them, all zeros but for a copy of the name. `items` is the address of the pointer to the array
 * (sim/array), *n how many there are. */
void *nameindex_item(nameindex *x, void *items, size_t *n, size_t size, const char *name);
void nameindex_clear(nameindex *x);
