/* torch.c -- the layouts of PyTorch's files: torch (zip), torch-legacy (stream), pickle. */
#include "torch.h"

#include <stdlib.h>
#include <string.h>

static int finish(trace *t, const trace_options *options, torch_tree *tree, int failed, trace_error *error)
{
    torch_walker *w = failed ? NULL : trace_torch_walk_begin(t, options, error);
    failed = trace_torch_walk_end(w, trace_torch_walk(w, "", tree));
    trace_torch_tree_clear(t, tree);
    return failed;
}

int trace_torch_open(trace *t, const zip_member *members, size_t n, const trace_options *options, trace_error *error)
{
    torch_tree tree = {0};
    if (!trace_torch_state_new(t, error))
        return -1;
    return finish(t, options, &tree, trace_torch_open_zip(t, members, n, &tree, error), error);
}

int trace_torch_package_open(trace *t, const zip_member *members, size_t n, const trace_options *options,
                             trace_error *error)
{
    torch_walker *w = trace_torch_state_new(t, error) ? trace_torch_walk_begin(t, options, error) : NULL;
    return trace_torch_walk_end(w, w && trace_torch_open_package(w, members, n));
}

static int open_pickle(trace *t, const trace_options *options, trace_error *error)
{
    torch_tree tree = {0};
    uint32_t section;
    int legacy = 0;
    if (!trace_torch_state_new(t, error))
        return -1;
    torch_section *whole = trace_torch_section_add(t, &section, error);
    if (!whole)
        return -1;
    whole->bytes = t->size;
    const int failed = trace_torch_open_stream(t, section, &tree, &legacy, error);
    if (legacy)
        t->type = &trace_layout_torch_legacy;
    return finish(t, options, &tree, failed, error);
}

const trace_layout_type trace_layout_torch = {
    .name = "torch", .codes = trace_torch_codes, .close = trace_torch_close, .all_elements = 1};
const trace_layout_type trace_layout_torch_legacy = {
    .name = "torch-legacy", .codes = trace_torch_codes, .close = trace_torch_close, .all_elements = 1};
const trace_layout_type trace_layout_pickle = {
    .name = "pickle", .open = open_pickle, .codes = trace_torch_codes, .close = trace_torch_close, .all_elements = 1};
