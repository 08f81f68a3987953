/* folder.c -- see folder.h.
 *
 * A file keeps its name and its place below the folder that was given; what is not of the layout that is written gets
 * its suffix behind the name. Of files beside an index each is written, and an index of what they hold then: names
 * of codes and scales, and the bytes of all. */
#include "cast.h"

#include "../array/need.h"
#include "../process/output.h"
#include "../text/words.h"
#include "../trace/inputs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int cast_folder_wanted(const input *in, const char *operand, const char *path)
{
    if (strcmp(path, "-") == 0)
        return in->tree.count > 1;
    return in->tree.count > 1 || text_ends_with(path, "/") || is_folder(path) ||
           (is_folder(operand) && !text_ends_with(path, ".safetensors") && !text_ends_with(path, ".npy"));
}

/* ---- names ---- */

/* The name of a file below the operand; its last part where there is none. */
static const char *name_below(const folder *f, const char *path)
{
    const size_t n = f->operand ? strlen(f->operand) : 0;
    const char *slash = strrchr(path, '/');
    if (n && strncmp(path, f->operand, n) == 0 && (path[n] == '/' || f->operand[n - 1] == '/') &&
        path[n + (path[n] == '/')])
        return path + n + (path[n] == '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Where a file is written: to be freed; NULL without memory. */
static char *place_of(const folder *f, const char *path)
{
    const char *name = name_below(f, path);
    const size_t n = strlen(f->path);
    return need_format("%.*s/%s%s", (int)(n > 1 && f->path[n - 1] == '/' ? n - 1 : n), f->path, name,
                       text_ends_with(name, f->suffix) ? "" : f->suffix);
}

/* The folders that a file is in, as far as they are not there. */
static int make_folders(char *path)
{
    char name[512];
    for (char *p = path + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        const int bad = mkdir(path, 0777) && errno != EEXIST;
        if (bad)
            return fail(EXIT_IO, "%s: cannot make this folder: %s", escape_text(name, sizeof name, path),
                        text_error(errno));
        *p = '/';
    }
    return 0;
}

/* The folder of the input itself: files beside an index, which are not known yet, would be replaced. */
static int check_folder(const folder *f)
{
    struct stat a, b;
    char name[512];
    if (!f->operand || stat(f->operand, &a) || stat(f->path, &b) || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
        return 0;
    return fail(EXIT_USAGE, "cast: '%s' is also the input folder: its files would be replaced",
                escape_text(name, sizeof name, f->path));
}

static int compare_places(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int cast_folder_check(const folder *f, const input *in)
{
    char name[512];
    trace_error error;
    char **all = need_memory(in->tree.count, sizeof *all);
    int code = check_folder(f);
    if (strcmp(f->path, "-") == 0)
        code = fail(EXIT_USAGE, "cast: %zu files cannot be one output: name a folder", in->tree.count);
    for (size_t i = 0; i < in->tree.count && !code; i++) {
        all[i] = place_of(f, in->tree.paths[i]);
        if (trace_inputs_check(all[i], &error))
            code = fail(error.exit, "%s", error.text);
    }
    if (!code && in->tree.count)
        qsort(all, in->tree.count, sizeof *all, compare_places);
    for (size_t i = 1; i < in->tree.count && !code; i++)
        if (strcmp(all[i - 1], all[i]) == 0)
            code = fail(EXIT_USAGE, "cast: two files would be written to '%s': cast their folders one by one",
                        escape_text(name, sizeof name, all[i]));
    for (size_t i = 0; i < in->tree.count; i++)
        free(all[i]);
    free(all);
    return code;
}

/* ---- an index ---- */

typedef struct listing {
    json_t *map;
    uint64_t bytes;
} listing;

/* What a file holds that was written. */
static int list_file(listing *l, const char *path)
{
    const trace_options as_stored = {.quantised = "parts"};
    const char *name = strrchr(path, '/') + 1;
    trace_error error;
    trace_copy copies[TRACE_COPIES];
    trace *t = trace_open(path, &as_stored, &error);
    if (!t)
        return fail(error.exit, "%s", error.text);
    for (size_t i = 0; i < trace_count(t); i++) {
        if (trace_copies(t, i, copies) != 0)
            l->bytes += copies[0].units * copies[0].width;
        json_object_set_new(l->map, trace_at(t, i)->name, json_string(name));
    }
    trace_close(t);
    return 0;
}

static int write_text(const char *path, json_t *index)
{
    output to;
    int code = output_open(&to, path);
    if (code)
        return code;
    json_dumpf(index, to.file, JSON_INDENT(2) | JSON_SORT_KEYS);
    fputc('\n', to.file);
    return output_close(&to);
}

/* The index keeps its name, if that is one of safetensors. */
static char *index_place(const folder *f, const char *path)
{
    folder as_it_is = *f;
    const char *slash = strrchr(path, '/');
    char *named = text_ends_with(path, ".safetensors.index.json")
                      ? need_text(path)
                      : need_format("%.*smodel.safetensors.index.json", slash ? (int)(slash + 1 - path) : 0, path);
    as_it_is.suffix = "";
    char *to = place_of(&as_it_is, named);
    free(named);
    return to;
}

static int write_index(const folder *f, const trace *t, listing *l)
{
    char *path = index_place(f, trace_path(t));
    json_t *index = json_pack("{s:{s:I}, s:O}", "metadata", "total_size", (json_int_t)l->bytes, "weight_map", l->map);
    const int code = write_text(path, index);
    json_decref(index);
    free(path);
    return code;
}

/* ---- files ---- */

static int write_one(const folder *f, input *in, trace *t, const char *file, listing *l)
{
    char *path = place_of(f, file ? file : trace_path(t));
    int code = make_folders(path);
    if (!code)
        code = output_check(path);
    if (!code)
        code = f->write(f->context, in, t, file, path);
    if (!code && l)
        code = list_file(l, path);
    free(path);
    return code;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The files of an index, each once. */
static int write_files(const folder *f, input *in, trace *t)
{
    const size_t n = trace_count(t);
    const char **files = need_memory(n, sizeof *files);
    listing l = {json_object(), 0};
    int code = 0;
    for (size_t i = 0; i < n; i++)
        files[i] = trace_file_of(t, i);
    if (n)
        qsort(files, n, sizeof *files, compare_names);
    for (size_t i = 0; i < n && !code; i++)
        if (i == 0 || strcmp(files[i - 1], files[i]) != 0)
            code = write_one(f, in, t, files[i], &l);
    if (!code)
        code = write_index(f, t, &l);
    json_decref(l.map);
    free(files);
    return code;
}

int cast_folder_visit(const folder *f, input *in, trace *t)
{
    if (trace_count(t) == 0) /* a note says which */
        return 0;
    return trace_has_index(t) ? write_files(f, in, t) : write_one(f, in, t, NULL, NULL);
}
