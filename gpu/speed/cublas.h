/* cublas.h -- cuBLAS, found at run time, as a measure of speed. Its order of additions is not
 * published, so its bits are no oracle. */
#ifndef MPSIM_GPU_SPEED_CUBLAS_H
#define MPSIM_GPU_SPEED_CUBLAS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpu_cublas {
    void *library, *handle;
    int (*destroy)(void *handle);
    int (*gemm_ex)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                   const void *a, int type_a, int lda, const void *b, int type_b, int ldb,
                   const void *beta, void *c, int type_c, int ldc, int compute, int algorithm);
    char name[256]; /* the file of the library that was found */
} gpu_cublas;

/* gpu_cublas_open -- 0, or -1 with one line in `why`: not found, or no context. `name`: the
 * library's, or NULL: libcublas.so.13 or .12 below CUDA_HOME, CUDA_PATH, VIRTUAL_ENV, CONDA_PREFIX, on
 * the loader's search path, in the toolkit of the nvcc on PATH, in /usr/local/cuda*, /opt/cuda*, among
 * the system's Python packages. */
int gpu_cublas_open(gpu_cublas *b, const char *name, char *why, size_t size);
void gpu_cublas_close(gpu_cublas *b);

/* gpu_cublas_gemm -- d = a b, row-major, n x n each; a and b in fp16 (bf16: 1), b as it is or
 * transposed, d in binary32. 0, or a status of cuBLAS. */
int gpu_cublas_gemm(const gpu_cublas *b, int n, int bf16, int b_transposed, const void *a,
                    const void *x, void *d);

#ifdef __cplusplus
}
#endif

#endif
