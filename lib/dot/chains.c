/* chains.c -- the fast paths of software models: rows of chains in binary32 (see chain.h) and in any
 * format (see rounded.h). */
#include "job.h"

#include "../base/environment.h"

#include <math.h>

/* ---- in binary32 ---- */

/* In a function of its own, which the environment cannot be moved past. */
static __attribute__((noinline)) void add_chunks(float *s, const float *t, size_t n)
{
    for (size_t j = 0; j < n; j++)
        s[j] += t[j];
}

/* The sums from s, or those of chunks added to it. */
static void chain_sums(const job *g, const float *a, const float *b, float *s, size_t rows)
{
    const size_t chunk = g->m->chunk;
    if (chunk == 0) {
        g->loops->chain(g->chain, a, g->padded, b, s, rows, g->depth);
        return;
    }
    for (size_t k = 0; k < g->depth; k += chunk) {
        float t[ROWS * N] = {0};
        g->loops->chain(g->chain, a + k, g->padded, b + k * N, t, rows, g->depth - k < chunk ? g->depth - k : chunk);
        add_chunks(s, t, rows * N);
    }
}

/* The machine flushes numbers that are subnormal in binary32, not those that are in the format of c. */
static void flush_addends(float *s, size_t rows, float least)
{
    for (size_t j = 0; j < rows * N; j++)
        if (fabsf(s[j]) < least)
            s[j] = copysignf(0, s[j]);
}

void mpsim_chain_rows(const job *g, size_t first, size_t n, size_t panel, uint64_t (*codes)[N], unsigned *redo)
{
    float s[ROWS * N];
    mpsim_start_rows_f32(g, first, n, panel, s, redo);
    if (mpsim_chain_flushes(g->chain)) {
        if (!g->native_result && g->depth)
            flush_addends(s, n, (float)mpsim_format_min_normal(&g->m->result.format));
        const mpsim_environment before = mpsim_environment_flushing();
        chain_sums(g, (const float *)mpsim_row_values(g, first), (const float *)mpsim_panel_values(g, panel), s, n);
        mpsim_environment_restore(before);
    } else {
        chain_sums(g, (const float *)mpsim_row_values(g, first), (const float *)mpsim_panel_values(g, panel), s, n);
    }
    for (size_t r = 0; r < n; r++)
        redo[r] |= mpsim_finish_row_f32(g, s + r * N, MPSIM_INFINITE_F32, codes[r]);
}

/* ---- in any format ---- */

typedef union values {
    float f32[ROWS * N];
    double f64[ROWS * N];
} values;

static void rounded_sums(const job *g, const unsigned char *a, const unsigned char *b, values *s, size_t rows,
                         unsigned *redo)
{
    const int wide = g->real == sizeof(double);
    mpsim_rounded_function *run = wide ? g->loops->rounded_f64 : g->loops->rounded_f32;
    mpsim_outer_function *add = wide ? g->loops->outer_f64 : g->loops->outer_f32;
    const size_t chunk = g->m->chunk ? g->m->chunk : g->depth;
    if (!g->m->chunk) {
        run(&g->rounded, a, g->padded, b, s, rows, g->depth, redo);
        return;
    }
    for (size_t k = 0; k < g->depth; k += chunk) {
        values t;
        memset(&t, 0, rows * N * g->real);
        run(&g->rounded, a + k * g->real, g->padded, b + k * N * g->real, &t, rows,
            g->depth - k < chunk ? g->depth - k : chunk, redo);
        add(&g->rounded, s, &t, rows, redo);
    }
}

void mpsim_rounded_rows(const job *g, size_t first, size_t n, size_t panel, uint64_t (*codes)[N], unsigned *redo)
{
    const int wide = g->real == sizeof(double);
    values s;
    for (size_t r = 0; r < n; r++) {
        double c[N];
        redo[r] = mpsim_start_row(g, first + r, panel, c);
        for (size_t j = 0; j < N; j++)
            if (wide)
                s.f64[r * N + j] = c[j];
            else
                s.f32[r * N + j] = (float)c[j];
    }
    rounded_sums(g, (const unsigned char *)mpsim_row_values(g, first),
                 (const unsigned char *)mpsim_panel_values(g, panel), &s, n, redo);
    for (size_t r = 0; r < n; r++) {
        double c[N];
        for (size_t j = 0; j < N; j++)
            c[j] = redo[r] >> j & 1 ? 0 : wide ? s.f64[r * N + j] : (double)s.f32[r * N + j];
        mpsim_pack_values(&g->result, codes[r], c);
    }
}
