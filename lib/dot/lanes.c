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

/* Whether its codes become values in vectors, where they can be flushed. */
static int is_direct(const mpsim_format *f)
{
    mpsim_unpacker u;
    mpsim_unpacker_init(&u, f, 0);
    return u.direct && u.bytes <= 4;
}

static int is_staged(mpsim_lanes *p, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    const int each = (m->length + m->ways - 1) / m->ways; /* products of a sum: below 2^31 */
    int carry = 0;
    while (1 << carry < each)
        carry++;
    const int plain_a = mpsim_format_last_bit(fa) >= -126 || fa->bias == 127;
    const int plain_b = mpsim_format_last_bit(fb) >= -126 || fb->bias == 127;
    p->lower = m->kept + 1 - m->fraction;
    p->staged = (mpsim_staged){m->ways, m->fraction, m->kept, m->drop, fa->mbits + fb->mbits, -126, 127};
    return plain_a && plain_b && is_exact(fa, fb, -400) && m->length % 2 == 0 && m->fraction <= 25 &&
           m->fraction + 2 + carry + (m->ways - 1) <= 30 && m->fraction >= 24 && p->lower >= 1 && p->lower <= 8;
}

int mpsim_lanes_init(mpsim_lanes *p, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    memset(p, 0, sizeof *p);
    p->length = m->length;
    p->bits_a = fa->mbits;
    p->bits_b = fb->mbits;
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
        return is_exact(fa, fb, -400) && is_direct(fa) && is_direct(fb);
    }
    p->kind = MPSIM_LANES_STAGED;
    return m->addition == MPSIM_ADDITION_STAGED && mpsim_is_native(&m->accumulator) && is_staged(p, m, fa, fb);
}

/* ---- one lane ---- */

/* x as binary32, to nearest even; an overflow is bad. */
static unsigned round_lane(mpsim_number x, float *c)
{
    mpsim_rounding r;
    unsigned flags;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    const uint64_t code = mpsim_scalar_encode(&mpsim_binary32, &r, r.mode, x, 0, &flags);
    const unsigned bad = (code & 0x7fffffff) >= 0x7f800000;
    *c = bad ? 0 : mpsim_f32_bits((uint32_t)code);
    return bad;
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

/* A value, with its exponent e, as a term of a format with `bits` explicit significand bits; what is not finite as a NaN. */
static mpsim_term term_of(float x, int e, int bits)
{
    const int is_finite = isfinite(x);
    mpsim_term t = {is_finite ? MPSIM_NUMBER_FINITE : MPSIM_NUMBER_NAN, mpsim_bits_f32(x) >> 31 != 0, 0, 0};
    if (x != 0 && is_finite) {
        const double up = mpsim_f64_bits((uint64_t)(1023 + bits - e) << 52);
        const double s = (double)x * up;
        t.s = (uint64_t)(s < 0 ? -s : s);
        t.e = e;
    }
    return t;
}

unsigned mpsim_lanes_staged(const mpsim_lanes *p, const float *a, const int16_t *ea, const float *b, const int16_t *eb,
                            float *c, size_t n)
{
    mpsim_term x[MPSIM_FUSED_LENGTH], y[MPSIM_FUSED_LENGTH];
    unsigned flags = 0;
    for (size_t k = 0; k < n; k++) {
        x[k] = term_of(a[k], ea[k], p->bits_a);
        y[k] = term_of(b[k * MPSIM_PANEL], eb[2 * MPSIM_TILE * (k / 2) + k % 2], p->bits_b);
    }
    const mpsim_number sum = mpsim_staged_sum(&p->staged, x, y, (int)n, mpsim_number_f64((double)*c), p->staged.emin,
                                              &flags);
    if (sum.kind != MPSIM_NUMBER_FINITE) {
        *c = 0;
        return 1;
    }
    return round_lane(sum, c);
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

static void rows_of_doubles(const job *g, size_t first, size_t n, size_t panel, uint64_t (*codes)[N], unsigned *redo)
{
    const size_t panels = mpsim_panels_abreast(g, panel);
    double s[ABREAST][ROWS * N];
    for (size_t p = 0; p < panels; p++)
        for (size_t r = 0; r < n; r++)
            redo[p * ROWS + r] = mpsim_start_row(g, first + r, panel + p, s[p] + r * N);
    sums_of_doubles(g, first, n, panel, s);
    for (size_t p = 0; p < panels; p++)
        for (size_t r = 0; r < n; r++)
            for (size_t j = 0; j < N; j++) {
                const uint64_t code = mpsim_bits_f64(s[p][r * N + j]);
                codes[p * ROWS + r][j] = code;
                redo[p * ROWS + r] |= (unsigned)((code & 0x7fffffffffffffff) > 0x7ff0000000000000) << j;
            }
}

void mpsim_lanes_rows(const job *g, size_t first, size_t n, size_t panel, uint64_t (*codes)[N], unsigned *redo)
{
    if (g->lanes.kind == MPSIM_LANES_DOUBLE) {
        rows_of_doubles(g, first, n, panel, codes, redo);
        return;
    }
    const int16_t *ea = g->panels_a.exponents ? g->panels_a.exponents + first * g->padded : NULL;
    const int16_t *eb = g->panels_b.exponents ? g->panels_b.exponents + panel * g->padded * N : NULL;
    const double least = mpsim_format_min_normal(&g->m->result.format);
    const int flushes = g->m->traits && g->depth;
    float s[ROWS * N];
    double c[N];
    for (size_t r = 0; r < n; r++) {
        redo[r] = mpsim_start_row(g, first + r, panel, c);
        for (size_t j = 0; j < N; j++)
            s[r * N + j] = flushes && fabs(c[j]) < least ? 0 : (float)c[j];
    }
    g->loops->lanes(&g->lanes, (const float *)mpsim_row_values(g, first), ea, g->padded,
                    (const float *)mpsim_panel_values(g, panel), eb, s, n, g->padded, redo);
    mpsim_finish_rows_f32(g, s, n, MPSIM_LARGEST_F32, codes, redo);
}
