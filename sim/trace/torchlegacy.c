/* torchlegacy.c -- the stream that torch.save wrote before 1.6: pickles of a magic number, a version, the machine's
 * sizes, the object and the list of storages, then the storages, each after its number of elements. And single
 * pickles, in which such streams may stand.
 * Source: _legacy_load and _legacy_save of torch/serialization.py; storages are little-endian there. */
#include "torch.h"

#include <inttypes.h>
#include <string.h>

enum {
    VERSION = 1001,
    /* A file within a pickle is read where it is used: all of them together as often as they can be nested. */
    NESTED_FREE = 64 << 10,
    NESTED_LEAST = 64 /* what one counts for, however small */
};

/* 119547037146038801333356 */
static int is_magic(const pickle *p)
{
    size_t n;
    const unsigned char *b = pickle_big(p, pickle_root(p), &n);
    return b && n == 10 && memcmp(b, "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10) == 0;
}

static const torch_section *section_at(const trace *t, uint32_t i)
{
    return &((const torch_state *)t->state)->sections[i];
}

/* The storage at *at of the section, which is moved past it. */
static int read_storage(trace *t, uint32_t section, uint64_t *at, torch_key *key, trace_error *error)
{
    unsigned char b[8];
    uint64_t n = 0;
    uint32_t made;
    const torch_section from = *section_at(t, section);
    const uint64_t width = key->storage.dtype ? key->storage.dtype->bytes : 1;
    const uint64_t base = from.spooled ? 0 : from.at;
    if (from.bytes - *at < 8)
        return trace_fail(t, error, base + *at, "the file ends before storage '%.200s'", key->key);
    if (trace_torch_bytes(t, section, b, 8, *at, error))
        return -1;
    for (int i = 8; i-- > 0;)
        n = n << 8 | b[i];
    *at += 8;
    if (n != key->storage.bytes / width)
        return trace_fail(t, error, base + *at - 8,
                          "storage '%.200s' has %" PRId64 " elements, the pickle says %" PRIu64, key->key, (int64_t)n,
                          key->storage.bytes / width);
    if (key->storage.bytes > from.bytes - *at)
        return trace_fail(t, error, base + *at, "storage '%.200s' of %" PRIu64 " bytes reaches past the end", key->key,
                          key->storage.bytes);
    torch_section *s = trace_torch_section_add(t, &made, error);
    if (!s)
        return -1;
    s->at = from.at + *at;
    s->bytes = key->storage.bytes;
    s->spooled = from.spooled;
    key->storage.section = made;
    key->known = 1;
    *at += s->bytes;
    return 0;
}

static int read_storages(trace *t, torch_tree *tree, uint64_t *at, trace_error *error)
{
    torch_tree list = {0};
    if (trace_torch_pickle(t, &list, tree->section, *at, error))
        return -1;
    const pickle *p = list.p;
    const pickle_ref root = pickle_root(p);
    int failed = 0;
    *at = pickle_end(p);
    if (pickle_type_of(p, root) != PICKLE_LIST)
        failed = trace_fail(t, error, TRACE_NO_OFFSET, "expected a list of storages, found another value");
    for (size_t i = 0; i < pickle_count(p, root) && !failed; i++) {
        size_t n;
        const char *name = pickle_text(p, pickle_item(p, root, i), &n);
        torch_key *key = name ? trace_torch_find_key(tree, name, n) : NULL;
        if (!name)
            failed = trace_fail(t, error, TRACE_NO_OFFSET, "the key of a storage is not a string");
        else if (!key)
            failed = trace_fail(t, error, TRACE_NO_OFFSET, "storage '%.200s' is in the list and not in the object",
                                name);
        else if (key->known)
            failed = trace_fail(t, error, TRACE_NO_OFFSET, "storage '%.200s' is in the list twice", name);
        else
            failed = read_storage(t, tree->section, at, key, error);
    }
    trace_torch_tree_clear(t, &list);
    return failed;
}

/* The version after the magic number, and the sizes of the machine. */
static int read_head(trace *t, uint32_t section, uint64_t *at, trace_error *error)
{
    for (int i = 0; i < 2; i++) {
        torch_tree tree = {0};
        int64_t version = 0;
        if (trace_torch_pickle(t, &tree, section, *at, error))
            return -1;
        const int bad = i == 0 && (pickle_int(tree.p, pickle_root(tree.p), &version) || version != VERSION);
        *at = pickle_end(tree.p);
        trace_torch_tree_clear(t, &tree);
        if (bad)
            return trace_fail(t, error, *at, "a PyTorch file of version %" PRId64 ", which is not %d", version,
                              VERSION);
    }
    return 0;
}

int trace_torch_open_stream(trace *t, uint32_t section, torch_tree *tree, int *legacy, trace_error *error)
{
    torch_state *s = t->state;
    const int depth = tree->depth;
    if (trace_torch_pickle(t, tree, section, 0, error))
        return -1;
    uint64_t at = pickle_end(tree->p);
    *legacy = is_magic(tree->p);
    if (*legacy) {
        trace_torch_tree_clear(t, tree);
        tree->depth = depth;
        if (read_head(t, section, &at, error) || trace_torch_pickle(t, tree, section, at, error))
            return -1;
        at = pickle_end(tree->p);
    }
    if (trace_torch_keys(t, tree, error) || (*legacy && read_storages(t, tree, &at, error)))
        return -1;
    const uint64_t rest = section_at(t, section)->bytes - at;
    if (rest && !*legacy && pickle_type_of(tree->p, pickle_root(tree->p)) <= PICKLE_BYTES)
        return trace_fail(t, error, at,
                          "one value and %" PRIu64 " bytes after it: neither a PyTorch file nor a pickle of tensors",
                          rest);
    if (depth == 0)
        s->rest += rest;
    return 0;
}

int trace_torch_open_nested(trace *t, const torch_tree *from, pickle_ref r, torch_tree *tree, trace_error *error)
{
    uint32_t section, made;
    uint64_t first, n;
    int legacy;
    memset(tree, 0, sizeof *tree);
    tree->depth = from->depth + 1;
    if (tree->depth > TORCH_NESTED_MAX)
        return trace_fail(t, error, TRACE_NO_OFFSET, "files within pickles are nested deeper than %d",
                          TORCH_NESTED_MAX);
    if (trace_torch_unfold(t, from, r, &section, &first, &n, error))
        return -1;
    torch_state *all = t->state;
    all->nested += n + NESTED_LEAST;
    if (all->nested > NESTED_FREE && all->nested / TORCH_NESTED_MAX > t->size + all->spool_end)
        return trace_fail(t, error, TRACE_NO_OFFSET, "the files within the pickle are used too often");
    const torch_section whole = *section_at(t, section);
    torch_section *s = trace_torch_section_add(t, &made, error);
    if (!s)
        return -1;
    s->at = whole.at + first;
    s->bytes = n;
    s->spooled = whole.spooled;
    char magic[2] = "";
    if (n >= 2 && trace_torch_bytes(t, made, magic, 2, 0, error))
        return -1;
    if (memcmp(magic, "PK", 2) == 0)
        return trace_fail(t, error, s->spooled ? TRACE_NO_OFFSET : s->at, "a zip archive within a pickle is not read");
    const int failed = trace_torch_open_stream(t, made, tree, &legacy, error);
    if (failed)
        trace_torch_tree_clear(t, tree);
    return failed;
}
