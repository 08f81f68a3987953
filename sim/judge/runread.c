/* runread.c -- run.json, checked as a whole before anything is computed: see run.h. */
#include "run.h"

#include "../array/need.h"
#include "../process/host.h"
#include "../process/textfile.h"
#include "../text/json.h"
#include "../text/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MOST_BYTES = 1 << 28 };
static const char file_name[] = "run.json";

/* Where in run.json a reader is. */
typedef struct place {
    const run *r;
    size_t number; /* of the operation, from 1; 0: none */
    const char *name, *role;
} place;

__attribute__((format(printf, 2, 3))) static int bad(const place *p, const char *text, ...)
{
    char line[512], where[512] = "";
    va_list values;
    va_start(values, text);
    vsnprintf(line, sizeof line, text, values);
    va_end(values);
    if (p->number)
        (void)text_add(where, sizeof where, "operation %zu (%.100s): ", p->number, p->name ? p->name : "no name");
    if (p->role)
        (void)text_add(where, sizeof where, "array '%.60s': ", p->role);
    return fail(EXIT_DATA, "judge: %s: %s%s", p->r->path, where, line);
}

/* ---- values ---- */

static const char *const root_keys[] = {"schema", "files", "rows", "operations", "about", NULL};
static const char *const operation_keys[] = {"name", "kind", "row", "try", "arrays", "about", NULL};
static const char *const array_keys[] = {"tensor", "transposed", "format", "shape", "digest", "rows", NULL};

static int is_of(const char *const *words, const char *word)
{
    for (; *words; words++)
        if (strcmp(*words, word) == 0)
            return 1;
    return 0;
}

static int unknown_key(const place *p, const char *const *keys, const char *key)
{
    char all[128] = "";
    for (size_t i = 0; keys[i]; i++)
        (void)text_add(all, sizeof all, "%s%s", i ? ", " : "", keys[i]);
    return bad(p, "'%.60s' is not a key here: %s", key, all);
}

static int check_keys(const place *p, json_t *object, const char *const *keys)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) if (!is_of(keys, key)) return unknown_key(p, keys, key);
    return 0;
}

/* A text; *to stays where the key is missing. */
static int take_text(const place *p, const json_t *object, const char *key, const char **to)
{
    const json_t *v = json_object_get(object, key);
    if (v && !json_is_string(v) && !json_is_null(v))
        return bad(p, "%s: expected a text", key);
    *to = json_is_string(v) ? json_string_value(v) : *to;
    return 0;
}

/* ---- arrays ---- */

/* Whether a tensor has this name; that of an array without one is the name of its file, without the end. */
static int is_named(const trace *t, size_t i, const char *name)
{
    const char *own = trace_at(t, i)->name, *path = trace_path(t), *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    const size_t n = strcspn(file, ".");
    return *own ? strcmp(own, name) == 0 : strlen(name) == n && memcmp(file, name, n) == 0;
}

static int find_tensor(const place *p, run_array *a)
{
    for (size_t f = 0; f < p->r->files; f++)
        for (size_t i = 0; i < trace_count(p->r->file[f]); i++)
            if (is_named(p->r->file[f], i, a->tensor)) {
                if (a->file)
                    return bad(p, "two tensors have the name '%.200s'", a->tensor);
                a->file = p->r->file[f];
                a->at = i;
            }
    return a->file ? 0 : bad(p, "no file has a tensor '%.200s'", a->tensor);
}

static int is_byte(const trace *t, size_t i)
{
    trace_copy copies[TRACE_COPIES];
    return trace_copies(t, i, copies) == 1 && copies[0].width == 1;
}

static int take_tensor(const place *p, run_array *a)
{
    if (find_tensor(p, a))
        return EXIT_DATA;
    const trace_tensor *x = trace_at(a->file, a->at);
    if (x->rank > RUN_RANK)
        return bad(p, "more than %d dimensions", RUN_RANK);
    a->rank = x->rank;
    memcpy(a->shape, x->shape, x->rank * sizeof *x->shape);
    if (x->format && *a->format.name && !mpsim_format_same(x->format, &a->format))
        return bad(p, "tensor '%.200s' has numbers of %s, not of %s", a->tensor, x->format->name, a->format.name);
    if (x->format)
        a->format = *x->format;
    else if (!is_byte(a->file, a->at) || (*a->format.name && mpsim_format_code_bytes(&a->format) != 1))
        return bad(p, "tensor '%.200s' (%s) has neither numbers nor bytes", a->tensor, x->dtype);
    return 0;
}

static int take_shape(const place *p, run_array *a, const json_t *shape)
{
    uint64_t count = 1;
    if (!json_is_array(shape) || json_array_size(shape) > RUN_RANK)
        return bad(p, "shape: expected a list of at most %d sizes", RUN_RANK);
    a->rank = json_array_size(shape);
    for (size_t i = 0; i < a->rank; i++) {
        const json_t *n = json_array_get(shape, i);
        if (!json_is_integer(n) || json_integer_value(n) < 1 ||
            (uint64_t)json_integer_value(n) > PTRDIFF_MAX / 8 / count)
            return bad(p, "shape: expected sizes from 1 on, of an array that memory can hold");
        count *= a->shape[i] = (uint64_t)json_integer_value(n);
    }
    return 0;
}

/* How many parts of so many dimensions an array has: 1: rows; 2: matrices. */
static uint64_t parts_of(const run_array *a, size_t dimensions)
{
    uint64_t n = 1;
    for (size_t i = 0; i + dimensions < a->rank; i++)
        n *= a->shape[i];
    return n;
}

static int check_digests(const place *p, const run_array *a)
{
    const uint64_t want = a->each ? (parts_of(a, 1) + a->each - 1) / a->each : 1;
    if (json_array_size(a->digests) != want)
        return bad(p, "expected %llu digests, found %zu", (unsigned long long)want, json_array_size(a->digests));
    for (size_t i = 0; i < want; i++) {
        const char *hex = json_string_value(json_array_get(a->digests, i));
        if (!hex || strlen(hex) != 64 || strspn(hex, "0123456789abcdef") != 64)
            return bad(p, "digest: expected 64 hexadecimal digits, found %.80s", hex ? hex : "no text");
    }
    return 0;
}

/* One digest becomes a list of one. */
static int take_digests(const place *p, run_array *a, json_t *object)
{
    json_t *d = json_object_get(object, "digest");
    const json_t *rows = json_object_get(object, "rows");
    if (rows && (!json_is_integer(rows) || json_integer_value(rows) < 1))
        return bad(p, "rows: expected how many rows a digest is of");
    if (json_is_string(d)) {
        d = json_pack("[O]", d);
        json_object_set_new(object, "digest", d);
    }
    if (!json_is_array(d))
        return bad(p, "expected 'tensor' or 'digest'");
    a->digests = d;
    a->each = rows ? (size_t)json_integer_value(rows) : 0;
    if (!*a->format.name)
        return bad(p, "a digest needs 'format'");
    if (a->transposed)
        return bad(p, "a digest is of the array itself, not of its transpose");
    if (take_shape(p, a, json_object_get(object, "shape")))
        return EXIT_DATA;
    return check_digests(p, a);
}

static int take_array(const place *p, run_array *a, json_t *v)
{
    const char *format = NULL;
    a->role = p->role;
    if (json_is_string(v)) {
        a->tensor = json_string_value(v);
        return take_tensor(p, a);
    }
    if (!json_is_object(v))
        return bad(p, "expected the name of a tensor, or an object");
    const json_t *transposed = json_object_get(v, "transposed");
    if (check_keys(p, v, array_keys) || take_text(p, v, "tensor", &a->tensor) || take_text(p, v, "format", &format))
        return EXIT_DATA;
    if (transposed && !json_is_boolean(transposed))
        return bad(p, "transposed: expected true or false");
    if (format && mpsim_format_parse(&a->format, format) != MPSIM_OK)
        return bad(p, "'%.60s' is not a format", format);
    a->transposed = json_is_true(transposed);
    if (a->tensor && json_object_get(v, "digest"))
        return bad(p, "expected 'tensor' or 'digest', found both");
    return a->tensor ? take_tensor(p, a) : take_digests(p, a, v);
}

/* ---- operations ---- */

static const run_array *array_of(const run_operation *o, const char *role)
{
    for (size_t i = 0; i < o->arrays; i++)
        if (strcmp(o->of[i].role, role) == 0)
            return &o->of[i];
    return NULL;
}

/* Whether a role is one of results: digests are of these. */
static int is_result(mpsim_judge_kind kind, const char *role)
{
    static const char *const results[] = {"y", "d", "o", "lse", "new_param", "new_m", "new_v", "new_vmax", NULL};
    return kind != MPSIM_JUDGE_QUANTISE && is_of(results, role);
}

static int check_roles(place *p, const run_operation *o)
{
    const char *const *role = judge_roles(o->kind);
    for (; *role; role++)
        if (!array_of(o, *role))
            return bad(p, "expected an array '%s', found none", *role);
    for (size_t i = 0; i < o->arrays; i++) {
        const run_array *a = &o->of[i];
        p->role = a->role;
        if (!is_of(judge_roles(o->kind), a->role) && !is_of(role + 1, a->role))
            return bad(p, "is not a role of %s", judge_kind_name(o->kind));
        if (a->digests && !is_result(o->kind, a->role))
            return bad(p, "expected a tensor: of %s only results may be digests", judge_kind_name(o->kind));
    }
    p->role = NULL;
    return 0;
}

/* Products of stacks: each array has one matrix, or as many as the results. */
static int take_stack(const place *p, run_operation *o)
{
    o->stack = 1;
    if (o->kind != MPSIM_JUDGE_PRODUCT)
        return 0;
    const uint64_t n = parts_of(array_of(o, "d"), 2);
    o->stack = (size_t)n;
    for (size_t i = 0; i < o->arrays; i++)
        if (parts_of(&o->of[i], 2) != 1 && parts_of(&o->of[i], 2) != n)
            return bad(p, "array '%s' has %llu matrices, d has %llu", o->of[i].role,
                       (unsigned long long)parts_of(&o->of[i], 2), (unsigned long long)n);
    return 0;
}

static int kind_of(const place *p, mpsim_judge_kind *kind, const char *word)
{
    for (unsigned i = 0; judge_kind_name(i) && word; i++)
        if (strcmp(judge_kind_name(i), word) == 0) {
            *kind = (mpsim_judge_kind)i;
            return 0;
        }
    return bad(p, "kind: '%.60s' is not an operation that is judged", word ? word : "");
}

static int take_operation(place *p, run_operation *o, json_t *v)
{
    const char *kind = NULL, *role;
    json_t *array;
    if (!json_is_object(v))
        return bad(p, "expected an object");
    if (take_text(p, v, "name", &o->name))
        return EXIT_DATA;
    p->name = o->name;
    if (check_keys(p, v, operation_keys) || take_text(p, v, "kind", &kind) || kind_of(p, &o->kind, kind))
        return EXIT_DATA;
    if (take_text(p, json_object_get(p->r->root, "rows"), kind, &o->row) || take_text(p, v, "row", &o->row) ||
        take_text(p, v, "try", &o->try))
        return EXIT_DATA;
    json_t *arrays = json_object_get(v, "arrays");
    if (!json_is_object(arrays) || json_object_size(arrays) > RUN_ARRAYS)
        return bad(p, "arrays: expected an object of at most %d arrays", RUN_ARRAYS);
    json_object_foreach(arrays, role, array)
    {
        p->role = role;
        if (take_array(p, &o->of[o->arrays++], array))
            return EXIT_DATA;
    }
    p->role = NULL;
    return check_roles(p, o) ? EXIT_DATA : take_stack(p, o);
}

static int take_operations(run *r)
{
    place p = {r, 0, NULL, NULL};
    json_t *all = json_object_get(r->root, "operations");
    if (!json_is_array(all) || json_array_size(all) == 0)
        return bad(&p, "operations: expected a list of operations");
    r->operations = json_array_size(all);
    r->operation = need_memory(r->operations, sizeof *r->operation);
    for (size_t i = 0; i < r->operations; i++) {
        p = (place){r, i + 1, NULL, NULL};
        if (take_operation(&p, &r->operation[i], json_array_get(all, i)))
            return EXIT_DATA;
    }
    return 0;
}

/* ---- files ---- */

static char *beside(const run *r, const char *name)
{
    const char *slash = strrchr(r->path, '/');
    return *name == '/' || !slash ? need_text(name) : need_format("%.*s/%s", (int)(slash - r->path), r->path, name);
}

static int open_files(run *r)
{
    const place p = {r, 0, NULL, NULL};
    const trace_options as = {.quantised = "parts"};
    const json_t *files = json_object_get(r->root, "files");
    if (!json_is_array(files))
        return bad(&p, "files: expected a list of files of tensors");
    r->file = need_memory(json_array_size(files) + 1, sizeof *r->file);
    for (size_t i = 0; i < json_array_size(files); i++) {
        trace_error error = {0};
        const char *name = json_string_value(json_array_get(files, i));
        if (!name)
            return bad(&p, "files: expected names");
        char *path = beside(r, name);
        r->file[i] = trace_open(path, &as, &error);
        free(path);
        if (!r->file[i])
            return fail(error.exit, "judge: %s", error.text);
        r->files++;
    }
    return 0;
}

static int check_root(const run *r)
{
    const place p = {r, 0, NULL, NULL};
    const char *schema = "";
    const json_t *rows = json_object_get(r->root, "rows");
    if (!json_is_object(r->root))
        return bad(&p, "expected an object");
    if (check_keys(&p, r->root, root_keys) || take_text(&p, r->root, "schema", &schema))
        return EXIT_DATA;
    if (strcmp(schema, "mpsim.run/1") != 0)
        return bad(&p, "expected the schema mpsim.run/1, found '%.60s'", schema);
    return rows && !json_is_object(rows) ? bad(&p, "rows: expected an object: a row for each kind") : 0;
}

/* ---- a run ---- */

static char *manifest_of(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode) ? need_format("%s/%s", path, file_name) : need_text(path);
}

int run_is(const char *path)
{
    struct stat s;
    char *file = manifest_of(path);
    const size_t n = strlen(path);
    const int is = (n > 5 && strcmp(path + n - 5, ".json") == 0) || (strcmp(file, path) != 0 && stat(file, &s) == 0);
    free(file);
    return is;
}

int run_open(run *r, const char *path)
{
    trace_error error = {0};
    json_error_t wrong;
    size_t n;
    int no_memory = 0;
    memset(r, 0, sizeof *r);
    r->path = manifest_of(path);
    r->text = text_file_read(r->path, MOST_BYTES, &n, &error);
    if (!r->text)
        return fail(error.exit, "judge: %s", error.text);
    r->root = json_text(r->text, n, JSON_REJECT_DUPLICATES, &wrong, &no_memory);
    if (!r->root)
        return no_memory ? fail(EXIT_IO, "judge: %s: out of memory", r->path)
                         : fail(EXIT_DATA, "judge: %s: line %d: %s", r->path, wrong.line, wrong.text);
    const int code = check_root(r);
    return code ? code : (open_files(r) ? EXIT_DATA : take_operations(r));
}

void run_close(run *r)
{
    for (size_t i = 0; i < r->files; i++)
        trace_close(r->file[i]);
    free(r->file);
    free(r->operation);
    free(r->text);
    if (r->root)
        json_decref(r->root);
    free((void *)(uintptr_t)r->path);
}
