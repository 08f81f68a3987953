/* torchtar.c -- the tar archive that torch.save wrote before 0.1.10: `storages`, `tensors` and `pickle`.
 * Source: legacy_load of torch/serialization.py; the header of a member: POSIX.1-2017, pax, "ustar". */
#include "torch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, SIZE_AT = 124, SUM_AT = 148, TYPE_AT = 156 };

static int octal(const unsigned char *p, size_t n, uint64_t *u)
{
    size_t i = 0, digits = 0;
    while (i < n && p[i] == ' ')
        i++;
    for (*u = 0; i < n && p[i] >= '0' && p[i] <= '7'; i++, digits++)
        *u = *u << 3 | (uint64_t)(p[i] - '0');
    return digits ? 0 : -1;
}

/* Finds the three members: their sections. */
static int find_members(trace *t, uint32_t section[3], trace_error *error)
{
    static const char *const names[] = {"storages", "tensors", "pickle"};
    unsigned char b[BLOCK];
    uint64_t size, sum, at = 0;
    unsigned found = 0;
    for (; t->size - at >= BLOCK; at += BLOCK + ((size + BLOCK - 1) & ~(uint64_t)(BLOCK - 1))) {
        t->at = at;
        if (trace_bytes(t, b, BLOCK, error))
            return -1;
        if (b[0] == 0)
            break;
        uint64_t is = 8 * ' ';
        for (size_t i = 0; i < BLOCK; i++)
            is += i >= SUM_AT && i < SUM_AT + 8 ? 0 : b[i];
        if (octal(b + SUM_AT, 8, &sum) || sum != is || octal(b + SIZE_AT, 12, &size))
            return trace_fail(t, error, at, "a member of the tar archive has no valid header");
        if (size > t->size - at - BLOCK || t->size - at - BLOCK - size < (size ? (BLOCK - size % BLOCK) % BLOCK : 0))
            return trace_fail(t, error, at, "a member of the tar archive of %" PRIu64 " bytes reaches past the end", size);
        for (unsigned i = 0; i < 3; i++) {
            if (strncmp((const char *)b, names[i], 100) != 0 || (b[TYPE_AT] != '0' && b[TYPE_AT] != 0))
                continue;
            if (found & 1u << i)
                return trace_fail(t, error, at, "the tar archive has two members '%s'", names[i]);
            found |= 1u << i;
            torch_section *s = torch_section_add(t, &section[i], error);
            if (!s)
                return -1;
            s->at = at + BLOCK;
            s->bytes = size;
        }
    }
    for (unsigned i = 0; i < 3; i++)
        if (!(found & 1u << i))
            return trace_fail(t, error, TRACE_NO_OFFSET, "the tar archive has no member '%s', as every one that PyTorch writes has", names[i]);
    return 0;
}

/* A pickle of a section; *at is moved past it. */
static int next_pickle(trace *t, torch_tree *tree, uint32_t section, uint64_t *at, trace_error *error)
{
    if (torch_pickle(t, tree, section, *at, error))
        return -1;
    *at = pickle_end(tree->p);
    return 0;
}

/* n little-endian numbers of 8 bytes (the first of `bytes`), past which *at is moved. */
static int next_numbers(trace *t, uint32_t section, uint64_t *at, uint64_t *out, size_t n, size_t bytes, trace_error *error)
{
    unsigned char b[8 * TRACE_RANK_MAX];
    const torch_section *s = &((torch_state *)t->state)->sections[section];
    if (8 * n > s->bytes - *at)
        return trace_fail(t, error, s->at + *at, "a member of the tar archive ends too early");
    if (torch_bytes(t, section, b, 8 * n, *at, error))
        return -1;
    for (size_t i = 0; i < n; i++) {
        out[i] = 0;
        for (size_t k = bytes; k-- > 0;)
            out[i] = out[i] << 8 | b[8 * i + k];
    }
    *at += 8 * n;
    return 0;
}

static int compare_items(const void *pa, const void *pb)
{
    const torch_tar_item *a = pa, *b = pb;
    return a->key < b->key ? -1 : a->key > b->key;
}

static torch_tar_item *find(torch_tar_item *items, size_t n, int64_t key)
{
    const torch_tar_item wanted = {.key = key};
    return n ? bsearch(&wanted, items, n, sizeof *items, compare_items) : NULL;
}

static torch_tar_item *add_item(trace *t, torch_tar_item **items, size_t *n, trace_error *error)
{
    if (*n == TRACE_ITEMS_MAX || t->arena_bytes > TRACE_MEMORY) {
        trace_fail(t, error, TRACE_NO_OFFSET, "the tar archive describes too many tensors");
        return NULL;
    }
    if ((*n & (*n - 1)) == 0) {
        torch_tar_item *p = realloc(*items, (*n ? 2 * *n : 1) * sizeof *p);
        if (!p) {
            trace_no_memory(t, error);
            return NULL;
        }
        *items = p;
    }
    t->arena_bytes += sizeof **items;
    memset(&(*items)[*n], 0, sizeof **items);
    return &(*items)[(*n)++];
}

/* How many storages, or tensors, follow. */
static int next_count(trace *t, uint32_t section, uint64_t *at, int64_t *n, trace_error *error)
{
    torch_tree tree = {0};
    if (next_pickle(t, &tree, section, at, error))
        return -1;
    const int bad = pickle_int(tree.p, pickle_root(tree.p), n) || *n < 0;
    torch_tree_clear(t, &tree);
    return bad ? trace_fail(t, error, TRACE_NO_OFFSET, "a member of the tar archive does not begin with a count") : 0;
}

/* (key, location, class), the number of elements, the elements */
static int read_storage(trace *t, torch_tar *tar, uint32_t section, uint64_t *at, trace_error *error)
{
    torch_tree tree = {0};
    if (next_pickle(t, &tree, section, at, error))
        return -1;
    const pickle_ref root = pickle_root(tree.p), class = pickle_item(tree.p, root, 2);
    torch_tar_item *item = add_item(t, &tar->storages, &tar->n_storages, error);
    int failed = item ? 0 : -1;
    if (item) {
        item->storage.dtype = torch_storage_find(pickle_global(tree.p, class));
        if (!item->storage.dtype || pickle_int(tree.p, pickle_item(tree.p, root, 0), &item->key))
            failed = trace_fail(t, error, TRACE_NO_OFFSET, "a storage of the tar archive has no key or no known class");
    }
    torch_tree_clear(t, &tree);
    uint64_t n;
    if (failed || next_numbers(t, section, at, &n, 1, 8, error))
        return -1;
    const torch_section *s = &((torch_state *)t->state)->sections[section];
    const uint64_t width = item->storage.dtype->bytes;
    if (n > (s->bytes - *at) / width)
        return trace_fail(t, error, s->at + *at, "a storage of %" PRIu64 " elements reaches past the end", n);
    item->storage.section = section;
    item->storage.first = *at;
    item->storage.bytes = n * width;
    *at += n * width;
    return 0;
}

/* [(key, key of the whole, first element, elements)] */
static int read_views(trace *t, torch_tar *tar, uint32_t section, uint64_t *at, trace_error *error)
{
    torch_tree tree = {0};
    if (next_pickle(t, &tree, section, at, error))
        return -1;
    const pickle_ref root = pickle_root(tree.p);
    const size_t whole = tar->n_storages;
    int failed = 0;
    for (size_t i = 0; i < pickle_count(tree.p, root) && !failed; i++) {
        const pickle_ref view = pickle_item(tree.p, root, i);
        int64_t v[4] = {0, 0, 0, 0};
        for (size_t k = 0; k < 4; k++)
            failed |= pickle_int(tree.p, pickle_item(tree.p, view, k), &v[k]);
        const torch_tar_item *of = find(tar->storages, whole, v[1]);
        const uint64_t width = of ? of->storage.dtype->bytes : 1, n = of ? of->storage.bytes / width : 0;
        if (failed || !of || v[2] < 0 || v[3] < 0 || (uint64_t)v[2] > n || (uint64_t)v[3] > n - (uint64_t)v[2]) {
            failed = trace_fail(t, error, TRACE_NO_OFFSET, "a part of a storage is not within it");
            break;
        }
        torch_storage part = of->storage;
        torch_tar_item *item = add_item(t, &tar->storages, &tar->n_storages, error);
        if (!item) {
            failed = -1;
            break;
        }
        part.first += (uint64_t)v[2] * width;
        part.bytes = (uint64_t)v[3] * width;
        *item = (torch_tar_item){.key = v[0], .storage = part};
    }
    torch_tree_clear(t, &tree);
    return failed;
}

/* (key, key of the storage, class), dimensions, sizes, strides, offset */
static int read_tensor(trace *t, torch_tar *tar, uint64_t *at, trace_error *error)
{
    torch_tree tree = {0};
    int64_t key = 0, of = 0;
    const uint32_t section = tar->tensors_section;
    if (next_pickle(t, &tree, section, at, error))
        return -1;
    const pickle_ref root = pickle_root(tree.p);
    const int bad = pickle_int(tree.p, pickle_item(tree.p, root, 0), &key) ||
                    pickle_int(tree.p, pickle_item(tree.p, root, 1), &of);
    torch_tree_clear(t, &tree);
    const torch_tar_item *storage = bad ? NULL : find(tar->storages, tar->n_storages, of);
    if (!storage)
        return trace_fail(t, error, TRACE_NO_OFFSET, "a tensor of the tar archive has no storage");
    torch_tar_item *item = add_item(t, &tar->tensors, &tar->n_tensors, error);
    if (!item)
        return -1;
    *item = (torch_tar_item){key, storage->storage, *at};
    uint64_t rank, rest[2 * TRACE_RANK_MAX + 1];
    if (next_numbers(t, section, at, &rank, 1, 4, error))
        return -1;
    if (rank > TRACE_RANK_MAX / 2 - 1)
        return trace_fail(t, error, TRACE_NO_OFFSET, "a tensor of the tar archive has %" PRIu64 " dimensions", rank);
    return next_numbers(t, section, at, rest, 2 * (size_t)rank + 1, 8, error);
}

static void sort(torch_tar_item *items, size_t n)
{
    if (n)
        qsort(items, n, sizeof *items, compare_items);
}

int torch_open_tar(trace *t, torch_tree *tree, torch_tar *tar, trace_error *error)
{
    uint32_t section[3];
    uint64_t at = 0;
    int64_t n;
    if (find_members(t, section, error) || next_count(t, section[0], &at, &n, error))
        return -1;
    for (int64_t i = 0; i < n; i++)
        if (read_storage(t, tar, section[0], &at, error))
            return -1;
    sort(tar->storages, tar->n_storages);
    if (read_views(t, tar, section[0], &at, error))
        return -1;
    sort(tar->storages, tar->n_storages);
    at = 0;
    tar->tensors_section = section[1];
    if (next_count(t, section[1], &at, &n, error))
        return -1;
    for (int64_t i = 0; i < n; i++)
        if (read_tensor(t, tar, &at, error))
            return -1;
    sort(tar->tensors, tar->n_tensors);
    tree->tar = tar;
    return torch_pickle(t, tree, section[2], 0, error);
}

int torch_tar_tensor(trace *t, const torch_tree *tree, pickle_ref id, const char *name, torch_view *v,
                     trace_error *error)
{
    const torch_tar *tar = tree->tar;
    const pickle *p = tree->p;
    int64_t key = -1;
    size_t n;
    const char *text = pickle_text(p, id, &n);
    char *end;
    if (text)
        key = strtoll(text, &end, 10);
    else
        pickle_int(p, id, &key);
    const torch_tar_item *item = find(tar->tensors, tar->n_tensors, key);
    if (!item)
        return trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%.200s' is not in the tar archive", name);
    uint64_t at = item->at, rank = 0;
    if (next_numbers(t, tar->tensors_section, &at, &rank, 1, 4, error))
        return -1;
    v->rank = (size_t)rank; /* at most half of TRACE_RANK_MAX: it was read before */
    if (v->rank > TRACE_RANK_MAX / 2 || next_numbers(t, tar->tensors_section, &at, v->size, v->rank, 8, error) ||
        next_numbers(t, tar->tensors_section, &at, v->stride, v->rank, 8, error) ||
        next_numbers(t, tar->tensors_section, &at, &v->offset, 1, 8, error))
        return -1;
    for (size_t i = 0; i < v->rank; i++)
        if (v->size[i] > INT64_MAX || v->stride[i] > INT64_MAX)
            return trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%.200s': a size or stride is negative", name);
    v->storage = item->storage;
    v->dtype = v->storage.dtype->name;
    v->width = v->storage.dtype->bytes;
    v->format = v->storage.dtype->format;
    return 0;
}

void torch_tar_clear(torch_tar *tar)
{
    free(tar->storages);
    free(tar->tensors);
}
