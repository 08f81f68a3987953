/* cublas.c -- see cublas.h. The few functions and numbers that are needed are declared here, from
 * cublas_api.h and library_types.h of CUDA 13.0, so that nothing of cuBLAS is needed to build. */
#include "cublas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { OP_N = 0, OP_T = 1, R_32F = 0, R_16F = 2, R_16BF = 14, COMPUTE_32F = 68, ALGO_DEFAULT = -1 };

static int find(void *library, const char *symbol, void *function, size_t bytes)
{
    void *p = dlsym(library, symbol);
    if (!p || bytes != sizeof p)
        return -1;
    memcpy(function, &p, bytes); /* POSIX: a function's address fits */
    return 0;
}

int gpu_cublas_open(gpu_cublas *b, const char *name, char *why, size_t size)
{
    const char *const names[] = {name ? name : "libcublas.so.13", name ? NULL : "libcublas.so.12",
                                 name ? NULL : "/usr/local/cuda/lib64/libcublas.so"};
    int (*create)(void **handle);
    memset(b, 0, sizeof *b);
    for (int i = 0; i < 3 && !b->library && names[i]; i++) {
        b->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        snprintf(b->name, sizeof b->name, "%s", names[i]);
    }
    if (!b->library) {
        snprintf(why, size, "cuBLAS not found");
        return -1;
    }
    if (find(b->library, "cublasCreate_v2", &create, sizeof create) ||
        find(b->library, "cublasDestroy_v2", &b->destroy, sizeof b->destroy) ||
        find(b->library, "cublasGemmEx", &b->gemm_ex, sizeof b->gemm_ex)) {
        snprintf(why, size, "%s lacks a function", b->name);
        gpu_cublas_close(b);
        return -1;
    }
    const int status = create(&b->handle);
    if (status) {
        b->handle = NULL;
        snprintf(why, size, "%s: cublasCreate gives %d", b->name, status);
        gpu_cublas_close(b);
        return -1;
    }
    return 0;
}

void gpu_cublas_close(gpu_cublas *b)
{
    if (b->handle)
        b->destroy(b->handle);
    if (b->library)
        dlclose(b->library);
    memset(b, 0, sizeof *b);
}

/* Columns first there: d^T = b^T a^T. */
int gpu_cublas_gemm(const gpu_cublas *b, int n, int bf16, int b_transposed, const void *a,
                    const void *x, void *d)
{
    const float one = 1, zero = 0;
    const int type = bf16 ? R_16BF : R_16F;
    return b->gemm_ex(b->handle, b_transposed ? OP_T : OP_N, OP_N, n, n, n, &one, x, type, n, a,
                      type, n, &zero, d, R_32F, n, COMPUTE_32F, ALGO_DEFAULT);
}
