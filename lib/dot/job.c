/* job.c -- see job.h. */
#include "job.h"

unsigned mpsim_special_columns(const job *g, size_t panel)
{
    const unsigned char *special = g->panels_b.special + panel * N;
    uint64_t any[2];
    unsigned columns = 0;
    memcpy(any, special, sizeof any);
    for (size_t j = 0; (any[0] | any[1]) && j < mpsim_panel_columns(g, panel); j++)
        columns |= (unsigned)special[j] << j;
    return columns;
}

unsigned mpsim_start_row(const job *g, size_t i, size_t panel, double *c)
{
    const size_t n = mpsim_panel_columns(g, panel);
    unsigned special = mpsim_special_columns(g, panel);
    memset(c, 0, N * sizeof *c);
    if (g->c)
        special |= mpsim_unpack_line(&g->addends, c, g->c->codes, mpsim_index_in(g->c, i, panel * N),
                                     g->c->transposed ? g->c->stride : 1, n);
    for (size_t j = 0; special && j < n; j++)
        c[j] = special >> j & 1 ? 0 : c[j];
    return g->panels_a.special[i] ? ~0u : special;
}

void mpsim_start_rows_f32(const job *g, size_t first, size_t n, size_t panel, float *s, unsigned *redo)
{
    double c[N];
    if (!g->c) {
        const unsigned special = mpsim_special_columns(g, panel);
        memset(s, 0, n * N * sizeof *s);
        for (size_t r = 0; r < n; r++)
            redo[r] = g->panels_a.special[first + r] ? ~0u : special;
        return;
    }
    for (size_t r = 0; r < n; r++) {
        redo[r] = mpsim_start_row(g, first + r, panel, c);
        for (size_t j = 0; j < N; j++)
            s[r * N + j] = (float)c[j];
    }
}

/* Numbers above `most`: their columns, as bits; they become 0. */
static unsigned clear_above(float *s, uint32_t most)
{
    unsigned redo = 0;
    for (size_t j = 0; j < N; j++)
        if ((mpsim_bits_f32(s[j]) & 0x7fffffff) > most) {
            redo |= 1u << j;
            s[j] = 0;
        }
    return redo;
}

void mpsim_finish_rows_f32(const job *g, float *s, size_t n, uint32_t most, results *to, size_t at, unsigned *redo)
{
    const unsigned any = g->loops->look_f32(s, n); /* infinities and NaNs */
    for (size_t r = 0; any && r < n; r++)
        redo[r] |= clear_above(s + r * N, most);
    for (size_t r = 0; !g->words && r < n; r++) {
        double d[N];
        for (size_t j = 0; j < N; j++)
            d[j] = (double)s[r * N + j];
        mpsim_pack_values(&g->result, to->codes[at + r], d);
    }
}
