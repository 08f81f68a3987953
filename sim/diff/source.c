/* source.c -- see source.h. */
#include "source.h"

#include <stdlib.h>
#include <string.h>

enum { LOADED_MOST = 8 << 20, SKIPPED_AT_ONCE = 4096 };
static const uint64_t ROW_MOST = 64 << 20;

int source_open(source *s, side *of, const side_tensor *t, trace_error *error)
{
    memset(s, 0, sizeof *s);
    s->tensor = t;
    s->at = UINT64_MAX;
    s->width = mpsim_format_code_bytes(t->format);
    s->t = side_trace(of, t->file, error);
    if (!s->t)
        return -1;
    const trace_tensor *x = trace_at(s->t, t->index);
    if (!x || !x->format || x->count != t->count || !mpsim_format_same(x->format, t->format))
        return trace_error_set(error, EXIT_DATA, t->file->path, UINT64_MAX, "has changed while it was read");
    return 0;
}

/* Whether the order of the file is another one than that of rows. */
static int is_by_columns(const source *s)
{
    const side_tensor *t = s->tensor;
    int long_axes = 0;
    for (size_t k = 0; k < t->rank; k++)
        long_axes += t->shape[k] > 1;
    return t->fortran && long_axes > 1;
}

int source_is_flat(const source *s)
{
    return s->memory || (trace_is_flat(s->t) && !is_by_columns(s));
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

/* Elements as the file has them. */
static int read_stored(source *s, uint64_t first, void *codes, size_t n, trace_error *error)
{
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

/* ---- by columns: the first axis varies fastest ---- */

/* The place in a row of what stands at `column` in the file: the other axes, the last one fastest here. */
static uint64_t place_in_row(const side_tensor *t, uint64_t column)
{
    uint64_t step = t->count / t->shape[0], place = 0;
    for (size_t k = 1; k < t->rank; k++) {
        step /= t->shape[k];
        place += column % t->shape[k] * step;
        column /= t->shape[k];
    }
    return place;
}

/* Rows from `row` on, as many as a tile holds. */
static int fill_tile(source *s, uint64_t row, trace_error *error)
{
    const side_tensor *t = s->tensor;
    const uint64_t length = t->count / t->shape[0], bytes = length * s->width;
    if (bytes > ROW_MOST)
        return trace_error_set(error, EXIT_DATA, trace_path(s->t), UINT64_MAX, "tensor '%s' is stored by columns, and has "
                               "rows of more than 64 MiB", t->name);
    if (!s->tile)
        s->rows = bytes < LOADED_MOST ? LOADED_MOST / bytes : 1;
    if (s->rows > t->shape[0])
        s->rows = t->shape[0];
    unsigned char *run = malloc((size_t)s->rows * s->width);
    if (!s->tile)
        s->tile = malloc((size_t)(s->rows * bytes));
    int bad = !run || !s->tile ? trace_error_set(error, EXIT_IO, trace_path(s->t), UINT64_MAX, "out of memory") : 0;
    const size_t n = t->shape[0] - row < s->rows ? (size_t)(t->shape[0] - row) : (size_t)s->rows;
    for (uint64_t column = 0; column < length && !bad; column++) {
        bad = read_stored(s, column * t->shape[0] + row, run, n, error);
        unsigned char *to = s->tile + place_in_row(t, column) * s->width;
        for (size_t i = 0; i < n && !bad; i++)
            memcpy(to + i * bytes, run + i * s->width, s->width);
    }
    free(run);
    s->row = row;
    return bad;
}

static int read_by_rows(source *s, uint64_t first, unsigned char *codes, size_t n, trace_error *error)
{
    const side_tensor *t = s->tensor;
    const uint64_t length = t->count / t->shape[0];
    while (n) {
        if (!s->tile || first < s->row * length || first >= (s->row + s->rows) * length)
            if (fill_tile(s, s->rows ? first / length / s->rows * s->rows : first / length, error))
                return -1;
        const uint64_t at = first - s->row * length, left = s->rows * length - at;
        const size_t m = n < left ? n : (size_t)left;
        memcpy(codes, s->tile + at * s->width, m * s->width);
        codes += m * s->width;
        first += m;
        n -= m;
    }
    return 0;
}

int source_read(source *s, uint64_t first, void *codes, size_t n, trace_error *error)
{
    if (s->memory)
        memcpy(codes, s->memory + first * s->width, n * s->width);
    else if (is_by_columns(s))
        return read_by_rows(s, first, codes, n, error);
    else
        return read_stored(s, first, codes, n, error);
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
    free(s->tile);
    s->tile = NULL;
    return 0;
}

void source_free(source *s)
{
    free(s->memory);
    free(s->tile);
    s->memory = s->tile = NULL;
}

int source_can_jump(const source *s)
{
    return source_is_flat(s);
}
