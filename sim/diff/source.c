/* source.c -- see source.h. */
#include "source.h"

#include <string.h>

enum { LOADED_MOST = 8 << 20 }; /* bytes */

int source_open(source *s, side *of, const side_tensor *t, trace_error *error)
{
    memset(s, 0, sizeof *s);
    s->tensor = t;
    trace *from = side_trace(of, t->file, error);
    if (!from)
        return -1;
    const trace_tensor *x = trace_at(from, t->index);
    if (!x || !x->format || x->count != t->count || !mpsim_format_same(x->format, t->format))
        return trace_error_set(error, EXIT_DATA, t->file->path, UINT64_MAX, "has changed while it was read");
    return elements_open(&s->from, from, t->index, ELEMENTS_ROWS, NULL, error);
}

void source_close(source *s)
{
    elements_close(&s->from);
}

int source_read(const source *s, uint64_t first, void *codes, size_t n, trace_error *error)
{
    return elements_codes(&s->from, first, codes, n, error);
}

int source_load(source *s, trace_error *error)
{
    return s->tensor->count > LOADED_MOST / s->from.width ? 0 : elements_load(&s->from, error) ? -1 : 1;
}
