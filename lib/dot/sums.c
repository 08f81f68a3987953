/* sums.c -- the fast path of exact sums: rows of them; see exact.h. */
#include "job.h"

#include <math.h>

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

/* Rows and panels on their way. */
typedef struct sums {
    const job *g;
    size_t first, rows, panel, panels;
    mpsim_exact_lines x[ABREAST];
    int in_halves[ABREAST], in_slices[ABREAST][ROWS];
    double c[ABREAST][ROWS][N];
    double high[ABREAST][ROWS * N], low[ABREAST][ROWS * N]; /* low: where it is in halves */
} sums;

static mpsim_exact_lines lines_at(const job *g, size_t first, size_t rows, size_t panel)
{
    return (mpsim_exact_lines){(const double *)mpsim_row_values(g, first),
                               (const double *)mpsim_panel_values(g, panel),
                               rows,
                               g->padded,
                               g->panels_a.low + first,
                               g->panels_a.high + first,
                               g->panels_b.low + panel * N,
                               g->panels_b.high + panel * N};
}

/* Addends of panel p. Where a term is special numbers decide nothing: no sum of them overflows. */
static void start_rows(sums *w, size_t p, results *to, unsigned *redo)
{
    const job *g = w->g;
    const unsigned beyond = ~there(g, w->panel + p);
    for (size_t r = 0; r < w->rows; r++) {
        mpsim_start_row(g, w->first + r, w->panel + p, w->c[p][r], to, p * ROWS + r);
        redo[r] = to->special[p * ROWS + r] | beyond;
    }
}

/* How the sums of panel p are taken. */
static void start(sums *w, size_t p, results *to, unsigned *redo)
{
    const job *g = w->g;
    w->x[p] = lines_at(g, w->first, w->rows, w->panel + p);
    const int width = mpsim_exact_width(&g->exact, &w->x[p]);
    start_rows(w, p, to, redo);
    w->in_halves[p] = 0;
    for (size_t r = 0; r < w->rows; r++) {
        const int way = redo[r] != ~0u ? mpsim_exact_way(&g->exact, &w->x[p], r, width) : MPSIM_EXACT_WHOLE;
        w->in_halves[p] |= way == MPSIM_EXACT_HALVES;
        w->in_slices[p][r] = way == MPSIM_EXACT_SLICED;
    }
}

enum { PART = 64 /* products whose halves are kept at once */ };

/* Products k to k + n - 1 of the panels that are in halves. */
static void add_halves(sums *w, const double *cuts, size_t k, size_t n)
{
    const mpsim_loops *loops = w->g->loops;
    double high[ROWS * PART], low[ROWS * PART];
    for (size_t r = 0; r < w->rows; r++)
        loops->halves(w->x[0].a + r * w->x[0].next + k, cuts[r], high + r * PART, low + r * PART, n);
    for (size_t p = 0; p < w->panels; p++)
        if (w->in_halves[p]) {
            loops->exact(high, PART, w->x[p].b + k * N, w->high[p], w->rows, n);
            loops->exact(low, PART, w->x[p].b + k * N, w->low[p], w->rows, n);
        }
}

static void add_all(sums *w)
{
    const job *g = w->g;
    double cuts[ROWS];
    int any = 0;
    for (size_t p = 0; p < w->panels; p++) {
        memset(w->high[p], 0, w->rows * N * sizeof w->high[p][0]);
        if (w->in_halves[p])
            memset(w->low[p], 0, w->rows * N * sizeof w->low[p][0]);
        any |= w->in_halves[p];
        if (!w->in_halves[p])
            g->loops->exact(w->x[p].a, w->x[p].next, w->x[p].b, w->high[p], w->rows, g->depth);
    }
    for (size_t r = 0; any && r < w->rows; r++)
        cuts[r] = mpsim_exact_cut(&g->exact, &w->x[0], r);
    for (size_t k = 0; any && k < g->depth; k += PART)
        add_halves(w, cuts, k, g->depth - k < PART ? g->depth - k : PART);
}

/* The sum of both halves, which 128 bits hold. */
static mpsim_number both(double high, double low)
{
    unsigned flags = 0;
    mpsim_number sum = mpsim_number_add(mpsim_number_f64(high), mpsim_number_f64(low), 0, &flags);
    sum.sign = sum.hi == 0 ? 0 : sum.sign;
    return sum;
}

/* The codes of a row whose sums are in high and low. A number of at most 51 bits is that of the sum rounded to odd
 * (rounded.h). */
static unsigned finish_row(const job *g, int in_halves, const double *high, const double *low, const double *c,
                           unsigned wanted, uint64_t *codes)
{
    const int is_alone = !g->c && g->m->result.rounding.mode != MPSIM_ROUND_DOWN;
    unsigned redo = 0;
    double s[N];
    if (is_alone && (!in_halves || g->m->result.format.mbits <= 50)) {
        memcpy(s, high, sizeof s);
        if (in_halves)
            g->loops->odd(high, low, s);
        for (int j = 0; j < N; j++)
            s[j] = s[j] == 0 ? 0 : s[j];
        mpsim_pack_values(&g->result, codes, s);
        return 0;
    }
    for (int j = 0; j < N; j++)
        if (wanted >> j & 1 && !exact_code(g, both(high[j], in_halves ? low[j] : 0), mpsim_number_f64(c[j]), &codes[j]))
            redo |= 1u << j;
    return redo;
}

/* ---- sums between bounds ----
 *
 * Products of binary32 numbers are exact in binary64, and none of their sums is subnormal there. A sum of n of them in any order is
 * off by at most (n - 1) 2^-53 T, T the sum of their magnitudes, but for a factor of 1 + n 2^-53. Bounds that are (n + 2) 2^-52 T
 * away, T a sum of the same kind, have room for that factor, for the error of T and for their own: n 2^-53 is small. Rounding is
 * monotone: where both bounds have one sign and round to one code, that is the code of the exact sum. */

/* Whether such bounds can be close enough. */
static int has_bounds(const job *g)
{
    return g->exact.carry <= 20 && g->m->result.format.mbits <= 24;
}

/* Sums of the rows of panel p, and of the magnitudes of their terms. */
static void add_magnitudes(const sums *w, size_t p, double *s, double *magnitudes)
{
    const mpsim_exact_lines *x = &w->x[p];
    const job *g = w->g;
    double a[ROWS * PART], b[PART * N];
    for (size_t i = 0; i < x->rows * N; i++) {
        s[i] = w->c[p][i / N][i % N];
        magnitudes[i] = fabs(s[i]);
    }
    g->loops->exact(x->a, x->next, x->b, s, x->rows, g->depth);
    for (size_t k = 0; k < g->depth; k += PART) {
        const size_t n = g->depth - k < PART ? g->depth - k : PART;
        for (size_t r = 0; r < x->rows; r++)
            for (size_t i = 0; i < n; i++)
                a[r * PART + i] = fabs(x->a[r * x->next + k + i]);
        for (size_t i = 0; i < n * N; i++)
            b[i] = fabs(x->b[k * N + i]);
        g->loops->exact(a, PART, b, magnitudes, x->rows, n);
    }
}

static uint64_t code_of(const job *g, double x)
{
    const mpsim_rounding *r = &g->m->result.rounding;
    unsigned flags = 0;
    return mpsim_scalar_encode(&g->m->result.format, r, r->mode, mpsim_number_f64(x), 0, &flags);
}

static int code_between(const job *g, double s, double magnitudes, uint64_t *code)
{
    const double off = ((double)g->depth + 3) * 0x1p-52 * magnitudes; /* with the addend */
    *code = code_of(g, s - off);
    return fabs(s) > off && *code == code_of(g, s + off);
}

/* The columns in wide[r] of the rows of panel p: redo |= those whose code is not known. */
static void rows_between(const sums *w, size_t p, const unsigned *wide, uint64_t (*codes)[N], unsigned *redo)
{
    double s[ROWS * N], magnitudes[ROWS * N];
    add_magnitudes(w, p, s, magnitudes);
    for (size_t r = 0; r < w->rows; r++)
        for (size_t j = 0; j < N; j++)
            if (wide[r] >> j & 1 && !code_between(w->g, s[r * N + j], magnitudes[r * N + j], &codes[r][j]))
                redo[r] |= 1u << j;
}

/* The rows of panel p that are in slices. */
static void rows_in_slices(sums *w, size_t p, uint64_t (*codes)[N], unsigned *redo)
{
    const job *g = w->g;
    const unsigned all = (1u << N) - 1;
    mpsim_number total[ROWS][N];
    unsigned left[ROWS], wide[ROWS], any = 0, any_wide = 0; /* left: what slices need not do, as bits */
    for (size_t r = 0; r < w->rows; r++) {
        left[r] = w->in_slices[p][r] ? redo[r] : ~0u;
        any |= ~left[r];
    }
    if (any)
        mpsim_exact_slices(&g->exact, &w->x[p], g->loops->slice, g->loops->slices, left, total);
    for (size_t r = 0; r < w->rows; r++) {
        wide[r] = w->in_slices[p][r] ? left[r] & ~redo[r] & all : 0;
        any_wide |= wide[r];
        for (int j = 0; w->in_slices[p][r] && j < N; j++)
            if (!(left[r] >> j & 1) && !exact_code(g, total[r][j], mpsim_number_f64(w->c[p][r][j]), &codes[r][j]))
                redo[r] |= 1u << j;
    }
    if (any_wide && has_bounds(g))
        rows_between(w, p, wide, codes, redo);
    for (size_t r = 0; !has_bounds(g) && r < w->rows; r++)
        redo[r] |= wide[r];
}

void mpsim_exact_rows(const job *g, size_t first, size_t n, size_t panel, results *to, unsigned *redo)
{
    sums w;
    w.g = g;
    w.first = first;
    w.rows = n;
    w.panel = panel;
    w.panels = mpsim_panels_abreast(g, panel);
    for (size_t p = 0; p < w.panels; p++)
        start(&w, p, to, redo + p * ROWS);
    add_all(&w);
    for (size_t p = 0; p < w.panels; p++) {
        for (size_t r = 0; r < n; r++) {
            unsigned *left = &redo[p * ROWS + r];
            if (*left != ~0u && !w.in_slices[p][r])
                *left |= finish_row(g, w.in_halves[p], w.high[p] + r * N, w.low[p] + r * N, w.c[p][r], ~*left,
                                    to->codes[p * ROWS + r]);
        }
        rows_in_slices(&w, p, to->codes + p * ROWS, redo + p * ROWS);
    }
}
