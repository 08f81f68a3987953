/* zip.c -- which of the layouts a zip archive has: that of PyTorch, if a member is a data.pkl, else npz. */
#include "impl.h"

#include <stdlib.h>
#include <string.h>

static int is_torch(const zip_member *members, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *base = strrchr(members[i].name, '/');
        if (strcmp(base ? base + 1 : members[i].name, "data.pkl") == 0)
            return 1;
    }
    return 0;
}

static int open_zip(trace *t, const trace_options *options, trace_error *error)
{
    zip_member *members = NULL;
    size_t n = 0;
    if (zip_directory(t, &members, &n, error))
        return -1;
    const int torch = is_torch(members, n);
    t->type = torch ? &trace_layout_torch : &trace_layout_npz;
    const int failed = torch ? trace_torch_open(t, members, n, options, error)
                             : trace_npz_open(t, members, n, options, error);
    free(members);
    return failed;
}

const trace_layout_type trace_layout_zip = {.name = "zip", .open = open_zip};
