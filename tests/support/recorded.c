/* recorded.c -- see recorded.h. */
#include "recorded.h"

#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct recorded {
    trace *file;
    char path[4200];
    const char **cases; /* sorted; they belong to the trace */
    size_t count;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int is_case(const char *key, const char *value)
{
    return strncmp(key, "mpsim.", 6) != 0 && strchr(value, '=') != NULL;
}

recorded *recorded_open(const char *path)
{
    trace_error error;
    recorded *r = calloc(1, sizeof *r);
    ck_assert(r != NULL);
    snprintf(r->path, sizeof r->path, "%s", test_source_path(path));
    r->file = trace_open(r->path, NULL, &error);
    ck_assert_msg(r->file != NULL, "%s", error.text);
    size_t all = 0;
    while (trace_metadata_key(r->file, all))
        all++;
    r->cases = calloc(all + 1, sizeof *r->cases);
    ck_assert(r->cases != NULL);
    for (size_t i = 0; i < all; i++)
        if (is_case(trace_metadata_key(r->file, i), trace_metadata_value(r->file, i)))
            r->cases[r->count++] = trace_metadata_key(r->file, i);
    qsort(r->cases, r->count, sizeof *r->cases, by_name);
    return r;
}

void recorded_close(recorded *r)
{
    if (!r)
        return;
    trace_close(r->file);
    free(r->cases);
    free(r);
}

size_t recorded_count(const recorded *r)
{
    return r->count;
}

const char *recorded_case(const recorded *r, size_t i)
{
    return i < r->count ? r->cases[i] : NULL;
}

const char *recorded_facts(const recorded *r, const char *name)
{
    return trace_metadata(r->file, name);
}

const char *recorded_metadata(const recorded *r, const char *key)
{
    return trace_metadata(r->file, key);
}

/* ---- facts ---- */

/* The value of a word "key=value", and its length; NULL if there is none. */
static const char *find_fact(const char *facts, const char *key, size_t *length)
{
    const size_t n = strlen(key);
    for (const char *p = facts; *p; p += strspn(p, " ")) {
        const size_t word = strcspn(p, " ");
        if (word > n && strncmp(p, key, n) == 0 && p[n] == '=') {
            *length = word - n - 1;
            return p + n + 1;
        }
        p += word;
    }
    return NULL;
}

const char *recorded_text(const char *facts, const char *key, const char *otherwise, char *text, size_t size)
{
    size_t n = 0;
    const char *found = find_fact(facts, key, &n);
    snprintf(text, size, "%.*s", found ? (int)n : (int)strlen(otherwise), found ? found : otherwise);
    return text;
}

double recorded_number(const char *facts, const char *key, double otherwise)
{
    char text[64], *end;
    size_t n;
    if (!find_fact(facts, key, &n))
        return otherwise;
    recorded_text(facts, key, "", text, sizeof text);
    const double x = strtod(text, &end);
    ck_assert_msg(end != text && *end == 0, "%s=%s: no number", key, text);
    return x;
}

/* ---- tensors ---- */

/* The index of a tensor, or the number of tensors. */
static size_t find_tensor(const recorded *r, const char *case_name, const char *name)
{
    char full[512];
    const size_t count = trace_count(r->file);
    snprintf(full, sizeof full, "%s%s%s", case_name, name ? "/" : "", name ? name : "");
    for (size_t i = 0; i < count; i++)
        if (strcmp(trace_at(r->file, i)->name, full) == 0)
            return i;
    return count;
}

const trace_tensor *recorded_tensor(const recorded *r, const char *case_name, const char *name)
{
    return trace_at(r->file, find_tensor(r, case_name, name));
}

float *recorded_floats(recorded *r, const char *case_name, const char *name, size_t *n)
{
    const size_t i = find_tensor(r, case_name, name);
    const trace_tensor *t = trace_at(r->file, i);
    trace_error error;
    double block[256];
    size_t got, done = 0;
    if (!t)
        return NULL;
    float *y = malloc((size_t)t->count * sizeof *y + 1);
    ck_assert(y != NULL);
    ck_assert_msg(trace_select(r->file, i, &error) == 0, "%s", error.text);
    do {
        ck_assert_msg(trace_read(r->file, block, 256, &got, &error) == 0, "%s", error.text);
        for (size_t k = 0; k < got; k++, done++) {
            y[done] = (float)block[k];
            ck_assert_msg(isnan(block[k]) || (double)y[done] == block[k], "%s: element %zu is no binary32 number",
                          t->name, done);
        }
    } while (got > 0);
    ck_assert_uint_eq(done, t->count);
    if (n)
        *n = done;
    return y;
}

/* Bytes of an element, from the safetensors dtype: "F8_E4M3", "BF16", "U8", "BOOL", ... */
static size_t element_bytes(const char *dtype)
{
    const size_t at = strcspn(dtype, "0123456789");
    const int bits = strcmp(dtype, "BOOL") == 0 ? 8 : atoi(dtype + at);
    ck_assert_msg(bits >= 8 && bits <= 64 && bits % 8 == 0, "dtype %s", dtype);
    return (size_t)bits / 8;
}

unsigned char *recorded_bytes(recorded *r, const char *case_name, const char *name, size_t *bytes)
{
    const trace_tensor *t = recorded_tensor(r, case_name, name);
    if (!t)
        return NULL;
    const size_t n = (size_t)t->count * element_bytes(t->dtype);
    unsigned char *y = malloc(n + 1);
    FILE *f = fopen(r->path, "rb");
    ck_assert(y && f);
    ck_assert(fseek(f, (long)t->offset, SEEK_SET) == 0);
    ck_assert_uint_eq(fread(y, 1, n, f), n);
    fclose(f);
    if (bytes)
        *bytes = n;
    return y;
}

unsigned char *recorded_codes(recorded *r, const char *case_name, const char *name, size_t each, size_t *n)
{
    size_t bytes = 0;
    unsigned char *codes = recorded_bytes(r, case_name, name, &bytes);
    *n = bytes / each;
    if (codes)
        trace_to_little_endian(codes, each, *n); /* and back */
    return codes;
}

int recorded_same(float a, float b)
{
    return bits_of_f32(a) == bits_of_f32(b) || (isnan(a) && isnan(b));
}
