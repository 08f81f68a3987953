/* kernel.c -- instruction sets, and preparing a kernel; see kernel.h and mpsim/isa.h. */
#include "config.h"

#include "kernel.h"

#include <mpsim/isa.h>
#include <stdatomic.h>

/* ---- instruction sets, best first ---- */

typedef struct isa {
    const char *name;
    mpsim_kernel_function *run;
    int (*available)(void);
} isa;

#ifdef HAVE_AVX512
static int has_avx512(void)
{
    /* __builtin_cpu_supports also asks whether the operating system saves the registers */
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#endif

#ifdef HAVE_AVX2
static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
#endif

static int always(void)
{
    return 1;
}

static const isa isas[] = {
#ifdef HAVE_AVX512
    {"avx512", mpsim_kernel_avx512, has_avx512},
#endif
#ifdef HAVE_AVX2
    {"avx2", mpsim_kernel_avx2, has_avx2},
#endif
    {"generic", NULL, always},
};
enum { ISAS = sizeof isas / sizeof isas[0] };

static atomic_int active = -1; /* -1: not chosen yet */

static int choose(void)
{
    int i = atomic_load_explicit(&active, memory_order_relaxed);
    if (i < 0) {
        for (i = 0; !isas[i].available(); i++)
            ;
        atomic_store_explicit(&active, i, memory_order_relaxed);
    }
    return i;
}

const char *mpsim_isa_at(size_t i)
{
    return i < ISAS ? isas[i].name : NULL;
}

const char *mpsim_isa_active(void)
{
    return isas[choose()].name;
}

mpsim_status mpsim_isa_use(const char *name)
{
    if (!name)
        return MPSIM_EINVAL;
    for (int i = 0; i < ISAS; i++)
        if (strcmp(isas[i].name, name) == 0) {
            if (!isas[i].available())
                return MPSIM_EUNAVAILABLE;
            atomic_store_explicit(&active, i, memory_order_relaxed);
            return MPSIM_OK;
        }
    return MPSIM_ENOTFOUND;
}

/* ---- kernels ---- */

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
    return isas[choose()].run;
}
