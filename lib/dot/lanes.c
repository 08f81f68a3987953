/* lanes.c -- see lanes.h. */
#include "job.h"

#include "../stats/sum.h"
#include "binary32.h"

#include <math.h>

/* ---- the choice ---- */

/* Operands and sums without subnormal numbers and -0. The rounding of a sum or a product that is exact below the
 * normal numbers is what the machine does; such products and sums are. */
enum { FLUSHED = MPSIM_TRAIT_FLUSH_OPERANDS | MPSIM_TRAIT_FLUSH_SUMS | MPSIM_TRAIT_PLUS_ZERO };

static int is_double(const mpsim_model *m)
{
    const mpsim_format *f = &m->accumulator.format;
    const mpsim_rounding *r = &m->accumulator.rounding;
    return m->addition == MPSIM_ADDITION_FMA && !m->chunk && !m->traits && m->order == MPSIM_ORDER_SEQUENTIAL &&
           f->bits == 64 && f->mbits == 52 && f->bias == 1023 && f->inf && f->zero == MPSIM_ZERO_SIGNED &&
           f->max_finite == 0x7fefffffffffffff && mpsim_format_same(f, &m->result.format) &&
           r->mode == MPSIM_ROUND_NEAREST_EVEN && m->result.rounding.mode == MPSIM_ROUND_NEAREST_EVEN &&
           r->overflow == MPSIM_OVERFLOW_INF && r->infinity == MPSIM_INFINITY_KEEP && !r->flush_output &&
           !m->result.rounding.flush_output;
}

/* Whether every number is a binary32 number and the products of two are exact in 24 bits and in its range. */
static int is_exact(const mpsim_format *fa, const mpsim_format *fb, int least)
{
    return mpsim_in_binary32(fa) && mpsim_in_binary32(fb) && fa->mbits + fb->mbits + 2 <= 24 &&
           mpsim_format_last_bit(fa) + mpsim_format_last_bit(fb) >= least;
}

int mpsim_lanes_init(mpsim_lanes *p, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    memset(p, 0, sizeof *p);
    p->length = m->length;
    if (is_double(m)) {
        p->kind = MPSIM_LANES_DOUBLE;
        return fa->mbits <= 52 && fb->mbits <= 52;
    }
    if (m->chunk || !mpsim_in_binary32(&m->result.format))
        return 0;
    if (m->addition == MPSIM_ADDITION_EXACT && m->length && !m->traits && mpsim_is_native(&m->accumulator)) {
        p->kind = MPSIM_LANES_EXACT;
        return is_exact(fa, fb, -1000);
    }
    if (m->addition == MPSIM_ADDITION_MULADD && m->order == MPSIM_ORDER_PAIRWISE && m->length >= 1 && m->length <= 4 &&
        m->traits == FLUSHED && mpsim_is_native(&m->product) && mpsim_is_native(&m->accumulator)) {
        p->kind = MPSIM_LANES_FLUSHED;
        p->flush_products = mpsim_emin(fa) + mpsim_emin(fb) < -126;
        return is_exact(fa, fb, -400) && mpsim_is_direct(fa) && mpsim_is_direct(fb);
    }
    return 0;
}

/* ---- one lane ---- */

/* x as binary32, to nearest even; an overflow is bad, and an infinity. */
static unsigned round_lane(mpsim_number x, float *c)
{
    mpsim_rounding r;
    unsigned flags;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    const uint64_t code = mpsim_scalar_encode(&mpsim_binary32, &r, r.mode, x, 0, &flags);
    *c = mpsim_f32_bits((uint32_t)code);
    return (code & 0x7fffffff) >= 0x7f800000;
}

unsigned mpsim_lanes_exact(const float *a, const float *b, float *c, size_t n)
{
    mpsim_sum sum;
    if ((mpsim_bits_f32(*c) & 0x7fffffff) >= 0x7f800000)
        return 1;
    mpsim_sum_init(&sum);
    mpsim_sum_add(&sum, (double)*c);
    for (size_t k = 0; k < n; k++)
        mpsim_sum_add(&sum, (double)a[k] * (double)b[k * MPSIM_PANEL]);
    mpsim_number x = mpsim_sum_number(&sum);
    if (x.hi == 0)
        x.sign = 0;
    return round_lane(x, c);
}

/* ---- rows ---- */

enum { PART = 256 /* products of all panels before the next: values of rows that are in a cache */ };

static void sums_of_doubles(const job *g, size_t first, size_t n, size_t panel, double (*s)[ROWS * N])
{
    const size_t panels = mpsim_panels_abreast(g, panel);
    for (size_t k = 0; k < g->depth; k += PART)
        for (size_t p = 0; p < panels; p++)
            g->loops->doubles((const double *)mpsim_row_values(g, first) + k, g->next_a,
                              (const double *)mpsim_panel_values(g, panel + p) + k * N, s[p], n,
                              g->depth - k < PART ? g->depth - k : PART);
}

static void rows_of_doubles(const job *g, size_t first, size_t n, size_t panel, results *to, unsigned *redo)
{
    const size_t panels = mpsim_panels_abreast(g, panel);
    double s[ABREAST][ROWS * N];
    for (size_t p = 0; p < panels; p++)
        for (size_t r = 0; r < n; r++)
            mpsim_start_row(g, first + r, panel + p, s[p] + r * N, to, p * ROWS + r);
    sums_of_doubles(g, first, n, panel, s);
    for (size_t p = 0; p < panels; p++)
        for (size_t r = 0; r < n; r++) {
            for (size_t j = 0; j < N; j++) {
                const uint64_t code = mpsim_bits_f64(s[p][r * N + j]), size = code & 0x7fffffffffffffff;
                to->codes[p * ROWS + r][j] = code;
                to->known[p * ROWS + r] |= (unsigned)(size >= 0x7ff0000000000000) << j;
                to->nans[p * ROWS + r] |= (unsigned)(size > 0x7ff0000000000000) << j;
            }
            redo[p * ROWS + r] |= to->nans[p * ROWS + r];
        }
}

void mpsim_lanes_rows(const job *g, size_t first, size_t n, size_t panel, results *to, unsigned *redo)
{
    if (g->lanes.kind == MPSIM_LANES_DOUBLE) {
        rows_of_doubles(g, first, n, panel, to, redo);
        return;
    }
    const double least = mpsim_format_min_normal(&g->m->result.format);
    const int flushes = g->m->traits && g->depth;
    float own[ROWS * N], *s = mpsim_sums_f32(g, to, own);
    double c[N];
    for (size_t r = 0; r < n; r++) {
        mpsim_start_row(g, first + r, panel, c, to, r);
        for (size_t j = 0; j < N; j++)
            s[r * N + j] = flushes && fabs(c[j]) < least ? 0 : (float)c[j];
    }
    g->loops->lanes(&g->lanes, (const float *)mpsim_row_values(g, first), g->padded,
                    (const float *)mpsim_panel_values(g, panel), s, n, g->padded, redo);
    mpsim_finish_rows_f32(g, s, n, MPSIM_LARGEST_F32, to, 0, redo);
}
