/* vectors.c -- sets of recorded dot products from npz files; see vectors.h. */
#include "vectors.h"

#include "../array/need.h"
#include "../operand/element.h"
#include "../cli/options.h"
#include "../text/words.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <mpsim/round.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PIECE = 1 << 14 };

static const uint64_t ELEMENTS_MAX = (uint64_t)1 << 28; /* of one array */

static int bad_array(const vector_file *f, trace_error *error, const char *name, const char *what)
{
    return trace_error_set(error, EXIT_DATA, f->name, UINT64_MAX, "array %s %s", name, what);
}

/* Memory that lives as long as the file. */
static void *block(vector_file *f, size_t size)
{
    need_room(&f->blocks, f->n_blocks, sizeof *f->blocks);
    return f->blocks[f->n_blocks++] = need_memory(size, 1);
}

/* ---- arrays ---- */

/* How the numbers of an array become codes. */
typedef struct narrowing {
    mpsim_format format;
    int exact;         /* every number must be one of the format                  */
    size_t code_bytes; /* as mpsim_format_code_bytes, or 8: codes as uint64_t     */
} narrowing;

static int is_number_of(const mpsim_format *f, double x, uint64_t code)
{
    const double y = mpsim_decode(f, code);
    return isnan(x) ? isnan(y) : x == y && !signbit(x) == !signbit(y);
}

static int bad_value(const vector_file *f, trace_error *error, const trace_tensor *x, size_t i, double value,
                     const char *format)
{
    char place[64];
    if (x->rank == 2)
        snprintf(place, sizeof place, "row %zu, column %zu", i / (size_t)x->shape[1], i % (size_t)x->shape[1]);
    else
        snprintf(place, sizeof place, "row %zu", i);
    return trace_error_set(error, EXIT_DATA, f->name, UINT64_MAX, "array %s, %s: %.9g (%a) is not a number of %s",
                           x->name, place, value, value, format);
}

/* The codes of array i, in a block of the file; NULL with *error filled. */
static void *read_codes(vector_file *f, trace *t, size_t i, const narrowing *to, trace_error *error)
{
    const trace_tensor *x = trace_at(t, i);
    const size_t n = (size_t)x->count;
    unsigned char *codes = block(f, n * to->code_bytes);
    double *piece = need_memory(PIECE, sizeof *piece);
    mpsim_rounding r;
    mpsim_rounding_init(&r, to->exact ? MPSIM_ROUND_TOWARD_ZERO : MPSIM_ROUND_NEAREST_EVEN);
    r.nan = MPSIM_NANS_PAYLOAD; /* a recorded NaN keeps its bits */
    int bad = trace_select(t, i, error);
    size_t got = 1;
    for (size_t at = 0; !bad && got; at += got) { /* the call that reads nothing verifies the CRC */
        bad = trace_read(t, piece, PIECE, &got, error);
        for (size_t k = 0; !bad && k < got && at + k < n; k++) {
            const uint64_t code = mpsim_encode_f64(&to->format, &r, piece[k], 0, NULL);
            if (to->exact && !is_number_of(&to->format, piece[k], code))
                bad = bad_value(f, error, x, at + k, piece[k], to->format.name);
            element_put_code(codes, to->code_bytes, at + k, code);
        }
    }
    free(piece);
    return bad ? NULL : codes;
}

/* ---- sets ---- */

enum { A, B, C, D_FP32, D_FP16, ARRAYS };
static const char *const parts[ARRAYS] = {"a", "b", "c", "d_fp32", "d_fp16"};

/* Arrays of one type by their place in the file; SIZE_MAX where there is none. */
typedef struct type_arrays {
    char name[56];
    mpsim_format format;
    size_t at[ARRAYS];
} type_arrays;

static int find_part(const char *name)
{
    for (int i = 0; i < ARRAYS; i++)
        if (strcmp(name, parts[i]) == 0)
            return i;
    return -1;
}

/* The arrays by type; *types is the caller's to free. Names without '.' and TYPE.PART of which
 * neither is known are somebody's notes. */
static int sort_arrays(const vector_file *f, const trace *t, type_arrays **types, size_t *count, trace_error *error)
{
    type_arrays *list = need_memory(trace_count(t), sizeof *list);
    size_t n = 0;
    *types = list;
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *x = trace_at(t, i);
        const char *dot = strrchr(x->name, '.');
        const size_t length = dot ? (size_t)(dot - x->name) : 0;
        type_arrays fresh = {.at = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX}};
        if (!dot || length >= sizeof fresh.name)
            continue;
        memcpy(fresh.name, x->name, length);
        const int part = find_part(dot + 1);
        const int known = mpsim_format_parse(&fresh.format, fresh.name) == MPSIM_OK;
        if (known && part < 0)
            return bad_array(f, error, x->name, "is not one of a, b, c, d_fp32, d_fp16");
        if (part < 0)
            continue;
        if (!known)
            return bad_array(f, error, x->name, "its name does not begin with a format, as fp16.a");
        size_t k = 0;
        while (k < n && strcmp(list[k].name, fresh.name) != 0)
            k++;
        if (k == n)
            list[n++] = fresh;
        list[k].at[part] = i;
    }
    *count = n;
    return n ? 0
             : trace_error_set(error, EXIT_DATA, f->name, UINT64_MAX,
                               "no recorded dot products: arrays are named fp16.a, fp16.b, fp16.c, fp16.d_fp32, ...");
}

static const char *shape_words(char out[48], size_t rank, uint64_t n, uint64_t k)
{
    if (rank == 2)
        snprintf(out, 48, "%" PRIu64 " x %" PRIu64, n, k);
    else
        snprintf(out, 48, "%" PRIu64, n);
    return out;
}

/* The shape of a part is n x k or n; what is 0 is taken from the array. */
static int check_shape(const vector_file *f, const trace_tensor *x, int part, uint64_t *n, uint64_t *k,
                       trace_error *error)
{
    char what[200], is[48], others[48];
    const size_t rank = part <= B ? 2 : 1;
    if (!x->format)
        return bad_array(f, error, x->name, "does not hold floating-point numbers");
    if (x->rank != rank) {
        snprintf(what, sizeof what, "has %zu dimension%s, not %zu", x->rank, text_plural(x->rank), rank);
        return bad_array(f, error, x->name, what);
    }
    if (rank == 2 && x->fortran)
        return bad_array(f, error, x->name, "is in column-major order");
    if (x->count == 0 || x->count > ELEMENTS_MAX)
        return bad_array(f, error, x->name, x->count ? "has more than 2^28 elements" : "is empty");
    if ((*n && x->shape[0] != *n) || (rank == 2 && *k && x->shape[1] != *k)) {
        snprintf(what, sizeof what, "has shape %s, and %s is expected",
                 shape_words(is, rank, x->shape[0], rank == 2 ? x->shape[1] : 0), shape_words(others, rank, *n, *k));
        return bad_array(f, error, x->name, what);
    }
    *n = x->shape[0];
    if (rank == 2)
        *k = x->shape[1];
    return 0;
}

static int check_type(const vector_file *f, const trace *t, const type_arrays *type, uint64_t *n, uint64_t *k,
                      trace_error *error)
{
    char name[80];
    *n = *k = 0;
    for (int part = A; part <= C; part++)
        if (type->at[part] == SIZE_MAX) {
            snprintf(name, sizeof name, "%s.%s", type->name, parts[part]);
            return bad_array(f, error, name, "is missing");
        }
    if (type->at[D_FP32] == SIZE_MAX && type->at[D_FP16] == SIZE_MAX) {
        snprintf(name, sizeof name, "%s.d_fp32", type->name);
        return bad_array(f, error, name, "is missing, and so is d_fp16");
    }
    for (int part = A; part < ARRAYS; part++)
        if (type->at[part] != SIZE_MAX && check_shape(f, trace_at(t, type->at[part]), part, n, k, error))
            return -1;
    return 0;
}

static int read_type(vector_file *f, trace *t, const type_arrays *type, trace_error *error)
{
    static const char *const results[] = {"binary32", "fp16"};
    const narrowing operand = {type->format, 1, mpsim_format_code_bytes(&type->format)};
    vector_set s = {.file = f->name, .operand = type->format};
    uint64_t n, k;
    if (check_type(f, t, type, &n, &k, error) || !(s.a = read_codes(f, t, type->at[A], &operand, error)) ||
        !(s.b = read_codes(f, t, type->at[B], &operand, error)))
        return -1;
    s.n = (size_t)n;
    s.k = (size_t)k;
    for (int i = 0; i < 2; i++) {
        const int part = D_FP32 + i;
        if (type->at[part] == SIZE_MAX)
            continue;
        s.result = *mpsim_format_find(results[i]);
        const narrowing c = {s.result, part == D_FP32, 8}, d = {s.result, 1, 8};
        snprintf(s.name, sizeof s.name, "%s.%s", type->name, parts[part]);
        if (!(s.c = read_codes(f, t, type->at[C], &c, error)) || !(s.d = read_codes(f, t, type->at[part], &d, error)))
            return -1;
        need_room(&f->sets, f->count, sizeof *f->sets);
        f->sets[f->count++] = s;
    }
    return 0;
}

int verify_vectors_load(vector_file *f, const char *path, trace_error *error)
{
    const char *slash = strrchr(path, '/');
    *f = (vector_file){.count = 0};
    escape_text(f->name, sizeof f->name, slash ? slash + 1 : path);
    trace *t = trace_open(path, NULL, error);
    if (!t)
        return -1;
    type_arrays *types = NULL;
    size_t n = 0;
    int bad = 0;
    if (strcmp(trace_layout(t), "npz") != 0)
        bad = trace_error_set(error, EXIT_DATA, path, UINT64_MAX, "a file of layout %s, not npz", trace_layout(t));
    bad = bad || sort_arrays(f, t, &types, &n, error);
    for (size_t i = 0; !bad && i < n; i++)
        bad = read_type(f, t, &types[i], error);
    free(types);
    trace_close(t);
    if (bad)
        verify_vectors_clear(f);
    return bad ? -1 : 0;
}

void verify_vectors_clear(vector_file *f)
{
    for (size_t i = 0; i < f->n_blocks; i++)
        free(f->blocks[i]);
    free(f->blocks);
    free(f->sets);
    f->blocks = NULL;
    f->sets = NULL;
    f->count = f->n_blocks = 0;
}

/* ---- files ---- */

static int is_npz(const char *name)
{
    const size_t n = strlen(name);
    return name[0] != '.' && n > 4 && strcmp(name + n - 4, ".npz") == 0;
}

int verify_vectors_find(trace_tree *files, const char *path, trace_error *error)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return trace_tree_add(files, path, NULL, error); /* a file, or why there is none */
    DIR *dir = opendir(path);
    int bad = 0;
    if (!dir)
        return trace_error_set(error, EXIT_IO, path, UINT64_MAX, "cannot read the directory: %s", text_error(errno));
    for (const struct dirent *e; !bad && (e = readdir(dir));) {
        char name[4096];
        if (!is_npz(e->d_name))
            continue;
        const int n = snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        bad = n < 0 || (size_t)n >= sizeof name
                  ? trace_error_set(error, EXIT_IO, path, UINT64_MAX, "the path is too long")
                  : trace_tree_add(files, name, NULL, error);
    }
    closedir(dir);
    if (!bad && files->count == 0)
        bad = trace_error_set(error, EXIT_DATA, path, UINT64_MAX, "no npz file in this folder");
    trace_tree_sort(files);
    return bad;
}
