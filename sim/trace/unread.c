/* unread.c -- why the numbers of a tensor are not read. A layout may have said it; else the dtype does. What may hold
 * floating-point numbers, or the packed codes of weights, is unseen: who judges a file has to know of it. Other integers
 * (counters, positions, masks), texts and dates are not. */
#include "impl.h"
#include "weights.h"

#include "../text/words.h"

#include <string.h>

typedef struct row {
    const char *dtype; /* with * at its end: what begins so */
    const char *reason;
    int unseen;
} row;

/* Names of element types but integers': safetensors, PyTorch, ONNX, NumPy without the byte order. */
/* clang-format off */
static const row rows[] = {
    {"BOOL", "truth values", 0}, {"bool", "truth values", 0}, {"b1", "truth values", 0},
    {"F4", "packed floating-point numbers", 1}, {"F6_*", "packed floating-point numbers", 1},
    {"FLOAT4*", "packed floating-point numbers", 1}, {"float4*", "packed floating-point numbers", 1},
    {"C64", "complex numbers", 1}, {"complex*", "complex numbers", 1}, {"COMPLEX*", "complex numbers", 1},
    {"c8", "complex numbers", 1}, {"c16", "complex numbers", 1}, {"c32", "complex numbers", 1},
    {"qint*", "integers with scales of their own", 1}, {"quint*", "integers with scales of their own", 1},
    {"int1", "packed integers", 1}, {"int2", "packed integers", 1}, {"int3", "packed integers", 1},
    {"int4", "packed integers", 1}, {"int5", "packed integers", 1}, {"int6", "packed integers", 1},
    {"int7", "packed integers", 1}, {"uint1", "packed integers", 1}, {"uint2", "packed integers", 1},
    {"uint3", "packed integers", 1}, {"uint4", "packed integers", 1}, {"uint5", "packed integers", 1},
    {"uint6", "packed integers", 1}, {"uint7", "packed integers", 1}, {"bits*", "packed integers", 1},
    {"INT2", "packed integers", 1}, {"UINT2", "packed integers", 1}, {"INT4", "packed integers", 1},
    {"UINT4", "packed integers", 1}, {"INT8", "integers", 1}, {"UINT8", "integers", 1}, {"INT16", "integers", 0},
    {"UINT16", "integers", 0}, {"INT32", "integers", 0}, {"UINT32", "integers", 0}, {"INT64", "integers", 0},
    {"UINT64", "integers", 0}, {"STRING", "texts", 0}, {"string", "texts", 0}, {"array", "arrays as elements", 1}, {"S*", "texts", 0}, {"a*", "texts", 0}, {"U*", "texts", 0},
    {"T*", "texts", 0}, {"M8*", "dates", 0}, {"m8*", "spans of time", 0}, {"O", "Python objects", 1},
    {"enum", "an enumeration", 0}, {"reference", "references", 0},
};
/* clang-format on */

static int is_row(const row *r, const char *dtype)
{
    const size_t n = strlen(r->dtype), any = r->dtype[n - 1] == '*';
    return any ? strncmp(r->dtype, dtype, n - 1) == 0 : strcmp(r->dtype, dtype) == 0;
}

/* Names of integers that are no codes. */
static int is_plain_name(const char *name)
{
    static const char *const words[] = {"ids",    "idx",    "index",  "indices", "indexes", "mask",
                                        "masks",  "tokens", "labels", "targets", "lengths", "positions",
                                        "counts", "images", "x",      "y"};
    const char *slash = strrchr(name, '/'), *dot = strrchr(name, '.'), *last = slash > dot ? slash : dot;
    last = last ? last + 1 : name;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t n = strlen(last), k = strlen(words[i]);
        if (strcmp(last, words[i]) == 0 || (n > k && text_ends_with(last, words[i]) && last[n - k - 1] == '_'))
            return 1;
    }
    return 0;
}

static int may_be_packed(const trace_tensor *x, const char *dtype)
{
    const weights_name w = {.fqn = x->fqn,
                            .n = strlen(x->fqn),
                            .rank = x->rank,
                            .first_is_one = x->rank && x->shape[0] == 1,
                            .dtype = dtype};
    const int passes = x->kind && (strcmp(x->kind, "act") == 0 || strcmp(x->kind, "out") == 0);
    return !passes && !is_plain_name(x->fqn) && trace_weights_packed(&w);
}

static void judge(trace_tensor *x)
{
    int is_signed;
    const char *said = x->unread;
    const char *dtype = x->dtype + (x->dtype[0] && strchr("<>|=", x->dtype[0]));
    if (trace_integers(x, &is_signed) && strcmp(trace_copy_dtype(x), "BOOL") != 0) {
        x->unseen = may_be_packed(x, trace_copy_dtype(x)) != 0;
        x->unread = x->unseen ? "integers that may be packed weights" : "integers";
    } else {
        const row *r = rows;
        const row *end = rows + sizeof rows / sizeof rows[0];
        while (r < end && !is_row(r, dtype))
            r++;
        x->unseen = r == end || r->unseen;
        x->unread = r < end ? r->reason : "elements of a dtype that is not known";
    }
    x->unread = said ? said : x->unread;
}

void trace_find_unread(trace *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (!t->entries[i].tensor.format && t->entries[i].tensor.count)
            judge(&t->entries[i].tensor);
}
