/* kernel.c -- preparing the functions of kernel.h. */
#include "config.h"

#include "kernel.h"

#include "../../base/isa.h"

static const mpsim_block_functions *const functions[MPSIM_ISAS] = {
    [MPSIM_ISA_GENERIC] = &mpsim_block_generic,
#ifdef HAVE_NEON
    [MPSIM_ISA_NEON] = &mpsim_block_neon,
#endif
#ifdef HAVE_AVX2
    [MPSIM_ISA_AVX2] = &mpsim_block_avx2,
#endif
#ifdef HAVE_AVX512
    [MPSIM_ISA_AVX512] = &mpsim_block_avx512,
#endif
};

const mpsim_block_functions *mpsim_block_functions_active(void)
{
    return functions[mpsim_isa_choice()];
}

/* 2^e, a normal number. */
static uint32_t power_of_two(int e)
{
    return (uint32_t)(e + 127) << 23;
}

/* The bits of the least magnitude that saturates, by halving what is above
 * the largest number. */
static uint32_t least_saturating(const mpsim_block_work *w, uint32_t sign)
{
    uint32_t low = mpsim_bits_f32(w->decoded[w->f->max_finite]), high = 0x7f800000u;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        unsigned flags = 0;
        (void)mpsim_encode_f32(w->f, &w->rounding, mpsim_f32_bits(sign | middle), 0, &flags);
        if (flags & MPSIM_FLAG_OVERFLOW)
            high = middle;
        else
            low = middle;
    }
    return high;
}

static void init_nans(mpsim_block_kernel *k, const mpsim_block_work *w)
{
    unsigned flags;
    k->torch = w->rule->cast == MPSIM_CAST_TORCH && w->f->nan == MPSIM_NAN_NONE ? w->f : NULL;
    k->decoded = w->decoded;
    for (uint32_t sign = 0; sign < 2; sign++)
        k->nan_codes[sign] = w->fp4_grid ? 7
                                         : (uint32_t)mpsim_encode_f32(
                                               w->f, &w->rounding, mpsim_f32_bits(sign << 31 | 0x7fc00000u), 0, &flags);
}

mpsim_block_cast_function *mpsim_block_kernel_init(mpsim_block_kernel *k, const mpsim_block_work *w,
                                                   mpsim_block_errors_function **errors)
{
    const mpsim_block_functions *active = mpsim_block_functions_active();
    const mpsim_format *f = w->f;
    const int emin = mpsim_emin(f), emax = (int)(f->max_finite >> f->mbits) - f->bias;
    *errors = NULL;
    if (!active || w->out->casts || f->zero == MPSIM_ZERO_NONE || emin - f->mbits < -80 || emax > 80 ||
        (mpsim_is_stochastic(w->rounding.mode) && !w->fp4_grid))
        return NULL;
    unsigned flags;
    mpsim_number nan = mpsim_number_make(0, 0, 0);
    nan.kind = MPSIM_NUMBER_NAN;
    k->grid.max = mpsim_bits_f32(w->decoded[f->max_finite]);
    k->grid.normal = power_of_two(emin);
    k->grid.drop = 23u - f->mbits;
    k->grid.rebias = (uint32_t)(emin - 1 + 127) << f->mbits;
    k->grid.lift = (k->grid.drop << 23) + (-(k->grid.normal >> k->grid.drop) & 0xff);
    k->grid.unit = power_of_two(emin - f->mbits);
    k->sign_bit = (uint32_t)mpsim_sign_bit(f, 1);
    k->sign_shift = 32u - f->bits;
    k->one_zero = f->zero == MPSIM_ZERO_UNSIGNED;
    k->nan_code = (uint32_t)mpsim_scalar_encode(f, &w->rounding, w->rounding.mode, nan, 0, &flags);
    k->nan_value = mpsim_bits_f32(w->decoded[k->nan_code]);
    init_nans(k, w);
    k->mode = w->rounding.mode;
    k->dequantize = w->rule->dequantize;
    k->divides = w->rule->divides;
    k->microx = w->rule->cast == MPSIM_CAST_MICROX;
    k->below_half = w->below_half;
    for (uint32_t sign = 0; sign < 2; sign++)
        k->over[sign] = (w->out->counts || w->out->stats) && !w->fp4_grid ? least_saturating(w, sign << 31) : 0;
    if (w->out->stats)
        *errors = w->fp4_grid ? active->errors_fp4_grid : active->errors[w->rounding.mode];
    return w->fp4_grid ? active->fp4_grid : active->cast[w->rounding.mode];
}
