/* hdf5metadata.c -- attributes of HDF5 files as metadata; see hdf5.h.
 *
 * Strings as they are, numbers as they print, up to 16 of them as "[1, 2]"; of all else what it is. */
#include "hdf5.h"

#include "../text/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 16, STRING_MAX = 1 << 20 };

int hdf5_keep(hdf5 *h, const char *name, const char *value)
{
    char key[HDF5_NAME_MAX + 512];
    snprintf(key, sizeof key, "%s%s%s", h->path, *h->path && name ? "/" : "", name ? name : "");
    char *k = trace_utf8(h->t, key), *v = trace_utf8(h->t, value);
    if (!k || !v)
        return trace_no_memory(h->t, h->error);
    const size_t n = strlen(k) + strlen(v);
    if (n > h->room)
        return trace_fail(h->t, h->error, TRACE_NO_OFFSET, "the attributes are above the cap of %" PRIu64 " bytes",
                          h->t->max_header);
    h->room -= n;
    return trace_add_metadata(h->t, k, v, h->error);
}

/* A string of fixed or variable length: 1 if it was kept, 0 if it is too long or cannot be read, -1. */
static int string_value(hdf5 *h, hid_t attribute, hid_t type, const char *name)
{
    const size_t size = H5Tget_size(type);
    const int variable = H5Tis_variable_str(type) > 0;
    if (!variable && size > STRING_MAX)
        return 0;
    char *text = variable ? NULL : calloc(1, size + 1);
    if (!variable && !text)
        return trace_no_memory(h->t, h->error);
    int result = 0;
    if (H5Aread(attribute, type, variable ? (void *)&text : (void *)text) >= 0 && text)
        result = hdf5_keep(h, name, text) ? -1 : 1;
    if (variable && text)
        H5free_memory(text);
    else
        free(text);
    return result;
}

/* Numbers: the same. */
static int number_value(hdf5 *h, hid_t attribute, hid_t type, size_t n, int is_array, const char *name)
{
    union {
        int64_t i[SHOWN];
        uint64_t u[SHOWN];
        double d[SHOWN];
    } v;
    char text[SHOWN * 32] = "";
    const int is_float = H5Tget_class(type) == H5T_FLOAT, is_signed = !is_float && H5Tget_sign(type) == H5T_SGN_2;
    const int digits = is_float && H5Tget_size(type) <= 4 ? 9 : 17;
    const hid_t memory = is_float ? H5T_NATIVE_DOUBLE : is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64;
    if (H5Aread(attribute, memory, &v) < 0)
        return 0;
    for (size_t i = 0; i < n; i++) {
        const char *before = i ? ", " : is_array ? "[" : "";
        if (is_float)
            text_add(text, sizeof text, "%s%.*g", before, digits, v.d[i]);
        else if (is_signed)
            text_add(text, sizeof text, "%s%" PRId64, before, v.i[i]);
        else
            text_add(text, sizeof text, "%s%" PRIu64, before, v.u[i]);
    }
    text_add(text, sizeof text, "%s", is_array ? "]" : "");
    return hdf5_keep(h, name, text) ? -1 : 1;
}

static int value(hdf5 *h, hid_t attribute, hid_t type, hid_t space, const char *name)
{
    char text[64];
    const H5T_class_t class = H5Tget_class(type);
    const hssize_t points = H5Sget_simple_extent_npoints(space);
    const int is_array = H5Sget_simple_extent_ndims(space) > 0;
    int kept = 0;
    if (class == H5T_STRING && points == 1 && !is_array)
        kept = string_value(h, attribute, type, name);
    else if ((class == H5T_INTEGER || class == H5T_FLOAT) && points > 0 && points <= SHOWN && H5Tget_size(type) <= 8)
        kept = number_value(h, attribute, type, (size_t)points, is_array, name);
    if (kept)
        return kept < 0 ? -1 : 0;
    snprintf(text, sizeof text, "array of %lld %s", (long long)points, class == H5T_STRING ? "strings" : "values");
    return hdf5_keep(h, name, text);
}

/* H5Aiterate2 calls this with each attribute of an object. */
static herr_t attribute_of(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    hdf5 *h = context;
    (void)info;
    const hid_t a = H5Aopen(object, name, H5P_DEFAULT);
    const hid_t type = a < 0 ? -1 : H5Aget_type(a), space = a < 0 ? -1 : H5Aget_space(a);
    const int bad = type >= 0 && space >= 0 ? value(h, a, type, space, name)
                                            : trace_fail(h->t, h->error, TRACE_NO_OFFSET,
                                                         "attribute '%.200s' of '%s' is damaged", name, h->path);
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    if (a >= 0)
        H5Aclose(a);
    return bad ? -1 : 0;
}

int hdf5_attributes(hdf5 *h, hid_t object)
{
    hsize_t at = 0;
    char why[160];
    h->error->exit = 0;
    if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at, attribute_of, h) >= 0)
        return 0;
    return h->error->exit ? -1
                          : trace_fail(h->t, h->error, TRACE_NO_OFFSET, "attributes of '%s': %s", h->path,
                                       hdf5_why(why, sizeof why));
}
