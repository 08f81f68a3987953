/* cublas.h -- cuBLAS and cublasLt, found at run time (library.h), as measures of speed. Their order of
 * additions is not published, so their bits are no oracle. */
#pragma once

#include "library.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Statuses of both libraries that say that they do not do this, here. */
enum { GPU_CUBLAS_ARCH_MISMATCH = 8, GPU_CUBLAS_NOT_SUPPORTED = 15 };

/* ---- cuBLAS ---- */

typedef struct gpu_cublas {
    gpu_library library;
    void *handle;
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*gemm_ex)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a,
                   int lda, const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc,
                   int compute, int algorithm);
} gpu_cublas;

/* gpu_cublas_open -- 0, or -1 with one line in `why`: not found, or no context. `name`: see gpu_library_open. */
int gpu_cublas_open(gpu_cublas *b, const char *name, char *why, size_t size);
void gpu_cublas_close(gpu_cublas *b);

/* gpu_cublas_gemm -- d = a b, row-major, n x n each; a and b in a format ("fp16", "bf16", "tf32", whose numbers are
 * those of binary32 words, "binary32"), b as it is or transposed, d in binary32. 0, or a status of cuBLAS. */
int gpu_cublas_gemm(const gpu_cublas *b, int n, const char *format, int b_transposed, const void *a, const void *x,
                    void *d);

/* ---- cublasLt: products of e4m3 ---- */

typedef struct gpu_cublaslt_algorithm { /* what the library's heuristic answers */
    uint64_t algorithm[8];
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
} gpu_cublaslt_algorithm;

typedef struct gpu_cublaslt {
    gpu_library library;
    void *handle, *operation, *matrix, *result, *preference; /* matrix: of both operands */
    gpu_cublaslt_algorithm best;
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*operation_create)(void **operation, int compute, int scale_type);
    int (*operation_set)(void *operation, int attribute, const void *value, size_t bytes);
    int (*operation_destroy)(void *operation);
    int (*matrix_create)(void **matrix, int type, uint64_t rows, uint64_t columns, int64_t stride);
    int (*matrix_destroy)(void *matrix);
    int (*preference_create)(void **preference);
    int (*preference_set)(void *preference, int attribute, const void *value, size_t bytes);
    int (*preference_destroy)(void *preference);
    int (*heuristic)(void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference, int wanted,
                     gpu_cublaslt_algorithm *found, int *count);
    int (*matmul)(void *handle, void *operation, const void *alpha, const void *a, void *a_matrix, const void *b,
                  void *b_matrix, const void *beta, const void *c, void *c_matrix, void *d, void *d_matrix,
                  const uint64_t *algorithm, void *workspace, size_t bytes, void *stream);
} gpu_cublaslt;

enum { GPU_CUBLASLT_WORKSPACE = 32 << 20 };

/* gpu_cublaslt_open -- 0, or -1 with one line in `why`. */
int gpu_cublaslt_open(gpu_cublaslt *b, const char *name, char *why, size_t size);
void gpu_cublaslt_close(gpu_cublaslt *b);

/* gpu_cublaslt_prepare -- for products of n x n: all scales 1, fast accumulation or not. 0, or a status. Once
 * for an open library. */
int gpu_cublaslt_prepare(gpu_cublaslt *b, int n, int fast_accumulation);

/* gpu_cublaslt_gemm -- d = a b, row-major; a and b transposed in e4m3, d in binary32; workspace: of
 * GPU_CUBLASLT_WORKSPACE bytes. 0, or a status. */
int gpu_cublaslt_gemm(const gpu_cublaslt *b, const void *a, const void *b_transposed, void *d, void *workspace);

#ifdef __cplusplus
}
#endif
