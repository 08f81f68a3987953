/* groups.c -- see groups.h. */
#include "config.h"

#include "impl.h"

#include <stdio.h>

#ifndef HAVE_MPFR
int verify_mpfr_here(const verify *v, char *text, size_t size)
{
    (void)v;
    snprintf(text, size, "built without MPFR");
    return 0;
}
#define verify_mpfr NULL
#endif

#ifndef HAVE_CUDA_HEADERS
int verify_nvidia_here(const verify *v, char *text, size_t size)
{
    (void)v;
    snprintf(text, size, "built without NVIDIA's headers");
    return 0;
}
#define verify_nvidia NULL
#endif

const verify_group verify_groups[] = {
    {"mpfr", "casts, arithmetic, dot products", "MPFR when built", verify_mpfr_here, verify_mpfr},
    {"nvidia", "casts to and from fp8, fp6, fp4, e8m0", "NVIDIA's headers when built", verify_nvidia_here,
     verify_nvidia},
    {"cpu", "instructions of this CPU", "a CPU that has them", verify_cpu_here, verify_cpu},
    {"vectors", "models of tensor cores", "outputs of a GPU: --vectors", verify_vectors_here, verify_vectors},
    {"gpu", "casts, arithmetic, tensor cores", "CUDA when built, a GPU", verify_gpu_here, verify_gpu},
    {NULL, NULL, NULL, NULL, NULL},
};
