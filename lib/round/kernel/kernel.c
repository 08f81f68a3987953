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

/* A code as a result: itself, or the bits of its value. */
static uint64_t as_result(const mpsim_cast_constants *k, const mpsim_format *f, uint64_t code, int wide)
{
    if (!k->values)
        return code;
    const double value = mpsim_scalar_decode(f, code);
    if (wide)
        return mpsim_bits_f64(value);
    return mpsim_bits_f32(mpsim_number_to_f32(mpsim_number_f64(value)));
}

/* The results that are constants, from the reference. */
static void constants(mpsim_cast_constants *k, const mpsim_format *f, const mpsim_rounding *r, int wide)
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
        k->zero[sign] = as_result(k, f, mpsim_scalar_encode(f, r, r->mode, zero, 0, &flags), wide);
        k->small[sign] = as_result(k, f, small, wide);
        k->over[sign] = as_result(k, f, mpsim_scalar_encode(f, r, r->mode, huge, 0, &flags), wide);
        k->infinite[sign] = as_result(k, f, mpsim_scalar_encode(f, r, r->mode, infinite, 0, &flags), wide);
        const uint64_t nan = mpsim_cuts_nans(f, r) ? (f->max_finite + 1) | mpsim_sign_bit(f, sign)
                                                   : mpsim_scalar_nan(f, r, sign, 0);
        k->nan[sign] = as_result(k, f, nan, wide);
    }
    mpsim_scalar_encode(f, r, r->mode, mpsim_number_make(0, 0, 0), 0, &k->zero_flags);
    k->over_by_sign = k->over[1] != (k->over[0] | k->sign_bit) || (k->over[0] & k->sign_bit) != 0;
    k->negative = as_result(k, f, mpsim_scalar_negative(f, r), wide);
    k->least = as_result(k, f, f->zero == MPSIM_ZERO_NONE ? 0 : 1, wide);
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

/* What is the same in lanes of 32 and of 64 bits. */
static void layout(mpsim_cast_constants *k, const mpsim_format *f, const mpsim_rounding *r, int wide)
{
    const int fraction = wide ? 52 : 23, bias = wide ? 1023 : 127, lane = wide ? 64 : 32;
    const int top = wide ? 2046 : 254; /* no source needs a larger base */
    const int emin = mpsim_emin(f);
    k->drop = fraction - f->mbits;
    k->base = emin - k->scale_exp + bias - 1;
    k->drop_base = k->drop + k->base;
    k->base = k->base < top ? k->base : top;
    k->is_unsigned = !mpsim_has_sign(f);
    k->sign = k->is_unsigned && r->negative == MPSIM_NEGATIVE_ABS ? 0 : (uint64_t)1 << (lane - 1);
    k->sign_shift = k->values || k->is_unsigned ? 0 : lane - 1 - mpsim_magnitude_bits(f);
    k->sign_bit = k->is_unsigned ? 0 : k->values ? (uint64_t)1 << (lane - 1) : mpsim_sign_bit(f, 1);
    k->no_zero = f->zero == MPSIM_ZERO_NONE;
    k->one_zero = f->zero == MPSIM_ZERO_UNSIGNED;
    k->max_finite = f->max_finite + k->no_zero;
    k->normal = k->no_zero ? 0 : (uint64_t)1 << f->mbits;
    k->flush = r->flush_output && !k->no_zero;
    k->flat_values = !wide && emin == -126 && !k->no_zero;
    k->subnormal_values = emin - f->mbits < (wide ? -1022 : -126);
    k->below = zero_up_to(r, k->source) << (wide && k->source == 4 ? 29 : 0);
    k->quiet = k->values && mpsim_cuts_nans(f, r) ? (uint64_t)1 << (fraction - 1) : 0;
    if (mpsim_keeps_payloads(f, r)) {
        k->payload_shift = k->values ? 0 : k->drop;
        k->payload = (((uint64_t)1 << f->mbits) - 1) << (k->values ? k->drop : 0);
    }
}

/* Where floating-point operations round as the integers do, without a subnormal number and without an
 * overflow on the way. Products want room below, too, for what they leave. */
static void near(mpsim_cast_constants *k, const mpsim_format *f, const mpsim_rounding *r, int product, int wide)
{
    const int up = !wide && product ? 29 : 0, rebias = !wide && product ? 1023 - 127 : 0;
    const int highest = (int)(f->max_finite >> f->mbits) + k->base; /* exponent field of the largest */
    const int room = wide ? 2000 : 250, below = k->base - f->mbits;
    const int safe = highest + 3 + k->drop < room && !k->wide && !k->subnormal_values &&
                     below > (product ? wide ? 200 : 60 : 3);
    k->near_scale = wide || (k->scale & 0xffffffffffu) != 0 ? 0 : safe ? 1 : 2;
    k->near_drop = k->drop + up;
    k->near_base = k->base + rebias;
    k->near_huge = highest + 2 + rebias;
    k->max_value = as_result(k, f, f->max_finite, wide);
    k->flush_value = k->flush ? as_result(k, f, k->normal - 1, wide) : 0;
    if (!safe || f->mbits == 0 || k->drop <= 0 || k->scale_exp <= -126 || k->scale_exp >= 127 || k->below)
        return;
    if (r->mode == MPSIM_ROUND_NEAREST_EVEN)
        k->near_sums = wide            ? product ? MPSIM_CAST_SUM64_PRODUCT : MPSIM_CAST_SUM64
                       : !product      ? MPSIM_CAST_SUM
                       : k->near_scale ? MPSIM_CAST_NO_SUM
                                       : MPSIM_CAST_SUM_PRODUCT;
    else if (!wide && !product)
        k->near_sums = r->mode == MPSIM_ROUND_TOWARD_ZERO ? MPSIM_CAST_SUM_CUT
                       : r->mode == MPSIM_ROUND_UP        ? MPSIM_CAST_SUM_UP
                       : r->mode == MPSIM_ROUND_DOWN      ? MPSIM_CAST_SUM_DOWN
                                                          : MPSIM_CAST_NO_SUM;
}

int mpsim_cast_init(mpsim_cast_constants *k, const mpsim_format *f, const mpsim_rounding *r, int source, int values,
                    int counted)
{
    const mpsim_number scale = mpsim_number_f64(r->scale);
    const int product = scale.hi != (uint64_t)1 << 63, random = mpsim_is_stochastic(r->mode);
    const int base = mpsim_emin(f) - scale.exp + 126; /* in lanes of 32 bits */
    const int flat = base == 0 && (!values || scale.exp == 0);
    const int wide = source == 8 || f->bits > 32 || f->max_finite > INT32_MAX || f->mbits > (product ? 21 : 23) ||
                     base < -200 || (base < 0 && f->mbits == 23) || (product && random);
    /* of a product the last bit says only whether there are more */
    if (product && (f->mbits > 50 || (random && f->mbits > 17)))
        return 0;
    memset(k, 0, sizeof *k);
    k->source = source;
    k->values = values;
    k->bytes = values ? source : (int)mpsim_format_code_bytes(f);
    k->scale = scale.hi;
    k->scale_exp = scale.exp;
    layout(k, f, r, wide);
    decision(k, r, wide ? 64 : 32);
    constants(k, f, r, wide);
    const int lean = !counted && !k->is_unsigned && !k->no_zero;
    if (wide) {
        if (lean && source == 8)
            near(k, f, r, product, 1);
        k->loop = product ? MPSIM_CAST_64_PRODUCT : MPSIM_CAST_64;
        return 1;
    }
    /* Any subnormal source is far below half of the least number / scale, where that is so large; by
     * 2^32 and more for a draw. */
    k->wide = base - f->mbits < (random ? 36 : 3);
    if (lean)
        near(k, f, r, product, 0);
    const int usual = lean && !(values && k->subnormal_values && !k->flat_values);
    if (product)
        k->loop = usual ? MPSIM_CAST_LEAN_PRODUCT : MPSIM_CAST_32_PRODUCT;
    else if (usual && r->mode == MPSIM_ROUND_NEAREST_EVEN)
        k->loop = flat ? MPSIM_CAST_NEAR_FLAT : MPSIM_CAST_NEAR;
    else if (usual)
        k->loop = flat ? MPSIM_CAST_LEAN_FLAT : MPSIM_CAST_LEAN;
    else if (!counted && k->is_unsigned && k->no_zero && f->mbits == 0 && base == -1 && k->scale_exp == 0 &&
             r->mode == MPSIM_ROUND_NEAREST_EVEN)
        k->loop = MPSIM_CAST_POWER;
    else
        k->loop = flat ? MPSIM_CAST_32_FLAT : MPSIM_CAST_32;
    k->draws = random && (k->loop == MPSIM_CAST_LEAN || k->loop == MPSIM_CAST_LEAN_FLAT);
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
    d->rebias = wide ? (uint64_t)(1023 - f->bias) << 52 : (uint64_t)((uint32_t)(127 - f->bias) << 23);
    return 1;
}
