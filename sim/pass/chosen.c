/* chosen.c -- see chosen.h. */
#include "chosen.h"

#include "../array/array.h"
#include "../cli/options.h"
#include "../text/words.h"
#include "elements.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int chosen_find(size_t *at, trace *t, const char *verb, const char *glob)
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

/* Every element as a value. */
static int read_elements(chosen *c, trace *t, size_t at, trace_error *error)
{
    const trace_tensor *tensor = trace_at(t, at);
    elements e = {0};
    unsigned char *codes = array_memory(tensor->count, mpsim_format_code_bytes(tensor->format));
    c->x = array_memory(tensor->count, sizeof *c->x);
    int bad = !codes || !c->x ? trace_no_memory(t, error) : elements_open(&e, t, at, ELEMENTS_ROWS, NULL, error);
    if (!bad && !(bad = elements_codes(&e, 0, codes, c->n, error)))
        mpsim_decode_array(tensor->format, c->x, codes, c->n);
    elements_close(&e);
    free(codes);
    return bad;
}

static int check(chosen *c, const trace *t, size_t at, const char *verb)
{
    const trace_tensor *tensor = trace_at(t, at);
    char dtype[64];
    if (!tensor->format)
        return fail(EXIT_DATA, "%s: %s: %s: %s is not a floating-point dtype", verb, trace_path(t), c->label,
                    escape_text(dtype, sizeof dtype, tensor->dtype));
    if (tensor->rank > CHOSEN_RANK)
        return fail(EXIT_DATA, "%s: %s: %s: %zu dimensions, more than %d", verb, trace_path(t), c->label, tensor->rank,
                    CHOSEN_RANK);
    if (tensor->count == 0)
        return fail(EXIT_DATA, "%s: %s: %s: the tensor is empty", verb, trace_path(t), c->label);
    c->n = (size_t)tensor->count;
    c->rank = tensor->rank;
    memcpy(c->shape, tensor->shape, c->rank * sizeof *c->shape);
    return 0;
}

int chosen_read_from(chosen *c, trace *t, const char *verb, const char *glob)
{
    trace_error error;
    size_t at = 0;
    memset(c, 0, sizeof *c);
    int code = chosen_find(&at, t, verb, glob);
    if (code)
        return code;
    const char *name = trace_at(t, at)->name;
    escape_text(c->label, sizeof c->label, *name ? name : trace_path(t));
    if ((code = check(c, t, at, verb)))
        return code;
    if (read_elements(c, t, at, &error))
        return fail(error.exit, "%s", error.text);
    for (size_t i = 0; i < c->n; i++)
        if (!isfinite(c->x[i]))
            return fail(EXIT_DATA, "%s: %s: %s: element %zu is %s: only finite numbers are taken", verb, trace_path(t),
                        c->label, i, isnan(c->x[i]) ? "NaN" : "infinite");
    return 0;
}

int chosen_read(chosen *c, const char *verb, const char *path, const trace_options *options, const char *glob)
{
    trace_error error;
    memset(c, 0, sizeof *c);
    trace *t = trace_open(path, options, &error);
    if (!t)
        return fail(error.exit, "%s", error.text);
    const int code = chosen_read_from(c, t, verb, glob);
    trace_close(t);
    return code;
}

void chosen_clear(chosen *c)
{
    free(c->x);
    memset(c, 0, sizeof *c);
}

const char *chosen_shape(char *out, size_t size, const chosen *c)
{
    snprintf(out, size, "[");
    for (size_t i = 0; i < c->rank; i++)
        text_add(out, size, "%s%" PRIu64, i ? ", " : "", c->shape[i]);
    text_add(out, size, "]");
    return out;
}
