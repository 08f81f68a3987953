/* sums.c -- the fast path of exact sums: rows of them; see exact.h. */
#include "job.h"

/* The code of sum + c. A zero has no sign here yet: that of +0, and what is added to it, is known;
 * what else comes to zero depends on the signs of the products. */
static int exact_code(const job *g, mpsim_number sum, mpsim_number c, uint64_t *code)
{
    const mpsim_rounding *r = &g->m->result.rounding;
    const int down = r->mode == MPSIM_ROUND_DOWN;
    unsigned flags = 0;
    if (sum.hi == 0 && c.hi == 0 && (c.sign || down))
        return 0;
    *code = mpsim_scalar_encode(&g->m->result.format, r, r->mode,
                                mpsim_number_add(sum, c, down, &flags), 0, &flags);
    return 1;
}

static unsigned exact_row(const job *g, size_t i, size_t panel, unsigned special, const double *c,
                          uint64_t *codes)
{
    const mpsim_exact_row x = {
        (const double *)mpsim_row_values(g, i),
        (const double *)mpsim_panel_values(g, panel),
        g->panels_a.low[i], g->panels_a.high[i],
        g->panels_b.low + panel * N, g->panels_b.high + panel * N};
    const unsigned there = (2u << (mpsim_panel_columns(g, panel) - 1)) - 1;
    const int in_f64 = mpsim_exact_in_f64(&g->exact, &x);
    mpsim_number sums[N];
    double s[N];
    unsigned redo = special;
    if (in_f64) {
        g->loops->exact(x.a, x.b, s, g->depth);
        for (int j = 0; j < N; j++)
            s[j] = s[j] == 0 ? 0 : s[j];
        if (!g->c && g->m->result.rounding.mode != MPSIM_ROUND_DOWN) {
            mpsim_pack_values(&g->result, codes, s);
            return redo;
        }
        for (int j = 0; j < N; j++)
            sums[j] = mpsim_number_f64(s[j]);
    } else {
        redo |= mpsim_exact_integers(&g->exact, &x, there & ~special, sums);
    }
    for (int j = 0; j < N; j++)
        if (there >> j & ~redo >> j & 1 &&
            !exact_code(g, sums[j], mpsim_number_f64(c[j]), &codes[j]))
            redo |= 1u << j;
    return redo;
}

void mpsim_exact_rows(const job *g, size_t first, size_t n, size_t panel, uint64_t (*codes)[N],
                       unsigned *redo)
{
    for (size_t r = 0; r < n; r++) {
        double c[N];
        redo[r] = mpsim_start_row(g, first + r, panel, c);
        if (!g->panels_a.special[first + r])
            redo[r] = exact_row(g, first + r, panel, redo[r], c, codes[r]);
    }
}
