/* job.c -- see job.h. */
#include "job.h"

unsigned mpsim_special_columns(const job *g, size_t panel)
{
    const unsigned char *special = g->panels_b.special + panel * N;
    uint64_t any[2];
    unsigned columns = 0;
    memcpy(any, special, sizeof any);
    for (size_t j = 0; !g->raw && (any[0] | any[1]) && j < mpsim_panel_columns(g, panel); j++)
        columns |= (unsigned)(special[j] != 0) << j;
    return columns;
}

static unsigned special_row(const job *g, size_t i, unsigned columns)
{
    return g->panels_a.special[i] && !g->raw ? ~0u : columns;
}

static unsigned start_row(const job *g, size_t i, size_t panel, double *c)
{
    const size_t n = mpsim_panel_columns(g, panel);
    unsigned special = 0;
    memset(c, 0, N * sizeof *c);
    if (g->c)
        special = mpsim_unpack_line(&g->addends, c, g->c->codes, mpsim_index_in(g->c, i, panel * N),
                                    g->c->transposed ? g->c->stride : 1, n);
    for (size_t j = 0; special && j < n; j++)
        c[j] = special >> j & 1 ? 0 : c[j];
    return special_row(g, i, special | mpsim_special_columns(g, panel));
}

static void put_special(results *to, size_t at, unsigned columns)
{
    to->special[at] = columns;
    to->known[at] = to->nans[at] = 0;
}

void mpsim_start_row(const job *g, size_t i, size_t panel, double *c, results *to, size_t at)
{
    put_special(to, at, start_row(g, i, panel, c));
}

void mpsim_start_rows_f32(const job *g, size_t first, size_t n, size_t panel, float *s, results *to, size_t at)
{
    double c[N];
    if (!g->c) {
        const unsigned special = mpsim_special_columns(g, panel);
        memset(s, 0, n * N * sizeof *s);
        for (size_t r = 0; r < n; r++)
            put_special(to, at + r, special_row(g, first + r, special));
        return;
    }
    for (size_t r = 0; r < n; r++) {
        put_special(to, at + r, start_row(g, first + r, panel, c));
        for (size_t j = 0; j < N; j++)
            s[r * N + j] = (float)c[j];
    }
}

/* Numbers above `most`: their columns, as bits. */
static unsigned above(const float *s, uint32_t most)
{
    unsigned columns = 0;
    for (size_t j = 0; j < N; j++)
        columns |= (unsigned)((mpsim_bits_f32(s[j]) & 0x7fffffff) > most) << j;
    return columns;
}

void mpsim_finish_rows_f32(const job *g, float *s, size_t n, uint32_t most, results *to, size_t at, unsigned *redo)
{
    const unsigned any = g->loops->look_f32(s, n); /* infinities and NaNs */
    for (size_t r = 0; any && r < n; r++) {
        to->known[at + r] = above(s + r * N, MPSIM_LARGEST_F32);
        to->nans[at + r] = above(s + r * N, MPSIM_INFINITE_F32);
        redo[r] |= above(s + r * N, most);
    }
    for (size_t r = 0; !g->words && r < n; r++) {
        double d[N];
        for (size_t j = 0; j < N; j++)
            d[j] = to->nans[at + r] >> j & 1 ? 0 : (double)s[r * N + j];
        mpsim_pack_values(&g->result, to->codes[at + r], d);
    }
}
