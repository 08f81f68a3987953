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
