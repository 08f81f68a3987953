/* fuzz-names.c -- rules of --map (lines up to an empty one) and names of tensors (the others): rules are accepted or
 * refused with their place, every name has a kind and a fqn, or none and itself; no hang. */
#include "input.h"
#include "sim/trace/namemap.h"
#include "sim/trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 64 };

/* A name as JSON takes it without an escape. */
static int is_plain(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (name[i] < 0x20 || name[i] == '"' || name[i] == '\\' || name[i] == 0x7f)
            return 0;
    return 1;
}

/* A safetensors file of tensors with these names: of no elements, of rank 0 to 4. */
static size_t write_header(char *to, const char *text)
{
    size_t n = 8, names = 0;
    to[n++] = '{';
    for (const char *p = text; *p && names < NAMES; p += *p == '\n') {
        static const char *const shapes[] = {"0", "0,2", "1,0,2", "1,0,2,2", "2,0"};
        const size_t length = strcspn(p, "\n");
        if (is_plain(p, length)) {
            n += (size_t)sprintf(to + n, "%s\"%.*s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[0,0]}",
                                 names ? "," : "", (int)length, p, shapes[names % 5]);
            names++;
        }
        p += length;
    }
    to[n++] = '}';
    for (size_t i = 0, size = n - 8; i < 8; i++)
        to[i] = (char)(unsigned char)(size >> (8 * i));
    return n;
}

static void check_names(const trace *t)
{
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *x = trace_at(t, i);
        must(x->fqn != NULL);
        must(x->kind ? trace_convention(t) != NULL : strcmp(x->fqn, x->name) == 0);
        must(!x->kind || trace_kind_at(trace_kind_rank(x->kind)) == x->kind);
        for (size_t k = 0; k < i; k++) {
            const trace_tensor *y = trace_at(t, k);
            must(!x->kind || x->kind != y->kind || strcmp(x->fqn, y->fqn) != 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = input_text(data, n), *p = text, error[200];
    namemap *map = trace_namemap_new("rules");
    char *file = malloc(strlen(text) + 80 * NAMES + 64);
    must(map != NULL && file != NULL);
    for (size_t length; (length = strcspn(p, "\n")) > 0; p += p[length] ? length + 1 : length)
        if (trace_namemap_add(map, p, length, error))
            must_be_line(error);
    const size_t bytes = write_header(file, *p ? p + 1 : p);
    for (int with = 0; with < 2; with++) {
        const trace_options o = {.map = with ? map : NULL};
        trace_error e;
        trace *t = trace_open(input_path((const uint8_t *)file, bytes), &o, &e);
        if (t)
            check_names(t);
        else
            must_be_line(e.text);
        trace_close(t);
    }
    trace_namemap_free(map);
    free(file);
    free(text);
    return 0;
}
