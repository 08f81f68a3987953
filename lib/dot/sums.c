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
    *code = mpsim_scalar_encode(&g->m->result.format, r, r->mode, mpsim_number_add(sum, c, down, &flags), 0, &flags);
    return 1;
}

static unsigned there(const job *g, size_t panel)
{
    return (2u << (mpsim_panel_columns(g, panel) - 1)) - 1;
}

/* Row r of x, where binary64 holds every sum. */
static unsigned row_in_f64(const job *g, const mpsim_exact_lines *x, size_t r, unsigned wanted, const double *c,
                           uint64_t *codes)
{
    unsigned redo = 0;
    double s[N];
    g->loops->exact(x->a + r * x->next, x->b, s, g->depth);
    for (int j = 0; j < N; j++)
        s[j] = s[j] == 0 ? 0 : s[j];
    if (!g->c && g->m->result.rounding.mode != MPSIM_ROUND_DOWN) {
        mpsim_pack_values(&g->result, codes, s);
        return 0;
    }
    for (int j = 0; j < N; j++)
        if (wanted >> j & 1 && !exact_code(g, mpsim_number_f64(s[j]), mpsim_number_f64(c[j]), &codes[j]))
            redo |= 1u << j;
    return redo;
}

static void rows_in_slices(const job *g, const mpsim_exact_lines *x, const int *in_slices, unsigned *left,
                           const double (*c)[N], uint64_t (*codes)[N], unsigned *redo)
{
    mpsim_number sums[ROWS][N];
    mpsim_exact_slices(&g->exact, x, g->loops->slice, g->loops->slices, left, sums);
    for (size_t r = 0; r < x->rows; r++) {
        redo[r] |= in_slices[r] ? left[r] : 0;
        for (int j = 0; in_slices[r] && j < N; j++)
            if (!(redo[r] >> j & 1) && !exact_code(g, sums[r][j], mpsim_number_f64(c[r][j]), &codes[r][j]))
                redo[r] |= 1u << j;
    }
}

void mpsim_exact_rows(const job *g, size_t first, size_t n, size_t panel, uint64_t (*codes)[N], unsigned *redo)
{
    const mpsim_exact_lines x = {(const double *)mpsim_row_values(g, first),
                                 (const double *)mpsim_panel_values(g, panel),
                                 n,
                                 g->padded,
                                 g->panels_a.low + first,
                                 g->panels_a.high + first,
                                 g->panels_b.low + panel * N,
                                 g->panels_b.high + panel * N};
    double c[ROWS][N];
    unsigned left[ROWS], any = 0; /* for slices: what they need not do, as bits */
    int in_slices[ROWS] = {0};
    for (size_t r = 0; r < n; r++) {
        redo[r] = mpsim_start_row(g, first + r, panel, c[r]) | ~there(g, panel);
        in_slices[r] = redo[r] != ~0u && !mpsim_exact_in_f64(&g->exact, &x, r);
        left[r] = in_slices[r] ? redo[r] : ~0u;
        any |= ~left[r];
        if (redo[r] != ~0u && !in_slices[r])
            redo[r] |= row_in_f64(g, &x, r, ~redo[r], c[r], codes[r]);
    }
    if (any)
        rows_in_slices(g, &x, in_slices, left, (const double(*)[N])c, codes, redo);
}
