/* kernel.c -- which kernels run; see kernel.h. */
#include "config.h"

#include "kernel.h"

#include "../../base/isa.h"

static const mpsim_optim_kernels *const kernels[MPSIM_ISAS] = {
    [MPSIM_ISA_GENERIC] = &mpsim_optim_kernels_generic,
    [MPSIM_ISA_NEON] = &mpsim_optim_kernels_generic,
#ifdef HAVE_AVX2
    [MPSIM_ISA_AVX2] = &mpsim_optim_kernels_avx2,
#endif
#ifdef HAVE_AVX512
    [MPSIM_ISA_AVX512] = &mpsim_optim_kernels_avx512,
#endif
};

const mpsim_optim_kernels *mpsim_optim_kernels_active(void) { return kernels[mpsim_isa_choice()]; }
