/* torchpickle.c -- the trees of PyTorch's pickles: their memory, their storages by key, bytes that stand in them. */
#include "torch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    trace *t;
    uint32_t section;
} reader;

static ssize_t read_section(void *context, void *p, size_t n, uint64_t at)
{
    const reader *r = context;
    const torch_state *s = r->t->state;
    const torch_section *section = &s->sections[r->section];
    return section->spooled ? trace_pread(s->spool, p, n, section->at + at)
                            : trace_file_pread(r->t, p, n, section->at + at);
}

/* Memory that is left of the trace's, for a while or for good. */
static size_t left(const trace *t)
{
    const size_t used = t->arena_bytes + t->count * sizeof *t->entries;
    return used < TRACE_MEMORY ? TRACE_MEMORY - used : 0;
}

int trace_torch_pickle(trace *t, torch_tree *tree, uint32_t section, uint64_t at, trace_error *error)
{
    char name[TORCH_GLOBAL_MAX];
    pickle_error e;
    if (trace_torch_ready(t, section, error))
        return -1;
    const torch_section *in = &((torch_state *)t->state)->sections[section];
    const uint64_t base = in->spooled ? 0 : in->at;
    reader r = {t, section};
    const pickle_source source = {read_section, &r, at, in->bytes};
    const pickle_rules rules = {(size_t)t->max_header, left(t), trace_torch_refused, name};
    tree->section = section;
    if ((tree->p = pickle_read(&source, &rules, &e))) {
        tree->accounted = pickle_memory(tree->p);
        t->arena_bytes += tree->accounted;
        return 0;
    }
    if (e.what == PICKLE_NO_MEMORY)
        return trace_no_memory(t, error);
    if (e.what == PICKLE_CANNOT_READ)
        return trace_error_io(error, t->path, base + e.at, "cannot read");
    return trace_fail(t, error, base + e.at, "%s", e.text);
}

void trace_torch_tree_clear(trace *t, torch_tree *tree)
{
    pickle_free(tree->p);
    free(tree->keys);
    t->arena_bytes -= tree->accounted;
    memset(tree, 0, sizeof *tree);
}

/* ---- storages by key ---- */

static int compare_keys(const void *pa, const void *pb)
{
    const torch_key *a = pa, *b = pb;
    const size_t n = a->n < b->n ? a->n : b->n;
    const int c = n ? memcmp(a->key, b->key, n) : 0;
    return c ? c : (a->n > b->n) - (a->n < b->n);
}

torch_key *trace_torch_find_key(const torch_tree *tree, const char *key, size_t n)
{
    const torch_key wanted = {.key = key, .n = n};
    return tree->n_keys ? bsearch(&wanted, tree->keys, tree->n_keys, sizeof wanted, compare_keys) : NULL;
}

/* The key of a storage: a text, or, in archives of torch.package, a number. */
static int read_key(trace *t, const pickle *p, pickle_ref r, torch_key *key, trace_error *error)
{
    int64_t number;
    char digits[24];
    if (pickle_type_of(p, r) == PICKLE_INT && pickle_int(p, r, &number) == 0) {
        key->n = (size_t)snprintf(digits, sizeof digits, "%" PRId64, number);
        key->key = trace_string(t, digits, key->n);
        return key->key ? 0 : trace_no_memory(t, error);
    }
    if (!(key->key = pickle_text(p, r, &key->n)))
        return trace_fail(t, error, TRACE_NO_OFFSET, "the key of a storage is not a string, or a very long one");
    return strlen(key->key) == key->n
               ? 0
               : trace_fail(t, error, TRACE_NO_OFFSET, "the key of a storage, '%.200s', holds a NUL", key->key);
}

/* What a persistent id says of a storage: its key, dtype and bytes. */
static int read_id(trace *t, const pickle *p, pickle_ref r, torch_key *key, trace_error *error)
{
    const pickle_ref id = pickle_persistent(p, r), class = pickle_item(p, id, 1);
    const char *name = pickle_type_of(p, class) == PICKLE_GLOBAL ? pickle_global(p, class) : NULL;
    int64_t numel;
    memset(key, 0, sizeof *key);
    if (pickle_type_of(p, id) != PICKLE_TUPLE || pickle_count(p, id) < 5 ||
        !pickle_is_text(p, pickle_item(p, id, 0), "storage"))
        return trace_fail(t, error, TRACE_NO_OFFSET,
                          "the pickle refers to something that is not a storage of a tensor");
    key->storage.dtype = trace_torch_storage_find(name);
    if (!key->storage.dtype && !trace_torch_storage_untyped(name)) {
        const torch_dtype *dtype = trace_torch_dtype_find(name);
        if (!dtype)
            return trace_fail(t, error, TRACE_NO_OFFSET, "refused: %s where a class of storages was expected",
                              name ? name : "another value");
        key->storage.dtype = dtype;
    }
    if (read_key(t, p, pickle_item(p, id, 2), key, error))
        return -1;
    const int64_t width = key->storage.dtype ? key->storage.dtype->bytes : 1;
    if (pickle_int(p, pickle_item(p, id, 4), &numel) || numel < 0 || numel > INT64_MAX / width)
        return trace_fail(t, error, TRACE_NO_OFFSET, "the size of storage '%.200s' is not a possible one", key->key);
    key->storage.bytes = (uint64_t)(numel * width);
    return 0;
}

static int is_storage(const pickle *p, pickle_ref r)
{
    return pickle_type_of(p, r) == PICKLE_PERSISTENT &&
           !pickle_is_text(p, pickle_item(p, pickle_persistent(p, r), 0), "module");
}

int trace_torch_keys(trace *t, torch_tree *tree, trace_error *error)
{
    const pickle *p = tree->p;
    size_t n = 0;
    for (pickle_ref r = 1; r < pickle_values(p); r++)
        n += is_storage(p, r) != 0;
    if (n * sizeof *tree->keys > left(t))
        return trace_fail(t, error, TRACE_NO_OFFSET,
                          "the pickle describes %zu storages, which take more than %d MiB of memory", n,
                          TRACE_MEMORY >> 20);
    if (n && !(tree->keys = malloc(n * sizeof *tree->keys)))
        return trace_no_memory(t, error);
    tree->accounted += n * sizeof *tree->keys;
    t->arena_bytes += n * sizeof *tree->keys;
    for (pickle_ref r = 1; r < pickle_values(p); r++)
        if (is_storage(p, r) && read_id(t, p, r, &tree->keys[tree->n_keys++], error))
            return -1;
    if (n)
        qsort(tree->keys, n, sizeof *tree->keys, compare_keys);
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        if (to == 0 || compare_keys(&tree->keys[to - 1], &tree->keys[i]) != 0)
            tree->keys[to++] = tree->keys[i];
        else if (tree->keys[to - 1].storage.bytes != tree->keys[i].storage.bytes)
            return trace_fail(t, error, TRACE_NO_OFFSET, "storage '%.200s' has two sizes", tree->keys[i].key);
    }
    tree->n_keys = to;
    return 0;
}

/* A part of a storage, of torch before 0.4: (key, first element, elements). */
static int part_of(const trace *t, const pickle *p, pickle_ref view, torch_storage *s, trace_error *error)
{
    int64_t first, n;
    const uint64_t width = s->dtype ? s->dtype->bytes : 1, whole = s->bytes / width;
    if (pickle_int(p, pickle_item(p, view, 1), &first) || pickle_int(p, pickle_item(p, view, 2), &n) || first < 0 ||
        n < 0 || (uint64_t)first > whole || (uint64_t)n > whole - (uint64_t)first)
        return trace_fail(t, error, TRACE_NO_OFFSET, "a part of a storage is not within it");
    s->first += (uint64_t)first * width;
    s->bytes = (uint64_t)n * width;
    return 0;
}

int trace_torch_storage_of(trace *t, const torch_tree *tree, pickle_ref r, torch_storage *storage, trace_error *error)
{
    torch_key id;
    const pickle *p = tree->p;
    if (pickle_type_of(p, r) != PICKLE_PERSISTENT)
        return trace_fail(t, error, TRACE_NO_OFFSET, "a tensor without a storage");
    if (read_id(t, p, r, &id, error))
        return -1;
    const torch_key *key = trace_torch_find_key(tree, id.key, id.n);
    if (!key || !key->known)
        return trace_fail(t, error, TRACE_NO_OFFSET, "storage '%.200s' of a tensor is not in the file", id.key);
    *storage = key->storage;
    storage->dtype = id.storage.dtype;
    const pickle_ref view = pickle_item(p, pickle_persistent(p, r), 5);
    return pickle_type_of(p, view) == PICKLE_TUPLE ? part_of(t, p, view, storage, error) : 0;
}

/* ---- bytes within pickles ---- */

/* Decodes n bytes at `from` of a section, or in memory, into the spool. */
static int decode(trace *t, const pickle_bytes *data, uint32_t section, trace_error *error)
{
    enum { CHUNK = 8 << 10 };
    char in[CHUNK], out[CHUNK];
    size_t have = 0, used;
    uint64_t done = 0;
    do {
        const uint64_t more = data->n - done;
        const size_t n = more < CHUNK - have ? (size_t)more : CHUNK - have;
        if (data->memory)
            memcpy(in + have, data->memory + done, n);
        else if (trace_torch_bytes(t, section, in + have, n, data->at + done, error))
            return -1;
        done += n;
        have += n;
        const long k = pickle_decode(data->coding, in, have, done == data->n, out, &used);
        if (k < 0)
            return trace_fail(t, error, TRACE_NO_OFFSET, "a string of the pickle that encodes bytes is malformed");
        if (trace_torch_spool(t, out, (size_t)k, error))
            return -1;
        memmove(in, in + used, have - used);
        have -= used;
    } while (done < data->n);
    return 0;
}

static int is_bytes(const char *global)
{
    const torch_global *g = trace_torch_global_find(global);
    return g && (g->role == TORCH_ENCODED || strcmp(g->name, "builtins.bytes") == 0 ||
                 strcmp(g->name, "builtins.bytearray") == 0);
}

int trace_torch_unfold(trace *t, const torch_tree *tree, pickle_ref r, uint32_t *section, uint64_t *first, uint64_t *n,
                       trace_error *error)
{
    torch_state *s = t->state;
    const pickle *p = tree->p;
    pickle_bytes data = {0};
    /* bytearray(encode(text, 'latin1')), bytes() */
    for (int i = 0; i < 2 && pickle_type_of(p, r) == PICKLE_OBJECT && is_bytes(pickle_global(p, r)); i++) {
        if (pickle_count(p, pickle_args(p, r)) == 0) {
            *section = tree->section;
            *first = *n = 0;
            return 0;
        }
        r = pickle_item(p, pickle_args(p, r), 0);
    }
    if (pickle_data(p, r, &data))
        return trace_fail(t, error, TRACE_NO_OFFSET, "the pickle has another value instead of bytes");
    if (!data.memory && data.coding == PICKLE_PLAIN) {
        *section = tree->section;
        *first = data.at;
        *n = data.n;
        return 0;
    }
    /* each text is decoded where it is used: one that is used again and again must not fill the disk */
    s->decoded += data.n;
    if (s->decoded > s->sections[tree->section].bytes + t->size)
        return trace_fail(t, error, TRACE_NO_OFFSET, "the texts of the pickle that stand for bytes are used too often");
    const uint64_t at = s->spool_end;
    if (trace_torch_spool_begin(t, error) || decode(t, &data, tree->section, error))
        return -1;
    torch_section *made = trace_torch_section_add(t, section, error);
    if (!made)
        return -1;
    made->spooled = 1;
    made->at = at;
    made->bytes = s->spool_end - at;
    *first = 0;
    *n = made->bytes;
    return 0;
}
