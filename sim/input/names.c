/* names.c -- see names.h: a table of hashes, at most half full. Names come from files: the hash is SipHash-1-3 (Aumasson
 * and Bernstein, "SipHash: a fast short-input PRF", 2012) under a random key, so that no file can be written whose names
 * meet in one place. Nothing depends on the order of the table. */
#include "names.h"

#include "../array/need.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

typedef struct named {
    const char *name; /* NULL: free */
    uint64_t hash;
    size_t number;
} named;

typedef struct names {
    size_t places, n; /* places: a power of two */
    named *at;
    uint64_t key[2];
} names;

static uint64_t left(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static void round_of(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = left(v[1], 13) ^ v[0];
    v[0] = left(v[0], 32);
    v[2] += v[3];
    v[3] = left(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = left(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = left(v[1], 17) ^ v[2];
    v[2] = left(v[2], 32);
}

static uint64_t hash_of(const names *t, const char *name)
{
    uint64_t v[4] = {t->key[0] ^ UINT64_C(0x736f6d6570736575), t->key[1] ^ UINT64_C(0x646f72616e646f6d),
                     t->key[0] ^ UINT64_C(0x6c7967656e657261), t->key[1] ^ UINT64_C(0x7465646279746573)};
    const size_t n = strlen(name);
    for (size_t i = 0; i <= n; i += 8) { /* the last word has what is left, and the length */
        uint64_t word = n - i < 8 ? (uint64_t)n << 56 : 0;
        for (size_t k = 0; k < 8 && i + k < n; k++)
            word |= (uint64_t)(unsigned char)name[i + k] << (8 * k);
        v[3] ^= word;
        round_of(v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        round_of(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* An empty table, under a key that nobody knows; one that is hard to guess where the system has none to give. */
static names *new_table(void)
{
    names *t = need_memory(1, sizeof *t);
    if (getentropy(t->key, sizeof t->key)) {
        t->key[0] = (uint64_t)(uintptr_t)t ^ (uint64_t)time(NULL) << 32;
        t->key[1] = (uint64_t)clock();
    }
    return t;
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
    const named *found = t && t->n ? place_of(t, hash_of(t, name), name) : NULL;
    return found && found->name ? (ptrdiff_t)found->number : -1;
}

/* Twice as many places. */
static void grow(names *t)
{
    const names old = *t;
    t->places = old.places ? 2 * old.places : 64;
    t->at = need_memory(t->places, sizeof *t->at);
    for (size_t i = 0; i < old.places; i++)
        if (old.at[i].name)
            *place_of(t, old.at[i].hash, old.at[i].name) = old.at[i];
    free(old.at);
}

void nameindex_add(nameindex *x, const char *name, size_t number)
{
    if (!x->root)
        x->root = new_table();
    names *t = x->root;
    if (2 * (t->n + 1) > t->places)
        grow(t);
    const uint64_t hash = hash_of(t, name);
    named *to = place_of(t, hash, name);
    t->n += !to->name;
    if (!to->name)
        *to = (named){name, hash, number};
}

void *nameindex_item(nameindex *x, void *items, size_t *n, size_t size, const char *name)
{
    const ptrdiff_t known = nameindex_find(x, name);
    unsigned char *all;
    if (known < 0)
        need_room(items, *n, size);
    memcpy(&all, items, sizeof all);
    if (known >= 0)
        return all + (size_t)known * size;
    unsigned char *item = memset(all + *n * size, 0, size);
    char *copy = need_text(name);
    nameindex_add(x, copy, (*n)++);
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
