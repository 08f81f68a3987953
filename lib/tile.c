/* tile.c -- see tile.h. */
#include "tile.h"

#include <string.h>

/* ---- the end of a step ---- */

/* The accumulator for |T| 2^(E - F) given as a binary64 number that is not zero; *bad where the
 * reference must do it. */
static uint64_t round_one(const mpsim_tile *t, uint64_t u, unsigned *bad)
{
    uint64_t m = u & 0x7fffffffffffffffu;
    const int e = (int)(m >> 52) - 1023;
    const int drop = 52 - t->mbits + (e < t->emin ? t->emin - e : 0);
    if (drop > 51) { /* the last bit that is kept is not among the 52 explicit ones */
        *bad = 1;
        return u;
    }
    if (t->nearest)
        m += ((uint64_t)1 << (drop - 1)) - 1 + (m >> drop & 1);
    m = m >> drop << drop;
    *bad = m > t->most;
    return m | (u & 0x8000000000000000u);
}

/* Add the accumulators to the aligned products and round. */
static unsigned finish(const mpsim_tile *t, const int16_t *e, const double *total, double *c)
{
    enum { N = MPSIM_TILE };
    const int drop = 52 - t->mbits;
    const uint64_t half = t->nearest ? (uint64_t)1 << (drop - 1) : 0, odd = half != 0;
    uint64_t sum[N], rounded[N], rare = 0;
    for (int j = 0; j < N; j++) {
        const double up = mpsim_f64_bits((uint64_t)(1023 + t->fraction - e[j]) << 52);
        const double down = mpsim_f64_bits((uint64_t)(1023 - t->fraction + e[j]) << 52);
        const double s = total[j] + (double)(int32_t)(c[j] * up);
        const uint64_t zero = s == 0 ? 0 : ~(uint64_t)0; /* +0 for either zero */
        sum[j] = mpsim_bits_f64(s * down) & zero;
    }
    for (int j = 0; j < N; j++) {
        const uint64_t u = sum[j], m = u & 0x7fffffffffffffffu;
        const uint64_t r = (m + (half - odd) + ((m >> drop) & odd)) >> drop << drop;
        rounded[j] = r | (u & 0x8000000000000000u);
        rare |= (uint64_t)((m < t->least) & (m != 0)) | (uint64_t)(r > t->most);
    }
    memcpy(c, rounded, sizeof rounded);
    if (!rare)
        return 0;

    unsigned redo = 0;
    for (int j = 0; j < N; j++) {
        unsigned bad = 0;
        c[j] = mpsim_f64_bits(sum[j] ? round_one(t, sum[j], &bad) : 0);
        if (bad) {
            redo |= 1u << j;
            c[j] = 0;
        }
    }
    return redo;
}

/* ---- the steps, on binary32 and on binary64 values ---- */

#define REAL     float
#define BITS     uint32_t
#define BIAS     127
#define MANTISSA 23
#define STEPS    steps_f32
#include "tile_steps.h"
#undef REAL
#undef BITS
#undef BIAS
#undef MANTISSA
#undef STEPS

#define REAL     double
#define BITS     uint64_t
#define BIAS     1023
#define MANTISSA 52
#define STEPS    steps_f64
#include "tile_steps.h"

unsigned mpsim_tile_steps(const mpsim_tile *t, const void *a, const int16_t *ea, const void *b,
                          const int16_t *eb, double *c, size_t depth)
{
    const size_t length = (size_t)t->length;
    unsigned redo = 0;
    for (size_t k = 0; k < depth; k += length) {
        const int n = (int)(depth - k < length ? depth - k : length);
        if (t->wide)
            redo |= steps_f64(t, (const double *)a + k, ea + k, (const double *)b + k * MPSIM_TILE,
                              eb + k * MPSIM_TILE, c, n);
        else
            redo |= steps_f32(t, (const float *)a + k, ea + k, (const float *)b + k * MPSIM_TILE,
                              eb + k * MPSIM_TILE, c, n);
    }
    return redo;
}

/* ---- which models ---- */

/* Exponent of the largest number of f, rounded up, and of the last bit of the smallest. */
static int highest(const mpsim_format *f)
{
    return (int)(f->max_finite >> f->mbits) - f->bias + 1;
}

static int last_bit(const mpsim_format *f)
{
    return mpsim_emin(f) - f->mbits;
}

static int smallest_exponent(const mpsim_model *m, const mpsim_format *f)
{
    const int e = m->operand_emin > last_bit(f) ? m->operand_emin : last_bit(f);
    return e < mpsim_emin(f) ? e : mpsim_emin(f);
}

/* Whether every number of f is zero or a normal binary32 number. */
static int is_narrow(const mpsim_format *f)
{
    return last_bit(f) >= -126 && highest(f) <= 127;
}

int mpsim_tile_init(mpsim_tile *t, const mpsim_model *m, const mpsim_format *fa,
                    const mpsim_format *fb)
{
    const mpsim_format *acc = &m->accumulator.format, *result = &m->result.format;
    const mpsim_rounding *r = &m->accumulator.rounding;
    if (m->step != MPSIM_STEP_FUSED || m->alignment != MPSIM_ALIGN_TRUNCATE || m->normalised)
        return 0;
    if ((r->mode != MPSIM_ROUND_TOWARD_ZERO && r->mode != MPSIM_ROUND_NEAREST_EVEN) ||
        r->flush_output || !mpsim_has_sign(acc) || acc->zero != MPSIM_ZERO_SIGNED ||
        acc->mbits < 1 || acc->mbits > 30)
        return 0;
    /* c, in the result's format, is an accumulator, too */
    if (mpsim_emin(acc) != mpsim_emin(result) || mpsim_emin(acc) < -300 || highest(acc) > 300 ||
        highest(result) > 300 || result->zero != MPSIM_ZERO_SIGNED)
        return 0;

    const int bits = fa->mbits + fb->mbits;
    const int low = last_bit(fa) + last_bit(fb), high = highest(fa) + highest(fb);
    /* binary32 values: operands, products and 2^(F - E) for every E are normal numbers of it */
    t->lowest = smallest_exponent(m, fa) + smallest_exponent(m, fb);
    t->wide = !(bits + 2 <= 24 && is_narrow(fa) && is_narrow(fb) && low >= -126 && high <= 127 &&
                m->fraction - t->lowest <= 127 && highest(acc) - 1 <= 126 + m->fraction &&
                highest(result) - 1 <= 126 + m->fraction);
    if (bits + 2 > 53 || last_bit(fa) < -1022 || last_bit(fb) < -1022 || low < -700 || high > 600 ||
        m->fraction > 28)
        return 0;
    t->length = m->length;
    t->fraction = m->fraction;
    /* terms that are not zero have exponents from -700 on, those that are below -2900 */
    t->floor = m->floor > -800 ? m->floor : -800;
    if (t->floor > (t->wide ? 300 : 100))
        return 0;

    /* |aligned product| <= (2^(p_a+1) - 1) (2^(p_b+1) - 1) 2^(F - bits) < 2^(F+2) <= 2^30 */
    const uint64_t product = (((uint64_t)2 << fa->mbits) - 1) * (((uint64_t)2 << fb->mbits) - 1);
    const int shift = m->fraction - bits;
    const uint64_t term = shift >= 0 ? product << shift : (product >> -shift) + 1;
    const uint64_t group = (((uint64_t)1 << 31) - 1) / term;
    t->group = group < (uint64_t)m->length ? (int)group : m->length;

    t->emin = mpsim_emin(acc);
    t->mbits = acc->mbits;
    t->nearest = r->mode == MPSIM_ROUND_NEAREST_EVEN;
    t->least = mpsim_bits_f64(mpsim_format_min_normal(acc));
    t->most = mpsim_bits_f64(mpsim_format_max(acc));
    return 1;
}
