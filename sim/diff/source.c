/* source.c -- see source.h. */
#include "source.h"

#include <stdlib.h>
#include <string.h>

enum { LOADED_MOST = 8 << 20, SKIPPED_AT_ONCE = 4096 };

int source_open(source *s, side *of, const side_tensor *t, trace_error *error)
{
    memset(s, 0, sizeof *s);
    s->tensor = t;
    s->at = UINT64_MAX;
    s->width = mpsim_format_code_bytes(&t->format);
    s->t = side_trace(of, t->file, error);
    if (!s->t)
        return -1;
    const trace_tensor *x = trace_at(s->t, t->index);
    if (!x || !x->format || x->count != t->count || !mpsim_format_same(x->format, &t->format))
        return trace_error_set(error, EXIT_DATA, t->file->path, UINT64_MAX, "has changed while it was read");
    return 0;
}

int source_is_flat(const source *s)
{
    return s->memory || trace_is_flat(s->t);
}

/* Go to an element of what is read in order. */
static int go_to(source *s, uint64_t first, trace_error *error)
{
    unsigned char skipped[SKIPPED_AT_ONCE * sizeof(uint64_t)];
    if (s->tensor->file->reader != s || s->at == UINT64_MAX || first < s->at) {
        s->tensor->file->reader = s;
        if (trace_select(s->t, s->tensor->index, error))
            return -1;
        s->at = 0;
    }
    while (s->at < first) {
        size_t got;
        const uint64_t left = first - s->at;
        if (trace_read_codes(s->t, skipped, left < SKIPPED_AT_ONCE ? (size_t)left : SKIPPED_AT_ONCE, &got,
                             error))
            return -1;
        if (got == 0)
            return trace_error_set(error, EXIT_DATA, trace_path(s->t), UINT64_MAX, "a tensor ends too soon");
        s->at += got;
    }
    return 0;
}

int source_read(source *s, uint64_t first, void *codes, size_t n, trace_error *error)
{
    if (s->memory) {
        memcpy(codes, s->memory + first * s->width, n * s->width);
        return 0;
    }
    if (trace_is_flat(s->t))
        return trace_codes(s->t, s->tensor->index, first, codes, n, error);
    if (go_to(s, first, error))
        return -1;
    for (size_t done = 0, got; done < n; done += got) {
        if (trace_read_codes(s->t, (unsigned char *)codes + done * s->width, n - done, &got, error))
            return -1;
        if (got == 0)
            return trace_error_set(error, EXIT_DATA, trace_path(s->t), UINT64_MAX, "a tensor ends too soon");
        s->at += got;
    }
    return 0;
}

int source_load(source *s, trace_error *error)
{
    if (s->memory || s->tensor->count > LOADED_MOST / s->width || s->tensor->count == 0)
        return 0;
    const size_t n = (size_t)s->tensor->count;
    unsigned char *memory = malloc(n * s->width);
    if (!memory)
        return trace_error_set(error, EXIT_IO, trace_path(s->t), UINT64_MAX, "out of memory");
    if (source_read(s, 0, memory, n, error)) {
        free(memory);
        return -1;
    }
    s->memory = memory;
    return 0;
}

void source_free(source *s)
{
    free(s->memory);
    s->memory = NULL;
}

int source_can_jump(const source *s)
{
    return source_is_flat(s);
}
