/* torchdtype.c -- the element types of PyTorch. Sources: torch/storage.py and torch/testing/_internal/common_dtype.py
 * of PyTorch 2.6.0; float8_e8m0fnu and float4_e2m1fn_x2: c10/core/ScalarType.h of 2.8. */
#include "torch.h"

#include <string.h>

/* clang-format off */
static const torch_dtype dtypes[] = {
    {"float32",          "FloatStorage",         4, "binary32"},
    {"float64",          "DoubleStorage",        8, "binary64"},
    {"float16",          "HalfStorage",          2, "fp16"},
    {"bfloat16",         "BFloat16Storage",      2, "bf16"},
    {"int64",            "LongStorage",          8, NULL},
    {"int32",            "IntStorage",           4, NULL},
    {"int16",            "ShortStorage",         2, NULL},
    {"int8",             "CharStorage",          1, NULL},
    {"uint8",            "ByteStorage",          1, NULL},
    {"bool",             "BoolStorage",          1, NULL},
    {"complex64",        "ComplexFloatStorage",  8, NULL},
    {"complex128",       "ComplexDoubleStorage", 16, NULL},
    {"quint8",           "QUInt8Storage",        1, NULL},
    {"qint8",            "QInt8Storage",         1, NULL},
    {"qint32",           "QInt32Storage",        4, NULL},
    {"quint4x2",         "QUInt4x2Storage",      1, NULL}, /* packed: listed, not read */
    {"quint2x4",         "QUInt2x4Storage",      1, NULL},
    {"float8_e4m3fn",    NULL,                   1, "e4m3"},
    {"float8_e5m2",      NULL,                   1, "e5m2"},
    {"float8_e4m3fnuz",  NULL,                   1, "e4m3fnuz"},
    {"float8_e5m2fnuz",  NULL,                   1, "e5m2fnuz"},
    {"float8_e8m0fnu",   NULL,                   1, "e8m0"},
    {"float4_e2m1fn_x2", NULL,                   1, NULL},
    {"complex32",        NULL,                   4, NULL},
    {"uint16",           NULL,                   2, NULL},
    {"uint32",           NULL,                   4, NULL},
    {"uint64",           NULL,                   8, NULL},
    {"bits8",            NULL,                   1, NULL},
    {"bits16",           NULL,                   2, NULL},
    {"bits1x8",          NULL,                   1, NULL},
    {"bits2x4",          NULL,                   1, NULL},
    {"bits4x2",          NULL,                   1, NULL},
    {"int1",             NULL,                   1, NULL},
    {"int2",             NULL,                   1, NULL},
    {"int3",             NULL,                   1, NULL},
    {"int4",             NULL,                   1, NULL},
    {"int5",             NULL,                   1, NULL},
    {"int6",             NULL,                   1, NULL},
    {"int7",             NULL,                   1, NULL},
    {"uint1",            NULL,                   1, NULL},
    {"uint2",            NULL,                   1, NULL},
    {"uint3",            NULL,                   1, NULL},
    {"uint4",            NULL,                   1, NULL},
    {"uint5",            NULL,                   1, NULL},
    {"uint6",            NULL,                   1, NULL},
    {"uint7",            NULL,                   1, NULL},
};
/* clang-format on */
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* The name within "torch.", "torch.cuda." or "torch.storage."; NULL: it is of another module. */
static const char *within_torch(const char *global)
{
    static const char *const modules[] = {"torch.cuda.", "torch.storage.", "torch."};
    for (size_t i = 0; global && i < sizeof modules / sizeof modules[0]; i++)
        if (strncmp(global, modules[i], strlen(modules[i])) == 0)
            return global + strlen(modules[i]);
    return NULL;
}

const torch_dtype *trace_torch_dtype_find(const char *global)
{
    const char *name = within_torch(global);
    for (size_t i = 0; name && i < DTYPES; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return &dtypes[i];
    return NULL;
}

const torch_dtype *trace_torch_storage_find(const char *global)
{
    const char *name = within_torch(global);
    for (size_t i = 0; name && i < DTYPES; i++)
        if (dtypes[i].storage && strcmp(dtypes[i].storage, name) == 0)
            return &dtypes[i];
    return NULL;
}

int trace_torch_storage_untyped(const char *global)
{
    const char *name = within_torch(global);
    return name && (strcmp(name, "UntypedStorage") == 0 || strcmp(name, "_UntypedStorage") == 0);
}

const mpsim_format *trace_torch_format(const trace_options *o, const char *dtype, const char *format)
{
    const char *name = dtype + (dtype[0] == 'u');
    if (format)
        return mpsim_format_find(format);
    return strcmp(name, "int16") == 0 ? o->as_int16 : strcmp(name, "int8") == 0 ? o->as_int8 : NULL;
}
