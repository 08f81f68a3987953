/* cublas.c -- see cublas.h. The few functions and numbers that are needed are declared here, from
 * cublas_api.h, cublasLt.h and library_types.h of CUDA 13.0, so that nothing of cuBLAS is needed to build. */
#include "cublas.h"

#include <stdio.h>
#include <string.h>

enum {
    OP_N = 0,
    OP_T = 1, /* cublasOperation_t   */
    R_32F = 0,
    R_16F = 2,
    R_16BF = 14,
    R_8F_E4M3 = 28, /* cudaDataType     */
    COMPUTE_32F = 68,
    COMPUTE_32F_FAST_TF32 = 77, /* cublasComputeType_t */
    ALGO_DEFAULT = -1,          /* cublasGemmAlgo_t    */
    DESC_TRANSA = 3,
    DESC_TRANSB = 4,
    DESC_FAST_ACCUM = 25,        /* cublasLtMatmulDescAttributes_t */
    PREF_MAX_WORKSPACE_BYTES = 1 /* cublasLtMatmulPreferenceAttributes_t */
};

/* The functions of an open library, and a handle. 0, or -1 with a line. */
static int begin(const gpu_library *l, size_t n, const char *const *names, void *const *functions,
                 int (**create)(void **), void **handle, char *why, size_t size)
{
    if (gpu_library_functions(l, n, names, functions)) {
        snprintf(why, size, "%.80s lacks a function", l->name);
        return -1;
    }
    const int status = (*create)(handle);
    if (status) {
        *handle = NULL;
        snprintf(why, size, "%.80s: %s gives %d", l->name, names[0], status);
        return -1;
    }
    return 0;
}

/* ---- cuBLAS ---- */

int gpu_cublas_open(gpu_cublas *b, const char *name, char *why, size_t size)
{
    static const char *const names[] = {"cublasCreate_v2", "cublasDestroy_v2", "cublasGemmEx"};
    memset(b, 0, sizeof *b);
    void *const functions[] = {&b->create, &b->destroy, &b->gemm_ex};
    if (gpu_library_open(&b->library, "libcublas", name)) {
        snprintf(why, size, "cuBLAS not found");
        return -1;
    }
    if (begin(&b->library, sizeof names / sizeof *names, names, functions, &b->create, &b->handle, why, size)) {
        gpu_cublas_close(b);
        return -1;
    }
    return 0;
}

void gpu_cublas_close(gpu_cublas *b)
{
    if (b->handle)
        b->destroy(b->handle);
    gpu_library_close(&b->library);
    memset(b, 0, sizeof *b);
}

static const struct {
    const char *format;
    int type, compute;
} operand_types[] = {{"fp16", R_16F, COMPUTE_32F},
                     {"bf16", R_16BF, COMPUTE_32F},
                     {"tf32", R_32F, COMPUTE_32F_FAST_TF32},
                     {"binary32", R_32F, COMPUTE_32F}};

/* Columns first there: d^T = b^T a^T. */
int gpu_cublas_gemm(const gpu_cublas *b, int n, const char *format, int b_transposed, const void *a, const void *x,
                    void *d)
{
    const float one = 1, zero = 0;
    size_t i = 0;
    while (strcmp(operand_types[i].format, format) != 0)
        if (++i == sizeof operand_types / sizeof *operand_types)
            return GPU_CUBLAS_NOT_SUPPORTED;
    const int type = operand_types[i].type;
    return b->gemm_ex(b->handle, b_transposed ? OP_T : OP_N, OP_N, n, n, n, &one, x, type, n, a, type, n, &zero, d,
                      R_32F, n, operand_types[i].compute, ALGO_DEFAULT);
}

/* ---- cublasLt ---- */

int gpu_cublaslt_open(gpu_cublaslt *b, const char *name, char *why, size_t size)
{
    static const char *const names[] = {"cublasLtCreate",
                                        "cublasLtDestroy",
                                        "cublasLtMatmulDescCreate",
                                        "cublasLtMatmulDescSetAttribute",
                                        "cublasLtMatmulDescDestroy",
                                        "cublasLtMatrixLayoutCreate",
                                        "cublasLtMatrixLayoutDestroy",
                                        "cublasLtMatmulPreferenceCreate",
                                        "cublasLtMatmulPreferenceSetAttribute",
                                        "cublasLtMatmulPreferenceDestroy",
                                        "cublasLtMatmulAlgoGetHeuristic",
                                        "cublasLtMatmul"};
    memset(b, 0, sizeof *b);
    void *const functions[] = {
        &b->create,        &b->destroy,        &b->operation_create,  &b->operation_set,  &b->operation_destroy,
        &b->matrix_create, &b->matrix_destroy, &b->preference_create, &b->preference_set, &b->preference_destroy,
        &b->heuristic,     &b->matmul};
    if (gpu_library_open(&b->library, "libcublasLt", name)) {
        snprintf(why, size, "cublasLt not found");
        return -1;
    }
    if (begin(&b->library, sizeof names / sizeof *names, names, functions, &b->create, &b->handle, why, size)) {
        gpu_cublaslt_close(b);
        return -1;
    }
    return 0;
}

void gpu_cublaslt_close(gpu_cublaslt *b)
{
    if (b->preference)
        b->preference_destroy(b->preference);
    if (b->result)
        b->matrix_destroy(b->result);
    if (b->matrix)
        b->matrix_destroy(b->matrix);
    if (b->operation)
        b->operation_destroy(b->operation);
    if (b->handle)
        b->destroy(b->handle);
    gpu_library_close(&b->library);
    memset(b, 0, sizeof *b);
}

/* Columns first there, and FP8 only as (transposed) times (not): d^T = (b^T)^T^T a^T, where b^T, read by
 * columns, is what is given row by row. */
int gpu_cublaslt_prepare(gpu_cublaslt *b, int n, int fast_accumulation)
{
    const int32_t first = OP_T, second = OP_N;
    const int8_t fast = fast_accumulation != 0;
    const uint64_t most = GPU_CUBLASLT_WORKSPACE, size = (uint64_t)n;
    int count = 0, status = b->operation_create(&b->operation, COMPUTE_32F, R_32F);
    if (!status)
        status = b->operation_set(b->operation, DESC_TRANSA, &first, sizeof first);
    if (!status)
        status = b->operation_set(b->operation, DESC_TRANSB, &second, sizeof second);
    if (!status)
        status = b->operation_set(b->operation, DESC_FAST_ACCUM, &fast, sizeof fast);
    if (!status)
        status = b->matrix_create(&b->matrix, R_8F_E4M3, size, size, n);
    if (!status)
        status = b->matrix_create(&b->result, R_32F, size, size, n);
    if (!status)
        status = b->preference_create(&b->preference);
    if (!status)
        status = b->preference_set(b->preference, PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
    if (!status)
        status = b->heuristic(b->handle, b->operation, b->matrix, b->matrix, b->result, b->result, b->preference, 1,
                              &b->best, &count);
    if (!status)
        status = count > 0 ? b->best.status : GPU_CUBLAS_NOT_SUPPORTED;
    return status;
}

int gpu_cublaslt_gemm(const gpu_cublaslt *b, const void *a, const void *b_transposed, void *d, void *workspace)
{
    const float one = 1, zero = 0;
    return b->matmul(b->handle, b->operation, &one, b_transposed, b->matrix, a, b->matrix, &zero, d, b->result, d,
                     b->result, b->best.algorithm, workspace, b->best.workspace, NULL);
}
