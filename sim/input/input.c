/* input.c -- see input.h. */
#include "input.h"

#include "../array/array.h"
#include "../text/words.h"
#include "../trace/inputs.h"
#include "../process/textfile.h"

#include <threads/parallel.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- options ---- */

/* What a line that may be about the command line says. */
static int said(const char *verb, const trace_error *error)
{
    return error->exit == EXIT_USAGE ? fail(EXIT_USAGE, "%s: %s", verb, error->text)
                                     : fail(error->exit, "%s", error->text);
}

int input_check_kinds(const char *verb, const char *option, const option_list *kinds, const char *other)
{
    trace_error error;
    return trace_wanted_check_kinds(option, kinds, other, &error) ? said(verb, &error) : 0;
}

static int note_line(void *context, const char *line)
{
    (void)context;
    note("%s", line);
    return 0;
}

static int warn_line(void *context, const char *line)
{
    (void)context;
    host_warn("%s", line);
    return 0;
}

/* What the words say, and the rules of --map. */
static int resolve_options(input *in)
{
    trace_error error;
    in->maps = (input_maps){.read = text_file_read, .tell = note_line, .warn = warn_line};
    return trace_wanted_resolve(&in->form, &in->options->wanted, &error) ? said(in->verb, &error) : 0;
}

int input_raw_form(wanted_form *f, const char *verb, const input_options *o)
{
    trace_error error;
    return trace_wanted_resolve(f, &o->wanted, &error) ? said(verb, &error) : 0;
}

/* ---- files ---- */

typedef struct found {
    struct stat is;
    const char *path;
} found;

static int compare_files(const void *a, const void *b)
{
    const struct stat *x = &((const found *)a)->is, *y = &((const found *)b)->is;
    if (x->st_dev != y->st_dev)
        return x->st_dev < y->st_dev ? -1 : 1;
    return (x->st_ino > y->st_ino) - (x->st_ino < y->st_ino);
}

static int given_twice(const input *in, const char *a, const char *b)
{
    char name[512], other[512];
    if (strcmp(a, b) == 0)
        return fail(EXIT_USAGE, "%s: '%s' is given twice", in->verb, escape_text(name, sizeof name, a));
    return fail(EXIT_USAGE, "%s: a file is given twice, as '%s' and '%s'", in->verb, escape_text(name, sizeof name, a),
                escape_text(other, sizeof other, b));
}

/* One file under two names would count twice. */
static int check_twice(const input *in)
{
    found *files = array_zeros(in->tree.count, sizeof *files);
    if (!files)
        return host_no_memory();
    size_t n = 0;
    int code = 0;
    for (size_t i = 0; i < in->tree.count; i++) {
        files[n].path = in->tree.paths[i];
        trace_inputs_add_path(files[n].path); /* all of them, before the first is opened */
        n += stat(files[n].path, &files[n].is) == 0 && S_ISREG(files[n].is.st_mode);
    }
    if (n)
        qsort(files, n, sizeof *files, compare_files);
    for (size_t i = 1; i < n && !code; i++)
        if (compare_files(&files[i - 1], &files[i]) == 0)
            code = given_twice(in, files[i - 1].path, files[i].path);
    free(files);
    return code;
}

/* What failed while files were looked for: it is kept, too. */
static int refuse(input *in, const trace_error *error)
{
    const int code = input_failed(in, error);
    if (code)
        return code;
    if (array_room(&in->refused, in->n_refused, sizeof *in->refused))
        return host_no_memory();
    in->refused[in->n_refused++] = *error;
    return 0;
}

static int refused(void *in, const trace_error *error)
{
    return refuse(in, error);
}

/* What one operand stands for. 0, or an exit code after a message. */
static int add_operand(input *in, const char *operand)
{
    trace_error error;
    const size_t before = in->tree.count;
    const int failed = in->failed;
    const int code = trace_tree_add(&in->tree, operand, &in->form.options, &error);
    if (code)
        return code < 0 ? refuse(in, &error) : code;
    if (in->tree.count > before || in->failed > failed)
        return 0;
    const char *what = trace_folder_unread(operand);
    trace_error_set(&error, EXIT_DATA, operand, UINT64_MAX, "this directory holds no file of tensors%s%s%s",
                    what ? ": it is " : "", what ? what : "",
                    what ? ", which is not read; save its arrays as safetensors or npz" : "");
    return refuse(in, &error);
}

/* What can be read once, one process has. */
static int check_shared(const char *verb, char **operands, int n)
{
    for (int i = 0; i < n && host_processes() > 1; i++) {
        struct stat st;
        if (strcmp(operands[i], "-") == 0 ||
            (stat(operands[i], &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
            return fail(EXIT_USAGE, "%s: '%s' can be read by one process only: give files", verb, operands[i]);
    }
    return 0;
}

/* What one operand stands for, and the names that a file beside it explains. */
static int open_operand(input *in, const char *operand)
{
    trace_error error;
    const size_t before = in->tree.count;
    const int code = add_operand(in, operand);
    if (code)
        return code;
    return trace_maps_find(&in->maps, operand, in->tree.paths + before, in->tree.count - before, &error)
               ? said(in->verb, &error)
               : 0;
}

static int look_for(input *in, char **operands, int n)
{
    if (n < 1)
        return fail(EXIT_USAGE, "%s: no file given; try 'mpsim %s --help'", in->verb, in->verb);
    struct stat st;
    in->several = n > 1 || (stat(operands[0], &st) == 0 && S_ISDIR(st.st_mode));
    in->folders = !in->tree.unread && trace_are_folders((const char *const *)operands, (size_t)n);
    in->needs_kinds = in->options->wanted.kinds.count > 0;
    int code = resolve_options(in);
    if (!code)
        code = check_shared(in->verb, operands, n);
    trace_error error;
    if (!code && trace_maps_give(&in->maps, &in->options->wanted.map, &error))
        code = said(in->verb, &error);
    in->tree.refused = refused;
    in->tree.context = in;
    for (int i = 0; i < n && !code; i++)
        code = open_operand(in, operands[i]);
    if (code)
        return code;
    trace_tree_sort(&in->tree);
    return check_twice(in);
}

int input_is_file(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 &&
           (stat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)); /* if stat fails, opening says why */
}

/* Bytes of a file, 0 if it is not a regular one. */
static uint64_t bytes_of(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) ? (uint64_t)s.st_size : 0;
}

int input_open(input *in, const char *verb, const input_options *o, char **operands, int n)
{
    *in = (input){.verb = verb, .options = o};
    const int code = look_for(in, operands, n);
    for (size_t i = 0; i < in->tree.count && !code; i++)
        in->bytes += bytes_of(in->tree.paths[i]);
    if (in->bytes)
        host_expect(in->bytes);
    in->planned = 1;
    return code;
}

/* What the words say of the form of a file. */
static int check_no_file(const input *in)
{
    const wanted_words *w = &in->options->wanted;
    return w->dtype || w->shape || w->assume || w->as || w->offset || w->big_endian
               ? fail(EXIT_USAGE,
                      "%s: --dtype, --shape, --offset, --big-endian, --assume and --as are for files, not arrays",
                      in->verb)
               : 0;
}

int input_open_arrays(input *in, const char *verb, const input_options *o, const trace_array *arrays, size_t n)
{
    trace_error error;
    *in = (input){.verb = verb, .options = o, .arrays = arrays, .n_arrays = n};
    in->needs_kinds = o->wanted.kinds.count > 0;
    int code = check_no_file(in);
    if (!code)
        code = resolve_options(in);
    if (!code && trace_maps_give(&in->maps, &o->wanted.map, &error))
        code = said(verb, &error);
    if (!code && array_room(&in->tree.paths, 0, sizeof *in->tree.paths) == 0 && (in->tree.paths[0] = strdup("-")))
        in->tree.count = 1;
    return code || in->tree.count ? code : host_no_memory();
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int input_list(input *in, const char *verb, const input_options *o, char **operands, int n)
{
    *in = (input){.verb = verb, .options = o, .tree.unread = 1};
    in->operands = array_zeros((size_t)(n < 1 ? 1 : n), sizeof *in->operands);
    if (!in->operands)
        return host_no_memory();
    for (; in->n_operands < n; in->n_operands++)
        in->operands[in->n_operands] = operands[in->n_operands];
    qsort(in->operands, (size_t)in->n_operands, sizeof *in->operands, compare_texts);
    return look_for(in, operands, n);
}

void input_options_clear(input_options *o)
{
    trace_wanted_clear(&o->wanted);
}

void input_close(input *in)
{
    trace_tree_clear(&in->tree);
    free(in->operands);
    in->operands = NULL;
    in->n_operands = 0;
    trace_maps_clear(&in->maps);
    twice_clear(&in->twice);
    trace_wanted_form_clear(&in->form);
    unread_clear(&in->unread);
    free(in->refused);
    in->refused = NULL;
    in->n_refused = 0;
}

int input_failed(input *in, const trace_error *error)
{
    const int hint = in->options->may_keep_going && !in->options->keep_going && in->several && !error->memory;
    const int passed = hint && in->folders && error->refused;
    fail(error->exit, "%s%s", error->text,
         passed ? " (ignored)"
         : hint ? " (--keep-going goes on without such files)"
                : "");
    if ((!in->options->keep_going && !passed) || error->memory)
        return error->exit;
    in->failed++;
    return 0;
}

/* Numbers behind a transform are not those that were transformed: said once. */
static void note_transform(input *in, const trace *t)
{
    char path[1024], name[512];
    for (size_t i = 0; i < trace_count(t) && !in->said_transform; i++) {
        const trace_quantised *q = trace_at(t, i)->quantised;
        if (!q || !q->transform)
            continue;
        in->said_transform = 1;
        note("%s: '%s' was Hadamard-transformed in groups of %u: the transformed numbers are read",
             escape_text(path, sizeof path, trace_path(t)), escape_text(name, sizeof name, trace_at(t, i)->name),
             q->transform);
    }
}

/* Zeros that another version of a layout fits: said once. */
static void note_zeros(input *in, const trace *t)
{
    char path[1024], text[1024];
    if (in->said_zeros || !trace_zeros_note(t))
        return;
    in->said_zeros = 1;
    note("%s: %s", escape_text(path, sizeof path, trace_path(t)), escape_text(text, sizeof text, trace_zeros_note(t)));
}

/* Members without numbers: said of the first file that has them. */
static void note_not_read(input *in, const trace *t)
{
    char path[1024];
    const char *what = in->said_not_read ? NULL : trace_metadata(t, TRACE_NOT_READ);
    if (!what)
        return;
    in->said_not_read = 1;
    note("%s: not read: %s", escape_text(path, sizeof path, trace_path(t)), what);
}

/* By any thread. */
static trace *open_file(const input *in, const char *path, trace_error *error)
{
    trace_options o = in->form.options;
    o.map = trace_maps_of(&in->maps, path);
    trace *t = in->arrays ? trace_of_arrays(path, in->arrays, in->n_arrays, &o, error) : trace_open(path, &o, error);
    if (!t || !in->needs_kinds || trace_wanted_clash(t, error) == 0)
        return t;
    trace_close(t);
    return NULL;
}

static void note_file(input *in, const trace *t)
{
    if (t) {
        note_transform(in, t);
        note_zeros(in, t);
        note_not_read(in, t);
    }
}

trace *input_trace_open(input *in, const char *path, trace_error *error)
{
    trace *t = open_file(in, path, error);
    note_file(in, t);
    return t;
}

int input_selects(const input *in, const trace_tensor *t)
{
    return trace_wanted_selects(&in->options->wanted, t);
}

/* Whether --kind leaves out a tensor of numbers since it has none. */
static int lacks_kind(const wanted_words *w, const trace_tensor *x)
{
    return w->kinds.count && !x->kind && x->format && trace_wanted_matches(w, x);
}

void input_see(input *in, const trace *t)
{
    for (size_t i = 0; i < trace_count(t); i++)
        in->without_kind += (uint64_t)lacks_kind(&in->options->wanted, trace_at(t, i));
    for (size_t i = 0; i < trace_count(t) && in->lists_unread; i++)
        if (input_selects(in, trace_at(t, i)) && unread_add(&in->unread, trace_path(t), trace_at(t, i)))
            return;
}

/* What is looked at once, while files are first read. */
static void look(input *in, const trace *t)
{
    const wanted_words *w = &in->options->wanted;
    twice_see(&in->twice, t);
    if (in->folders && trace_count(t) == 0 && in->empty++ == 0)
        escape_text(in->first_empty, sizeof in->first_empty, trace_path(t));
    input_see(in, t);
    for (size_t i = 0; i < trace_count(t); i++)
        if (lacks_kind(w, trace_at(t, i))) {
            in->unknown++;
            in->unknown_elements += trace_at(t, i)->count;
        }
}

void input_note_empty(const char *first, uint64_t n)
{
    if (n > 1)
        note("ignored files without tensors: %s and %" PRIu64 " more", first, n - 1);
    else if (n)
        note("ignored a file without tensors: %s", first);
}

const char *input_first_kind(const input *in, char kind[16])
{
    const option_list *kinds = &in->options->wanted.kinds;
    const char *first = kinds->count ? kinds->items[0] : "KIND";
    snprintf(kind, 16, "%.*s", (int)strcspn(first, ","), first);
    return kind;
}

static void tell(input *in)
{
    unread_settle(&in->unread);
    twice_tell(&in->twice);
    if (!in->looked && !in->options->names_files)
        input_note_empty(in->first_empty, in->empty);
    if (in->unknown && !in->looked)
        note("--kind ignores %" PRIu64 " tensor%s of %" PRIu64
             " element%s without a kind: info shows them, --map gives them one",
             in->unknown, text_plural(in->unknown), in->unknown_elements, text_plural(in->unknown_elements));
    in->unknown = 0;
}

void input_plan(input *in, uint64_t passes)
{
    if (passes > in->planned && in->bytes)
        host_again((passes - in->planned) * in->bytes);
    in->planned = passes > in->planned ? passes : in->planned;
}

/* What progress has counted of earlier passes. A pass that is not planned reads all bytes once more. */
static uint64_t begin_pass(input *in)
{
    if (!in->headers)
        input_plan(in, ++in->passes);
    return in->passes ? (in->passes - 1) * in->bytes : 0;
}

int input_each(input *in, int (*visit)(input *in, trace *t, void *context), void *context)
{
    uint64_t done = begin_pass(in);
    for (size_t i = 0; i < in->tree.count; i++) {
        trace_error error;
        trace *t = input_trace_open(in, in->tree.paths[i], &error);
        if (t && !in->looked)
            look(in, t);
        const int code = t ? visit(in, t, context) : input_failed(in, &error);
        trace_close(t);
        if (code)
            return code;
        done += bytes_of(in->tree.paths[i]);
        if (!in->headers)
            host_reach(done);
    }
    tell(in);
    return 0;
}

/* ---- several files at once ---- */

enum { TOGETHER = 16, TOGETHER_BYTES = 16 << 20 };

typedef struct opening {
    input *in;
    size_t first;
    input_file files[TOGETHER];
} opening;

/* Whether a file that was not looked at is one below a directory, and none of tensors. */
static int is_other(const input *in, const char *path)
{
    return in->tree.unread &&
           !bsearch(&path, in->operands, (size_t)in->n_operands, sizeof *in->operands, compare_texts) &&
           !trace_tree_keeps(path, &in->form.options);
}

static void open_one(int i, void *context)
{
    opening *o = context;
    input_file *f = &o->files[i];
    f->i = o->first + (size_t)i;
    const char *path = o->in->tree.paths[f->i];
    f->other = is_other(o->in, path);
    f->t = f->other ? NULL : open_file(o->in, path, &f->error);
}

/* How many files from `first` on, and before `end`, are opened at once: what is no regular file (a pipe), or
 * large, is alone. */
static size_t count_together(const input *in, size_t first, size_t end)
{
    uint64_t bytes = 0;
    size_t n = 0;
    for (; n < TOGETHER && first + n < end; n++) {
        struct stat s;
        if (stat(in->tree.paths[first + n], &s) != 0 || !S_ISREG(s.st_mode))
            break;
        bytes += (uint64_t)s.st_size;
        if (bytes > TOGETHER_BYTES)
            break;
    }
    return n ? n : 1;
}

int input_each_open(input *in, size_t first, size_t end,
                    int (*visit)(input *in, input_file *files, size_t n, void *context), void *context)
{
    opening o = {.in = in, .first = first};
    size_t n;
    uint64_t done = begin_pass(in);
    for (; o.first < end; o.first += n) {
        n = count_together(in, o.first, end);
        parallel_for((int)n, open_one, &o);
        for (size_t i = 0; i < n; i++)
            note_file(in, o.files[i].t);
        for (size_t i = 0; i < n && !in->looked && !in->tree.unread; i++) /* a shard does not see all */
            if (o.files[i].t)
                look(in, o.files[i].t);
        const int code = visit(in, o.files, n, context);
        for (size_t i = 0; i < n; i++)
            trace_close(o.files[i].t);
        if (code)
            return code;
        for (size_t i = 0; i < n; i++)
            done += bytes_of(in->tree.paths[o.first + i]);
        if (!in->tree.unread) /* of a shard's files others may have a part */
            host_reach(done);
    }
    tell(in);
    return 0;
}

const char *files_names(const char *first, size_t n, char *out, size_t size)
{
    char name[512];
    escape_text(name, sizeof name, first);
    if (n > 1)
        snprintf(out, size, "%s and %zu more", name, n - 1);
    else
        snprintf(out, size, "%s", name);
    return out;
}

const char *input_names(const input *in, char *out, size_t size)
{
    return files_names(in->tree.count ? in->tree.paths[0] : "", in->tree.count, out, size);
}

json_t *json_of_path(const char *path)
{
    char escaped[4096];
    json_t *v = json_string(path); /* NULL if it is not UTF-8 */
    return v ? v : json_string(escape_text(escaped, sizeof escaped, path));
}
