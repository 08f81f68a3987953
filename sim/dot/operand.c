/* operand.c -- see operand.h. */
#include "operand.h"

#include "../array/array.h"
#include "../array/need.h"
#include "../cli/options.h"
#include "../pass/chosen.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- generated ---- */

enum { UNIFORM, SYMMETRIC, NORMAL, RELU, DISTRIBUTIONS };
enum { WORDS = 12 }; /* random words an element may take */

static const struct {
    const char *name, *label;
    int words;
} distributions[DISTRIBUTIONS] = {
    [UNIFORM] = {"uniform", "uniform in (0, 1)", 1},
    [SYMMETRIC] = {"symmetric", "uniform in (-1, 1)", 1},
    [NORMAL] = {"normal", "normal", WORDS},
    [RELU] = {"relu", "relu of normal", WORDS},
};

int distribution_find(int *distribution, const char *name)
{
    for (int i = 0; i < DISTRIBUTIONS; i++)
        if (strcmp(name, distributions[i].name) == 0) {
            *distribution = i;
            return 0;
        }
    return -1;
}

double distribution_draw(int distribution, uint64_t seed, uint64_t stream, uint64_t k)
{
    double sum = 0; /* exact: multiples of 2^-33 below 2^4 */
    for (int i = 0; i < distributions[distribution].words; i++) {
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

static int allocate(operand *o, uint64_t rows, uint64_t depth)
{
    o->rows = (size_t)rows;
    o->depth = (size_t)depth;
    if (depth == 0 || rows <= SIZE_MAX / depth)
        o->x = array_memory(rows * depth, sizeof *o->x);
    return o->x ? 0 : fail(EXIT_IO, "dot: out of memory for %" PRIu64 " x %" PRIu64 " numbers", rows, depth);
}

int operand_generate(operand *o, size_t rows, size_t depth, int distribution, uint64_t seed, uint64_t stream)
{
    memset(o, 0, sizeof *o);
    const int status = allocate(o, rows, depth);
    if (status)
        return status;
    o->all_rows = rows;
    snprintf(o->label, sizeof o->label, "%s", distributions[distribution].label);
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < depth; k++)
            o->x[i * depth + k] = distribution_draw(distribution, seed, (stream << 32) + i, k);
    return 0;
}

/* ---- from a file ---- */

/* `n` elements from the start of the selected tensor. */
static int read_values(double *x, size_t n, trace *t, trace_error *error)
{
    for (size_t at = 0, got; at < n; at += got)
        if (trace_read(t, x + at, n - at, &got, error))
            return -1;
    return 0;
}

/* The first rows of a tensor that holds them as columns: all of it is read. */
static int read_columns(operand *o, trace *t, trace_error *error)
{
    double *all = need_memory(o->all_rows * o->depth, sizeof *all);
    const int bad = read_values(all, (size_t)o->all_rows * o->depth, t, error);
    for (size_t i = 0; !bad && i < o->rows; i++)
        for (size_t k = 0; k < o->depth; k++)
            o->x[i * o->depth + k] = all[k * o->all_rows + i];
    free(all);
    return bad ? fail(error->exit, "%s", error->text) : 0;
}

/* What is wrong with a tensor of a file; one without a name is called as the file. */
static int bad_tensor(const trace *t, size_t at, const operand *o, const char *why)
{
    return *trace_at(t, at)->name ? fail(EXIT_DATA, "dot: %s: %s: %s", trace_path(t), o->label, why)
                                  : fail(EXIT_DATA, "dot: %s: %s", trace_path(t), why);
}

static int read_rows(operand *o, trace *t, size_t at, operand_layout layout, size_t max_rows)
{
    const trace_tensor *tensor = trace_at(t, at);
    trace_error error;
    uint64_t rows = 1, depth = 1;
    for (size_t i = 0; i < tensor->rank; i++) {
        const int is_row = tensor->rank > 1 && (layout == OPERAND_FLATTEN ? i == 0
                                                : layout == OPERAND_FIRST ? i > 0
                                                                          : i + 1 < tensor->rank);
        *(is_row ? &rows : &depth) *= tensor->shape[i];
    }
    if (tensor->fortran && tensor->rank > 1)
        return bad_tensor(t, at, o, "column-major arrays are not read here: save it in C order");
    if (tensor->count == 0)
        return bad_tensor(t, at, o, "the tensor is empty");
    o->all_rows = rows;
    int status = allocate(o, rows < max_rows ? rows : max_rows, depth);
    if (status)
        return status;
    if (trace_select(t, at, &error))
        return fail(error.exit, "%s", error.text);
    if (layout == OPERAND_FIRST && tensor->rank > 1)
        status = read_columns(o, t, &error);
    else if (read_values(o->x, o->rows * o->depth, t, &error))
        status = fail(error.exit, "%s", error.text);
    for (size_t i = 0; !status && i < o->rows * o->depth; i++)
        if (!isfinite(o->x[i])) {
            char why[96];
            snprintf(why, sizeof why, "row %zu, product %zu is not finite: there is no exact sum", i / o->depth,
                     i % o->depth);
            status = bad_tensor(t, at, o, why);
        }
    return status;
}

int operand_read(operand *o, const char *path, const char *glob, operand_layout layout, size_t max_rows)
{
    trace_error error;
    size_t at = 0;
    memset(o, 0, sizeof *o);
    trace *t = trace_open(path, NULL, &error);
    if (!t)
        return fail(error.exit, "%s", error.text);
    int status = chosen_find(&at, t, "dot", glob);
    if (!status) {
        const char *name = trace_at(t, at)->name;
        char text[sizeof o->label];
        snprintf(o->label, sizeof o->label, "%s", escape_text(text, sizeof text, *name ? name : path));
        status = read_rows(o, t, at, layout, max_rows);
    }
    trace_close(t);
    return status;
}

/* ---- rounded ---- */

/* The largest power of two that brings amax to at most the largest number. */
static double fitting_scale(const operand *o, const mpsim_format *f)
{
    const double most = mpsim_format_max(f);
    double amax = 0;
    int e_amax, e_most;
    for (size_t i = 0; i < o->rows * o->depth; i++)
        amax = fabs(o->x[i]) > amax ? fabs(o->x[i]) : amax;
    if (amax == 0)
        return 1;
    const double f_amax = frexp(amax, &e_amax), f_most = frexp(most, &e_most);
    const int e = e_most - e_amax - (f_amax > f_most);
    return ldexp(1, e > 1023 ? 1023 : e);
}

int operand_encode(operand *o, const mpsim_format *f, mpsim_round_mode mode, double scale)
{
    mpsim_rounding r;
    const size_t n = o->rows * o->depth;
    mpsim_rounding_init(&r, mode);
    o->format = *f;
    o->scale = r.scale = scale > 0 ? scale : fitting_scale(o, f);
    for (size_t i = 0; i < n; i++)
        o->nonzero += o->x[i] != 0;
    o->codes = need_memory(n, mpsim_format_code_bytes(f));
    if (mpsim_encode_array_f64(f, &r, NULL, o->codes, o->x, n, &o->counts) != MPSIM_OK)
        return fail(EXIT_USAGE, "dot: the scale is not a positive finite number");
    o->exact = o->counts.inexact == 0 && o->counts.underflow == 0;
    if (o->counts.overflow)
        return fail(EXIT_DATA, "dot: %s: %llu of %zu elements overflow %s: scale them (--scale amax)", o->label,
                    (unsigned long long)o->counts.overflow, n, f->name);
    return 0;
}

void operand_clear(operand *o)
{
    free(o->x);
    free(o->codes);
    free(o->scales);
    free(o->numbers);
    memset(o, 0, sizeof *o);
}
