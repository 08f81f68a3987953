/* fused.c -- the fast path of fused additions: rows of tiles; see tile.h. */
#include "job.h"

#include "../base/environment.h"

#include <math.h>

/* ---- vectors ---- */

/* s = outer(s + t); the columns, as bits, where the sum is not finite. */
static unsigned add_sums(const job *g, float *s, const float *t)
{
    unsigned redo = 0;
    if (g->native_outer) {
        uint32_t beyond = 0;
        for (unsigned j = 0; j < N; j++) {
            s[j] += t[j];
            beyond |= 0x7f7fffff - (mpsim_bits_f32(s[j]) & 0x7fffffff);
        }
        for (unsigned j = 0; beyond >> 31 && j < N; j++)
            redo |= (unsigned)((mpsim_bits_f32(s[j]) & 0x7fffffff) > 0x7f7fffff) << j;
        return redo;
    }
    double d[N], u[N];
    for (int j = 0; j < N; j++) {
        d[j] = (double)s[j];
        u[j] = (double)t[j];
    }
    redo = mpsim_add_values(&g->outer, d, u);
    for (int j = 0; j < N; j++)
        s[j] = (float)d[j];
    return redo;
}

static void narrow_chains(const job *g, size_t first, size_t n, size_t panel, size_t k, size_t depth, float *s,
                          unsigned *redo)
{
    const mpsim_panels *x = &g->panels_a, *y = &g->panels_b;
    const size_t words = x->words, q = k / x->length, of_row = first * g->padded + k,
                 of_b = (panel * g->padded + k) * N;
    const mpsim_cut_operand a = {(const float *)x->values + of_row, x->bytes + of_row, x->signs + first * words + q,
                                 g->padded, words};
    const mpsim_cut_operand b = {(const float *)y->values + of_b, y->bytes + of_b, y->signs + (panel * words + q) * N,
                                 0, 0};
    g->loops->cut(&g->tile, &a, &b, s, n, depth, redo);
}

/* Whether a sum of these rows and columns may be no ordinary number: below the normal ones, or too large. */
static int needs_tests(const job *g, size_t first, size_t n, size_t panel, size_t depth, const float *s)
{
    const mpsim_tile *t = &g->tile;
    const int highest = (int)(t->most >> 52) - 1023; /* of sums: below 2^highest */
    const float smallest = (float)mpsim_f64_bits(t->least),
                large = (float)mpsim_f64_bits((uint64_t)(highest + 1022) << 52);
    const int below = t->ways ? t->kept + 1 : t->fraction; /* bits of a sum below E */
    int low_a = 255, low_b = 255, high_a = 0, high_b = 0, log = 0, needs = 0;
    for (size_t r = first; r < first + n; r++) {
        low_a = g->panels_a.low[r] < low_a ? g->panels_a.low[r] : low_a;
        high_a = g->panels_a.high[r] > high_a ? g->panels_a.high[r] : high_a;
    }
    for (size_t j = panel * N; j < panel * N + N; j++) {
        low_b = g->panels_b.low[j] < low_b ? g->panels_b.low[j] : low_b;
        high_b = g->panels_b.high[j] > high_b ? g->panels_b.high[j] : high_b;
    }
    for (; depth; depth >>= 1)
        log++;
    for (size_t i = 0; g->c && i < n * N; i++) /* a chunk begins at +0 */
        needs |= (s[i] != 0 && fabsf(s[i]) < smallest) | (fabsf(s[i]) >= large);
    return needs || low_a + low_b - 254 - below < t->emin || high_a + high_b - 254 + 2 + log >= highest;
}

static void wide_chains(const job *g, size_t first, size_t n, size_t panel, size_t k, size_t depth, float *s,
                        unsigned *redo)
{
    const mpsim_panels *x = &g->panels_a, *y = &g->panels_b;
    const size_t words = x->words, q = k / x->length, of_row = first * g->padded + k,
                 of_b = (panel * g->padded + k) * N;
    const mpsim_wide_operand a = {(const double *)x->values + of_row, x->exponents + of_row,
                                  x->signs + first * words + q, g->padded, words};
    const mpsim_wide_operand b = {(const double *)y->values + of_b, y->exponents + of_b,
                                  y->signs + (panel * words + q) * N, 0, 0};
    g->loops->wide(&g->tile, needs_tests(g, first, n, panel, depth, s), &a, &b, s, n, depth, redo);
}

/* The products k to k + depth - 1 of n rows; see tile.h and cut.h. */
static void additions(const job *g, size_t first, size_t n, size_t panel, size_t k, size_t depth, float *s,
                      unsigned *redo)
{
    const size_t of_row = first * g->padded + k, of_b = (panel * g->padded + k) * N;
    if (!g->tile.cut) {
        g->loops->fused(&g->tile, (const float *)g->panels_a.values + of_row, g->panels_a.exponents + of_row, g->padded,
                        (const float *)g->panels_b.values + of_b, g->panels_b.exponents + of_b, s, n, depth, redo);
        return;
    }
    const mpsim_environment before = mpsim_environment_toward_zero();
    (g->tile.cut == MPSIM_CUT_NARROW ? narrow_chains : wide_chains)(g, first, n, panel, k, depth, s, redo);
    mpsim_environment_restore(before);
}

static void sums_in_vectors(const job *g, size_t first, size_t n, size_t panel, float *s, unsigned *redo)
{
    const size_t chunk = g->m->chunk;
    if (chunk == 0) {
        additions(g, first, n, panel, 0, g->padded, s, redo);
        return;
    }
    for (size_t k = 0; k < g->padded; k += chunk) {
        float t[ROWS * N] = {0};
        additions(g, first, n, panel, k, g->padded - k < chunk ? g->padded - k : chunk, t, redo);
        for (size_t r = 0; r < n; r++)
            redo[r] |= add_sums(g, s + r * N, t + r * N);
    }
}

static void rows_in_vectors(const job *g, size_t first, size_t n, size_t panel, results *to, unsigned *redo)
{
    float own[ROWS * N], *s = mpsim_sums_f32(g, to, own);
    mpsim_start_rows_f32(g, first, n, panel, s, to, 0);
    sums_in_vectors(g, first, n, panel, s, redo);
    mpsim_finish_rows_f32(g, s, n, MPSIM_LARGEST_F32, to, 0, redo);
    for (size_t r = 0; r < n; r++)
        to->known[r] &= ~(redo[r] >> 16);
}

/* ---- plain loops ---- */

static unsigned fused_row(const job *g, size_t i, size_t panel, double *d)
{
    const unsigned char *a = mpsim_row_values(g, i), *b = mpsim_panel_values(g, panel);
    const int16_t *ea = g->panels_a.exponents + i * g->padded;
    const int16_t *eb = g->panels_b.exponents + panel * g->padded * N;
    const size_t chunk = g->m->chunk;
    if (chunk == 0)
        return g->loops->tile(&g->tile, a, ea, b, eb, d, g->padded);
    unsigned redo = 0;
    for (size_t k = 0; k < g->padded; k += chunk) {
        const size_t n = g->padded - k < chunk ? g->padded - k : chunk;
        double s[N] = {0};
        redo |= g->loops->tile(&g->tile, a + k * g->real, ea + k, b + k * N * g->real, eb + k * N, s, n);
        redo |= mpsim_add_values(&g->outer, d, s);
    }
    return redo;
}

static void rows_in_loops(const job *g, size_t first, size_t n, size_t panel, results *to, unsigned *redo)
{
    for (size_t r = 0; r < n; r++) {
        double d[N];
        mpsim_start_row(g, first + r, panel, d, to, r);
        redo[r] |= fused_row(g, first + r, panel, d);
        for (unsigned j = 0; redo[r] && j < N; j++) {
            to->known[r] |= (unsigned)(!isfinite(d[j]) && !(redo[r] >> 16 >> j & 1)) << j;
            to->nans[r] |= (unsigned)(isnan(d[j]) != 0) << j;
            d[j] = isnan(d[j]) ? 0 : d[j];
        }
        mpsim_pack_values(&g->result, to->codes[r], d);
    }
}

/* ---- the choice ---- */

void mpsim_fused_rows(const job *g, size_t first, size_t n, size_t panel, results *to, unsigned *redo)
{
    (g->tile.vectors ? rows_in_vectors : rows_in_loops)(g, first, n, panel, to, redo);
}
