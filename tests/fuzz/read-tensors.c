/* read-tensors.c -- for differential.py: reads the files whose names come on standard input, a line each, and writes what is
 * in them to standard output: a line of JSON, then the bytes of the tensors that it lists. Codes with scales are left apart
 * (--stored parts), so that tensors are as the file has them; blocks of GGUF are numbers. */
#include "sim/trace/impl.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 << 20, LINE = 4096 };

/* The elements of tensor i: as binary64 where they are numbers of a format, else as they are stored, in the host's byte order. */
static json_t *tensor(trace *t, size_t i, unsigned char **bytes, size_t *n, trace_error *e)
{
    const trace_tensor *x = trace_at(t, i);
    const int numbers = x->format != NULL;
    const size_t width = trace_width(&t->entries[i]);
    /* blocks that are not read, and tensors without elements (torch, device meta): no bytes */
    const int packed = (!numbers && t->entries[i].bytes != width * x->count) || t->entries[i].at == UINT64_MAX;
    const uint64_t size = packed ? 0 : numbers ? 8 * x->count : t->entries[i].bytes;
    size_t got = 0;
    json_t *shape = json_array();
    for (size_t k = 0; k < x->rank; k++)
        json_array_append_new(shape, json_integer((json_int_t)x->shape[k]));
    json_t *v = json_pack("{s:s,s:s,s:o,s:b,s:b,s:b,s:I,s:I}", "name", x->name, "dtype", x->dtype, "shape", shape,
                          "numbers", numbers, "packed", packed, "fortran", x->fortran, "count", (json_int_t)x->count,
                          "bytes", (json_int_t)size);
    if (size > MOST || !(*bytes = realloc(*bytes, *n + size + 8))) {
        trace_error_set(e, 4, "-", UINT64_MAX, "too large for this comparison");
        json_decref(v);
        return NULL;
    }
    int bad = packed ? 0 : numbers ? trace_select(t, i, e) : trace_select_stored(t, i, e);
    if (!bad && !packed && numbers)
        bad = trace_read(t, (double *)(void *)(*bytes + *n), x->count, &got, e) || got != x->count;
    else if (!bad && size && !numbers)
        bad = trace_read_codes(t, *bytes + *n, size / width, &got, e) || got != size / width;
    *n += size;
    if (!bad)
        return v;
    json_decref(v);
    return NULL;
}

static void read_file(const char *path)
{
    const size_t length = strlen(path);
    const int is_gguf = length > 5 && strcmp(path + length - 5, ".gguf") == 0;
    const trace_options options = {.quantised = is_gguf ? NULL : "parts"};
    trace_error e = {0};
    unsigned char *bytes = NULL;
    size_t n = 0;
    json_t *tensors = json_array(), *all;
    trace *t = trace_open(path, &options, &e);
    int bad = !t;
    for (size_t i = 0; !bad && i < trace_count(t); i++) {
        json_t *v = tensor(t, i, &bytes, &n, &e);
        bad = !v;
        if (v)
            json_array_append_new(tensors, v);
    }
    all = bad ? json_pack("{s:s}", "refused", e.text)
              : json_pack("{s:O,s:b}", "tensors", tensors, "left_out", trace_metadata(t, TRACE_NOT_READ) != NULL);
    json_dumpf(all, stdout, JSON_COMPACT);
    putchar('\n');
    if (!bad && n)
        fwrite(bytes, 1, n, stdout);
    fflush(stdout);
    json_decref(all);
    json_decref(tensors);
    free(bytes);
    trace_close(t);
}

int main(void)
{
    static char line[LINE];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        read_file(line);
    }
    return 0;
}
