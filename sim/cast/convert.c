/* convert.c -- see convert.h.
 *
 * binary32 and what widens to it stays binary32, which is what the kernels of the library are written for;
 * the rest goes through binary64. Both give the same codes (tests/cli/cast.sh). */
#include "cast.h"

#include "../array/need.h"
#include "../trace/trace.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 12 }; /* elements on their way, which stay in the cache */

const mpsim_format *cast_widened(const mpsim_format *f)
{
    return mpsim_format_find(format_is_narrow(f) ? "binary32" : "binary64");
}

/* Exact: a number keeps its value, a NaN its sign and its leading bits. */
static mpsim_rounding exactly(void)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.nan = MPSIM_NANS_PAYLOAD;
    return r;
}

/* The codes 0, 1, ... as binary32 numbers. */
static float *make_table(const mpsim_format *f)
{
    const mpsim_format *single = mpsim_format_find("binary32");
    const size_t bytes = mpsim_format_code_bytes(f), n = (size_t)1 << 8 * bytes;
    const mpsim_rounding exact = exactly();
    float *values = need_memory(n, sizeof *values);
    for (size_t first = 0; first < n; first += BLOCK) {
        uint8_t narrow[BLOCK];
        uint16_t wide[BLOCK];
        double x[BLOCK];
        const size_t m = n - first < BLOCK ? n - first : BLOCK;
        for (size_t i = 0; i < m; i++) {
            narrow[i] = (uint8_t)(first + i);
            wide[i] = (uint16_t)(first + i);
        }
        (void)mpsim_decode_array(f, x, bytes == 1 ? (const void *)narrow : wide, m);
        (void)mpsim_encode_array_f64(single, &exact, NULL, values + first, x, m, NULL);
    }
    return values;
}

void cast_converter_init(converter *c, const target *t, const mpsim_format *source, const mpsim_format *out)
{
    memset(c, 0, sizeof *c);
    c->source = source;
    c->to = &t->format;
    c->out = out;
    c->rounding = target_rounding(t, source);
    if (out != c->to && !format_is_narrow(out))
        return;
    if (strcmp(source->name, "binary32") == 0) {
        c->path = CONVERT_NARROW;
    } else if (format_is_narrow(source) && mpsim_format_code_bytes(source) <= 2) {
        c->path = CONVERT_TABLE;
        c->table = make_table(source);
    }
}

void cast_converter_clear(converter *c)
{
    free(c->table);
    c->table = NULL;
}

/* Numbers of binary32. */
static void run_narrow(const converter *c, const mpsim_rng *rng, void *to, const float *x, size_t n,
                       mpsim_counts *counts)
{
    if (c->out == c->to)
        (void)mpsim_encode_array_f32(c->to, &c->rounding, rng, to, x, n, counts);
    else
        (void)mpsim_round_array_f32(c->to, &c->rounding, rng, to, x, n, counts);
}

static void look_up(const converter *c, float *x, const void *from, size_t n)
{
    const uint8_t *bytes = from;
    const uint16_t *words = from;
    if (mpsim_format_code_bytes(c->source) == 1)
        for (size_t i = 0; i < n; i++)
            x[i] = c->table[bytes[i]];
    else
        for (size_t i = 0; i < n; i++)
            x[i] = c->table[words[i]];
}

static void run_wide(const converter *c, const mpsim_rng *rng, void *to, const void *from, size_t n,
                     mpsim_counts *counts)
{
    double x[BLOCK];
    (void)mpsim_decode_array(c->source, x, from, n);
    if (c->out == c->to) {
        (void)mpsim_encode_array_f64(c->to, &c->rounding, rng, to, x, n, counts);
    } else {
        const mpsim_rounding exact = exactly();
        (void)mpsim_round_array_f64(c->to, &c->rounding, rng, x, x, n, counts);
        (void)mpsim_encode_array_f64(c->out, &exact, NULL, to, x, n, NULL);
    }
}

void cast_converter_run(const converter *c, const mpsim_rng *rng, void *to, const void *from, size_t n,
                        mpsim_counts *counts)
{
    const size_t in = mpsim_format_code_bytes(c->source), out = mpsim_format_code_bytes(c->out);
    mpsim_rng at = *rng;
    if (c->path == CONVERT_NARROW) {
        run_narrow(c, rng, to, from, n, counts);
    } else {
        for (size_t i = 0; i < n; i += BLOCK, at.index += BLOCK) {
            const size_t m = n - i < BLOCK ? n - i : BLOCK;
            const unsigned char *p = (const unsigned char *)from + i * in;
            unsigned char *q = (unsigned char *)to + i * out;
            if (c->path == CONVERT_TABLE) {
                float x[BLOCK];
                look_up(c, x, p, m);
                run_narrow(c, &at, q, x, m, counts);
            } else {
                run_wide(c, &at, q, p, m, counts);
            }
        }
    }
    trace_to_little_endian(to, out, n);
}

void cast_counts_add(mpsim_counts *to, const mpsim_counts *from)
{
    to->inexact += from->inexact;
    to->underflow += from->underflow;
    to->subnormal += from->subnormal;
    to->overflow += from->overflow;
    to->nan += from->nan;
}
