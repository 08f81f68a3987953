/* wide.c -- see wide.h. */
#include "wide.h"

#include "../input/steps.h"
#include "../record/cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 12 };

/* By which recorded gradients are multiplied to be as backward left them; 0: the run had no loss scale. */
static double scaled_by(const trace *t)
{
    const char *scaled = trace_metadata(t, "mpsim.grads_scaled");
    const char *text = trace_metadata(t, "mpsim.loss_scale");
    double scale;
    if (!text || parse_number(&scale, text) || !(scale > 0) || !isfinite(scale))
        return 0;
    if (scaled && (strcmp(scaled, "true") == 0 || strcmp(scaled, "1") == 0))
        return 1;
    return scale == 1 ? 0 : scale;
}

/* Whether the record says that gradients are sums that f does not hold: PyTorch adds in the parameter's format. */
static int are_sums(const trace *t, const mpsim_format *f)
{
    const char *n = trace_metadata(t, "mpsim.accumulation");
    const char *format = trace_metadata(t, "mpsim.accumulation_format");
    const mpsim_format *said = format ? mpsim_format_find(format) : NULL;
    uint64_t count;
    return n && parse_count(&count, n) == 0 && count > 1 && (!said || said->mbits > f->mbits || said->ebits > f->ebits);
}

/* Whether f lacks a finite one of n numbers; y is room for them. */
static int lacks_one(const mpsim_format *f, double factor, const double *x, double *y, size_t n)
{
    mpsim_rounding rounding;
    mpsim_rounding_init(&rounding, MPSIM_ROUND_NEAREST_EVEN);
    rounding.scale = factor;
    (void)mpsim_round_array_f64(f, &rounding, NULL, y, x, n, NULL); /* both are valid */
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]) && y[i] != x[i] * factor)
            return 1;
    return 0;
}

/* The same of a tensor; -1 after a trace error. */
static int tensor_shows(trace *t, size_t i, const mpsim_format *f, double factor, trace_error *error)
{
    double x[BLOCK], y[BLOCK];
    size_t n;
    if (trace_select(t, i, error))
        return -1;
    do {
        if (trace_read(t, x, BLOCK, &n, error))
            return -1;
        if (lacks_one(f, factor, x, y, n))
            return 1;
    } while (n == BLOCK);
    return 0;
}

static void keep(wide_gradients *w, const char *name, int shown)
{
    wide_gradient *g = nameindex_item(&w->names, &w->items, &w->count, sizeof *g, name);
    g->shown |= shown;
}

/* Whether a number of the tensor has shown it already. */
static int is_shown(const wide_gradients *w, const char *name)
{
    const ptrdiff_t i = nameindex_find(&w->names, name);
    return i >= 0 && w->items[i].shown;
}

static int find_in(wide_gradients *w, const input *in, trace *t, const mpsim_format *f, trace_error *error)
{
    const double factor = scaled_by(t);
    const int sums = are_sums(t, f);
    for (size_t i = 0; factor > 0 && i < trace_count(t); i++) {
        const trace_tensor *tensor = trace_at(t, i);
        if (!input_selects(in, tensor) || !tensor->format || is_shown(w, tensor->name) ||
            (tensor->format->mbits <= f->mbits && tensor->format->ebits <= f->ebits))
            continue;
        const int shown = tensor_shows(t, i, f, factor, error);
        if (shown < 0)
            return -1;
        if (shown || sums)
            keep(w, tensor->name, shown);
    }
    return 0;
}

int scaler_wide_find(wide_gradients *w, input *in, const mpsim_format *f)
{
    int code = 0; /* a file that is broken is told by who measures it */
    for (size_t i = 0; i < in->tree.count && !code; i++) {
        trace_error error;
        trace *t = input_is_file(in->tree.paths[i]) ? input_trace_open(in, in->tree.paths[i], &error) : NULL;
        if (t && find_in(w, in, t, f, &error) && error.exit == EXIT_IO)
            code = fail(EXIT_IO, "%s", error.text);
        trace_close(t);
    }
    return code;
}

int scaler_wide_has(const wide_gradients *w, const char *name)
{
    return nameindex_find(&w->names, name) >= 0;
}

size_t scaler_wide_shown(const wide_gradients *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->count; i++)
        n += w->items[i].shown != 0;
    return n;
}

void scaler_wide_clear(wide_gradients *w)
{
    nameindex_clear(&w->names);
    for (size_t i = 0; i < w->count; i++)
        free(w->items[i].name);
    free(w->items);
}
