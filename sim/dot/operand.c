/* operand.c -- see operand.h. */
#include "operand.h"

#include "../array/need.h"
#include "../cli/options.h"

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

int dot_distribution_find(int *distribution, const char *name)
{
    for (int i = 0; i < DISTRIBUTIONS; i++)
        if (strcmp(name, distributions[i].name) == 0) {
            *distribution = i;
            return 0;
        }
    return -1;
}

double dot_distribution_draw(int distribution, uint64_t seed, uint64_t stream, uint64_t k)
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

void dot_operand_generate(operand *o, size_t rows, size_t depth, int distribution, uint64_t seed, uint64_t stream)
{
    const uint64_t n = depth && rows > UINT64_MAX / depth ? UINT64_MAX : (uint64_t)rows * depth;
    *o = (operand){.x = need_memory(n, sizeof *o->x), .rows = rows, .depth = depth, .all_rows = rows};
    snprintf(o->label, sizeof o->label, "%s", distributions[distribution].label);
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < depth; k++)
            o->x[i * depth + k] = dot_distribution_draw(distribution, seed, (stream << 32) + i, k);
}

/* ---- from a file ---- */

void dot_operand_take(operand *o, chosen *c)
{
    const size_t depth = c->rank ? (size_t)c->shape[c->rank - 1] : 1; /* all are in memory */
    *o = (operand){.x = c->x, .rows = c->n / depth, .depth = depth, .all_rows = c->n / depth};
    memcpy(o->label, c->label, sizeof o->label);
    c->x = NULL;
}

/* The first rows of a tensor that holds them as columns. */
static void take_columns(operand *o, const chosen *c)
{
    o->x = need_memory((uint64_t)o->rows * o->depth, sizeof *o->x);
    for (size_t i = 0; i < o->rows; i++)
        for (size_t k = 0; k < o->depth; k++)
            o->x[i * o->depth + k] = c->x[k * o->all_rows + i];
}

static int check_finite(const operand *o, const chosen *c)
{
    for (size_t i = 0; i < o->rows * o->depth; i++)
        if (!isfinite(o->x[i]))
            return pass_chosen_bad(c, "row %zu, product %zu is not finite: there is no exact sum", i / o->depth,
                                   i % o->depth);
    return 0;
}

static int read_rows(operand *o, chosen *c, operand_layout layout, size_t max_rows)
{
    const int transposed = layout == OPERAND_FIRST && c->rank > 1;
    size_t depth = 1, rows;
    for (size_t i = 0; i < c->rank; i++)
        if (c->rank == 1 || (layout == OPERAND_FLATTEN ? i > 0 : transposed ? i == 0 : i + 1 == c->rank))
            depth *= (size_t)c->shape[i];
    o->depth = depth;
    o->all_rows = c->n / depth;
    o->rows = rows = o->all_rows < max_rows ? (size_t)o->all_rows : max_rows;
    const int code = pass_chosen_take(c, transposed ? c->n : rows * depth);
    if (code)
        return code;
    if (transposed)
        take_columns(o, c);
    else {
        o->x = c->x;
        c->x = NULL;
    }
    return check_finite(o, c);
}

int dot_operand_read(operand *o, const char *path, const char *glob, operand_layout layout, size_t max_rows)
{
    trace_error error;
    chosen c;
    memset(o, 0, sizeof *o);
    trace *t = trace_open(path, NULL, &error);
    if (!t)
        return fail(error.exit, "%s", error.text);
    int code = pass_chosen_open(&c, t, "dot", glob);
    memcpy(o->label, c.label, sizeof o->label);
    if (!code)
        code = read_rows(o, &c, layout, max_rows);
    pass_chosen_clear(&c);
    trace_close(t);
    return code;
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

int dot_operand_encode(operand *o, const mpsim_format *f, mpsim_round_mode mode, double scale)
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
    return 0;
}

int dot_operand_overflow(const operand *o, const char *verb, const char *what, const char *advice)
{
    return o->counts.overflow
               ? fail(EXIT_DATA, "%s: %s: %llu of %zu elements are beyond the largest number of %s, %g%s", verb, what,
                      (unsigned long long)o->counts.overflow, o->rows * o->depth, o->format.name,
                      mpsim_format_max(&o->format), advice)
               : 0;
}

void dot_operand_clear(operand *o)
{
    free(o->x);
    free(o->codes);
    free(o->scales);
    free(o->numbers);
    memset(o, 0, sizeof *o);
}
