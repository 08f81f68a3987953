/* host_faults.h -- kernels that fault or hang on a CPU, for tests of what becomes of those around them:
 *
 *   MPSIM_TEST_KERNEL="fault NAME"   every launch of a kernel whose name holds NAME leaves an error that stays,
 *                                    as an illegal address does: no call of the process succeeds any more
 *   MPSIM_TEST_KERNEL="hang NAME"    it never ends
 *   MPSIM_TEST_KERNEL="wrong NAME"   its results are wrong: played instructions only (device_host.cc)
 *
 * A name is the one of the launch, and the symbol's, with its template arguments, in a program that is
 * linked with -rdynamic. */
#pragma once

#include <cxxabi.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "name gemm_fma_kernel<1>(gpu_job)" */
inline void gpu_host_name(const char *name, const void *kernel, char *to, size_t size)
{
    Dl_info at;
    const int found = kernel && dladdr(kernel, &at) && at.dli_sname;
    char *plain = found ? abi::__cxa_demangle(at.dli_sname, nullptr, nullptr, nullptr) : nullptr;
    snprintf(to, size, "%s %s", name, plain ? plain : "");
    free(plain);
}

/* Whether the tests want this of that kernel. */
inline int gpu_host_wants(const char *what, const char *name, const void *kernel)
{
    static const char *const wanted = getenv("MPSIM_TEST_KERNEL");
    char whole[512];
    const size_t n = strlen(what);
    if (!wanted || strncmp(wanted, what, n) != 0 || wanted[n] != ' ')
        return 0;
    gpu_host_name(name, kernel, whole, sizeof whole);
    return strstr(whole, wanted + n + 1) != nullptr;
}

/* 1: it faults. */
inline int gpu_host_faults(const char *name, const void *kernel)
{
    while (gpu_host_wants("hang", name, kernel))
        pause();
    return gpu_host_wants("fault", name, kernel);
}
