/* dtype.c -- the names of element types in safetensors and npy files, both ways.
 *
 * Sources: safetensors README and its list of dtypes; numpy.lib.format; for V1, V2 and f1
 * the files that ml_dtypes arrays leave behind (ml_dtypes issues 41, 148, 216). */
#include "impl.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const trace_dtype dtypes[] = {
    {.name = "F64",         .bits = 64, .format = "binary64"},
    {.name = "F32",         .bits = 32, .format = "binary32"},
    {.name = "F16",         .bits = 16, .format = "fp16"},
    {.name = "BF16",        .bits = 16, .format = "bf16"},
    {.name = "F8_E4M3",     .bits =  8, .format = "e4m3"},
    {.name = "F8_E5M2",     .bits =  8, .format = "e5m2"},
    {.name = "F8_E8M0",     .bits =  8, .format = "e8m0"},
    {.name = "F8_E4M3FNUZ", .bits =  8, .format = "e4m3fnuz"},
    {.name = "F8_E5M2FNUZ", .bits =  8, .format = "e5m2fnuz"},
    {.name = "F6_E2M3",     .bits =  6, .format = "e2m3"},
    {.name = "F6_E3M2",     .bits =  6, .format = "e3m2"},
    {.name = "F4",          .bits =  4, .format = "e2m1"},
    {.name = "C64",         .bits = 64},
    {.name = "I64",         .bits = 64},
    {.name = "U64",         .bits = 64},
    {.name = "I32",         .bits = 32},
    {.name = "U32",         .bits = 32},
    {.name = "I16",         .bits = 16},
    {.name = "U16",         .bits = 16},
    {.name = "I8",          .bits =  8},
    {.name = "U8",          .bits =  8},
    {.name = "BOOL",        .bits =  8},
};
/* clang-format on */

enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };
_Static_assert(DTYPES == 22, "the dtypes of safetensors 0.6");

const trace_dtype *trace_dtype_find(const char *name)
{
    for (size_t i = 0; i < DTYPES; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return &dtypes[i];
    return NULL;
}

const mpsim_format *trace_dtype_format(const trace_dtype *d, const trace_options *o)
{
    if (strcmp(d->name, "I16") == 0 || strcmp(d->name, "U16") == 0)
        return o->as_int16;
    if (strcmp(d->name, "I8") == 0 || strcmp(d->name, "U8") == 0)
        return o->as_int8;
    return d->format ? mpsim_format_find(d->format) : NULL;
}

/* Whether f is the format of the table that `name` stands for; f may be a copy. */
static int is_format(const mpsim_format *f, const char *name)
{
    const mpsim_format *row = name ? mpsim_format_find(name) : NULL;
    return row && (row == f || strcmp(row->name, f->name) == 0);
}

quant_packing trace_dtype_packing(const trace_dtype *d)
{
    return d->bits == 4 ? QUANT_NIBBLES : d->bits == 6 ? QUANT_SIXES : QUANT_BYTES;
}

/* The row of a format. */
static const trace_dtype *dtype_of(const mpsim_format *f)
{
    for (size_t i = 0; f && i < DTYPES; i++)
        if (is_format(f, dtypes[i].format))
            return &dtypes[i];
    return NULL;
}

const char *trace_safetensors_dtype(const mpsim_format *f)
{
    const trace_dtype *d = dtype_of(f);
    return d && d->bits >= 8 ? d->name : NULL;
}

const char *trace_packed_dtype(const mpsim_format *f)
{
    const trace_dtype *d = dtype_of(f);
    return d && d->bits < 8 ? d->name : NULL;
}

uint64_t trace_code_bits(const mpsim_format *f)
{
    const trace_dtype *d = dtype_of(f);
    return d ? d->bits : 8 * mpsim_format_code_bytes(f);
}

size_t trace_pack(const mpsim_format *f, unsigned char *to, const unsigned char *codes, size_t n)
{
    const quant_packing p = trace_dtype_packing(dtype_of(f));
    quant_pack(p, to, codes, n);
    return (size_t)quant_packed(p, n);
}

const char *trace_npy_descr(const mpsim_format *f)
{
    static const char *const rows[][2] = {{"binary64", "<f8"}, {"binary32", "<f4"}, {"fp16", "<f2"}, {"bf16", "<V2"}};
    for (size_t i = 0; f && i < sizeof rows / sizeof rows[0]; i++)
        if (is_format(f, rows[i][0]))
            return rows[i][1];
    return f && mpsim_format_code_bytes(f) == 1 ? "|V1" : NULL;
}

int trace_shape_bytes(const uint64_t *shape, size_t rank, unsigned bits, uint64_t *count, uint64_t *bytes)
{
    uint64_t n = 1; /* as if dimensions of 0 were 1: what overflows does not hang on their place */
    int none = 0;
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] && n > UINT64_MAX / shape[i])
            return -1;
        n *= shape[i] ? shape[i] : 1;
        none |= shape[i] == 0;
    }
    n = none ? 0 : n;
    if (n > UINT64_MAX / 64)
        return -1;
    *count = n;
    if (n * bits % 8)
        return -2;
    *bytes = n * bits / 8;
    return 0;
}

/* Elements that are no numbers of ours: the array is whole, and others beside it can be read. */
static int not_numbers(trace *t)
{
    t->not_numbers = 1;
    return 1;
}

/* The kinds of numpy's array interface; size is 0 if the descr has none. */
static int npy_kind(trace *t, char kind, unsigned long size, const char *descr, uint64_t at, const trace_options *o,
                    trace_tensor *tensor, trace_error *error)
{
    static const struct {
        char kind;
        const char *what;
    } refused[] = {
        {'O', "holds Python objects (a pickle), which are never loaded"},
        {'S', "holds byte strings"},
        {'a', "holds byte strings"},
        {'U', "holds strings"},
        {'T', "holds strings"},
        {'M', "holds dates"},
        {'m', "holds time spans"},
        {'c', "holds complex numbers: save real and imaginary part"},
        {'g', "does not say what it holds"},
    };
    const int opaque = (kind == 'V' || kind == 'f') && size == 1   ? 1
                       : (kind == 'V' || kind == 'g') && size == 2 ? 2
                                                                   : 0;
    if (opaque) {
        /* what ml_dtypes makes of bfloat16 and float8 arrays; only float8_e5m2 becomes f1 */
        tensor->format = opaque == 1 ? o->assume_v1 : o->assume_v2;
        if (!tensor->format)
            return trace_fail(t, error, at, "dtype '%s' does not say what it holds: pass --assume %s", descr,
                              opaque == 2   ? "V2=bf16"
                              : kind == 'f' ? "V1=e5m2"
                                            : "V1=e4m3");
    } else if (kind == 'f' && (size == 2 || size == 4 || size == 8)) {
        tensor->format = mpsim_format_find(size == 2 ? "fp16" : size == 4 ? "binary32" : "binary64");
    } else if ((kind == 'i' || kind == 'u') && (size == 1 || size == 2)) {
        tensor->format = size == 1 ? o->as_int8 : o->as_int16;
    } else if ((kind == 'i' || kind == 'u') && (size == 4 || size == 8)) {
        tensor->format = NULL;
    } else if (kind == 'b' && size == 1) {
        tensor->format = NULL;
    } else {
        for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
            if (refused[i].kind == kind && not_numbers(t))
                return trace_fail(t, error, at, "dtype '%s' %s", descr, refused[i].what);
        if (kind == 'f' && (size == 10 || size == 12 || size == 16) && not_numbers(t))
            return trace_fail(t, error, at,
                              "dtype '%s' is a long double, whose layout depends on the machine: save it as '<f8'",
                              descr);
        if (kind == 'V' && not_numbers(t))
            return trace_fail(t, error, at, "dtype '%s' does not say what it holds", descr);
        return trace_fail(t, error, at, "dtype '%s' is not known", descr);
    }
    if (tensor->format && mpsim_format_code_bytes(tensor->format) != size)
        return trace_fail(t, error, at, "elements of dtype '%s' cannot be codes of %s", descr, tensor->format->name);
    return 0;
}

int trace_npy_dtype(trace *t, const char *descr, uint64_t at, const trace_options *options, trace_tensor *tensor,
                    unsigned *bits, trace_error *error)
{
    const char *s = descr;
    tensor->big_endian = *s ==
                         '>'; /* '=', '|' and no sign are little-endian on every machine: what is told of a file is */
    if (*s && strchr("<>|=", *s))
        s++;
    if (!(tensor->dtype = trace_string(t, descr, strlen(descr))))
        return trace_no_memory(t, error);

    /* kind and size: "f4"; objects have no size: "O" */
    const size_t digits = s[0] ? strspn(s + 1, "0123456789") : 0;
    if (s[0] && !s[1 + digits] && (digits || s[0] == 'O')) {
        const unsigned long size = digits && digits < 4 ? strtoul(s + 1, NULL, 10) : 0;
        if (npy_kind(t, s[0], size, descr, at, options, tensor, error))
            return -1;
        *bits = (unsigned)size * 8;
        return 0;
    }
    if ((s[0] == 'M' || s[0] == 'm') && strchr(s, '[')) /* "M8[ns]" */
        return npy_kind(t, s[0], 8, descr, at, options, tensor, error);

    /* the name of a dtype: "bfloat16", "float8_e4m3fn" */
    tensor->format = *s ? mpsim_format_find(s) : NULL;
    if (!tensor->format)
        return trace_fail(t, error, at, "dtype '%s' is not known", descr);
    *bits = (unsigned)mpsim_format_code_bytes(tensor->format) * 8;
    return 0;
}

void trace_to_little_endian(unsigned char *codes, size_t bytes, size_t n)
{
    const uint16_t probe = 1;
    if (*(const unsigned char *)&probe == 1)
        return;
    for (size_t i = 0; i < n; i++)
        for (size_t a = 0, b = bytes - 1; a < b; a++, b--) {
            const unsigned char c = codes[i * bytes + a];
            codes[i * bytes + a] = codes[i * bytes + b];
            codes[i * bytes + b] = c;
        }
}
