/* fused.c -- the fast path of fused additions: rows of tiles; see tile.h. */
#include "job.h"

#include "../base/environment.h"

/* ---- vectors ---- */

/* s = outer(s + t), where all are finite; the columns, as bits, where the sum is not. */
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
            if ((mpsim_bits_f32(s[j]) & 0x7fffffff) > 0x7f7fffff) {
                redo |= 1u << j;
                s[j] = 0;
            }
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

/* The products k to k + depth - 1 of n rows; see tile.h and cut.h. */
static void additions(const job *g, size_t first, size_t n, size_t panel, size_t k, size_t depth, float *s,
                      unsigned *redo)
{
    const float *a = (const float *)mpsim_row_values(g, first) + k;
    const float *b = (const float *)mpsim_panel_values(g, panel) + k * N;
    const int16_t *ea = g->panels_a.exponents + first * g->padded + k;
    const int16_t *eb = g->panels_b.exponents + (panel * g->padded + k) * N;
    if (!g->tile.cut) {
        g->loops->fused(&g->tile, a, ea, g->padded, b, eb, s, n, depth, redo);
        return;
    }
    const size_t words = g->panels_a.words, q = k / g->panels_a.length;
    const mpsim_cut_operand of_a = {a, ea, g->panels_a.signs + first * words + q, g->padded, words};
    const mpsim_cut_operand of_b = {b, eb, g->panels_b.signs + (panel * words + q) * N, 0, 0};
    const mpsim_environment before = mpsim_environment_toward_zero();
    g->loops->cut(&g->tile, &of_a, &of_b, s, n, depth, redo);
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

static void rows_in_vectors(const job *g, size_t first, size_t n, size_t panel, uint64_t (*codes)[N], unsigned *redo)
{
    float s[ROWS * N];
    mpsim_start_rows_f32(g, first, n, panel, s, redo);
    sums_in_vectors(g, first, n, panel, s, redo);
    for (size_t r = 0; r < n; r++)
        redo[r] |= mpsim_finish_row_f32(g, s + r * N, MPSIM_LARGEST_F32, codes[r]);
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

static void rows_in_loops(const job *g, size_t first, size_t n, size_t panel, uint64_t (*codes)[N], unsigned *redo)
{
    for (size_t r = 0; r < n; r++) {
        double d[N];
        redo[r] = mpsim_start_row(g, first + r, panel, d);
        if (g->panels_a.special[first + r])
            continue;
        redo[r] |= fused_row(g, first + r, panel, d);
        mpsim_pack_values(&g->result, codes[r], d);
    }
}

/* ---- the choice ---- */

void mpsim_fused_rows(const job *g, size_t first, size_t n, size_t panel, uint64_t (*codes)[N], unsigned *redo)
{
    (g->tile.vectors ? rows_in_vectors : rows_in_loops)(g, first, n, panel, codes, redo);
}
