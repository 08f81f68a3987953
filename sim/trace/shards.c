/* shards.c -- one model in several files beside an index that says which tensor is in which file:
 *
 *     {"metadata": {"total_size": 32}, "weight_map": {"NAME": "model-00001-of-00002.safetensors", ...}}
 *
 * Source: huggingface_hub 0.30 (serialization/_base.py, StateDictSplit; _torch.py, save_torch_state_dict). The files
 * are of any layout here (safetensors; pytorch_model.bin). What the index says and what the files hold has to be
 * the same: no tensor is missing, in another file, or in no list. */
#include "jsontext.h"
#include "parts.h"

#include "../array/array.h"
#include "../quant/describe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 64 << 10, VALUE_MAX = 1 << 20 };

typedef struct listed {
    const char *name, *file;
    int found;
} listed;

typedef struct index_map {
    listed *rows; /* by file, then name */
    size_t n;
    int has_total;
    uint64_t total;
} index_map;

static int compare_rows(const void *pa, const void *pb)
{
    const listed *a = pa, *b = pb;
    const int c = strcmp(a->file, b->file);
    return c ? c : strcmp(a->name, b->name);
}

static int add_row(json_cursor *c, index_map *m, const char *name, const char *file)
{
    if (!*file || *file == '.' || strchr(file, '/'))
        return trace_fail(c->t, c->error, trace_cursor_offset(c), "'%.200s' is not the name of a file beside the index",
                          file);
    if (m->n == TRACE_ITEMS_MAX)
        return trace_fail(c->t, c->error, TRACE_NO_OFFSET, "more than %d tensors", TRACE_ITEMS_MAX);
    if (array_room(&m->rows, m->n, sizeof *m->rows))
        return trace_no_memory(c->t, c->error);
    m->rows[m->n++] = (listed){name, file, 0};
    return 0;
}

static int weight_map(json_cursor *c, index_map *m)
{
    char ch = ',';
    if (trace_cursor_expect(c, "{", NULL) || trace_cursor_more(c))
        return -1;
    if (c->text[c->at] == '}')
        return trace_cursor_expect(c, "}", NULL);
    while (ch == ',') {
        const char *name = trace_cursor_string(c, NAME_MAX_BYTES, "the name of a tensor");
        if (!name || trace_cursor_expect(c, ":", NULL))
            return -1;
        const char *file = trace_cursor_string(c, NAME_MAX_BYTES, "the name of its file");
        if (!file || add_row(c, m, name, file) || trace_cursor_expect(c, ",}", &ch))
            return -1;
    }
    return 0;
}

/* What stands beside the map: texts and numbers of "metadata" are kept if `t` is a trace (has a state). */
static int other_member(json_cursor *c, index_map *m, const char *key)
{
    if (trace_cursor_more(c))
        return -1;
    json_t *v = trace_cursor_value(c, c->text[c->at], VALUE_MAX, "a value");
    const char *name;
    json_t *x;
    int result = v ? 0 : -1;
    if (v && strcmp(key, "metadata") == 0)
        json_object_foreach(v, name, x)
        {
            char number[32];
            if (strcmp(name, "total_size") == 0 && json_is_integer(x) && json_integer_value(x) >= 0) {
                m->has_total = 1;
                m->total = (uint64_t)json_integer_value(x);
            }
            snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(x));
            if (c->t->state && result == 0 && (json_is_string(x) || json_is_integer(x)))
                result = trace_parts_metadata(c->t, name, json_is_string(x) ? json_string_value(x) : number, c->error);
        }
    json_decref(v);
    return result;
}

static int walk(json_cursor *c, index_map *m)
{
    char ch = ',';
    int maps = 0;
    if (trace_cursor_expect(c, "{", NULL))
        return -1;
    while (ch == ',') {
        const char *key = trace_cursor_string(c, NAME_MAX_BYTES, "a key");
        if (!key || trace_cursor_expect(c, ":", NULL))
            return -1;
        const int map = strcmp(key, "weight_map") == 0;
        if (map && maps++)
            return trace_fail(c->t, c->error, trace_cursor_offset(c), "weight_map occurs twice");
        if ((map ? weight_map(c, m) : other_member(c, m, key)) || trace_cursor_expect(c, ",}", &ch))
            return -1;
    }
    trace_cursor_skip_space(c);
    if (c->at != c->n)
        return trace_fail(c->t, c->error, trace_cursor_offset(c), "%zu bytes after the JSON index", c->n - c->at);
    return maps ? 0 : trace_fail(c->t, c->error, TRACE_NO_OFFSET, "the index has no weight_map");
}

/* The index of t, whose file is open: its rows, whose strings are in t->text. */
static int read_index(trace *t, index_map *m, trace_error *error)
{
    if (t->size > t->max_header)
        return trace_fail(t, error, TRACE_NO_OFFSET, "an index of %" PRIu64 " bytes is above the cap of %" PRIu64,
                          t->size, t->max_header);
    t->text_bytes = (size_t)t->size;
    if (!(t->text = malloc(t->text_bytes + 1)))
        return trace_no_memory(t, error);
    json_cursor c = {.t = t, .what = "index", .error = error, .text = t->text, .n = t->text_bytes};
    if (trace_bytes(t, c.text, c.n, error) || walk(&c, m))
        return -1;
    if (m->n)
        qsort(m->rows, m->n, sizeof *m->rows, compare_rows);
    return 0;
}

/* Where a tensor is to be, for messages. */
static const char *file_of(const index_map *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->rows[i].name, name) == 0)
            return m->rows[i].file;
    return NULL;
}

/* The tensors of one file, rows [low, high). */
static int add_file(trace *t, index_map *m, size_t low, size_t high, uint64_t *bytes, trace_error *error)
{
    uint32_t source;
    struct stat st;
    const char *file = m->rows[low].file, *path = trace_parts_beside(t, file);
    if (!path)
        return trace_no_memory(t, error);
    if (stat(path, &st))
        return errno == ENOENT ? trace_fail(t, error, TRACE_NO_OFFSET, "its file '%s' is missing", file)
                               : trace_error_io(error, path, TRACE_NO_OFFSET, "cannot open");
    if (trace_parts_add(t, path, 0, 0, &source, error))
        return -1;
    t->size += (uint64_t)st.st_size;
    trace *from = trace_parts_use(t, source, error);
    int result = from ? 0 : -1;
    for (size_t i = 0; from && i < from->count && result == 0; i++) {
        const trace_tensor *x = &from->entries[i].tensor;
        const listed key = {x->name, file, 0};
        listed *row = bsearch(&key, m->rows + low, high - low, sizeof key, compare_rows);
        if (!row) {
            const char *other = file_of(m, x->name);
            result =
                other
                    ? trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%s' is in '%s', not in '%s'", x->name, file, other)
                    : trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%s' of '%s' is not in the index", x->name, file);
            break;
        }
        row->found = 1;
        *bytes += from->entries[i].bytes;
        trace_entry *e = trace_parts_tensor(t, row->name, x, error);
        if (e) {
            e->bytes = from->entries[i].bytes;
            e->nowhere = from->entries[i].nowhere;
            e->tensor.unread = x->unread;
        }
        result = e && !trace_parts_run(t, source, (uint32_t)i, 0, 0, x->count, error) ? trace_parts_whole(t, error)
                                                                                      : -1;
    }
    const char *key;
    for (size_t i = 0; result == 0 && from && (key = trace_metadata_key(from, i)); i++)
        if (strncmp(key, QUANT_KEY, strlen(QUANT_KEY)) == 0 || (low == 0 && !trace_metadata(t, key)))
            result = trace_parts_metadata(t, key, trace_metadata_value(from, i), error);
    if (from)
        trace_parts_leave(t, source);
    for (size_t i = low; i < high && result == 0; i++)
        if (!m->rows[i].found)
            result = trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%s' is not in '%s'", m->rows[i].name, file);
    return result;
}

static int open_files(trace *t, index_map *m, trace_error *error)
{
    uint64_t bytes = 0;
    for (size_t i = 0, k; i < m->n; i = k) {
        for (k = i + 1; k < m->n && strcmp(m->rows[k].file, m->rows[i].file) == 0; k++)
            if (strcmp(m->rows[k].name, m->rows[k - 1].name) == 0)
                return trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%s' occurs twice in the index", m->rows[k].name);
        if (add_file(t, m, i, k, &bytes, error))
            return -1;
    }
    if (trace_parts_names(t, error))
        return -1;
    if (m->has_total && m->total != bytes)
        return trace_fail(t, error, TRACE_NO_OFFSET, "total_size is %" PRIu64 ", its tensors have %" PRIu64 " bytes",
                          m->total, bytes);
    return 0;
}

static int open_shards(trace *t, const trace_options *options, trace_error *error)
{
    index_map m = {NULL, 0, 0, 0};
    if (strcmp(t->path, "-") == 0)
        return trace_fail(t, error, TRACE_NO_OFFSET, "an index of files cannot come through a pipe");
    const int result = trace_parts_begin(t, options, error) || read_index(t, &m, error) || open_files(t, &m, error);
    free(m.rows);
    return result ? -1 : 0;
}

int trace_is_index(const unsigned char *head, size_t n)
{
    static const char key[] = "\"weight_map\"";
    size_t i = 0;
    while (i < n && head[i] && strchr(" \t\r\n", head[i]))
        i++;
    if (i == n || head[i] != '{')
        return 0;
    while (i + sizeof key - 1 <= n && memcmp(head + i, key, sizeof key - 1) != 0)
        i++;
    return i + sizeof key - 1 <= n;
}

int trace_shards(const char *path, int (*visit)(void *context, const char *file), void *context)
{
    trace t = {.path = strdup(path), .type = &trace_layout_shards, .max_header = TRACE_HEADER_DEFAULT};
    index_map m = {NULL, 0, 0, 0};
    struct stat st;
    int result = t.path ? 0 : -1;
    trace_error error = {.exit = 0};
    t.fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (!t.path || t.fd < 0 || fstat(t.fd, &st) || !S_ISREG(st.st_mode))
        goto done;
    t.size = (uint64_t)st.st_size;
    if (read_index(&t, &m, &error))
        result = -error.memory;
    for (size_t i = 0; i < m.n && result == 0 && !error.exit; i++)
        if (i == 0 || strcmp(m.rows[i].file, m.rows[i - 1].file) != 0)
            result = visit(context, m.rows[i].file);
    free(m.rows);
done:
    if (result < 0)
        errno = ENOMEM;
    trace_memory_clear(&t);
    free(t.path);
    if (t.fd >= 0)
        close(t.fd);
    return result;
}

const trace_layout_type trace_layout_shards = {.name = "safetensors index",
                                               .open = open_shards,
                                               .codes = trace_parts_codes,
                                               .file = trace_parts_file,
                                               .close = trace_parts_close,
                                               .has_parts = 1,
                                               .all_elements = 1};
