/* torchzip.c -- the zip archive that torch.save writes since 1.6: data.pkl, and a stored member for each storage.
 * Members are found in the directory of the archive, under whatever folder data.pkl is in. An archive of torch.package has any number of
 * pickles, which share the storages.
 * Sources: torch/serialization.py (_save, _load), torch/package/package_exporter.py and caffe2/serialize/inline_container.cc of PyTorch
 * 2.6.0. */
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
    const char *before, *behind; /* the key of a storage, below the root */
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

static const zip_member *named(const archive *a, const char *before, const char *name, const char *behind)
{
    char full[4096];
    if ((size_t)snprintf(full, sizeof full, "%.*s%s%s%s", (int)a->root_bytes, a->root, before, name, behind) >=
        sizeof full)
        return NULL;
    const zip_member **m = bsearch(full, a->by_name, a->n, sizeof *a->by_name, compare_name);
    return m ? *m : NULL;
}

static const zip_member *member(const archive *a, const char *name)
{
    return named(a, "", name, "");
}

/* The section of a member. A stored one that was saved without a CRC is believed. */
static int section_of(const archive *a, const zip_member *m, uint32_t *section)
{
    torch_state *s = a->t->state;
    if (trace_zip_check_local(a->t, m, a->error))
        return -1;
    torch_section *made = trace_torch_section_add(a->t, section, a->error);
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
    const zip_member *m = member(a, name);
    uint32_t section;
    out[0] = 0;
    if (!m)
        return 0;
    if (m->size >= size || m->size == 0)
        return trace_fail(a->t, a->error, m->offset, "member '%s' has %" PRIu64 " bytes", name, m->size);
    if (section_of(a, m, &section) || trace_torch_ready(a->t, section, a->error) ||
        trace_torch_bytes(a->t, section, out, (size_t)m->size, 0, a->error))
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
        const zip_member *m = named(a, a->before, key->key, a->behind);
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

/* Whether names are all different, in whose order the members are then. */
static int sort_members(archive *a)
{
    qsort(a->by_name, a->n, sizeof *a->by_name, compare_members);
    for (size_t i = 1; i < a->n; i++)
        if (strcmp(a->by_name[i]->name, a->by_name[i - 1]->name) == 0)
            return trace_fail(a->t, a->error, a->by_name[i]->offset, "two members have the name '%.200s'",
                              a->by_name[i]->name);
    return 0;
}

/* Whether one of the names is that of the pickle. */
static int find_root(archive *a)
{
    const zip_member *found = NULL;
    for (size_t i = 0; i < a->n; i++) {
        const zip_member *m = a->by_name[i];
        if (is_pickle(m->name) && found)
            return trace_fail(a->t, a->error, m->offset, "two pickles, '%.200s' and '%.200s'", found->name, m->name);
        if (is_pickle(m->name))
            found = m;
    }
    a->root = found->name;
    a->root_bytes = strlen(found->name) - strlen("data.pkl");
    return 0;
}

/* The tree of a pickle, with its storages. */
static int open_pickle(const archive *a, const zip_member *m, torch_tree *tree, int big)
{
    trace *t = a->t;
    uint32_t section;
    if (m->method && m->size > t->max_header)
        return trace_fail(t, a->error, m->offset, "the pickle has %" PRIu64 " bytes, above the cap of %" PRIu64,
                          m->size, t->max_header);
    return section_of(a, m, &section) || trace_torch_pickle(t, tree, section, 0, a->error) ||
                   trace_torch_keys(t, tree, a->error) || find_storages(a, tree, big)
               ? -1
               : 0;
}

static int open_members(archive *a, torch_tree *tree)
{
    char version[64];
    int big;
    trace *t = a->t;
    if (sort_members(a) || find_root(a) || is_big_endian(a, &big) || short_text(a, "version", version, sizeof version))
        return -1;
    if (version[strspn(version, "0123456789\r\n ")])
        return trace_fail(t, a->error, TRACE_NO_OFFSET, "version '%s' is not a number", version);
    const zip_member *m = member(a, "data.pkl");
    if (!m)
        return trace_fail(t, a->error, TRACE_NO_OFFSET, "the name of the pickle is too long");
    ((torch_state *)t->state)->script = member(a, "constants.pkl") != NULL;
    return open_pickle(a, m, tree, big);
}

static int archive_begin(archive *a, trace *t, const zip_member *members, size_t n, trace_error *error)
{
    *a = (archive){.t = t, .by_name = malloc(n * sizeof *a->by_name), .n = n, .error = error};
    if (!a->by_name)
        return trace_no_memory(t, error);
    for (size_t i = 0; i < n; i++)
        a->by_name[i] = &members[i];
    return 0;
}

int trace_torch_open_zip(trace *t, const zip_member *members, size_t n, torch_tree *tree, trace_error *error)
{
    archive a;
    if (archive_begin(&a, t, members, n, error))
        return -1;
    a.before = "data/";
    a.behind = "";
    const int failed = open_members(&a, tree);
    free(a.by_name);
    return failed;
}

/* ---- torch.package ---- */

#define PACKAGE_DATA ".data/"

#define PACKAGE_VERSION PACKAGE_DATA "version"
#define PACKAGE_MODULES PACKAGE_DATA "extern_modules"

/* The last member of such a name in any folder. */
static const zip_member *in_any_folder(const zip_member *members, size_t n, const char *name)
{
    const size_t k = strlen(name);
    for (size_t i = n; i-- > 0;) {
        const size_t length = strlen(members[i].name);
        if (length > k && members[i].name[length - k - 1] == '/' && strcmp(members[i].name + length - k, name) == 0)
            return &members[i];
    }
    return NULL;
}

const zip_member *trace_torch_package(const zip_member *members, size_t n)
{
    const zip_member *version = in_any_folder(members, n, PACKAGE_VERSION);
    const zip_member *modules = in_any_folder(members, n, PACKAGE_MODULES);
    const size_t root = version ? strlen(version->name) - strlen(PACKAGE_VERSION) : 0;
    return modules && root && root == strlen(modules->name) - strlen(PACKAGE_MODULES) &&
                   memcmp(version->name, modules->name, root) == 0
               ? version
               : NULL;
}

/* Resources may be anything: pickles begin with their protocol. One that is packed is known by its name. */
static int is_resource(const archive *a, const zip_member *m, int *is)
{
    unsigned char head[2] = {0};
    const char *dot = strrchr(m->name, '.');
    *is = 0;
    if (strncmp(m->name, a->root, a->root_bytes) != 0 ||
        strncmp(m->name + a->root_bytes, PACKAGE_DATA, strlen(PACKAGE_DATA)) == 0 || m->size < sizeof head)
        return 0;
    if (!m->method && (trace_zip_check_local(a->t, m, a->error) ||
                       trace_was_read(a->t, trace_file_pread(a->t, head, sizeof head, m->end - m->packed), sizeof head,
                                      m->end - m->packed, a->error)))
        return -1;
    *is = m->method ? dot && strcmp(dot, ".pkl") == 0 : head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
    return 0;
}

/* The tensors of a pickle are below its name, if there is another one. */
static int walk_resource(torch_walker *w, const archive *a, const zip_member *m, int alone)
{
    torch_tree tree = {0};
    a->t->member = m->name;
    const int failed = open_pickle(a, m, &tree, 0) || trace_torch_walk(w, alone ? "" : m->name + a->root_bytes, &tree)
                           ? -1
                           : 0;
    a->t->member = NULL;
    trace_torch_tree_clear(a->t, &tree);
    return failed;
}

static int walk_resources(torch_walker *w, archive *a)
{
    size_t n = 0;
    int is;
    if (sort_members(a))
        return -1;
    for (size_t i = 0; i < a->n; i++) {
        if (is_resource(a, a->by_name[i], &is))
            return -1;
        n += is != 0;
    }
    for (size_t i = 0; i < a->n; i++)
        if (is_resource(a, a->by_name[i], &is) || (is && walk_resource(w, a, a->by_name[i], n == 1)))
            return -1;
    return 0;
}

int trace_torch_open_package(torch_walker *w, const zip_member *members, size_t n)
{
    archive a;
    if (archive_begin(&a, w->t, members, n, w->error))
        return -1;
    a.before = PACKAGE_DATA;
    a.behind = ".storage";
    a.root = trace_torch_package(members, n)->name;
    a.root_bytes = strlen(a.root) - strlen(PACKAGE_VERSION);
    const int failed = walk_resources(w, &a);
    free(a.by_name);
    return failed;
}
