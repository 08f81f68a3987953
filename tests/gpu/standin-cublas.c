/* standin-cublas.c -- what tests/gpu/libraries.sh takes for libcublas and libcublasLt: products as NVIDIA's
 * documentation has them (matrices column by column, FP8 only as transposed times not transposed), summed in
 * binary64, on memory that is the CPU's. STANDIN_STATUS=N: the product of e4m3 is refused with that status.
 * Fast accumulation is made visible: its results are larger by 2^-8. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static double number(int code, int exponent_bits, int fraction_bits)
{
    const int bias = (1 << (exponent_bits - 1)) - 1, field = code >> fraction_bits & ((1 << exponent_bits) - 1);
    const int fraction = code & ((1 << fraction_bits) - 1), sign = code >> (exponent_bits + fraction_bits);
    const double one = ldexp(1, fraction_bits);
    const double x = field ? ldexp(1 + fraction / one, field - bias) : ldexp(fraction / one, 1 - bias);
    return sign ? -x : x;
}

static double element(const void *x, int type, int64_t i)
{
    uint16_t wide;
    uint8_t narrow;
    if (type == 28) { /* CUDA_R_8F_E4M3 */
        memcpy(&narrow, (const char *)x + i, 1);
        return number(narrow, 4, 3);
    }
    if (type == 0) { /* CUDA_R_32F */
        float y;
        memcpy(&y, (const char *)x + 4 * i, 4);
        return (double)y;
    }
    memcpy(&wide, (const char *)x + 2 * i, 2);
    return type == 2 ? number(wide, 5, 10) : number(wide, 8, 7); /* CUDA_R_16F, CUDA_R_16BF */
}

/* c = op(a) op(b), all column by column. */
static void multiply(const void *a, int across_a, int64_t lda, const void *b, int across_b, int64_t ldb, int type,
                     float *c, int64_t ldc, int n, double factor)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double s = 0;
            for (int k = 0; k < n; k++)
                s += element(a, type, across_a ? k + i * lda : i + k * lda) *
                     element(b, type, across_b ? j + k * ldb : k + j * ldb);
            c[i + j * ldc] = (float)(s * factor);
        }
}

/* ---- libcublas ---- */

int cublasCreate_v2(void **handle)
{
    *handle = handle;
    return 0;
}

int cublasDestroy_v2(void *handle)
{
    (void)handle;
    return 0;
}

int cublasGemmEx(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a,
                 int lda, const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc,
                 int compute, int algorithm)
{
    (void)handle, (void)alpha, (void)beta, (void)algorithm;
    if (m != n || n != k || type_a != type_b || type_c != 0 || (compute != 68 && (compute != 77 || type_a != 0)))
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    multiply(a, op_a, lda, b, op_b, ldb, type_a, (float *)c, ldc, n, 1);
    return 0;
}

/* ---- libcublasLt ---- */

struct operation {
    int32_t across_a, across_b;
    int8_t fast;
};

struct matrix {
    int type;
    int64_t n;
};

int cublasLtCreate(void **handle)
{
    *handle = handle;
    return 0;
}

int cublasLtDestroy(void *handle)
{
    (void)handle;
    return 0;
}

int cublasLtMatmulDescCreate(void **to, int compute, int scale_type)
{
    *to = calloc(1, sizeof(struct operation));
    return compute == 68 && scale_type == 0 ? 0 : 7;
}

int cublasLtMatmulDescSetAttribute(void *to, int attribute, const void *value, size_t bytes)
{
    struct operation *o = (struct operation *)to;
    void *const at = attribute == 3 ? (void *)&o->across_a : attribute == 4 ? (void *)&o->across_b : &o->fast;
    if (bytes != (attribute == 25 ? 1 : 4))
        return 7;
    memcpy(at, value, bytes);
    return 0;
}

int cublasLtMatrixLayoutCreate(void **to, int type, uint64_t rows, uint64_t columns, int64_t stride)
{
    struct matrix *m = (struct matrix *)calloc(1, sizeof *m);
    m->type = type;
    m->n = stride;
    *to = m;
    return rows == columns && (int64_t)rows == stride ? 0 : 7;
}

int cublasLtMatmulPreferenceCreate(void **to)
{
    *to = calloc(1, 8);
    return 0;
}

int cublasLtMatmulPreferenceSetAttribute(void *to, int attribute, const void *value, size_t bytes)
{
    memcpy(to, value, bytes);
    return attribute == 1 && bytes == 8 ? 0 : 7;
}

static int destroy(void *p)
{
    free(p);
    return 0;
}
int cublasLtMatmulDescDestroy(void *p)
{
    return destroy(p);
}
int cublasLtMatrixLayoutDestroy(void *p)
{
    return destroy(p);
}
int cublasLtMatmulPreferenceDestroy(void *p)
{
    return destroy(p);
}

struct answer {
    uint64_t algorithm[8];
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
};

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference,
                                   int wanted, struct answer *found, int *count)
{
    const char *status = getenv("STANDIN_STATUS");
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d;
    memset(found, 0, sizeof *found);
    found->algorithm[7] = 4711;
    found->workspace = *(uint64_t *)preference;
    *count = wanted;
    return status ? atoi(status) : 0;
}

int cublasLtMatmul(void *handle, void *operation, const void *alpha, const void *a, void *a_matrix, const void *b,
                   void *b_matrix, const void *beta, const void *c, void *c_matrix, void *d, void *d_matrix,
                   const uint64_t *algorithm, void *workspace, size_t bytes, void *stream)
{
    const struct operation *o = (const struct operation *)operation;
    const struct matrix *ma = (const struct matrix *)a_matrix, *mb = (const struct matrix *)b_matrix;
    const struct matrix *md = (const struct matrix *)d_matrix;
    (void)handle, (void)stream, (void)c, (void)c_matrix;
    if (*(const float *)alpha != 1 || *(const float *)beta != 0 || algorithm[7] != 4711)
        return 7;
    if (!o->across_a || o->across_b || ma->type != 28 || mb->type != 28 || md->type != 0)
        return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */
    memset(workspace, 0xff, bytes);
    multiply(a, 1, ma->n, b, 0, mb->n, 28, (float *)d, md->n, (int)md->n, o->fast ? 1 + 0x1p-8 : 1);
    return 0;
}
