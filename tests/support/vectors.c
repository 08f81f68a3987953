/* vectors.c -- see vectors.h. */
#include "vectors.h"

#include "sim/trace/trace.h"
#include "support.h"

#include <mpsim/round.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

const char *recorded_folder(const char **why)
{
    static char text[4200];
    const char *named = getenv("MPSIM_HWVECTORS");
    const char *path = named && *named ? named : test_source_path("../shared/hwvectors");
    if (is_folder(path))
        return path;
    snprintf(text, sizeof text, "no recorded vectors: %s is no folder%s", path,
             named && *named ? "" : " (set MPSIM_HWVECTORS)");
    *why = text;
    return NULL;
}

static char text[1400];

/* The array `type`.`what` as doubles: rows x columns; *rows = 0 takes what is there. */
static double *read_array(trace *t, const char *type, const char *what, size_t rank, size_t *rows, size_t *columns)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", type, what);
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *x = trace_at(t, i);
        if (strcmp(x->name, name) != 0)
            continue;
        if (!x->format || strcmp(x->format->name, "binary32") != 0 || x->rank != rank || x->fortran ||
            x->count > 1000000 || (*rows && x->shape[0] != *rows) ||
            (rank == 2 && *columns && x->shape[1] != *columns)) {
            snprintf(text, sizeof text, "%s: %s has an unexpected dtype or shape", trace_path(t), name);
            return NULL;
        }
        *rows = (size_t)x->shape[0];
        if (rank == 2)
            *columns = (size_t)x->shape[1];
        trace_error error;
        const size_t n = (size_t)x->count;
        double *y = malloc((n + 1) * sizeof *y);
        size_t got = 0, more = 1;
        int failed = !y || trace_select(t, i, &error) != 0;
        while (!failed && more) { /* the call at the end verifies the CRC */
            failed = trace_read(t, y + got, n + 1 - got, &more, &error) != 0;
            got += more;
        }
        if (!failed && got == n)
            return y;
        snprintf(text, sizeof text, "%s: %s: %s", trace_path(t), name, failed && y ? error.text : "too short");
        free(y);
        return NULL;
    }
    snprintf(text, sizeof text, "%s: no array %s", trace_path(t), name);
    return NULL;
}

/* Codes of f that stand for exactly these numbers; frees x. */
static void *narrow(const mpsim_format *f, double *x, size_t n, const char *what)
{
    unsigned char *codes = x ? malloc(n * mpsim_format_code_bytes(f)) : NULL;
    double *back = x ? malloc(n * sizeof *back) : NULL;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_TOWARD_ZERO);
    int exact = codes && back && mpsim_encode_array_f64(f, &r, NULL, codes, x, n, NULL) == MPSIM_OK &&
                mpsim_decode_array(f, back, codes, n) == MPSIM_OK;
    if (exact && memcmp(back, x, n * sizeof *x) != 0) {
        snprintf(text, sizeof text, "%s are not all numbers of %s", what, f->name);
        exact = 0;
    }
    free(x);
    free(back);
    if (exact)
        return codes;
    free(codes);
    return NULL;
}

static float *as_f32(double *x, size_t n)
{
    float *y = x ? malloc(n * sizeof *y) : NULL;
    for (size_t i = 0; y && i < n; i++)
        y[i] = (float)x[i];
    free(x);
    return y;
}

const char *recorded_load(recorded_set *v, const char *gpu, const char *type, const char *result)
{
    char path[4400];
    const char *why = NULL, *folder = recorded_folder(&why);
    trace_error error;
    *v = (recorded_set){.n = 0};
    if (!folder)
        return why;
    const mpsim_format *f = mpsim_format_find(type);
    if (!f)
        return "an unknown format";
    v->operand = *f;
    snprintf(path, sizeof path, "%s/%s.npz", folder, gpu);
    trace *t = trace_open(path, NULL, &error);
    if (!t) {
        snprintf(text, sizeof text, "%s", error.text);
        return text;
    }
    strcpy(text, "out of memory");
    double *a = read_array(t, type, "a", 2, &v->n, &v->k);
    double *b = a ? read_array(t, type, "b", 2, &v->n, &v->k) : NULL;
    double *c = b ? read_array(t, type, "c", 1, &v->n, NULL) : NULL;
    double *d = c ? read_array(t, type, result, 1, &v->n, NULL) : NULL;
    trace_close(t);
    const int all = d != NULL;
    v->a = narrow(f, all ? a : (free(a), NULL), v->n * v->k, "the elements of a");
    v->b = narrow(f, v->a ? b : (free(b), NULL), v->n * v->k, "the elements of b");
    v->c = as_f32(c, v->n);
    v->d = as_f32(d, v->n);
    if (all && v->a && v->b && v->c && v->d)
        return NULL;
    recorded_clear(v);
    return text;
}

void recorded_clear(recorded_set *v)
{
    free(v->a);
    free(v->b);
    free(v->c);
    free(v->d);
    v->a = v->b = NULL;
    v->c = v->d = NULL;
}
