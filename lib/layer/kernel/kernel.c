/* kernel.c -- which kernels run; see kernel.h. */
#include "config.h"

#include "kernel.h"

#include "../../base/isa.h"
#include "../functions.h"

#define LOOP(name)                                               \
    static void array_##name(float *y, const float *x, size_t n) \
    {                                                            \
        for (size_t i = 0; i < n; i++)                           \
            y[i] = mpsim_##name##_f32(x[i]);                     \
    }
LOOP(exp)
LOOP(exp2)
LOOP(tanh)
LOOP(erf)
LOOP(sigmoid)
LOOP(log)
LOOP(cos)
#undef LOOP

static mpsim_number_counts count(const float *x, size_t n)
{
    mpsim_number_counts c = {0, 0};
    for (size_t i = 0; i < n; i++) {
        const uint32_t m = mpsim_bits_f32(x[i]) & 0x7fffffffu;
        c.finite += m < 0x7f800000u;
        c.nonzero += m < 0x7f800000u && m > 0;
    }
    return c;
}

static const mpsim_layer_kernels scalar = {array_exp,     array_exp2, array_tanh, array_erf,
                                           array_sigmoid, array_log,  array_cos,  count};

static const mpsim_layer_kernels *const kernels[MPSIM_ISAS] = {
    [MPSIM_ISA_SCALAR] = &scalar,
    [MPSIM_ISA_GENERIC] = &scalar,
    [MPSIM_ISA_NEON] = &scalar,
#ifdef HAVE_AVX2
    [MPSIM_ISA_AVX2] = &mpsim_layer_kernels_avx2,
#endif
#ifdef HAVE_AVX512
    [MPSIM_ISA_AVX512] = &mpsim_layer_kernels_avx512,
#endif
};

const mpsim_layer_kernels *mpsim_layer_kernels_active(void)
{
    return kernels[mpsim_isa_choice()];
}
