/* packer.c -- values to codes; see panel.h. */
#include "chain.h"
#include "scalar.h"

enum { N = MPSIM_PANEL };

void mpsim_packer_init(mpsim_packer *p, const mpsim_rounded *to)
{
    const mpsim_format *f = &to->format;
    const int mode = to->rounding.mode;
    p->to = to;
    p->native = mpsim_is_native(to);
    p->fast = (mode == MPSIM_ROUND_NEAREST_EVEN || mode == MPSIM_ROUND_TOWARD_ZERO) && f->zero == MPSIM_ZERO_SIGNED &&
              mpsim_has_sign(f) && f->mbits > 0 && f->mbits < 52 && mpsim_emin(f) >= -1022;
    p->drop = p->fast ? 52 - f->mbits : 1;
    p->odd = p->fast && mode == MPSIM_ROUND_NEAREST_EVEN;
    p->half = p->odd ? (uint64_t)1 << (p->drop - 1) : 0;
    p->sign_shift = mpsim_magnitude_bits(f);
    p->rebias = (uint64_t)(int64_t)(1023 - f->bias) << f->mbits;
    p->least = mpsim_bits_f64(mpsim_format_min_normal(f));
    p->most = mpsim_bits_f64(mpsim_format_max(f));
}

static const uint64_t MAGNITUDE = 0x7fffffffffffffff;

/* The bits of |x|, rounded, for normal results; *rare becomes 1 where they mean nothing. */
static inline uint64_t round_bits(mpsim_packer p, uint64_t u, uint64_t *rare)
{
    const uint64_t m = u & MAGNITUDE;
    const uint64_t r = (m + (p.half - p.odd) + (m >> p.drop & p.odd)) >> p.drop << p.drop;
    const uint64_t nonzero = (0 - m) >> 63; /* m <= 2^63 - 1 */
    *rare |= ((m - p.least) >> 63 & nonzero) | (p.most - r) >> 63;
    return r;
}

void mpsim_pack_values(const mpsim_packer *p, uint64_t *codes, const double *values)
{
    const mpsim_packer own = *p; /* which no store through `codes` can change */
    uint64_t rare = !p->fast;
    if (p->native) {
        for (int j = 0; j < N; j++)
            codes[j] = mpsim_bits_f32((float)values[j]);
        return;
    }
    for (int j = 0; j < N; j++) {
        const uint64_t u = mpsim_bits_f64(values[j]), sign = u >> 63;
        const uint64_t nonzero = 0 - ((0 - (u & MAGNITUDE)) >> 63);
        const uint64_t r = round_bits(own, u, &rare);
        codes[j] = (((r >> own.drop) - own.rebias) & nonzero) | sign << own.sign_shift;
    }
    if (!rare)
        return;
    for (int j = 0; j < N; j++) {
        unsigned flags;
        codes[j] = mpsim_scalar_encode(&p->to->format, &p->to->rounding, p->to->rounding.mode,
                                       mpsim_number_f64(values[j]), 0, &flags);
    }
}

/* d + s by the reference; whether it is a finite number. */
static int add_one(const mpsim_packer *p, double *d, double s)
{
    const mpsim_rounding *r = &p->to->rounding;
    unsigned flags = 0;
    const mpsim_number sum = mpsim_number_add(mpsim_number_f64(*d), mpsim_number_f64(s), r->mode == MPSIM_ROUND_DOWN,
                                              &flags);
    const uint64_t code = mpsim_scalar_encode(&p->to->format, r, r->mode, sum, 0, &flags);
    const mpsim_number x = mpsim_scalar_unpack(&p->to->format, code);
    *d = mpsim_number_to_f64(x);
    return x.kind == MPSIM_NUMBER_FINITE;
}

unsigned mpsim_add_values(const mpsim_packer *p, double *d, const double *s)
{
    const mpsim_packer own = *p;
    double sum[N];
    uint64_t rare = !p->fast;
    unsigned redo = 0;
    for (int j = 0; j < N; j++) {
        /* numbers of 24 bits whose exponents are at most 28 apart have an exact sum of 53 bits, and
         * so has anything with a zero; a sum of zero has the sign of its rounding, but
         * for two +0 */
        const uint64_t x = mpsim_bits_f64(d[j]), y = mpsim_bits_f64(s[j]);
        const uint64_t apart = (x >> 52 & 0x7ff) - (y >> 52 & 0x7ff) + 28;
        const uint64_t u = mpsim_bits_f64(d[j] + s[j]);
        const uint64_t both = 0 - ((0 - (x & MAGNITUDE)) >> 63 & (0 - (y & MAGNITUDE)) >> 63);
        const uint64_t inexact = (56 - apart) >> 63 | apart >> 63 | ((x | y) & 0x1fffffff);
        const uint64_t r = round_bits(own, u, &rare);
        const uint64_t zero = ((u & MAGNITUDE) - 1) >> 63; /* 1 or 0 */
        rare |= (inexact & both) | ((x | y) & (0 - zero));
        sum[j] = mpsim_f64_bits(r | (u & ~MAGNITUDE));
    }
    if (!rare) {
        memcpy(d, sum, sizeof sum);
        return 0;
    }
    for (int j = 0; j < N; j++)
        if (!add_one(p, &d[j], s[j]))
            redo |= 1u << j;
    return redo;
}
