/* files.c -- see files.h. */
#include "files.h"

#include "../array/array.h"
#include "../trace/textfile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int tracelib_files_note(reader_files *f, const char *line)
{
    char *own = strdup(line);
    if (!own || array_room(&f->notes, f->n_notes, sizeof *f->notes)) {
        free(own);
        return -1;
    }
    f->notes[f->n_notes++] = own;
    return 0;
}

static int tell(void *context, const char *line)
{
    return tracelib_files_note(context, line);
}

int tracelib_files_put(reader_files *f, const char *name, const char *value, trace_error *error)
{
    if (strcmp(name, "keep-going") != 0)
        return trace_wanted_put(&f->wanted, name, value, error);
    uint64_t n;
    if (parse_count(&n, value))
        return trace_error_say(error, FILES_USAGE, "--%s: '%s' is not a non-negative integer", name, value);
    f->keep_going = n != 0;
    return 0;
}

/* A pickle below a directory that would call something is not the caller's choice. */
int tracelib_files_passes(const reader_files *f, const trace_error *error)
{
    return (f->keep_going || (f->folders && error->refused)) && !error->memory;
}

/* What is met below a directory and cannot be read. */
static int refused(void *context, const trace_error *error)
{
    reader_files *f = context;
    return tracelib_files_passes(f, error) ? tracelib_files_note(f, error->text) : -1;
}

static int add_path(reader_files *f, const char *path, trace_error *error)
{
    const size_t before = f->tree.count, notes = f->n_notes;
    if (trace_tree_add(&f->tree, path, &f->form.options, error))
        return -1;
    if (f->tree.count == before && f->n_notes == notes) {
        const char *what = trace_folder_unread(path);
        return trace_error_set(error, FILES_DATA, path, UINT64_MAX, "this directory holds no file of tensors%s%s",
                               what ? ": it is " : "", what ? what : "");
    }
    return trace_maps_find(&f->maps, path, f->tree.paths + before, f->tree.count - before, error);
}

int tracelib_files_find(reader_files *f, const char *const *paths, size_t n, trace_error *error)
{
    f->maps = (input_maps){.read = trace_text_file_whole, .tell = tell, .warn = tell, .context = f};
    f->tree.refused = refused;
    f->tree.context = f;
    f->folders = trace_are_folders(paths, n);
    if (trace_wanted_resolve(&f->form, &f->wanted, error) || trace_maps_give(&f->maps, &f->wanted.map, error))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (add_path(f, paths[i], error))
            return -1;
    trace_tree_sort(&f->tree);
    f->files = calloc(f->tree.count + 1, sizeof *f->files);
    return f->files ? 0 : trace_error_memory(error, NULL);
}

/* A place among those that are open: the file that has not been wanted for the longest time is closed. */
static size_t make_place(reader_files *f)
{
    size_t oldest = 0;
    if (f->n_open < FILES_OPEN)
        return f->n_open++;
    for (size_t i = 1; i < FILES_OPEN; i++)
        if (f->files[f->open[i]].used < f->files[f->open[oldest]].used)
            oldest = i;
    trace_close(f->files[f->open[oldest]].t);
    f->files[f->open[oldest]].t = NULL;
    return oldest;
}

static int can_be_opened_again(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

trace *tracelib_files_trace(reader_files *f, size_t i, trace_error *error)
{
    reader_file *file = &f->files[i];
    const char *path = f->tree.paths[i];
    file->used = ++f->now;
    if (file->t)
        return file->t;
    trace_options o = f->form.options;
    o.map = trace_maps_of(&f->maps, path);
    file->t = trace_open(path, &o, error);
    if (file->t && can_be_opened_again(path))
        f->open[make_place(f)] = i;
    return file->t;
}

void tracelib_files_clear(reader_files *f)
{
    for (size_t i = 0; f->files && i < f->tree.count; i++)
        trace_close(f->files[i].t);
    for (size_t i = 0; i < f->n_notes; i++)
        free(f->notes[i]);
    free(f->files);
    free(f->notes);
    trace_tree_clear(&f->tree);
    trace_maps_clear(&f->maps);
    trace_wanted_form_clear(&f->form);
    trace_wanted_clear(&f->wanted);
}
