/* torchnumpy.c -- numpy's arrays and scalars in pickles.
 *
 * An array is numpy.core.multiarray._reconstruct(ndarray, (0,), b'b') with the state (version, shape, dtype,
 * fortran, bytes); in protocol 5 numpy.core.numeric._frombuffer(bytes, dtype, shape, order). A dtype is
 * numpy.dtype(name, ...) with the state (version, byte order, ...). Source: numpy/core/src/multiarray/methods.c and
 * descriptor.c of NumPy 1.26. One of JAX is jax._src.array._reconstruct_array(_reconstruct, its arguments, the state, ...)
 * (jax/_src/array.py of JAX 0.10), and its narrow dtypes are numpy.dtype(ml_dtypes.bfloat16, ...). */
#include "torch.h"

#include <inttypes.h>
#include <string.h>

/* clang-format off */
static const struct {
    const char *code, *name;
    uint8_t bytes;
    const char *format;
} dtypes[] = {
    {"f2",  "float16",    2, "fp16"},
    {"f4",  "float32",    4, "binary32"},
    {"f8",  "float64",    8, "binary64"},
    {"b1",  "bool",       1, NULL},
    {"i1",  "int8",       1, NULL},
    {"i2",  "int16",      2, NULL},
    {"i4",  "int32",      4, NULL},
    {"i8",  "int64",      8, NULL},
    {"u1",  "uint8",      1, NULL},
    {"u2",  "uint16",     2, NULL},
    {"u4",  "uint32",     4, NULL},
    {"u8",  "uint64",     8, NULL},
    {"c8",  "complex64",  8, NULL},
    {"c16", "complex128", 16, NULL},
    {"ml_dtypes.bfloat16",        "bfloat16",        2, "bf16"},
    {"ml_dtypes.float8_e4m3fn",   "float8_e4m3fn",   1, "e4m3"},
    {"ml_dtypes.float8_e5m2",     "float8_e5m2",     1, "e5m2"},
    {"ml_dtypes.float8_e4m3fnuz", "float8_e4m3fnuz", 1, "e4m3fnuz"},
    {"ml_dtypes.float8_e5m2fnuz", "float8_e5m2fnuz", 1, "e5m2fnuz"},
    {"ml_dtypes.float8_e8m0fnu",  "float8_e8m0fnu",  1, "e8m0"},
};
/* clang-format on */
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* The row of a dtype and its byte order; -1: it is not one of these, -2: it is not a dtype of numpy. */
static int dtype_of(const pickle *p, pickle_ref r, int *big_endian)
{
    const torch_global *g = trace_torch_global_find(pickle_global(p, r));
    size_t n;
    const pickle_ref what = pickle_item(p, pickle_args(p, r), 0);
    const char *code = pickle_type_of(p, what) == PICKLE_GLOBAL ? pickle_global(p, what) : pickle_text(p, what, &n);
    const char *order = pickle_text(p, pickle_item(p, pickle_state(p, r), 1), &n);
    if (!g || strcmp(g->name, "numpy.dtype") != 0 || !code)
        return -1;
    if (order && (n != 1 || !strchr("<>|=", order[0])))
        return -2;
    *big_endian = order && order[0] == '>';
    for (int i = 0; i < DTYPES; i++)
        if (strcmp(dtypes[i].code, code) == 0)
            return i;
    return -1;
}

/* The parts of an array, in either form. */
typedef struct array {
    pickle_ref shape, dtype, bytes;
    int fortran;
} array;

static int parts_of(const pickle *p, pickle_ref r, array *a)
{
    const pickle_ref args = pickle_args(p, r);
    const int jax = strstr(pickle_global(p, r), "_reconstruct_array") != NULL;
    const pickle_ref state = jax ? pickle_item(p, args, 2) : pickle_state(p, r);
    if (strstr(pickle_global(p, r), "_frombuffer")) {
        *a = (array){pickle_item(p, args, 2), pickle_item(p, args, 1), pickle_item(p, args, 0),
                     pickle_is_text(p, pickle_item(p, args, 3), "F")};
        return 0;
    }
    int64_t fortran = 0;
    const size_t n = pickle_count(p, state);
    if (n < 4 || n > 5 || pickle_int(p, pickle_item(p, state, n - 2), &fortran))
        return -1;
    *a = (array){pickle_item(p, state, n - 4), pickle_item(p, state, n - 3), pickle_item(p, state, n - 1),
                 fortran != 0};
    return 0;
}

int trace_torch_add_array(trace *t, const trace_options *options, const torch_tree *tree, const char *name,
                          pickle_ref r, trace_error *error)
{
    const pickle *p = tree->p;
    torch_view v = {0};
    array a;
    int big = 0;
    if (parts_of(p, r, &a))
        return trace_fail(t, error, TRACE_NO_OFFSET, "array '%.200s' is not described as numpy does it", name);
    const int row = dtype_of(p, a.dtype, &big);
    if (row == -1)
        return 1;
    if (row < 0)
        return trace_fail(t, error, TRACE_NO_OFFSET, "array '%.200s' has a byte order that is not known", name);
    const int rank = trace_torch_sizes(t, p, a.shape, name, "the shape", v.size, error);
    if (rank < 0)
        return -1;
    v.rank = (size_t)rank;
    v.dtype = dtypes[row].name;
    v.width = dtypes[row].bytes;
    v.format = dtypes[row].format;
    v.storage.big_endian = big != 0;
    uint64_t count, bytes;
    if (trace_shape_bytes(v.size, v.rank, v.width * 8u, &count, &bytes))
        return trace_fail(t, error, TRACE_NO_OFFSET, "the shape of tensor '%.200s' is too large", name);
    if (trace_torch_unfold(t, tree, a.bytes, &v.storage.section, &v.storage.first, &v.storage.bytes, error))
        return -1;
    if (v.storage.bytes != bytes)
        return trace_fail(t, error, TRACE_NO_OFFSET, "array '%.200s' needs %" PRIu64 " bytes, there are %" PRIu64, name,
                          bytes, v.storage.bytes);
    uint64_t stride = 1;
    for (size_t i = 0; i < v.rank && count; i++) {
        const size_t k = a.fortran ? i : v.rank - 1 - i;
        v.stride[k] = stride;
        stride *= v.size[k];
    }
    return trace_torch_add(t, options, name, &v, error);
}

int trace_torch_scalar_text(trace *t, const torch_tree *tree, pickle_ref r, char *out, size_t size)
{
    const pickle_ref args = pickle_args(tree->p, r);
    unsigned char b[8] = {0};
    uint64_t first, n, u = 0;
    uint32_t section;
    int big = 0;
    const int row = dtype_of(tree->p, pickle_item(tree->p, args, 0), &big);
    if (row < 0 || dtypes[row].bytes > 8 || dtypes[row].code[0] == 'c' ||
        trace_torch_unfold(t, tree, pickle_item(tree->p, args, 1), &section, &first, &n, NULL) ||
        n != dtypes[row].bytes || trace_torch_ready(t, section, NULL) ||
        trace_torch_bytes(t, section, b, (size_t)n, first, NULL))
        return -1;
    for (size_t i = 0; i < n; i++)
        u |= (uint64_t)b[big ? n - 1 - i : i] << (8 * i);
    const char kind = dtypes[row].code[0];
    if (dtypes[row].format)
        snprintf(out, size, "%.*g", n == 8 ? 17 : 9, mpsim_decode(mpsim_format_find(dtypes[row].format), u));
    else if (kind == 'b')
        snprintf(out, size, "%s", u ? "True" : "False");
    else if (kind == 'i' && n < 8 && u >> (8 * n - 1))
        snprintf(out, size, "-%" PRIu64, (UINT64_C(1) << (8 * n)) - u);
    else if (kind == 'i')
        snprintf(out, size, "%" PRId64, (int64_t)u);
    else
        snprintf(out, size, "%" PRIu64, u);
    return 0;
}
