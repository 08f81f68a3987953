/* mask.c -- see mask.h. */
#include "mask.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../trace/trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* 1 for each unit with a bit that is set, but for the sign of a number. */
static int read_units(attention_mask *m, trace *t, size_t n)
{
    trace_copy c[TRACE_COPIES];
    trace_error error;
    const mpsim_format *f = trace_at(t, 0)->format;
    if (trace_copies(t, 0, c) != 1 || c->units != n || c->width > 8)
        return fail(EXIT_DATA, "attention: %s: a mask of %s is not read", trace_path(t), trace_at(t, 0)->dtype);
    unsigned char *bytes = need_memory(n, c->width);
    const int bad = trace_copy_units(t, c, 0, bytes, n, &error);
    for (size_t i = 0; i < n && !bad; i++) {
        uint64_t code = 0;
        for (size_t b = 0; b < c->width; b++)
            code |= (uint64_t)bytes[i * c->width + b] << 8 * b;
        m->seen[i] = f ? mpsim_classify(f, code) != MPSIM_CLASS_ZERO : code != 0;
    }
    free(bytes);
    return bad ? fail(error.exit, "%s", error.text) : 0;
}

int mask_read(attention_mask *m, const char *path, size_t queries, size_t keys)
{
    trace_error error;
    trace *t = trace_open(path, NULL, &error);
    if (!t)
        return fail(error.exit, "%s", error.text);
    const trace_tensor *x = trace_count(t) == 1 ? trace_at(t, 0) : NULL;
    int code = 0;
    if (!x)
        code = fail(EXIT_DATA, "attention: %s: %zu tensors: a mask is one", trace_path(t), trace_count(t));
    else if (x->rank != 2 || x->shape[0] != queries || x->shape[1] != keys || x->fortran)
        code = fail(EXIT_DATA, "attention: %s: the mask has another shape or order than [queries, keys] = [%zu, %zu]",
                    trace_path(t), queries, keys);
    if (!code) {
        m->seen = need_memory((uint64_t)queries * keys, 1);
        escape_text(m->label, sizeof m->label, x->name[0] ? x->name : path);
        code = read_units(m, t, queries * keys);
    }
    trace_close(t);
    return code;
}

void mask_clear(attention_mask *m)
{
    free(m->seen);
    memset(m, 0, sizeof *m);
}
