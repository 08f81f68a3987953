/* fused.c -- the fast path of fused additions: rows of tiles; see tile.h. */
#include "job.h"

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
        redo |= g->loops->tile(&g->tile, a + k * g->real, ea + k, b + k * N * g->real, eb + k * N,
                               s, n);
        redo |= mpsim_add_values(&g->outer, d, s);
    }
    return redo;
}

void mpsim_fused_rows(const job *g, size_t first, size_t n, size_t panel, uint64_t (*codes)[N],
                       unsigned *redo)
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
