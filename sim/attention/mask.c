/* mask.c -- see mask.h. */
#include "attention.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../pass/chosen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* 1 for each unit with a bit that is set, but for the sign of a number. */
static int read_units(attention_mask *m, trace *t, size_t n)
{
    trace_copy c[TRACE_COPIES];
    uint64_t *codes;
    const mpsim_format *f = trace_at(t, 0)->format;
    if (trace_copies(t, 0, c) != 1 || c->units != n || c->width > 8)
        return fail(EXIT_DATA, "attention: %s: mask dtype %s is not supported", trace_path(t), trace_at(t, 0)->dtype);
    const int code = pass_chosen_codes(&codes, t, c);
    for (size_t i = 0; i < n; i++)
        m->seen[i] = f ? mpsim_classify(f, codes[i]) != MPSIM_CLASS_ZERO : codes[i] != 0;
    free(codes);
    return code;
}

int attention_mask_read(attention_mask *m, const char *path, size_t queries, size_t keys)
{
    trace_error error;
    trace *t = trace_open(path, NULL, &error);
    if (!t)
        return fail(error.exit, "%s", error.text);
    const trace_tensor *x = trace_count(t) == 1 ? trace_at(t, 0) : NULL;
    int code = 0;
    if (!x)
        code = fail(EXIT_DATA, "attention: %s: expected one tensor as a mask, found %zu", trace_path(t),
                    trace_count(t));
    else if (x->rank != 2 || x->shape[0] != queries || x->shape[1] != keys || x->fortran)
        code = fail(EXIT_DATA, "attention: %s: the mask must be [queries, keys] = [%zu, %zu], in C order",
                    trace_path(t), queries, keys);
    if (!code) {
        m->seen = need_memory((uint64_t)queries * keys, 1);
        escape_text(m->label, sizeof m->label, x->name[0] ? x->name : path);
        code = read_units(m, t, queries * keys);
    }
    trace_close(t);
    return code;
}

void attention_mask_clear(attention_mask *m)
{
    free(m->seen);
    memset(m, 0, sizeof *m);
}
