/* job.c -- see job.h. */
#include "job.h"

unsigned mpsim_start_row(const job *g, size_t i, size_t panel, double *c)
{
    const size_t n = mpsim_panel_columns(g, panel);
    unsigned special = 0;
    uint64_t of_b[2];
    memset(c, 0, N * sizeof *c);
    if (g->c)
        special = mpsim_unpack_line(&g->addends, c, g->c->codes, mpsim_index_in(g->c, i, panel * N),
                                    g->c->transposed ? g->c->stride : 1, n);
    memcpy(of_b, g->panels_b.special + panel * N, sizeof of_b);
    for (size_t j = 0; (of_b[0] | of_b[1]) && j < n; j++)
        special |= (unsigned)g->panels_b.special[panel * N + j] << j;
    for (size_t j = 0; special && j < n; j++)
        c[j] = special >> j & 1 ? 0 : c[j];
    return g->panels_a.special[i] ? ~0u : special;
}

void mpsim_start_rows_f32(const job *g, size_t first, size_t n, size_t panel, float *s, unsigned *redo)
{
    double c[N];
    for (size_t r = 0; r < n; r++) {
        redo[r] = mpsim_start_row(g, first + r, panel, c);
        for (size_t j = 0; j < N; j++)
            s[r * N + j] = (float)c[j];
    }
}

unsigned mpsim_finish_row_f32(const job *g, const float *s, uint32_t most, uint64_t *codes)
{
    uint32_t u[N], above = 0;
    unsigned redo = 0;
    memcpy(u, s, sizeof u);
    for (size_t j = 0; j < N; j++)
        above |= most - (u[j] & 0x7fffffff); /* the top bit */
    for (size_t j = 0; above >> 31 && j < N; j++)
        if ((u[j] & 0x7fffffff) > most) {
            redo |= 1u << j;
            u[j] = 0;
        }
    if (g->native_result) {
        for (size_t j = 0; j < N; j++)
            codes[j] = u[j];
    } else {
        double d[N];
        for (size_t j = 0; j < N; j++)
            d[j] = (double)mpsim_f32_bits(u[j]);
        mpsim_pack_values(&g->result, codes, d);
    }
    return redo;
}
