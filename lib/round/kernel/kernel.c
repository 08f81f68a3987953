/* kernel.c -- preparing the kernels; see kernel.h. */
#include "config.h"

#include "kernel.h"

#include "../../base/isa.h"

static const mpsim_kernels table[MPSIM_ISAS] = {
/* NULL: the reference does everything */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ /* halves of lanes are taken apart */
    [MPSIM_ISA_GENERIC] = {mpsim_cast_generic, mpsim_words_generic, mpsim_decode_generic, mpsim_decode32_generic},
#endif
#ifdef HAVE_NEON
    [MPSIM_ISA_NEON] = {mpsim_cast_neon, mpsim_words_neon, mpsim_decode_neon, mpsim_decode32_neon},
#endif
#ifdef HAVE_AVX2
    [MPSIM_ISA_AVX2] = {mpsim_cast_avx2, mpsim_words_avx2, mpsim_decode_avx2, mpsim_decode32_avx2},
#endif
#ifdef HAVE_AVX512
    [MPSIM_ISA_AVX512] = {mpsim_cast_avx512, mpsim_words_avx512, mpsim_decode_avx512, mpsim_decode32_avx512},
#endif
};

const mpsim_kernels *mpsim_kernels_choice(void)
{
    const mpsim_kernels *k = &table[mpsim_isa_choice()];
    return k->cast ? k : NULL;
}

/* The numbers that a lane works on: those of its source type, binary32 in 32 bits, binary64 in 64. */
typedef struct lanes {
    int bits, fraction, bias;
    int least_exp;  /* exponent of the smallest normal number                                        */
    int last_field; /* exponent field of the largest finite numbers; no source needs a larger base   */
    /* Exponent fields between which sums and products in floating point neither become subnormal nor overflow on the way. */
    int sums_begin, products_begin, sums_end;
} lanes;
static const lanes lanes32 = {32, 23, 127, -126, 254, 3, 60, 250};
static const lanes lanes64 = {64, 52, 1023, -1022, 2046, 3, 200, 2000};

/* A code as a result: itself, or the bits of its value. */
static uint64_t as_result(const mpsim_cast_constants *k, const mpsim_format *f, uint64_t code, const lanes *l)
{
    if (!k->values)
        return code;
    const double value = mpsim_scalar_decode(f, code);
    return l->bits == 64 ? mpsim_bits_f64(value) : mpsim_bits_f32(mpsim_number_to_f32(mpsim_number_f64(value)));
}

/* The results that are constants, from the reference. */
static void constants(mpsim_cast_constants *k, const mpsim_format *f, const mpsim_rounding *r, const lanes *l)
{
    unsigned flags;
    for (int sign = 0; sign < 2; sign++) {
        const mpsim_number zero = mpsim_number_make(sign, 0, 0);
        const mpsim_number huge = mpsim_number_make(sign, 1, 4000);
        mpsim_number infinite = zero;
        infinite.kind = MPSIM_NUMBER_INF;
        const uint64_t small = f->zero != MPSIM_ZERO_NONE        ? mpsim_scalar_zero(f, sign)
                               : r->no_zero == MPSIM_NO_ZERO_NAN ? mpsim_scalar_nan(f, r, 0, 0)
                                                                 : 0;
        k->zero[sign] = as_result(k, f, mpsim_scalar_encode(f, r, r->mode, zero, 0, &flags), l);
        k->small[sign] = as_result(k, f, small, l);
        k->over[sign] = as_result(k, f, mpsim_scalar_encode(f, r, r->mode, huge, 0, &flags), l);
        k->infinite[sign] = as_result(k, f, mpsim_scalar_encode(f, r, r->mode, infinite, 0, &flags), l);
        const uint64_t nan = mpsim_cuts_nans(f, r) ? (f->max_finite + 1) | mpsim_sign_bit(f, sign)
                                                   : mpsim_scalar_nan(f, r, sign, 0);
        k->nan[sign] = as_result(k, f, nan, l);
    }
    mpsim_scalar_encode(f, r, r->mode, mpsim_number_make(0, 0, 0), 0, &k->zero_flags);
    k->over_by_sign = k->over[1] != (k->over[0] | k->sign_bit) || (k->over[0] & k->sign_bit) != 0;
    k->negative = as_result(k, f, mpsim_scalar_negative(f, r), l);
    k->least = as_result(k, f, f->zero == MPSIM_ZERO_NONE ? 0 : 1, l);
}

/* When the fraction, at the top of `lane` bits, makes the magnitude grow. */
static void decision(mpsim_cast_constants *k, const mpsim_rounding *r, int lane)
{
    const uint64_t half = (uint64_t)1 << (lane - 1), never = half - 1 + half;
    const int n = r->sr_bits;
    k->random = mpsim_is_stochastic(r->mode);
    if (k->random) {
        k->draw = never >> (lane - n) << (lane - n);
        k->half = r->mode == MPSIM_ROUND_STOCHASTIC_A || n == lane ? 0 : (uint64_t)1 << (lane - 1 - n);
        k->even = r->mode == MPSIM_ROUND_STOCHASTIC_C && n < lane;
        k->last = n < lane ? lane - n : 0;
        k->ties = n == lane && r->mode == MPSIM_ROUND_STOCHASTIC_B    ? 1
                  : n == lane && r->mode == MPSIM_ROUND_STOCHASTIC_C  ? 2
                  : lane == 32 && r->mode == MPSIM_ROUND_STOCHASTIC_C ? 3
                                                                      : 0;
        return;
    }
    k->by_odd = r->mode == MPSIM_ROUND_NEAREST_EVEN || r->mode == MPSIM_ROUND_TO_ODD;
    k->by_sign = (r->mode == MPSIM_ROUND_UP || r->mode == MPSIM_ROUND_DOWN) && k->sign;
    switch (r->mode) {
    case MPSIM_ROUND_NEAREST_EVEN: /* odd: at half, too */
        k->threshold[0] = half;
        k->threshold[1] = half - 1;
        break;
    case MPSIM_ROUND_NEAREST_AWAY:
        k->threshold[0] = half - 1;
        break;
    case MPSIM_ROUND_UP:
    case MPSIM_ROUND_TO_ODD:
        k->threshold[1] = never;
        break;
    case MPSIM_ROUND_DOWN:
        k->threshold[0] = never;
        break;
    default:
        k->threshold[0] = never;
    }
}

/* The largest magnitude of the source, as an integer, that is read as zero. */
static uint64_t zero_up_to(const mpsim_rounding *r, int source)
{
    const mpsim_number below = mpsim_number_f64(r->flush_below);
    if (!r->flush_input)
        return 0;
    if (source == 8)
        return (below.hi ? mpsim_bits_f64(r->flush_below) : (uint64_t)1 << 52) - 1;
    if (below.hi == 0)
        return 0x007fffff;
    if (below.exp > 127)
        return 0x7f7fffff;
    const mpsim_rounding up = {.mode = MPSIM_ROUND_UP, .scale = 1};
    unsigned flags;
    return mpsim_scalar_encode(mpsim_format_find("binary32"), &up, up.mode, below, 0, &flags) - 1;
}

/* Where the parts of sources and results lie in a lane. */
static void layout(mpsim_cast_constants *k, const mpsim_format *f, const mpsim_rounding *r, const lanes *l)
{
    const int emin = mpsim_emin(f);
    k->drop = l->fraction - f->mbits;
    k->base = emin - k->scale_exp + l->bias - 1;
    k->drop_base = k->drop + k->base;
    k->base = k->base < l->last_field ? k->base : l->last_field;
    k->is_unsigned = !mpsim_has_sign(f);
    k->sign = k->is_unsigned && r->negative == MPSIM_NEGATIVE_ABS ? 0 : (uint64_t)1 << (l->bits - 1);
    k->sign_shift = k->values || k->is_unsigned ? 0 : l->bits - 1 - mpsim_magnitude_bits(f);
    k->sign_bit = k->is_unsigned ? 0 : k->values ? (uint64_t)1 << (l->bits - 1) : mpsim_sign_bit(f, 1);
    k->no_zero = f->zero == MPSIM_ZERO_NONE;
    k->one_zero = f->zero == MPSIM_ZERO_UNSIGNED;
    k->max_finite = f->max_finite + k->no_zero;
    k->normal = k->no_zero ? 0 : (uint64_t)1 << f->mbits;
    k->flush = r->flush_output && !k->no_zero;
    k->flat_values = l == &lanes32 && emin == l->least_exp && !k->no_zero;
    k->subnormal_values = emin - f->mbits < l->least_exp;
    k->below = zero_up_to(r, k->source) << (l->fraction - (k->source == 8 ? lanes64.fraction : lanes32.fraction));
    k->quiet = k->values && mpsim_cuts_nans(f, r) ? (uint64_t)1 << (l->fraction - 1) : 0;
    if (mpsim_keeps_payloads(f, r)) {
        k->payload_shift = k->values ? 0 : k->drop;
        k->payload = (((uint64_t)1 << f->mbits) - 1) << (k->values ? k->drop : 0);
    }
}

/* Where floating-point operations round as the integers do, without a subnormal number and without an
 * overflow on the way. Products want room below, too, for what they leave. */
static void near(mpsim_cast_constants *k, const mpsim_format *f, const mpsim_rounding *r, int product, const lanes *l)
{
    const int narrow = l == &lanes32, widened = narrow && product; /* products of binary32 are made in binary64 */
    const int rebias = widened ? lanes64.bias - lanes32.bias : 0;
    const int highest = (int)(f->max_finite >> f->mbits) + k->base; /* exponent field of the largest */
    const int safe = highest + 3 + k->drop < l->sums_end && !k->wide && !k->subnormal_values &&
                     k->base - f->mbits > (product ? l->products_begin : l->sums_begin);
    k->near_scale = !narrow || (k->scale & 0xffffffffffu) != 0 ? 0 : safe ? 1 : 2;
    k->near_drop = k->drop + (widened ? lanes64.fraction - lanes32.fraction : 0);
    k->near_base = k->base + rebias;
    k->near_huge = highest + 2 + rebias;
    k->max_value = as_result(k, f, f->max_finite, l);
    k->flush_value = k->flush ? as_result(k, f, k->normal - 1, l) : 0;
    if (!safe || f->mbits == 0 || k->drop <= 0 || k->scale_exp <= lanes32.least_exp || k->scale_exp >= lanes32.bias ||
        k->below)
        return;
    if (r->mode == MPSIM_ROUND_NEAREST_EVEN)
        k->near_sums = !narrow         ? product ? MPSIM_CAST_SUM64_PRODUCT : MPSIM_CAST_SUM64
                       : !product      ? MPSIM_CAST_SUM
                       : k->near_scale ? MPSIM_CAST_NO_SUM
                                       : MPSIM_CAST_SUM_PRODUCT;
    else if (narrow && !product)
        k->near_sums = r->mode == MPSIM_ROUND_TOWARD_ZERO ? MPSIM_CAST_SUM_CUT
                       : r->mode == MPSIM_ROUND_UP        ? MPSIM_CAST_SUM_UP
                       : r->mode == MPSIM_ROUND_DOWN      ? MPSIM_CAST_SUM_DOWN
                                                          : MPSIM_CAST_NO_SUM;
}

/* A cast as far as the choice of its lanes and its loop asks. */
typedef struct shape {
    int product; /* the scale is no power of two                                                                    */
    int random;
    int base; /* in lanes of 32 bits: the exponent field below that of the smallest normal result, not yet limited */
    int flat; /* codes are the leading bits of binary32 there                                                      */
} shape;

/* Whether lanes of 32 bits are too narrow: for the source or the result; for the bits of a product, of which two are for rounding;
 * for a base that shifts cannot reach; for sources that are subnormal and become normal; for a product beside a draw. */
static int needs_64(const shape *s, const mpsim_format *f, int source)
{
    return source == 8 || f->bits > 32 || f->max_finite > INT32_MAX ||
           f->mbits > (s->product ? lanes32.fraction - 2 : lanes32.fraction) || s->base < -200 ||
           (s->base < 0 && f->mbits == lanes32.fraction) || (s->product && s->random);
}

/* The loop of lanes of 32 bits. `usual`: without counts, and nothing unusual. */
static mpsim_cast_loop loop32(const shape *s, const mpsim_rounding *r, int usual)
{
    if (s->product)
        return usual ? MPSIM_CAST_LEAN_PRODUCT : MPSIM_CAST_32_PRODUCT;
    if (!usual)
        return s->flat ? MPSIM_CAST_32_FLAT : MPSIM_CAST_32;
    if (r->mode == MPSIM_ROUND_NEAREST_EVEN)
        return s->flat ? MPSIM_CAST_NEAR_FLAT : MPSIM_CAST_NEAR;
    return s->flat ? MPSIM_CAST_LEAN_FLAT : MPSIM_CAST_LEAN;
}

int mpsim_cast_init(mpsim_cast_constants *k, const mpsim_format *f, const mpsim_rounding *r, int source, int values,
                    int counted)
{
    const mpsim_number scale = mpsim_number_f64(r->scale);
    shape s = {scale.hi != (uint64_t)1 << 63, mpsim_is_stochastic(r->mode), 0, 0};
    s.base = mpsim_emin(f) - scale.exp + lanes32.bias - 1;
    s.flat = s.base == 0 && (!values || scale.exp == 0);
    /* of a product the last bit says only whether there are more; a draw compares 32 of them */
    if (s.product && (f->mbits > lanes64.fraction - 2 || (s.random && f->mbits > lanes64.fraction - 35)))
        return 0;
    const lanes *const l = needs_64(&s, f, source) ? &lanes64 : &lanes32;
    memset(k, 0, sizeof *k);
    k->source = source;
    k->values = values;
    k->bytes = values ? source : (int)mpsim_format_code_bytes(f);
    k->scale = scale.hi;
    k->scale_exp = scale.exp;
    layout(k, f, r, l);
    decision(k, r, l->bits);
    constants(k, f, r, l);
    /* Any subnormal source of 32 bits is far below half of the least number / scale, where that is so large; by 2^32 and more for
     * a draw. */
    k->wide = l == &lanes32 && s.base - f->mbits < (s.random ? 36 : 3);
    const int lean = !counted && !k->is_unsigned && !k->no_zero;
    if (lean && (l == &lanes32 || source == 8))
        near(k, f, r, s.product, l);
    if (l == &lanes64) {
        k->loop = s.product ? MPSIM_CAST_64_PRODUCT : MPSIM_CAST_64;
        return 1;
    }
    k->loop = loop32(&s, r, lean && !(values && k->subnormal_values && !k->flat_values));
    if (!counted && k->is_unsigned && k->no_zero && f->mbits == 0 && s.base == -1 && k->scale_exp == 0 && !s.product &&
        r->mode == MPSIM_ROUND_NEAREST_EVEN)
        k->loop = MPSIM_CAST_POWER;
    k->draws = s.random && (k->loop == MPSIM_CAST_LEAN || k->loop == MPSIM_CAST_LEAN_FLAT);
    if (k->draws && k->half == 0 && !k->even)
        k->random = 2;
    return 1;
}

int mpsim_decoder_init(mpsim_decoder *d, const mpsim_format *f, int wide)
{
    const int emin = mpsim_emin(f), flat = !wide && f->zero != MPSIM_ZERO_NONE && f->bias == 127;
    if (f->bits > 32 || f->mbits > (wide ? 24 : 23) || (emin - f->mbits < (wide ? -1022 : -126) && !flat))
        return 0;
    memset(d, 0, sizeof *d);
    d->bytes = (int)mpsim_format_code_bytes(f);
    d->mbits = f->mbits;
    d->sign_shift = 31 - mpsim_magnitude_bits(f);
    d->exp = emin - f->mbits;
    d->magnitude = (uint32_t)mpsim_magnitude_mask(f);
    d->max_finite = (uint32_t)f->max_finite;
    d->normal = f->zero == MPSIM_ZERO_NONE || flat ? 0 : (uint32_t)1 << f->mbits;
    d->sign = (uint32_t)mpsim_sign_bit(f, 1);
    d->nan = f->nan == MPSIM_NAN_NEGZERO ? d->sign : 0;
    d->infinity = f->inf ? (uint32_t)f->max_finite + 1 : 0;
    d->rebias = wide ? (uint64_t)(1023 - f->bias) << 52 : (uint64_t)((uint32_t)(127 - f->bias) << 23);
    return 1;
}
