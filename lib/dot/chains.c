/* chains.c -- the fast paths of software models: rows of chains in binary32 (see chain.h) and in any
 * format (see rounded.h). */
#include "special.h"

#include "../base/environment.h"

#include <math.h>

/* ---- in binary32 ---- */

/* The machine flushes numbers that are subnormal in binary32, not those that are in the format of c. */
static void flush_addends(float *s, size_t rows, float least)
{
    for (size_t j = 0; j < rows * N; j++)
        if (fabsf(s[j]) < least)
            s[j] = copysignf(0, s[j]);
}

static void chain_sums(const job *g, const mpsim_chain_work *w, float *s)
{
    if (!mpsim_chain_flushes(g->chain)) {
        g->loops->chain(g->chain, w, s);
        return;
    }
    const mpsim_environment before = mpsim_environment_flushing();
    g->loops->chain(g->chain, w, s);
    mpsim_environment_restore(before);
}

void mpsim_chain_rows(const job *g, size_t first, size_t n, size_t panel, results *to, unsigned *redo)
{
    const size_t panels = mpsim_panels_abreast(g, panel);
    const int flushes = mpsim_chain_flushes(g->chain) && !g->native_result && g->depth;
    const mpsim_chain_work w = {.a = (const float *)mpsim_row_values(g, first),
                                .rows = n,
                                .next = g->next_a,
                                .b = (const float *)mpsim_panel_values(g, panel),
                                .panels = panels,
                                .apart = g->padded * N,
                                .depth = g->depth,
                                .chunk = g->m->chunk,
                                .sums = ROWS * N};
    float own[ABREAST * ROWS * N], *s = mpsim_sums_f32(g, to, own);
    for (size_t p = 0; p < panels; p++) {
        mpsim_start_rows_f32(g, first, n, panel + p, s + p * ROWS * N, to, p * ROWS);
        if (flushes)
            flush_addends(s + p * ROWS * N, n, (float)mpsim_format_min_normal(&g->m->result.format));
    }
    chain_sums(g, &w, s);
    for (size_t p = 0; p < panels; p++)
        mpsim_finish_rows_f32(g, s + p * ROWS * N, n, MPSIM_INFINITE_F32, to, p * ROWS, redo + p * ROWS);
}

/* ---- in any format ---- */

typedef union values {
    float f32[ROWS * N];
    double f64[ROWS * N];
} values;

static void rounded_sums(const job *g, const mpsim_rounded_chain *how, const unsigned char *a, const unsigned char *b,
                         values *s, size_t rows, unsigned *redo)
{
    const int wide = g->real == sizeof(double);
    mpsim_rounded_function *run = wide ? g->loops->rounded_f64 : g->loops->rounded_f32;
    mpsim_outer_function *add = wide ? g->loops->outer_f64 : g->loops->outer_f32;
    const size_t chunk = g->m->chunk ? g->m->chunk : g->depth;
    if (!g->m->chunk) {
        run(how, a, g->padded, b, s, rows, g->depth, redo);
        return;
    }
    for (size_t k = 0; k < g->depth; k += chunk) {
        values t;
        memset(&t, 0, rows * N * g->real);
        run(how, a + k * g->real, g->padded, b + k * N * g->real, &t, rows, g->depth - k < chunk ? g->depth - k : chunk,
            redo);
        add(how, s, &t, rows, redo);
    }
}

/* n rows from their addends on. */
static void rounded_tile(const job *g, const mpsim_rounded_chain *how, size_t first, size_t n, size_t panel, values *s,
                         results *to, unsigned *redo)
{
    const int wide = g->real == sizeof(double);
    for (size_t r = 0; r < n; r++) {
        double c[N];
        mpsim_start_row(g, first + r, panel, c, to, r);
        for (size_t j = 0; j < N; j++)
            if (wide)
                s->f64[r * N + j] = c[j];
            else
                s->f32[r * N + j] = (float)c[j];
    }
    rounded_sums(g, how, (const unsigned char *)mpsim_row_values(g, first),
                 (const unsigned char *)mpsim_panel_values(g, panel), s, n, redo);
}

static unsigned any_of(const unsigned *redo, size_t n)
{
    unsigned any = 0;
    for (size_t r = 0; r < n; r++)
        any |= redo[r];
    return any;
}

/* Rows whose sums are those of the model, infinities among them: *redo becomes the columns of these and of NaNs. */
static void know(const values *s, int wide, size_t r, results *to, unsigned *redo)
{
    for (size_t j = 0; j < N; j++) {
        const double x = wide ? s->f64[r * N + j] : (double)s->f32[r * N + j];
        to->known[r] |= (unsigned)!isfinite(x) << j;
        to->nans[r] |= (unsigned)(isnan(x) != 0) << j;
    }
    *redo = to->known[r];
}

void mpsim_rounded_rows(const job *g, size_t first, size_t n, size_t panel, results *to, unsigned *redo)
{
    const int wide = g->real == sizeof(double);
    mpsim_rounded_chain how = g->rounded;
    values s;
    rounded_tile(g, &how, first, n, panel, &s, to, redo);
    const int again = any_of(redo, n) && mpsim_specials_overflow(g);
    how.endless = 1;
    if (again && !how.whole)
        rounded_tile(g, &how, first, n, panel, &s, to, redo);
    for (size_t r = 0; r < n; r++) {
        double c[N];
        if (again)
            know(&s, wide, r, to, &redo[r]);
        for (size_t j = 0; j < N; j++) {
            const double x = wide ? s.f64[r * N + j] : (double)s.f32[r * N + j];
            c[j] = (redo[r] & ~(to->known[r] & ~to->nans[r])) >> j & 1 ? 0 : x;
        }
        mpsim_pack_values(&g->result, to->codes[r], c);
    }
}
