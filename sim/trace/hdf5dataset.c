/* hdf5dataset.c -- datasets of HDF5 files as tensors: what their elements are, and reading them; see hdf5.h.
 *
 * The library converts nothing: memory has the type of the file, so that what is read are its bits. What a
 * floating-point type is, its fields say, in either byte order; HDF5 1.10 has no word for bfloat16 or FP8. */
#include "hdf5.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- what went wrong ---- */

typedef struct innermost {
    char *out;
    size_t size;
} innermost;

static herr_t take_first(unsigned n, const H5E_error2_t *e, void *context)
{
    const innermost *i = context;
    if (n == 0 && e->desc)
        snprintf(i->out, i->size, "%s", e->desc);
    return 0;
}

const char *hdf5_why(char *out, size_t size)
{
    innermost i = {out, size};
    snprintf(out, size, "unknown");
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, &i);
    return out;
}

/* ---- what elements are ---- */

/* Floating-point types: bytes; places of sign, exponent and fraction, sizes of the latter two; bias. */
static const struct {
    const char *dtype;
    size_t bytes, sign, exponent, exponent_bits, fraction, fraction_bits, bias;
} floats[] = {
    {"F64", 8, 63, 52, 11, 0, 52, 1023}, {"F32", 4, 31, 23, 8, 0, 23, 127}, {"F16", 2, 15, 10, 5, 0, 10, 15},
    {"BF16", 2, 15, 7, 8, 0, 7, 127},    {"F8_E4M3", 1, 7, 3, 4, 0, 3, 7},  {"F8_E5M2", 1, 7, 2, 5, 0, 2, 15},
};

static const char *float_name(hid_t type)
{
    size_t s, e, es, m, ms;
    if (H5Tget_fields(type, &s, &e, &es, &m, &ms) < 0)
        return NULL;
    const size_t bytes = H5Tget_size(type), bias = H5Tget_ebias(type);
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++)
        if (floats[i].bytes == bytes && H5Tget_precision(type) == 8 * bytes && floats[i].sign == s &&
            floats[i].exponent == e && floats[i].exponent_bits == es && floats[i].fraction == m &&
            floats[i].fraction_bits == ms && floats[i].bias == bias)
            return floats[i].dtype;
    return NULL;
}

static const char *integer_name(hid_t type)
{
    static const char *const names[2][4] = {{"U8", "U16", "U32", "U64"}, {"I8", "I16", "I32", "I64"}};
    const size_t bytes = H5Tget_size(type);
    const int k = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : -1;
    return k < 0 || H5Tget_precision(type) != 8 * bytes ? NULL : names[H5Tget_sign(type) == H5T_SGN_2][k];
}

/* The dtype of a type that has no name of its own there. */
static const char *class_name(H5T_class_t class)
{
    static const struct {
        H5T_class_t class;
        const char *name;
    } rows[] = {{H5T_STRING, "string"},       {H5T_COMPOUND, "compound"}, {H5T_ENUM, "enum"},
                {H5T_REFERENCE, "reference"}, {H5T_VLEN, "vlen"},         {H5T_ARRAY, "array"},
                {H5T_BITFIELD, "bitfield"},   {H5T_FLOAT, "float"},       {H5T_INTEGER, "integer"},
                {H5T_OPAQUE, "opaque"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].class == class)
            return rows[i].name;
    return "unknown";
}

/* h5py writes ml_dtypes arrays as opaque bytes, as NumPy does. */
static int opaque(hdf5 *h, trace_tensor *x, size_t bytes)
{
    x->dtype = bytes == 1 ? "V1" : "V2";
    x->format = bytes == 1 ? h->options->assume_v1 : h->options->assume_v2;
    return x->format ? 0
                     : trace_fail(h->t, h->error, TRACE_NO_OFFSET,
                                  "dataset '%s' of opaque elements does not say what it holds: pass --assume %s",
                                  h->path, bytes == 1 ? "V1=e4m3" : "V2=bf16");
}

static int describe(hdf5 *h, hid_t type, trace_tensor *x)
{
    const H5T_class_t class = H5Tget_class(type);
    const size_t bytes = H5Tget_size(type);
    const char *name = class == H5T_FLOAT ? float_name(type) : class == H5T_INTEGER ? integer_name(type) : NULL;
    const H5T_order_t order = name ? H5Tget_order(type) : H5T_ORDER_NONE;
    x->big_endian = order == H5T_ORDER_BE;
    x->dtype = name ? name : class_name(class);
    if (class == H5T_OPAQUE && (bytes == 1 || bytes == 2))
        return opaque(h, x, bytes);
    if (!name || (order != H5T_ORDER_LE && order != H5T_ORDER_BE))
        return 0;
    x->format = trace_dtype_format(trace_dtype_find(name), h->options);
    if (x->format && mpsim_format_code_bytes(x->format) != bytes)
        return trace_fail(h->t, h->error, TRACE_NO_OFFSET, "elements of dtype %s cannot be codes of %s", name,
                          x->format->name);
    return 0;
}

/* ---- how they are stored ---- */

static int check_filters(hdf5 *h, hid_t list)
{
    for (int i = 0; i < H5Pget_nfilters(list); i++) {
        unsigned flags, config;
        size_t values = 0;
        char name[64] = "";
        const H5Z_filter_t id = H5Pget_filter2(list, (unsigned)i, &flags, &values, NULL, sizeof name, name, &config);
        if (id != H5Z_FILTER_DEFLATE && id != H5Z_FILTER_SHUFFLE && id != H5Z_FILTER_FLETCHER32)
            return trace_fail(h->t, h->error, TRACE_NO_OFFSET,
                              "dataset '%s' is packed by filter %d (%.60s), which is "
                              "not read: repack it with h5repack -f GZIP=1",
                              h->path, (int)id, name);
    }
    return 0;
}

/* Chunks are unpacked as a whole, and what was never written counts as its fill value. */
static int check_chunks(hdf5 *h, hid_t list, size_t width)
{
    hsize_t n[H5S_MAX_RANK];
    uint64_t bytes = width;
    const int rank = H5Pget_chunk(list, H5S_MAX_RANK, n);
    for (int i = 0; i < rank; i++)
        bytes = n[i] && bytes > HDF5_CHUNK_MAX / n[i] ? HDF5_CHUNK_MAX + 1 : bytes * n[i];
    return rank > 0 && bytes <= HDF5_CHUNK_MAX
               ? 0
               : trace_fail(h->t, h->error, TRACE_NO_OFFSET,
                            "dataset '%s' has chunks of more than %d MiB: repack it with h5repack -l CHUNK=...",
                            h->path, HDF5_CHUNK_MAX >> 20);
}

/* That the elements are in this file, and not many more than it can hold. */
static int check_storage(hdf5 *h, hid_t list, const trace_entry *e)
{
    const H5D_layout_t layout = H5Pget_layout(list);
    if (layout == H5D_VIRTUAL || (layout == H5D_CONTIGUOUS && H5Pget_external_count(list) != 0))
        return trace_fail(h->t, h->error, TRACE_NO_OFFSET,
                          "the elements of dataset '%s' are in other files, which are "
                          "not opened: repack it with h5repack",
                          h->path);
    if (trace_shows(h->t, h->options, e->bytes))
        return trace_fail(h->t, h->error, TRACE_NO_OFFSET,
                          "dataset '%s' and those before it have %" PRIu64 " bytes, more than %" PRIu64
                          " times those of the file: if that is right, raise --max-ratio",
                          h->path, h->t->shown, trace_ratio(h->options));
    if (layout != H5D_CHUNKED)
        return 0;
    return check_filters(h, list) || check_chunks(h, list, mpsim_format_code_bytes(e->tensor.format)) ? -1 : 0;
}

static int take_shape(hdf5 *h, hid_t space, size_t width, trace_entry *e)
{
    hsize_t n[H5S_MAX_RANK];
    trace_tensor *x = &e->tensor;
    const int rank = H5Sget_simple_extent_dims(space, n, NULL), none = H5Sget_simple_extent_type(space) == H5S_NULL;
    uint64_t *shape = rank < 0 ? NULL : trace_alloc(h->t, (size_t)(rank + 1) * sizeof *shape);
    if (rank >= 0 && !shape)
        return trace_no_memory(h->t, h->error);
    for (int i = 0; i < rank; i++)
        shape[i] = n[i];
    if (none && rank == 0)
        shape[0] = 0; /* nothing at all */
    x->shape = shape;
    x->rank = none ? 1 : (size_t)(rank < 0 ? 0 : rank);
    if (rank < 0 || width > 1 << 20 || trace_shape_bytes(shape, x->rank, 8, &x->count, &e->bytes) ||
        x->count > UINT64_MAX / (width ? width : 1))
        return trace_fail(h->t, h->error, TRACE_NO_OFFSET, "the shape of dataset '%s' is too large", h->path);
    e->bytes = x->count * width;
    return 0;
}

int hdf5_dataset(hdf5 *h, hid_t dataset, uint64_t address)
{
    const size_t n = strlen(h->path);
    trace_entry *e = n > h->room ? NULL : trace_add(h->t, h->error);
    if (!e)
        return n > h->room ? trace_fail(h->t, h->error, TRACE_NO_OFFSET, "the names are too long together") : -1;
    h->room -= n;
    if (!(e->tensor.name = trace_utf8(h->t, h->path)))
        return trace_no_memory(h->t, h->error);
    e->at = address;
    const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset), list = H5Dget_create_plist(dataset);
    int bad = type < 0 || space < 0 || list < 0;
    if (bad)
        trace_fail(h->t, h->error, TRACE_NO_OFFSET, "dataset '%s' is damaged", h->path);
    else
        bad = describe(h, type, &e->tensor) || take_shape(h, space, H5Tget_size(type), e) ||
              (e->tensor.format && check_storage(h, list, e));
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    if (list >= 0)
        H5Pclose(list);
    return bad ? -1 : 0;
}

/* ---- reading ---- */

void hdf5_release(hdf5 *h)
{
    if (h->space >= 0)
        H5Sclose(h->space);
    if (h->type >= 0)
        H5Tclose(h->type);
    if (h->dataset >= 0)
        H5Dclose(h->dataset);
    h->space = h->type = h->dataset = -1;
    h->entry = NULL;
}

/* The whole block, the largest that begins at element `first` and has at most n: its elements. */
static uint64_t next_block(const trace_tensor *x, uint64_t first, uint64_t n, hsize_t *from, hsize_t *count)
{
    uint64_t size = 1; /* of a block of all dimensions behind i */
    size_t i = x->rank;
    for (size_t k = x->rank; k-- > 0;) {
        from[k] = first % x->shape[k];
        first /= x->shape[k];
        count[k] = 1;
    }
    while (i > 1 && from[i - 1] == 0 && n / size >= x->shape[i - 1]) {
        count[i - 1] = x->shape[i - 1];
        size *= x->shape[--i];
    }
    if (i > 0) {
        const uint64_t left = x->shape[i - 1] - from[i - 1], fit = n / size;
        count[i - 1] = left < fit ? left : fit;
        size *= count[i - 1];
    }
    return size;
}

static int open_dataset(hdf5 *h, const trace_entry *e)
{
    if (h->entry == e)
        return 0;
    hdf5_release(h);
    h->dataset = H5Oopen_by_addr(h->file, e->at);
    h->type = h->dataset < 0 ? -1 : H5Dget_type(h->dataset);
    h->space = h->dataset < 0 ? -1 : H5Dget_space(h->dataset);
    if (h->type < 0 || h->space < 0)
        return -1;
    h->entry = e;
    return 0;
}

/* One block into memory. */
static int read_block(hdf5 *h, const trace_tensor *x, const hsize_t *from, const hsize_t *count, hsize_t n, void *codes)
{
    if (x->rank == 0)
        return H5Dread(h->dataset, h->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, codes) < 0;
    const hid_t memory = H5Screate_simple(1, &n, NULL);
    const int bad = memory < 0 || H5Sselect_hyperslab(h->space, H5S_SELECT_SET, from, NULL, count, NULL) < 0 ||
                    H5Dread(h->dataset, h->type, memory, h->space, H5P_DEFAULT, codes) < 0;
    if (memory >= 0)
        H5Sclose(memory);
    return bad;
}

int hdf5_read(hdf5 *h, const trace_entry *e, uint64_t first, void *codes, size_t n, trace_error *error)
{
    hsize_t from[TRACE_RANK_MAX], count[TRACE_RANK_MAX];
    char why[160];
    unsigned char *p = codes;
    const size_t width = mpsim_format_code_bytes(e->tensor.format);
    int bad = n && open_dataset(h, e);
    while (n && !bad) {
        const size_t m = (size_t)next_block(&e->tensor, first, n, from, count);
        bad = read_block(h, &e->tensor, from, count, m, p);
        first += m;
        n -= m;
        p += m * width;
    }
    return bad ? trace_fail(h->t, error, TRACE_NO_OFFSET, "cannot read dataset '%s': %s", e->tensor.name,
                            hdf5_why(why, sizeof why))
               : 0;
}
