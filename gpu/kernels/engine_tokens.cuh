/* engine_tokens.cuh -- operations on tokens, sums of tensors, sums over ranks. */
#pragma once

#include "engine_layers.cuh"
#include "flat_elements.cuh"
#include "tokens.cuh"

/* ---- sums of two ---- */

static int add_repeated(train_engine *e, const char *operation, train_tensor *y, const train_tensor *a,
                        const train_tensor *b, train_counts *counts)
{
    int failed = 0;
    gpu_word *slot = slot_of(e, counts, &failed);
    if (failed)
        return -1;
    const size_t n = size_of(y);
    if (n && is_flat(y) && is_flat(a) && is_flat(b))
        GPU_LAUNCH(flat_add_kernel, blocks_of(n / 8, GPU_THREADS_ELEMENT), GPU_THREADS_ELEMENT, 0, format_of(y),
                   at_of(y), format_of(a), at_of(a), format_of(b), at_of(b), n / 8, size_of(b) / 8, slot);
    else if (n)
        GPU_LAUNCH(add_kernel, blocks_of(n, GPU_THREADS_ELEMENT), GPU_THREADS_ELEMENT, 0, format_of(y), at_of(y),
                   format_of(a), at_of(a), format_of(b), at_of(b), n, size_of(b), slot);
    return wrote(e, operation, y);
}

static int cuda_add(train_engine *e, train_tensor *y, const train_tensor *a, const train_tensor *b,
                    train_counts *counts)
{
    return add_repeated(e, "add", y, a, b, counts);
}

static int cuda_add_rows(train_engine *e, train_tensor *y, const train_tensor *x, const train_tensor *table,
                         train_counts *counts)
{
    return add_repeated(e, "add_rows", y, x, table, counts);
}

static int cuda_add_rows_backward(train_engine *e, train_tensor *dtable, const train_tensor *dy, train_counts *counts)
{
    int failed = 0;
    gpu_word *slot = slot_of(e, counts, &failed);
    if (failed)
        return -1;
    const size_t n = size_of(dtable);
    GPU_LAUNCH(add_rows_backward_kernel, blocks_of(n, GPU_THREADS_ELEMENT), GPU_THREADS_ELEMENT, 0, format_of(dtable),
               at_of(dtable), format_of(dy), at_of(dy), n, size_of(dy), slot);
    return wrote(e, "add_rows_backward", dtable);
}

static int cuda_add_groups(train_engine *e, train_tensor *y, const train_tensor *x, size_t length, size_t group,
                           train_counts *counts)
{
    int failed = 0;
    gpu_word *slot = slot_of(e, counts, &failed);
    if (failed)
        return -1;
    const size_t n = size_of(y);
    GPU_LAUNCH(add_groups_kernel, blocks_of(n, GPU_THREADS_ELEMENT), GPU_THREADS_ELEMENT, 0, format_of(y), at_of(y),
               format_of(x), at_of(x), n, length * y->cols, group, slot);
    return wrote(e, "add_groups", y);
}

/* ---- rows of a table ---- */

/* Numbers of the host in buffer i of the device; NULL after an error. */
static uint32_t *numbers_to_device(train_engine *e, const char *operation, int i, const uint32_t *numbers, size_t n)
{
    uint32_t *to = static_cast<uint32_t *>(buffer_of(e, i, n * sizeof *numbers));
    return to && upload(e, operation, to, numbers, n * sizeof *numbers) == 0 ? to : NULL;
}

static int cuda_embed(train_engine *e, train_tensor *y, const train_tensor *table, const uint32_t *index,
                      train_counts *counts)
{
    int failed = 0;
    const uint32_t *on_device = numbers_to_device(e, "embed", 0, index, y->rows);
    gpu_word *slot = slot_of(e, counts, &failed);
    if (!on_device || failed)
        return -1;
    const size_t n = size_of(y);
    GPU_LAUNCH(embed_kernel, blocks_of(n, GPU_THREADS_ELEMENT), GPU_THREADS_ELEMENT, 0, format_of(y), at_of(y),
               format_of(table), at_of(table), on_device, n, y->cols, slot);
    return wrote(e, "embed", y);
}

/* Places 0 to n - 1 sorted by number, ascending within one: where those of each of `rows` numbers begin
 * (rows + 1), then the n places. In memory of the host; NULL with a line. */
static uint32_t *sorted_places(train_engine *e, const uint32_t *index, size_t n, size_t rows)
{
    uint32_t *begin = static_cast<uint32_t *>(staging_of(e, (rows + 1 + n) * sizeof *begin));
    if (!begin)
        return NULL;
    uint32_t *places = begin + rows + 1, sum = 0;
    memset(begin, 0, (rows + 1) * sizeof *begin);
    for (size_t i = 0; i < n; i++)
        begin[index[i]]++;
    for (size_t v = 0; v <= rows; v++) {
        const uint32_t own = begin[v];
        begin[v] = sum;
        sum += own;
    }
    for (size_t i = 0; i < n; i++)
        places[begin[index[i]]++] = (uint32_t)i;
    memmove(begin + 1, begin, rows * sizeof *begin); /* each stands where the next begins now */
    begin[0] = 0;
    return begin;
}

static int cuda_embed_backward(train_engine *e, train_tensor *dtable, const train_tensor *dy, const uint32_t *index,
                               int added, train_counts *counts)
{
    const char *name = "embed_backward";
    int failed = 0;
    const uint32_t *sorted = sorted_places(e, index, dy->rows, dtable->rows);
    const uint32_t *begin = sorted ? numbers_to_device(e, name, 0, sorted, dtable->rows + 1 + dy->rows) : NULL;
    gpu_word *slot = slot_of(e, counts, &failed);
    if (!begin || failed)
        return -1;
    const size_t n = size_of(dtable);
    GPU_LAUNCH(embed_backward_kernel, blocks_of(n, GPU_THREADS_ELEMENT), GPU_THREADS_ELEMENT, 0, format_of(dtable),
               at_of(dtable), format_of(dy), at_of(dy), begin, begin + dtable->rows + 1, n, dtable->cols, added, slot);
    return wrote(e, name, dtable);
}

/* ---- sums over ranks ---- */

/* The places of every sum's tensors on the device, `ranks` of each; NULL with a line. */
static const void *const *ranks_to_device(train_engine *e, const train_sum *list, size_t n, size_t ranks)
{
    const size_t bytes = n * ranks * sizeof(void *);
    const void **at = static_cast<const void **>(staging_of(e, bytes));
    void *to = at ? buffer_of(e, 0, bytes) : NULL;
    for (size_t i = 0; to && i < n; i++)
        for (size_t k = 0; k < ranks; k++)
            at[i * ranks + k] = at_of(list[i].x[k]);
    return to && upload(e, "reduce", to, at, bytes) == 0 ? static_cast<const void *const *>(to) : NULL;
}

/* What the ranks have is in one format. */
static int check_sum(train_engine *e, const train_sum *s, size_t ranks)
{
    for (size_t k = 1; k < ranks; k++)
        if (!mpsim_format_same(s->x[k]->format, s->x[0]->format))
            return cuda_fail(e, "reduce: the device adds numbers of one format, not %s and %s", s->x[0]->format->name,
                             s->x[k]->format->name);
    return 0;
}

static int reduce_set(train_engine *e, gpu_reduce *g, const mpsim_reduce *r, size_t ranks)
{
    if (gpu_format_set(&g->wire, &r->wire) || gpu_format_set(&g->accumulator, &r->accumulator) ||
        gpu_format_set(&g->result, &r->result))
        return cuda_fail(e, "reduce: the device has no numbers of %s, %s or %s", r->wire.name, r->accumulator.name,
                         r->result.name);
    g->order = r->order;
    g->average = r->average;
    g->ranks = ranks;
    g->share = (float)(1 / (double)ranks);
    return 0;
}

static int reduce_run(train_engine *e, gpu_reduce *g, const train_sum *list, size_t n)
{
    gpu_sums now;
    size_t first = 0;
    unsigned blocks;
    const size_t ranks = g->ranks;
    const void *const *at = ranks_to_device(e, list, n, ranks);
    unsigned char *taken = at ? untaken(e, n) : NULL;
    if (!taken)
        return -1;
    const auto alike = [&](size_t a, size_t b) {
        return mpsim_format_same(list[a].x[0]->format, list[b].x[0]->format);
    };
    const auto fill = [&](gpu_sum *s, size_t i) {
        const size_t elements = size_of(list[i].y);
        *s = gpu_sum{at_of(list[i].y), at + i * ranks, elements, elements / ranks + (elements % ranks != 0)};
        return gpu_list_blocks(elements);
    };
    while ((blocks = gpu_list_next(&now, taken, n, &first, alike, fill)) > 0) {
        g->x = format_of(list[first].x[0]);
        GPU_LAUNCH(reduce_kernel, blocks, GPU_LIST_THREADS, 0, *g, now);
    }
    return cuda_launched(e, "reduce");
}

static int cuda_reduce(train_engine *e, const mpsim_reduce *r, const train_sum *list, size_t n, size_t ranks)
{
    gpu_reduce g;
    for (size_t i = 0; i < n; i++)
        if (check_sum(e, &list[i], ranks))
            return -1;
    if (reduce_set(e, &g, r, ranks))
        return -1;
    for (size_t i = 0; i < n; i++)
        list[i].y->inverse = 1;
    return reduce_run(e, &g, list, n);
}
