/* distcp.c -- a checkpoint of torch.distributed.checkpoint (FSDP, FSDP2, tensor parallel): a folder with a pickle,
 * .metadata, that says of each tensor where its chunks are, and files __RANK_N.distcp, each a row of streams of
 * torch.save, one for each chunk.
 *
 * Source: torch/distributed/checkpoint/metadata.py (Metadata, TensorStorageMetadata, ChunkStorageMetadata,
 * MetadataIndex) and filesystem.py (_StorageInfo) of PyTorch 2.15.0; checkpoints that it wrote (tests/trace/recorded).
 * A tensor is named by its path in the state that was saved (planner_data), as dcp_to_torch_save puts it into a
 * file: levels joined by '/'. */
#include "inputs.h"
#include "parts.h"
#include "torch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NO_PLACE = TRACE_RANK_MAX + 1,
    BAD_PLACE,
    /* What values of the pickle may share, they share with everyone who looks: */
    FIELDS_MAX = 100,  /* of an object; torch's have ten                          */
    LEVELS_MAX = 1000, /* of a path                                               */
    NAME_BYTES = 4096, /* of a name of an item, which is compared with others     */
    LOOKS = 8          /* at chunks of tensors, for each reference of the pickle  */
};

/* Where a chunk is: a row of storage_data. */
typedef struct chunk {
    const uint64_t *offset; /* in its tensor, of `rank` dimensions            */
    size_t rank;            /* NO_PLACE: all of it; BAD_PLACE: no offset at all */
    const char *name, *file;
    uint64_t at, bytes;
} chunk;

/* A row of planner_data. */
typedef struct named {
    const char *name;
    size_t i; /* the row */
} named;

typedef struct checkpoint {
    trace *t;
    const trace_options *options;
    trace_error *error;
    const char *path; /* of .metadata */
    pickle *p;
    chunk *chunks; /* by name and place */
    size_t n;
    const char **files; /* names, sorted, and then their paths */
    size_t n_files;
    pickle_ref paths; /* planner_data */
    named *names;     /* its texts, by name and row */
    size_t n_names, looked;
    char *joined; /* of a path: TORCH_NAME_MAX */
} checkpoint;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static int
bad(const checkpoint *c, const char *message, ...)
{
    char text[600];
    va_list ap;
    va_start(ap, message);
    vsnprintf(text, sizeof text, message, ap);
    va_end(ap);
    return trace_error_set(c->error, TRACE_EXIT_DATA, c->path, TRACE_NO_OFFSET, "%s", text);
}

/* ---- the pickle ---- */

static const char *refused(void *context, const pickle *p, pickle_ref what, pickle_use use)
{
    static const char *const names[] = {"torch.Size",
                                        "torch.device",
                                        "torch.serialization._get_layout",
                                        "pathlib.Path",
                                        "pathlib.PosixPath",
                                        "pathlib.PurePosixPath",
                                        "pathlib.WindowsPath",
                                        "pathlib._local.PosixPath",
                                        "pathlib._local.WindowsPath",
                                        "collections.OrderedDict",
                                        "collections.defaultdict",
                                        "builtins.set",
                                        "builtins.dict",
                                        "builtins.list"};
    static const char module[] = "torch.distributed.";
    const char *name = pickle_global(p, what);
    (void)context;
    (void)use;
    if (!name)
        return "expected, found another value";
    if (strncmp(name, module, sizeof module - 1) == 0 || trace_torch_dtype_find(name))
        return NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return NULL;
    return name;
}

static ssize_t read_file(void *context, void *p, size_t n, uint64_t at)
{
    return trace_pread(*(const int *)context, p, n, at);
}

static int read_metadata(checkpoint *c)
{
    pickle_error e;
    struct stat st;
    int fd = open(c->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        trace_error_io(c->error, c->path, TRACE_NO_OFFSET, "cannot open");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    trace_inputs_add(fd);
    const pickle_source source = {read_file, &fd, 0, S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0};
    const pickle_rules rules = {(size_t)c->t->max_header, TRACE_MEMORY, refused, NULL};
    c->p = pickle_read(&source, &rules, &e);
    close(fd);
    c->t->size = source.end;
    if (c->p) {
        c->t->arena_bytes += pickle_memory(c->p);
        return 0;
    }
    if (e.what == PICKLE_NO_MEMORY)
        return trace_no_memory(c->t, c->error);
    return e.what == PICKLE_BAD ? trace_error_set(c->error, TRACE_EXIT_DATA, c->path, e.at, "%s", e.text)
                                : trace_error_io(c->error, c->path, e.at, "%s", "");
}

/* A field of a dataclass. */
static pickle_ref field(const checkpoint *c, pickle_ref object, const char *name)
{
    const pickle_ref state = pickle_state(c->p, object);
    return pickle_count(c->p, state) > FIELDS_MAX ? PICKLE_ABSENT : pickle_get(c->p, state, name);
}

static int is_class(const checkpoint *c, pickle_ref object, const char *name)
{
    const char *global = pickle_type_of(c->p, object) == PICKLE_OBJECT ? pickle_global(c->p, object) : NULL;
    const char *dot = global ? strrchr(global, '.') : NULL;
    return dot && strcmp(dot + 1, name) == 0;
}

/* torch.Size(...), or the tuple or list that stands for it. */
static pickle_ref size_tuple(const checkpoint *c, pickle_ref r)
{
    return is_class(c, r, "Size") ? pickle_item(c->p, pickle_args(c->p, r), 0) : r;
}

/* Natural numbers into out, how many into n: of anything else n stays as it was. */
static int read_sizes(const checkpoint *c, pickle_ref r, uint64_t *out, size_t *n)
{
    const pickle_ref list = size_tuple(c, r);
    const pickle_type type = pickle_type_of(c->p, list);
    int64_t x;
    if ((type != PICKLE_TUPLE && type != PICKLE_LIST) || pickle_count(c->p, list) > TRACE_RANK_MAX)
        return -1;
    const size_t count = pickle_count(c->p, list);
    for (size_t i = 0; i < count; i++) {
        if (pickle_int(c->p, pickle_item(c->p, list, i), &x) || x < 0)
            return -1;
        out[i] = (uint64_t)x;
    }
    *n = count;
    return 0;
}

static int read_count(const checkpoint *c, pickle_ref r, uint64_t *u)
{
    int64_t x;
    if (pickle_int(c->p, r, &x) || x < 0)
        return -1;
    *u = (uint64_t)x;
    return 0;
}

/* ---- where the chunks are ---- */

static int compare_chunks(const void *pa, const void *pb)
{
    const chunk *a = pa, *b = pb;
    int order = a->name == b->name ? 0 : strcmp(a->name, b->name);
    if (!order && a->rank != b->rank)
        order = a->rank < b->rank ? -1 : 1;
    for (size_t i = 0; !order && a->rank < NO_PLACE && i < a->rank; i++)
        order = (a->offset[i] > b->offset[i]) - (a->offset[i] < b->offset[i]);
    return order;
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int read_place(checkpoint *c, pickle_ref offset, chunk *to)
{
    uint64_t at[TRACE_RANK_MAX], *kept;
    const pickle_type type = pickle_type_of(c->p, offset);
    to->offset = NULL;
    to->rank = type == PICKLE_NOTHING || type == PICKLE_NONE ? NO_PLACE : BAD_PLACE;
    if (to->rank == NO_PLACE || read_sizes(c, offset, at, &to->rank))
        return 0;
    if (!(kept = trace_alloc(c->t, (to->rank + 1) * sizeof *kept)))
        return trace_no_memory(c->t, c->error);
    memcpy(kept, at, to->rank * sizeof *kept);
    to->offset = kept;
    return 0;
}

static int read_chunk(checkpoint *c, pickle_ref key, pickle_ref value, chunk *to)
{
    size_t n = 0, m = 0;
    const pickle_ref more = field(c, value, "transform_descriptors");
    to->name = pickle_text(c->p, field(c, key, "fqn"), &n);
    to->file = pickle_text(c->p, field(c, value, "relative_path"), &m);
    if (!to->name || !to->file || strlen(to->name) != n || strlen(to->file) != m ||
        read_count(c, field(c, value, "offset"), &to->at) || read_count(c, field(c, value, "length"), &to->bytes) ||
        to->bytes == 0)
        return bad(c, "storage_data does not say of an item where it is");
    if (n > NAME_BYTES || m > NAME_BYTES)
        return bad(c, "the name of an item is longer than %d bytes", NAME_BYTES);
    if (!*to->file || *to->file == '.' || strchr(to->file, '/'))
        return bad(c, "'%.200s' is not the name of a file beside .metadata", to->file);
    if (more && pickle_type_of(c->p, more) != PICKLE_NONE && pickle_count(c->p, more))
        return bad(c, "'%.200s' is stored with transformations, which are not read", to->name);
    return read_place(c, field(c, key, "offset"), to);
}

/* The files that chunks are in, each once; they are to be there. */
static int read_files(checkpoint *c)
{
    if (!(c->files = malloc((2 * c->n + 1) * sizeof *c->files)))
        return trace_no_memory(c->t, c->error);
    for (size_t i = 0; i < c->n; i++)
        c->files[i] = c->chunks[i].file;
    if (c->n)
        qsort(c->files, c->n, sizeof *c->files, compare_strings);
    for (size_t i = 0; i < c->n; i++)
        if (i == 0 || strcmp(c->files[i], c->files[c->n_files - 1]) != 0)
            c->files[c->n_files++] = c->files[i];
    for (size_t i = 0; i < c->n_files; i++) {
        struct stat st;
        const char *path = trace_parts_beside(c->t, c->files[i]);
        if (!path)
            return trace_no_memory(c->t, c->error);
        if (stat(path, &st))
            return errno == ENOENT ? bad(c, "its file '%.200s' is missing", c->files[i])
                                   : trace_error_io(c->error, path, TRACE_NO_OFFSET, "cannot open");
        trace_inputs_add_path(path);
        c->files[c->n_files + i] = path;
        c->t->size += (uint64_t)st.st_size;
    }
    return 0;
}

static int read_chunks(checkpoint *c, pickle_ref root)
{
    const pickle_ref data = field(c, root, "storage_data");
    if (pickle_type_of(c->p, data) != PICKLE_DICT)
        return bad(c, "holds no storage_data: it is not the metadata of a checkpoint in files");
    c->n = pickle_count(c->p, data);
    if (c->n > TRACE_ITEMS_MAX || c->n * (sizeof *c->chunks + 2 * sizeof *c->files) + c->t->arena_bytes > TRACE_MEMORY)
        return bad(c, "%zu chunks, more than %d or than %d MiB of memory hold", c->n, TRACE_ITEMS_MAX,
                   TRACE_MEMORY >> 20);
    if (!(c->chunks = malloc((c->n + 1) * sizeof *c->chunks)))
        return trace_no_memory(c->t, c->error);
    for (size_t i = 0; i < c->n; i++)
        if (read_chunk(c, pickle_key(c->p, data, i), pickle_item(c->p, data, i), &c->chunks[i]))
            return -1;
    if (c->n)
        qsort(c->chunks, c->n, sizeof *c->chunks, compare_chunks);
    return read_files(c);
}

/* Chunks of a tensor have the same name and different offsets; one that says none is alone. */
static const chunk *find_chunk(const checkpoint *c, const char *name, const uint64_t *offset, size_t rank)
{
    const chunk key = {.name = name, .offset = offset, .rank = rank}, alone = {.name = name, .rank = NO_PLACE};
    const chunk *found = bsearch(&key, c->chunks, c->n, sizeof key, compare_chunks);
    if (found)
        return found;
    found = bsearch(&alone, c->chunks, c->n, sizeof key, compare_chunks);
    const size_t at = found ? (size_t)(found - c->chunks) : 0;
    return found && (at == 0 || strcmp(found[-1].name, name) != 0) &&
                   (at + 1 == c->n || strcmp(found[1].name, name) != 0)
               ? found
               : NULL;
}

/* ---- tensors ---- */

static int compare_names(const void *pa, const void *pb)
{
    const named *a = pa, *b = pb;
    const int order = strcmp(a->name, b->name);
    return order ? order : (a->i > b->i) - (a->i < b->i);
}

static int compare_name(const void *name, const void *b)
{
    return strcmp(name, ((const named *)b)->name);
}

/* The texts of planner_data, sorted; of equal ones the last. */
static int read_names(checkpoint *c, pickle_ref root)
{
    c->paths = field(c, root, "planner_data");
    const size_t n = pickle_type_of(c->p, c->paths) == PICKLE_DICT ? pickle_count(c->p, c->paths) : 0;
    if (!(c->names = malloc((n + 1) * sizeof *c->names)) || !(c->joined = malloc(TORCH_NAME_MAX)))
        return trace_no_memory(c->t, c->error);
    for (size_t i = 0; i < n; i++) {
        size_t bytes;
        const char *name = pickle_text(c->p, pickle_key(c->p, c->paths, i), &bytes);
        if (name && bytes <= NAME_BYTES && strlen(name) == bytes)
            c->names[c->n_names++] = (named){name, i};
    }
    if (c->n_names)
        qsort(c->names, c->n_names, sizeof *c->names, compare_names);
    size_t to = 0;
    for (size_t i = 0; i < c->n_names; i++) {
        to -= to && strcmp(c->names[to - 1].name, c->names[i].name) == 0;
        c->names[to++] = c->names[i];
    }
    c->n_names = to;
    return 0;
}

static pickle_ref path_of(const checkpoint *c, const char *name)
{
    const named *found = c->n_names ? bsearch(name, c->names, c->n_names, sizeof *found, compare_name) : NULL;
    return found ? pickle_item(c->p, c->paths, found->i) : PICKLE_ABSENT;
}

/* The path of a name in planner_data, joined by '/'; the name itself if there is none. */
static const char *tensor_name(checkpoint *c, const char *name)
{
    const pickle_ref path = path_of(c, name);
    char *const joined = c->joined, text[64];
    size_t used = 0;
    const size_t levels = pickle_type_of(c->p, path) == PICKLE_TUPLE ? pickle_count(c->p, path) : 0;
    if (levels > LEVELS_MAX)
        return trace_string(c->t, name, strlen(name));
    for (size_t i = 0; i < levels; i++) {
        size_t n;
        int64_t number;
        const pickle_ref level = pickle_item(c->p, path, i);
        const char *s = pickle_text(c->p, level, &n);
        if (!s) {
            if (pickle_int(c->p, level, &number))
                return trace_string(c->t, name, strlen(name));
            n = (size_t)snprintf(text, sizeof text, "%" PRId64, number);
            s = text;
        }
        if (strlen(s) != n || used + n + 2 > TORCH_NAME_MAX)
            return trace_string(c->t, name, strlen(name));
        joined[used] = '/';
        used += i > 0;
        memcpy(joined + used, s, n);
        used += n;
    }
    return levels ? trace_string(c->t, joined, used) : trace_string(c->t, name, strlen(name));
}

static int add_chunks(checkpoint *c, const char *name, pickle_ref list, size_t rank)
{
    uint64_t offset[TRACE_RANK_MAX], size[TRACE_RANK_MAX];
    size_t n, m;
    c->looked += pickle_count(c->p, list);
    if (c->looked / LOOKS > pickle_memory(c->p) / sizeof(pickle_ref))
        return bad(c, "tensor '%.200s' and others are said to be the same chunks again and again", name);
    for (size_t i = 0; i < pickle_count(c->p, list); i++) {
        const pickle_ref r = pickle_item(c->p, list, i);
        int empty = 0;
        uint32_t source;
        if (read_sizes(c, field(c, r, "offsets"), offset, &n) || read_sizes(c, field(c, r, "sizes"), size, &m) ||
            n != rank || m != rank)
            return bad(c, "chunk %zu of tensor '%.200s' has no offsets and sizes of %zu dimensions", i, name, rank);
        for (size_t k = 0; k < rank; k++)
            empty |= size[k] == 0;
        if (empty) /* of a rank that has no elements; it is stored nowhere */
            continue;
        const chunk *there = find_chunk(c, name, offset, rank);
        if (!there)
            return bad(c, "chunk %zu of tensor '%.200s' is in no file", i, name);
        const char **file = bsearch(&there->file, c->files, c->n_files, sizeof *c->files, compare_strings);
        if (trace_parts_add(c->t, file[c->n_files], there->at, there->bytes, &source, c->error) ||
            trace_parts_box(c->t, source, PARTS_ONLY, offset, size, c->error))
            return -1;
    }
    return trace_parts_whole(c->t, c->error);
}

static int add_tensor(checkpoint *c, pickle_ref key, pickle_ref what)
{
    uint64_t shape[TRACE_RANK_MAX], bytes;
    size_t n;
    trace_tensor like = {.shape = shape};
    const char *name = pickle_text(c->p, key, &n);
    const pickle_ref properties = field(c, what, "properties"), state = pickle_state(c->p, properties);
    const pickle_ref dtype = pickle_type_of(c->p, state) == PICKLE_TUPLE ? pickle_item(c->p, state, 0)
                                                                         : field(c, properties, "dtype");
    const char *global = pickle_type_of(c->p, dtype) == PICKLE_GLOBAL ? pickle_global(c->p, dtype) : NULL;
    const torch_dtype *d = global ? trace_torch_dtype_find(global) : NULL;
    if (!name || strlen(name) != n)
        return bad(c, "the name of a tensor is not a string");
    if (n > NAME_BYTES)
        return bad(c, "the name of a tensor is longer than %d bytes", NAME_BYTES);
    if (!d)
        return bad(c, "the dtype of tensor '%.200s' is not known", name);
    if (read_sizes(c, field(c, what, "size"), shape, &like.rank))
        return bad(c, "the size of tensor '%.200s' is not a list of integers", name);
    like.dtype = d->name;
    like.format = trace_torch_format(c->options, d->name, d->format);
    if (trace_shape_bytes(shape, like.rank, d->bytes * 8u, &like.count, &bytes))
        return bad(c, "the shape of tensor '%.200s' is too large", name);
    trace_entry *e = trace_parts_tensor(c->t, tensor_name(c, name), &like, c->error);
    if (!e)
        return -1;
    e->bytes = bytes;
    return add_chunks(c, name, field(c, what, "chunks"), like.rank);
}

static int add_tensors(checkpoint *c, pickle_ref root)
{
    size_t n;
    const pickle_ref list = field(c, root, "state_dict_metadata");
    if (pickle_type_of(c->p, list) != PICKLE_DICT)
        return bad(c, "holds no state_dict_metadata");
    for (size_t i = 0; i < pickle_count(c->p, list); i++) {
        const pickle_ref what = pickle_item(c->p, list, i), key = pickle_key(c->p, list, i);
        const char *class = pickle_global(c->p, what), *name = pickle_text(c->p, key, &n);
        if (is_class(c, what, "BytesStorageMetadata")) /* what is no tensor */
            continue;
        if (!is_class(c, what, "TensorStorageMetadata"))
            return bad(c, "'%.200s' is of class %.200s, which is not known", name ? name : "", class ? class : "none");
        if (add_tensor(c, key, what))
            return -1;
    }
    return trace_parts_names(c->t, c->error);
}

static int open_distcp(trace *t, const trace_options *options, trace_error *error)
{
    checkpoint c = {.t = t, .options = options, .error = error};
    if (trace_parts_begin(t, options, error))
        return -1;
    if (!(c.path = trace_parts_beside(t, ".metadata")))
        return trace_no_memory(t, error);
    int result = read_metadata(&c);
    const pickle_ref root = c.p ? pickle_root(c.p) : PICKLE_ABSENT;
    if (result == 0 && !is_class(&c, root, "Metadata"))
        result = bad(&c, "is not the metadata of torch.distributed.checkpoint");
    if (result == 0)
        result = read_chunks(&c, root) || read_names(&c, root) || add_tensors(&c, root) ? -1 : 0;
    if (c.p)
        t->arena_bytes -= pickle_memory(c.p);
    pickle_free(c.p);
    free(c.chunks);
    free(c.files);
    free(c.names);
    free(c.joined);
    return result;
}

const trace_layout_type trace_layout_distcp = {.name = "torch.distributed.checkpoint",
                                               .open = open_distcp,
                                               .codes = trace_parts_codes,
                                               .close = trace_parts_close,
                                               .has_parts = 1,
                                               .all_elements = 1};
