/* operand.c -- see operand.h. */
#include "operand.h"

#include "options.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- generated ---- */

enum { UNIFORM, SYMMETRIC, NORMAL, RELU };
static const char *const names[] = {"uniform", "symmetric", "normal", "relu"};
static const char *const labels[] = {"uniform in (0, 1)", "uniform in (-1, 1)", "normal",
                                     "relu of normal"};
enum { DISTRIBUTIONS = sizeof names / sizeof names[0], WORDS = 12 };

const char *distribution_name(int distribution)
{
    return distribution >= 0 && distribution < DISTRIBUTIONS ? names[distribution] : NULL;
}

int distribution_find(int *distribution, const char *name)
{
    for (int i = 0; i < DISTRIBUTIONS; i++)
        if (strcmp(name, names[i]) == 0) {
            *distribution = i;
            return 0;
        }
    return -1;
}

/* Element k of the row of that stream. */
static double draw(int distribution, uint64_t seed, uint64_t stream, uint64_t k)
{
    const int words = distribution == NORMAL || distribution == RELU ? WORDS : 1;
    double sum = 0; /* exact: multiples of 2^-33 below 2^4 */
    for (int i = 0; i < words; i++) {
        const uint32_t word = mpsim_rng_word(seed, stream, k * WORDS + (uint64_t)i);
        sum += ((double)word + 0.5) * 0x1p-32;
    }
    switch (distribution) {
    case SYMMETRIC:
        return 2 * sum - 1;
    case NORMAL:
        return sum - 6;
    case RELU:
        return sum > 6 ? sum - 6 : 0;
    default:
        return sum;
    }
}

static int allocate(operand *o, const char *verb, size_t rows, size_t depth)
{
    o->rows = rows;
    o->depth = depth;
    if (depth == 0 || rows <= SIZE_MAX / sizeof *o->x / depth)
        o->x = malloc((rows * depth + 1) * sizeof *o->x);
    return o->x ? 0 : fail(EXIT_IO, "%s: out of memory for %zu x %zu numbers", verb, rows, depth);
}

int operand_generate(operand *o, const char *verb, size_t rows, size_t depth, int distribution,
                     uint64_t seed, uint64_t stream)
{
    memset(o, 0, sizeof *o);
    const int status = allocate(o, verb, rows, depth);
    if (status)
        return status;
    o->all_rows = rows;
    snprintf(o->label, sizeof o->label, "%s", labels[distribution]);
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < depth; k++)
            o->x[i * depth + k] = draw(distribution, seed, (stream << 32) + i, k);
    return 0;
}

/* ---- from a file ---- */

/* The tensor to read: the only floating-point one that matches. */
static int choose(size_t *chosen, const char *verb, trace *t, const char *glob)
{
    size_t found = 0;
    char name[256];
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *tensor = trace_at(t, i);
        if ((!tensor->format && !glob) || (glob && fnmatch(glob, tensor->name, 0) != 0))
            continue;
        if (found++ == 0)
            *chosen = i;
    }
    if (found == 1)
        return 0;
    if (found == 0)
        return fail(EXIT_DATA, "%s: %s: no tensor%s%s", verb, trace_path(t),
                    glob ? " matches " : " of floating-point numbers", glob ? glob : "");
    return fail(EXIT_USAGE, "%s: %s: %zu tensors%s%s, the first is '%s': choose one by name", verb,
                trace_path(t), found, glob ? " match " : "", glob ? glob : "",
                escape_text(name, sizeof name, trace_at(t, *chosen)->name));
}

static int read_rows(operand *o, const char *verb, trace *t, size_t at, int flatten,
                     size_t max_rows)
{
    const trace_tensor *tensor = trace_at(t, at);
    trace_error error;
    uint64_t rows = 1, depth = 1;
    for (size_t i = 0; i < tensor->rank; i++) {
        const int is_row = tensor->rank > 1 && (flatten ? i == 0 : i + 1 < tensor->rank);
        *(is_row ? &rows : &depth) *= tensor->shape[i];
    }
    if (tensor->fortran && tensor->rank > 1)
        return fail(EXIT_DATA, "%s: %s: column-major tensors are not read here", verb,
                    trace_path(t));
    o->all_rows = rows;
    const int status = allocate(o, verb, rows < max_rows ? rows : max_rows, depth);
    if (status)
        return status;
    if (trace_select(t, at, &error))
        return fail(error.exit, "%s", error.text);
    for (size_t n = 0, got; n < o->rows * o->depth; n += got)
        if (trace_read(t, o->x + n, o->rows * o->depth - n, &got, &error))
            return fail(error.exit, "%s", error.text);
    for (size_t i = 0; i < o->rows * o->depth; i++)
        if (!isfinite(o->x[i]))
            return fail(EXIT_DATA, "%s: %s: element %zu is not finite: there is no exact sum", verb,
                        trace_path(t), i);
    return 0;
}

int operand_read(operand *o, const char *verb, const char *path, const char *glob, int flatten,
                 size_t max_rows)
{
    trace_error error;
    size_t at = 0;
    memset(o, 0, sizeof *o);
    trace *t = trace_open(path, NULL, &error);
    if (!t)
        return fail(error.exit, "%s", error.text);
    int status = choose(&at, verb, t, glob);
    if (!status) {
        const char *name = trace_at(t, at)->name;
        char text[sizeof o->label];
        snprintf(o->label, sizeof o->label, "%s",
                 escape_text(text, sizeof text, *name ? name : path));
        status = read_rows(o, verb, t, at, flatten, max_rows);
    }
    trace_close(t);
    return status;
}

/* ---- rounded ---- */

static double fitting_scale(const operand *o, const mpsim_format *f)
{
    double amax = 0;
    int e;
    for (size_t i = 0; i < o->rows * o->depth; i++)
        amax = fabs(o->x[i]) > amax ? fabs(o->x[i]) : amax;
    if (amax == 0)
        return 1;
    (void)frexp(mpsim_format_max(f) / amax, &e); /* ratio in [2^(e-1), 2^e) */
    double scale = ldexp(1, e - 1);
    return amax * scale <= mpsim_format_max(f) ? scale : scale / 2;
}

int operand_encode(operand *o, const char *verb, const mpsim_format *f, double scale)
{
    mpsim_rounding r;
    const size_t n = o->rows * o->depth;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    o->format = *f;
    o->scale = r.scale = scale > 0 ? scale : fitting_scale(o, f);
    o->codes = malloc(n * mpsim_format_code_bytes(f) + 1);
    if (!o->codes)
        return fail(EXIT_IO, "%s: out of memory", verb);
    if (mpsim_encode_array_f64(f, &r, NULL, o->codes, o->x, n, &o->counts) != MPSIM_OK)
        return fail(EXIT_USAGE, "%s: the scale is not a positive finite number", verb);
    if (o->counts.overflow)
        return fail(EXIT_DATA, "%s: %s: %llu of %zu elements overflow %s: scale them (--scale amax)",
                    verb, o->label, (unsigned long long)o->counts.overflow, n, f->name);
    return 0;
}

void operand_clear(operand *o)
{
    free(o->x);
    free(o->codes);
    memset(o, 0, sizeof *o);
}
