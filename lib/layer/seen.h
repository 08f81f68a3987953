/* seen.h -- which keys a query sees in attention; see mpsim/attention.h. */
#pragma once

#include <mpsim/attention.h>

typedef struct mpsim_keys {
    size_t from, to; /* to - 1 is the last */
} mpsim_keys;

/* Those that a query may see if they are not masked. */
static inline mpsim_keys mpsim_keys_of(const mpsim_attention *a, const mpsim_attention_shape *shape, size_t i)
{
    const size_t keys = shape->keys, queries = shape->queries, right = a->causal ? 0 : a->right, own = i + keys;
    mpsim_keys k = {0, keys};
    if (right < queries) /* else it ends behind all keys */
        k.to = own + right < queries ? 0 : own + right - queries + 1;
    if (a->left < keys)
        k.from = own > queries + a->left ? own - queries - a->left : 0;
    k.to = k.to < keys ? k.to : keys;
    k.from = k.from < k.to ? k.from : k.to;
    return k;
}

/* Those of keys first to first + n - 1, counted from `first`. */
static inline mpsim_keys mpsim_keys_of_tile(mpsim_keys k, size_t first, size_t n)
{
    k.from = k.from < first ? 0 : k.from - first;
    k.to = k.to < first ? 0 : k.to - first;
    k.to = k.to < n ? k.to : n;
    k.from = k.from < k.to ? k.from : k.to;
    return k;
}

/* Whether key j is masked. */
static inline int mpsim_key_masked(const mpsim_attention *a, const mpsim_attention_shape *shape, size_t i, size_t j)
{
    return a->mask && !a->mask[i * shape->keys + j];
}

/* Whether it sees one of these keys, counted from `first`. */
static inline int mpsim_keys_any(const mpsim_attention *a, const mpsim_attention_shape *shape, size_t i, mpsim_keys k,
                                 size_t first)
{
    size_t j = k.from;
    while (j < k.to && mpsim_key_masked(a, shape, i, first + j))
        j++;
    return j < k.to;
}

/* ---- tiles ---- */

/* A tile: keys first to first + n - 1; the rows from the first to the last that sees one of them. */
typedef struct mpsim_key_tile {
    size_t first, n;
    size_t from, to; /* to - 1 is the last; equal if none does */
} mpsim_key_tile;

static inline size_t mpsim_key_tile_width(const mpsim_attention *a, const mpsim_attention_shape *shape)
{
    return a->tile && a->tile < shape->keys ? a->tile : shape->keys;
}

static inline size_t mpsim_key_tiles(const mpsim_attention *a, const mpsim_attention_shape *shape)
{
    return shape->keys ? (shape->keys - 1) / mpsim_key_tile_width(a, shape) + 1 : 0;
}

static inline int mpsim_sees_tile(const mpsim_attention *a, const mpsim_attention_shape *shape, const mpsim_key_tile *t,
                                  size_t i)
{
    return mpsim_keys_any(a, shape, i, mpsim_keys_of_tile(mpsim_keys_of(a, shape, i), t->first, t->n), t->first);
}

/* Tile number `at` in the order of the work. */
static inline mpsim_key_tile mpsim_key_tile_at(const mpsim_attention *a, const mpsim_attention_shape *shape, size_t at)
{
    const size_t width = mpsim_key_tile_width(a, shape);
    const size_t first = (a->reverse ? mpsim_key_tiles(a, shape) - 1 - at : at) * width, left = shape->keys - first;
    mpsim_key_tile t = {first, left < width ? left : width, 0, shape->queries};
    while (t.from < t.to && !mpsim_sees_tile(a, shape, &t, t.from))
        t.from++;
    while (t.from < t.to && !mpsim_sees_tile(a, shape, &t, t.to - 1))
        t.to--;
    return t;
}
