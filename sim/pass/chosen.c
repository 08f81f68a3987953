/* chosen.c -- see chosen.h. */
#include "chosen.h"

#include "../array/array.h"
#include "../array/need.h"
#include "../cli/options.h"
#include "../text/words.h"
#include "elements.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int pass_chosen_find(size_t *at, trace *t, const char *verb, const char *glob)
{
    size_t found = 0;
    char name[256];
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *tensor = trace_at(t, i);
        if ((!tensor->format && !glob) || (glob && fnmatch(glob, tensor->name, 0) != 0))
            continue;
        if (found++ == 0)
            *at = i;
    }
    if (found == 1)
        return 0;
    if (found == 0)
        return fail(EXIT_DATA, "%s: %s: no tensor%s%s (mpsim info lists them)", verb, trace_path(t),
                    glob ? " matches " : " of floating-point numbers", glob ? glob : "");
    return fail(EXIT_USAGE, "%s: %s: %zu tensors%s%s, the first is '%s': choose one by name", verb, trace_path(t),
                found, glob ? " match " : "", glob ? glob : "", escape_text(name, sizeof name, trace_at(t, *at)->name));
}

int pass_chosen_bad(const chosen *c, const char *text, ...)
{
    char why[256];
    const int named = trace_at(c->t, c->at)->name[0] != 0;
    va_list values;
    va_start(values, text);
    vsnprintf(why, sizeof why, text, values);
    va_end(values);
    return fail(EXIT_DATA, "%s: %s%s%s: %s", c->verb, trace_path(c->t), named ? ": " : "", named ? c->label : "", why);
}

static int describe(chosen *c, const trace_tensor *x)
{
    char dtype[64];
    escape_text(c->label, sizeof c->label, *x->name ? x->name : trace_path(c->t));
    if (!x->format)
        return pass_chosen_bad(c, "%s is not a floating-point dtype", escape_text(dtype, sizeof dtype, x->dtype));
    if (x->rank > CHOSEN_RANK)
        return pass_chosen_bad(c, "%zu dimensions, more than %d", x->rank, CHOSEN_RANK);
    if (x->count == 0)
        return pass_chosen_bad(c, "the tensor is empty");
    c->n = (size_t)x->count;
    c->rank = x->rank;
    memcpy(c->shape, x->shape, c->rank * sizeof *c->shape);
    return 0;
}

int pass_chosen_open(chosen *c, trace *t, const char *verb, const char *glob)
{
    *c = (chosen){.verb = verb, .t = t};
    const int code = pass_chosen_find(&c->at, t, verb, glob);
    return code ? code : describe(c, trace_at(t, c->at));
}

int pass_chosen_take(chosen *c, size_t n)
{
    trace_error error;
    c->n = n;
    c->x = array_memory(n, sizeof *c->x);
    if (!c->x)
        (void)trace_no_memory(c->t, &error);
    return !c->x || pass_elements_read(c->x, c->t, c->at, n, &error) ? fail(error.exit, "%s", error.text) : 0;
}

int pass_chosen_read_from(chosen *c, trace *t, const char *verb, const char *glob)
{
    int code = pass_chosen_open(c, t, verb, glob);
    if (!code)
        code = pass_chosen_take(c, c->n);
    for (size_t i = 0; i < c->n && !code; i++)
        if (!isfinite(c->x[i]))
            code = pass_chosen_bad(c, "element %zu is %s: only finite numbers are taken", i,
                                   isnan(c->x[i]) ? "NaN" : "infinite");
    return code;
}

int pass_chosen_read(chosen *c, const char *verb, const char *path, const trace_options *options, const char *glob)
{
    trace_error error;
    memset(c, 0, sizeof *c);
    trace *t = trace_open(path, options, &error);
    if (!t)
        return fail(error.exit, "%s", error.text);
    const int code = pass_chosen_read_from(c, t, verb, glob);
    trace_close(t);
    return code;
}

void pass_chosen_clear(chosen *c)
{
    free(c->x);
    memset(c, 0, sizeof *c);
}

/* ---- of any dtype ---- */

int pass_chosen_codes(uint64_t **codes, trace *t, const trace_copy *c)
{
    trace_error error;
    const size_t n = (size_t)c->units;
    unsigned char *bytes = need_memory(n, c->width);
    const int bad = trace_copy_units(t, c, 0, bytes, n, &error);
    *codes = need_memory(n, sizeof **codes);
    for (size_t i = 0; i < n && !bad; i++)
        for (size_t b = 0; b < c->width; b++)
            (*codes)[i] |= (uint64_t)bytes[i * c->width + b] << 8 * b;
    free(bytes);
    return bad ? fail(error.exit, "%s", error.text) : 0;
}
