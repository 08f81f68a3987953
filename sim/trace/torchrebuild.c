/* torchrebuild.c -- tensors as torch's functions rebuild them: a storage, its own or that of a file within the pickle,
 * an offset, a size, a stride, a dtype. */
#include "torch.h"

#include "../array/array.h"

#include <stdlib.h>

static int storage_at(torch_walker *w, pickle_ref r, torch_storage *storage);

/* The storage of a nested file, which has nothing else. */
static int nested_storage(torch_walker *w, pickle_ref r, torch_storage *storage)
{
    trace *t = w->t;
    torch_tree sub;
    if (!w->storage_of) {
        const size_t n = pickle_values(w->tree->p);
        w->storage_of = calloc(n, sizeof *w->storage_of);
        if (!w->storage_of)
            return trace_no_memory(t, w->error);
    }
    if (w->storage_of[r]) {
        *storage = w->storages[w->storage_of[r] - 1];
        return 0;
    }
    if (trace_torch_open_nested(t, w->tree, pickle_item(w->tree->p, pickle_args(w->tree->p, r), 0), &sub, w->error))
        return -1;
    torch_walker inner = {.t = t, .tree = &sub, .error = w->error};
    const int failed = storage_at(&inner, pickle_root(sub.p), storage);
    free(inner.storages);
    free(inner.storage_of);
    trace_torch_tree_clear(t, &sub);
    if (failed)
        return -1;
    if (array_room(&w->storages, w->n_storages, sizeof *w->storages))
        return trace_no_memory(t, w->error);
    w->storages[w->n_storages++] = *storage;
    w->storage_of[r] = (uint32_t)w->n_storages;
    return 0;
}

static const torch_global *row_of(const pickle *p, pickle_ref r)
{
    return pickle_type_of(p, r) == PICKLE_OBJECT ? trace_torch_global_find(pickle_global(p, r)) : NULL;
}

static int storage_at(torch_walker *w, pickle_ref r, torch_storage *storage)
{
    const torch_global *g = row_of(w->tree->p, r);
    return g && g->role == TORCH_BYTES ? nested_storage(w, r, storage)
                                       : trace_torch_storage_of(w->t, w->tree, r, storage, w->error);
}

static void set_dtype(torch_view *v, const torch_dtype *d)
{
    v->dtype = d ? d->name : "bytes";
    v->width = d ? d->bytes : 1;
    v->format = d ? d->format : NULL;
}

/* The dtype that an argument names; NULL after an error. */
static const torch_dtype *dtype_at(torch_walker *w, pickle_ref r)
{
    const pickle *p = w->tree->p;
    const char *name = pickle_type_of(p, r) == PICKLE_GLOBAL ? pickle_global(p, r) : NULL;
    const torch_dtype *d = trace_torch_dtype_find(name);
    if (!d)
        trace_fail(w->t, w->error, TRACE_NO_OFFSET, "refused: %s where a dtype was expected",
                   name ? name : "another value");
    return d;
}

int trace_torch_bad_tensor(const torch_walker *w, const char *why)
{
    return trace_fail(w->t, w->error, TRACE_NO_OFFSET, "tensor '%.200s': %s", w->path, why);
}

/* Size and stride, if there is one. */
static int read_shape(torch_walker *w, torch_view *v, pickle_ref size, pickle_ref stride)
{
    const int rank = trace_torch_sizes(w->t, w->tree->p, size, w->path, "its size", v->size, w->error);
    if (rank < 0)
        return -1;
    v->rank = (size_t)rank;
    if (!stride)
        return 0;
    const int strides = trace_torch_sizes(w->t, w->tree->p, stride, w->path, "its stride", v->stride, w->error);
    return strides < 0       ? -1
           : strides != rank ? trace_torch_bad_tensor(w, "it has another number of strides than of sizes")
                             : 0;
}

static int add_tensor(torch_walker *w, const torch_global *g, pickle_ref args)
{
    const pickle *p = w->tree->p;
    torch_view v = {0};
    pickle_ref a[6];
    int64_t offset;
    for (int i = 0; i < 6; i++)
        a[i] = g->arg[i] >= 0 ? pickle_item(p, args, (size_t)g->arg[i]) : 0;
    if (!a[3])
        return trace_torch_bad_tensor(w, "it is not described as torch does it");
    if (storage_at(w, a[0], &v.storage))
        return -1;
    const torch_dtype *d = a[4] ? dtype_at(w, a[4]) : v.storage.dtype;
    if (a[4] && !d)
        return -1;
    set_dtype(&v, d);
    if (pickle_int(p, a[1], &offset) || offset < 0)
        return trace_torch_bad_tensor(w, "its offset is not a natural number");
    v.offset = (uint64_t)offset;
    int64_t negative = 0;
    if (pickle_count(p, a[5]) < 100)
        pickle_int(p, pickle_get(p, a[5], "neg"), &negative);
    if (negative && !v.format)
        v.dtype = "negated";
    v.flip = negative && v.format;
    return read_shape(w, &v, a[2], a[3]) ? -1 : trace_torch_add(w->t, w->options, w->path, &v, w->error);
}

static int add_nowhere(torch_walker *w, const torch_global *g, pickle_ref args)
{
    torch_view v = {.nowhere = 1};
    const torch_dtype *d = dtype_at(w, pickle_item(w->tree->p, args, (size_t)g->arg[0]));
    if (!d)
        return -1;
    set_dtype(&v, d);
    return read_shape(w, &v, pickle_item(w->tree->p, args, (size_t)g->arg[1]), 0)
               ? -1
               : trace_torch_add(w->t, w->options, w->path, &v, w->error);
}

/* A storage that stands for itself: all of its elements. */
int trace_torch_rebuild_storage(torch_walker *w, pickle_ref r)
{
    torch_view v = {.rank = 1, .stride = {1}};
    if (trace_torch_storage_of(w->t, w->tree, r, &v.storage, w->error))
        return -1;
    set_dtype(&v, v.storage.dtype);
    v.size[0] = v.storage.bytes / v.width;
    return trace_torch_add(w->t, w->options, w->path, &v, w->error);
}

int trace_torch_rebuild(torch_walker *w, const torch_global *g, pickle_ref args)
{
    return g->role == TORCH_NOWHERE ? add_nowhere(w, g, args) : add_tensor(w, g, args);
}
