/* kernel.c -- preparing a kernel; see kernel.h. */
#include "config.h"

#include "kernel.h"

#include "../../base/isa.h"

static mpsim_kernel_function *const runs[MPSIM_ISAS] = { /* NULL: the reference does everything */
#ifdef HAVE_AVX2
    [MPSIM_ISA_AVX2] = mpsim_kernel_avx2,
#endif
#ifdef HAVE_AVX512
    [MPSIM_ISA_AVX512] = mpsim_kernel_avx512,
#endif
};

mpsim_kernel_function *mpsim_kernel_init(mpsim_kernel *k, const mpsim_format *f,
                                         const mpsim_rounding *r, int values)
{
    const mpsim_number scale = mpsim_number_f64(r->scale);
    /* a drop of 0 bits has no half; other scales need a wide product; subnormal inputs are left
     * to the reference anyway, but flush_below may reach higher */
    if (f->mbits > 51 || f->zero == MPSIM_ZERO_NONE || scale.hi != (uint64_t)1 << 63 ||
        (r->flush_input && mpsim_number_f64(r->flush_below).hi != 0))
        return NULL;
    if (values && mpsim_emin(f) - f->mbits < -1022) /* values must be normal binary64 numbers */
        return NULL;
    k->mode = r->mode;
    k->values = values;
    k->least = mpsim_bits_f64(mpsim_format_min_positive(f));
    k->sr_bits = r->sr_bits;
    k->emin = mpsim_emin(f);
    k->mbits = f->mbits;
    k->scale_exp = scale.exp;
    k->is_unsigned = !mpsim_has_sign(f);
    k->sign_shift = k->is_unsigned ? 63 : mpsim_magnitude_bits(f);
    k->flush = r->flush_output;
    k->max_finite = f->max_finite;
    for (int sign = 0; sign < 2; sign++) {
        unsigned flags;
        const mpsim_number huge = mpsim_number_make(sign, 1, 4000);
        k->overflow[sign] = mpsim_scalar_encode(f, r, r->mode, huge, 0, &flags);
        k->zero[sign] = mpsim_scalar_zero(f, sign);
        if (values) {
            k->overflow[sign] = mpsim_bits_f64(mpsim_scalar_decode(f, k->overflow[sign]));
            k->zero[sign] = mpsim_bits_f64(mpsim_scalar_decode(f, k->zero[sign]));
        }
    }
    return runs[mpsim_isa_choice()];
}
