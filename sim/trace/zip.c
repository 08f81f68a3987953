/* zip.c -- which of the layouts a zip archive has: that of a model of Keras or of torch.export, if a member is theirs, that of
 * PyTorch, if a member is a data.pkl, else npz. */
#include "config.h"
#include "impl.h"

#include <stdlib.h>
#include <string.h>

static const zip_member *find(const zip_member *members, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        const char *base = strrchr(members[i].name, '/');
        if (strcmp(base ? base + 1 : members[i].name, name) == 0)
            return &members[i];
    }
    return NULL;
}

/* A model of Keras 3, whose weights are an HDF5 file: it is read in its place. */
static int open_keras(trace *t, const zip_member *m, const trace_options *options, trace_error *error)
{
#ifdef HAVE_HDF5
    if (m->method != 0)
        return trace_fail(t, error, m->offset, "'%.200s' is packed: Keras stores it", m->name);
    if (trace_zip_check_local(t, m, error))
        return -1;
    t->base += m->end - m->packed;
    t->size = m->size;
    t->is_section = 1;
    t->type = &trace_layout_hdf5;
    return t->type->open(t, options, error);
#else
    (void)options;
    return trace_fail(t, error, m->offset,
                      "a model of Keras, whose '%.200s' is an HDF5 file, which this mpsim was built without "
                      "(configure --with-hdf5): save its weights as safetensors or npz",
                      m->name);
#endif
}

/* The members that tell. */
static int open_members(trace *t, const zip_member *members, size_t n, const trace_options *options, trace_error *error)
{
    const zip_member *weights = find(members, n, "model.weights.h5"), *exported = trace_torch_exported(members, n);
    if (weights && find(members, n, "config.json"))
        return open_keras(t, weights, options, error);
    const int package = !exported && trace_torch_package(members, n) != NULL;
    t->type = exported                                  ? &trace_layout_torch_export
              : package || find(members, n, "data.pkl") ? &trace_layout_torch
                                                        : &trace_layout_npz;
    return exported                         ? trace_torch_export_open(t, members, n, exported, options, error)
           : package                        ? trace_torch_package_open(t, members, n, options, error)
           : t->type == &trace_layout_torch ? trace_torch_open(t, members, n, options, error)
                                            : trace_npz_open(t, members, n, options, error);
}

static int open_zip(trace *t, const trace_options *options, trace_error *error)
{
    zip_member *members = NULL;
    size_t n = 0;
    if (trace_zip_directory(t, &members, &n, error))
        return -1;
    const int failed = open_members(t, members, n, options, error);
    free(members);
    return failed;
}

const trace_layout_type trace_layout_zip = {.name = "zip", .open = open_zip};
