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

static void round_numbers(const mpsim_math *m, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = mpsim_math_round(m, x[i]);
}

static const mpsim_layer_kernels scalar = {
    .exp = array_exp,
    .exp2 = array_exp2,
    .tanh = array_tanh,
    .erf = array_erf,
    .sigmoid = array_sigmoid,
    .normal = mpsim_normal_plain,
    .count = count,
    .round = round_numbers,
    .activate = mpsim_activate_plain,
    .activate_back = mpsim_activate_back_plain,
    .softmax = {mpsim_softmax_p_plain, mpsim_softmax_log_plain, mpsim_softmax_back_plain, mpsim_softmax_log_back_plain},
    .xent = mpsim_xent_plain,
    .norm = mpsim_norm_plain,
    .norm_back = mpsim_norm_back_plain,
    .columns = mpsim_columns_plain,
    .channels = mpsim_channels_plain,
    .channels_back = mpsim_channels_back_plain,
    .elements = {mpsim_add_plain, mpsim_multiply_plain, mpsim_drop_plain},
};

static const mpsim_layer_kernels *const kernels[MPSIM_ISAS] = {
    [MPSIM_ISA_SCALAR] = &scalar,
    [MPSIM_ISA_GENERIC] = &scalar,
#ifdef HAVE_NEON
    [MPSIM_ISA_NEON] = &mpsim_layer_kernels_neon,
#endif
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
