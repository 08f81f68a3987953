/* torchzip.c -- the zip archive that torch.save writes since 1.6: data.pkl, and a stored member for each storage.
 * Members are found in the directory of the archive, under whatever folder data.pkl is in.
 * Sources: torch/serialization.py (_save, _load) and caffe2/serialize/inline_container.cc of PyTorch 2.6.0. */
#include "torch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct archive {
    trace *t;
    const zip_member **by_name;
    size_t n;
    const char *root; /* the folder of data.pkl, with its '/' */
    size_t root_bytes;
    trace_error *error;
} archive;

static int compare_members(const void *pa, const void *pb)
{
    const zip_member *const *a = pa, *const *b = pb;
    return strcmp((*a)->name, (*b)->name);
}

static int compare_name(const void *name, const void *pb)
{
    const zip_member *const *b = pb;
    return strcmp(name, (*b)->name);
}

static const zip_member *member(const archive *a, const char *folder, const char *name)
{
    char full[4096];
    if ((size_t)snprintf(full, sizeof full, "%.*s%s%s", (int)a->root_bytes, a->root, folder, name) >= sizeof full)
        return NULL;
    const zip_member **m = bsearch(full, a->by_name, a->n, sizeof *a->by_name, compare_name);
    return m ? *m : NULL;
}

/* The section of a member. A stored one that was saved without a CRC is believed. */
static int section_of(const archive *a, const zip_member *m, uint32_t *section)
{
    torch_state *s = a->t->state;
    if (zip_check_local(a->t, m, a->error))
        return -1;
    torch_section *made = torch_section_add(a->t, section, a->error);
    if (!made)
        return -1;
    made->at = m->method ? 0 : m->end - m->packed;
    made->bytes = m->size;
    made->packed = m->method != 0;
    made->crc = m->crc;
    made->index = m->index;
    made->has_crc = m->crc != 0;
    s->no_crc += !m->method && m->crc == 0 && m->size;
    return 0;
}

/* A short member as text; absent: "". */
static int short_text(const archive *a, const char *name, char *out, size_t size)
{
    const zip_member *m = member(a, "", name);
    uint32_t section;
    out[0] = 0;
    if (!m)
        return 0;
    if (m->size >= size || m->size == 0)
        return trace_fail(a->t, a->error, m->offset, "member '%s' has %" PRIu64 " bytes", name, m->size);
    if (section_of(a, m, &section) || torch_ready(a->t, section, a->error) ||
        torch_bytes(a->t, section, out, (size_t)m->size, 0, a->error))
        return -1;
    out[m->size] = 0;
    return strlen(out) == m->size ? 0 : trace_fail(a->t, a->error, m->offset, "member '%s' holds a NUL", name);
}

static int is_big_endian(const archive *a, int *big)
{
    char order[16];
    if (short_text(a, "byteorder", order, sizeof order))
        return -1;
    *big = strcmp(order, "big") == 0;
    return *big || !order[0] || strcmp(order, "little") == 0
               ? 0
               : trace_fail(a->t, a->error, TRACE_NO_OFFSET, "byte order '%s' is not known", order);
}

static int find_storages(const archive *a, torch_tree *tree, int big)
{
    trace *t = a->t;
    for (size_t i = 0; i < tree->n_keys; i++) {
        torch_key *key = &tree->keys[i];
        const zip_member *m = member(a, "data/", key->key);
        if (!m)
            return trace_fail(t, a->error, TRACE_NO_OFFSET, "storage '%.200s' is not in the archive", key->key);
        if (m->size != key->storage.bytes)
            return trace_fail(t, a->error, m->offset,
                              "storage '%.200s' has %" PRIu64 " bytes, the pickle says %" PRIu64, key->key, m->size,
                              key->storage.bytes);
        if (section_of(a, m, &key->storage.section))
            return -1;
        key->storage.big_endian = big != 0;
        key->known = 1;
    }
    return 0;
}

static int is_pickle(const char *name)
{
    const char *base = strrchr(name, '/');
    return strcmp(base ? base + 1 : name, "data.pkl") == 0;
}

/* Whether names are all different, and one of them that of the pickle. */
static int find_root(archive *a)
{
    const zip_member *found = NULL;
    qsort(a->by_name, a->n, sizeof *a->by_name, compare_members);
    for (size_t i = 0; i < a->n; i++) {
        const zip_member *m = a->by_name[i];
        if (i && strcmp(m->name, a->by_name[i - 1]->name) == 0)
            return trace_fail(a->t, a->error, m->offset, "two members have the name '%.200s'", m->name);
        if (is_pickle(m->name) && found)
            return trace_fail(a->t, a->error, m->offset, "two pickles, '%.200s' and '%.200s'", found->name, m->name);
        if (is_pickle(m->name))
            found = m;
    }
    a->root = found->name;
    a->root_bytes = strlen(found->name) - strlen("data.pkl");
    return 0;
}

static int open_members(archive *a, torch_tree *tree)
{
    char version[64];
    uint32_t section;
    int big;
    trace *t = a->t;
    if (find_root(a) || is_big_endian(a, &big) || short_text(a, "version", version, sizeof version))
        return -1;
    if (version[strspn(version, "0123456789\r\n ")])
        return trace_fail(t, a->error, TRACE_NO_OFFSET, "version '%s' is not a number", version);
    const zip_member *m = member(a, "", "data.pkl");
    if (!m)
        return trace_fail(t, a->error, TRACE_NO_OFFSET, "the name of the pickle is too long");
    if (m->method && m->size > t->max_header)
        return trace_fail(t, a->error, m->offset, "the pickle has %" PRIu64 " bytes, above the cap of %" PRIu64,
                          m->size, t->max_header);
    ((torch_state *)t->state)->script = member(a, "", "constants.pkl") != NULL;
    return section_of(a, m, &section) || torch_pickle(t, tree, section, 0, a->error) || torch_keys(t, tree, a->error) ||
                   find_storages(a, tree, big)
               ? -1
               : 0;
}

int torch_open_zip(trace *t, const zip_member *members, size_t n, torch_tree *tree, trace_error *error)
{
    archive a = {.t = t, .by_name = malloc(n * sizeof *a.by_name), .n = n, .error = error};
    if (!a.by_name)
        return trace_no_memory(t, error);
    for (size_t i = 0; i < n; i++)
        a.by_name[i] = &members[i];
    const int failed = open_members(&a, tree);
    free(a.by_name);
    return failed;
}
