/* store.c -- see store.h. */
#include "store.h"

#include "../array/memory.h"
#include "../array/need.h"
#include "../cli/options.h"
#include "../trace/owndigests.h"

#include <inttypes.h>
#include <math.h>
#include <mpsim/digest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const mpsim_format *train_stored_format(const mpsim_format *f)
{
    return trace_safetensors_dtype(f) ? f : mpsim_format_find("binary32");
}

/* Numbers of the format, as little-endian codes; every NaN as one. */
static int encode(stored_tensor *s, float *x)
{
    const size_t bytes = mpsim_format_code_bytes(s->format), n = (size_t)s->count;
    mpsim_rounding exact;
    mpsim_rounding_init(&exact, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < n; i++)
        if (isnan(x[i]))
            x[i] = (float)NAN;
    s->codes = need_memory(n, bytes);
    if (mpsim_encode_array_f32(s->format, &exact, NULL, s->codes, x, n, NULL))
        return -1;
    trace_to_little_endian(s->codes, bytes, n);
    return 0;
}

int train_stored_add(stored_list *l, train_engine *e, const train_item *x, char *error)
{
    const size_t n = x->tensor->rows * x->tensor->cols;
    float *values = need_memory(n, sizeof *values);
    l->items = need_more(l->items, l->count + 1, sizeof *l->items);
    stored_tensor *s = &l->items[l->count];
    *s = (stored_tensor){.format = train_stored_format(x->tensor->format), .rank = x->rank, .count = n};
    memcpy(s->name, x->name, sizeof s->name);
    for (size_t i = 0; i < x->rank; i++)
        s->shape[i] = x->shape[i];
    const int bad = e->ops->get(e, x->tensor, values);
    if (bad)
        snprintf(error, TRAIN_ERROR, "%s: %.150s", x->name, e->error);
    else
        encode(s, values);
    l->count += !bad;
    free(values);
    return bad;
}

int train_stored_write(const stored_list *l, const char *path, const char *const (*metadata)[2], size_t n_metadata,
                       trace_error *error)
{
    trace_tensor *tensors = need_memory(l->count, sizeof *tensors);
    for (size_t i = 0; i < l->count; i++) {
        const stored_tensor *s = &l->items[i];
        tensors[i].name = s->name;
        tensors[i].format = s->format;
        tensors[i].shape = s->shape;
        tensors[i].rank = s->rank;
        tensors[i].count = s->count;
    }
    trace_writer *w = trace_writer_safetensors(path, tensors, l->count, metadata, n_metadata, error);
    free(tensors);
    if (!w)
        return -1;
    for (size_t i = 0; i < l->count; i++) {
        const stored_tensor *s = &l->items[i];
        if (trace_writer_data(w, s->codes, (size_t)s->count * mpsim_format_code_bytes(s->format), error)) {
            trace_writer_abandon(w);
            return -1;
        }
    }
    return trace_writer_finish(w, error);
}

void train_stored_join(stored_list *a, stored_list *b)
{
    a->items = need_more(a->items, a->count + b->count, sizeof *a->items);
    if (b->count)
        memcpy(a->items + a->count, b->items, b->count * sizeof *a->items);
    a->count += b->count;
    b->count = 0;
}

void train_stored_clear(stored_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i].codes);
    free(l->items);
    l->items = NULL;
    l->count = 0;
}

int train_error_exit(const char *line)
{
    return train_out_of_memory(line) ? EXIT_IO : EXIT_DATA;
}

char *train_stored_digests(const stored_list *l, const char *const (*metadata)[2], size_t n_metadata)
{
    own_sum s = {0, 0};
    size_t n;
    char *text = NULL;
    FILE *f = need(memory_open(&text, &n));
    for (size_t i = 0; i < n_metadata; i++)
        trace_own_sum_pair(&s, metadata[i][0], metadata[i][1]);
    for (size_t i = 0; i < l->count; i++) {
        const stored_tensor *x = &l->items[i];
        const size_t bytes = (size_t)x->count * mpsim_format_code_bytes(x->format);
        const uint64_t digest = mpsim_digest_bytes(x->codes, bytes, 0);
        trace_own_sum_tensor(&s, x->name, x->format, x->shape, x->rank, digest);
        fprintf(f, "%s %016" PRIx64 "\n", x->name, digest);
    }
    fprintf(f, "all %016" PRIx64 "\n", s.digest);
    return need(fclose(f) == 0 ? text : NULL);
}
