/* pairs.c -- see pairs.h. */
#include "cast.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../quant/describe.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void cast_pairs_put(pairs *p, const char *key, const char *format, ...)
{
    va_list args;
    char *value;
    va_start(args, format);
    (void)need(vasprintf(&value, format, args) < 0 ? NULL : value);
    va_end(args);
    need_room(&p->all, p->n, sizeof *p->all);
    p->all[p->n][0] = need_text(key);
    p->all[p->n++][1] = value;
}

static int is_about_codes(const char *key, const char *value)
{
    static const char torchao[] = "{\"_type\"";
    return strncmp(key, QUANT_KEY, strlen(QUANT_KEY)) == 0 || (strcmp(key, "tensor_names") == 0 && *value == '[') ||
           strncmp(value, torchao, strlen(torchao)) == 0;
}

void cast_pairs_put_input(pairs *p, const trace *t)
{
    for (size_t i = 0; trace_metadata_key(t, i); i++) {
        const char *key = trace_metadata_key(t, i), *value = trace_metadata_value(t, i);
        if (strncmp(key, "mpsim.cast.", 11) != 0 && !is_about_codes(key, value))
            cast_pairs_put(p, key, "%s", value);
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void cast_pairs_put_codes(pairs *p, const trace *t, const content *all, size_t n)
{
    const char **names = need_memory(n, sizeof *names), *key;
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        if (all[i].copied && trace_at(t, all[i].index)->quantised)
            names[used++] = trace_at(t, all[i].index)->name;
    if (used)
        qsort(names, used, sizeof *names, compare_names);
    for (size_t i = 0; used && (key = trace_metadata_key(t, i)); i++) {
        const char *name = strncmp(key, QUANT_KEY, strlen(QUANT_KEY)) == 0 ? key + strlen(QUANT_KEY) : NULL;
        if (name && bsearch(&name, names, used, sizeof *names, compare_names))
            cast_pairs_put(p, key, "%s", trace_metadata_value(t, i));
    }
    free(names);
}

trace_writer *cast_pairs_open(pairs *p, const char *path, const trace_tensor *tensors, size_t n, trace_error *error)
{
    trace_writer *w = trace_writer_safetensors(path, tensors, n, (const char *const(*)[2])p->all, p->n, error);
    for (size_t i = 0; i < p->n; i++) {
        free(p->all[i][0]);
        free(p->all[i][1]);
    }
    free(p->all);
    *p = (pairs){.n = 0};
    return w;
}
