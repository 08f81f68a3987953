/* zero.c -- a checkpoint of DeepSpeed's ZeRO, stages 1 to 3: a folder with a file of each data-parallel rank that
 * holds the rank's partition of the flat FP32 master weights and of Adam's moments.
 *
 *     global_step7/mp_rank_00_model_states.pt                               stages 1 and 2: weights, shapes
 *     global_step7/zero_pp_rank_0_mp_rank_00_model_states.pt                stage 3
 *     global_step7/[bf16_]zero_pp_rank_0_mp_rank_00_optim_states.pt, ...    partitions
 *
 * Stages 1 and 2: the parameters of a group follow each other in one vector, which is cut into as many parts as
 * there are ranks; after each parameter there may be padding (param_alignment_paddings), at the end there is some
 * (the moments keep it, the last rank's masters do not). Stage 3: each parameter is cut by itself into parts of
 * ceil(n / ranks) elements, which follow each other in each rank's vectors.
 * Source: deepspeed/utils/zero_to_fp32.py of DeepSpeed 0.19.8; checkpoints that it wrote (tests/trace/recorded). */
#include "zero.h"
#include "zeroname.h"

#include "../array/array.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 65536, GROUPS_MAX = 65536 };

/* ---- the files ---- */

static int add_rank(zero_checkpoint *c, const zero_name *name, const char *file)
{
    trace *t = c->t;
    if (name->rank >= RANKS_MAX)
        return trace_fail(t, c->error, TRACE_NO_OFFSET, "'%s' is of a rank above %d", file, RANKS_MAX - 1);
    if (name->rank >= c->ranks_room) {
        const size_t room = (size_t)name->rank + 64;
        const char **p = realloc(c->files, room * sizeof *p);
        if (!p)
            return trace_no_memory(t, c->error);
        memset(p + c->ranks_room, 0, (room - c->ranks_room) * sizeof *p);
        c->files = p;
        c->ranks_room = room;
    }
    if (c->files[name->rank])
        return trace_fail(t, c->error, TRACE_NO_OFFSET,
                          "rank %" PRIu64 " has two files of optimizer states: '%s' and '%s'", name->rank,
                          c->files[name->rank], file);
    c->files[name->rank] = trace_string(t, file, strlen(file));
    if (name->rank >= c->ranks)
        c->ranks = (size_t)name->rank + 1;
    return c->files[name->rank] ? 0 : trace_no_memory(t, c->error);
}

static int add_name(zero_checkpoint *c, const char *file)
{
    zero_name name;
    if (trace_zero_name_parse(file, &name))
        return 0;
    if (name.expert)
        return trace_fail(c->t, c->error, TRACE_NO_OFFSET,
                          "'%s': partitions of experts are not read; convert with DeepSpeed's ds_to_universal.py",
                          file);
    if (name.model_rank > 0)
        return trace_fail(c->t, c->error, TRACE_NO_OFFSET,
                          "'%s': several model-parallel ranks are not read; convert "
                          "with DeepSpeed's ds_to_universal.py",
                          file);
    if (name.optimizer)
        return name.other ? 0 : add_rank(c, &name, file);
    if (name.rank == 0 && !c->model && !(c->model = trace_string(c->t, file, strlen(file))))
        return trace_no_memory(c->t, c->error);
    return 0;
}

static int list_files(zero_checkpoint *c)
{
    trace *t = c->t;
    DIR *dir = opendir(t->path);
    const struct dirent *e;
    int result = 0;
    if (!dir)
        return trace_error_io(c->error, t->path, TRACE_NO_OFFSET, "cannot read the directory");
    while (result == 0 && (e = readdir(dir)))
        result = add_name(c, e->d_name);
    closedir(dir);
    for (size_t r = 0; r < c->ranks && result == 0; r++)
        if (!c->files[r])
            result = trace_fail(t, c->error, TRACE_NO_OFFSET, "the optimizer states of rank %zu of %zu are missing", r,
                                c->ranks);
    if (result == 0 && !c->model)
        result = trace_fail(t, c->error, TRACE_NO_OFFSET, "the model states of rank 0 are missing");
    return result;
}

/* ---- names and shapes of the parameters ---- */

/* "torch.Size((7, 5))": the numbers; -1: it is no shape. */
static int read_shape(const char *text, uint64_t *shape, size_t *rank)
{
    const char *p = text + strcspn(text, "([");
    *rank = 0;
    for (p += strspn(p, "(["); *p && !strchr(")]", *p);) {
        char *end;
        if (*p < '0' || *p > '9' || *rank == TRACE_RANK_MAX)
            return -1;
        errno = 0;
        shape[(*rank)++] = strtoull(p, &end, 10);
        if (errno)
            return -1;
        p = end + strspn(end, ", ");
    }
    return *p ? 0 : -1;
}

static int add_parameter(zero_checkpoint *c, const char *path, const char *value)
{
    uint64_t shape[TRACE_RANK_MAX], bytes;
    zero_parameter p = {.padding = 0};
    char *end;
    const unsigned long long group = strtoull(path, &end, 10);
    if (end == path || *end != '/' || group >= GROUPS_MAX || read_shape(value, shape, &p.rank) ||
        trace_shape_bytes(shape, p.rank, 32, &p.count, &bytes))
        return trace_fail(c->t, c->error, TRACE_NO_OFFSET, "param_shapes/%.200s: '%.200s' is not a shape", path, value);
    if (c->n == TRACE_ITEMS_MAX)
        return trace_fail(c->t, c->error, TRACE_NO_OFFSET, "more than %d parameters", TRACE_ITEMS_MAX);
    if (array_room(&c->parameters, c->n, sizeof *c->parameters))
        return trace_no_memory(c->t, c->error);
    p.group = (uint32_t)group;
    p.name = trace_string(c->t, end + 1, strlen(end + 1));
    p.shape = trace_alloc(c->t, p.rank * sizeof *shape);
    if (!p.name || !p.shape)
        return trace_no_memory(c->t, c->error);
    memcpy(p.shape, shape, p.rank * sizeof *shape);
    c->parameters[c->n++] = p;
    return 0;
}

/* A value of the model states: a shape, or metadata of the trace. */
static int model_value(zero_checkpoint *c, const char *key, const char *value)
{
    static const char shapes[] = "param_shapes/";
    if (strncmp(key, shapes, sizeof shapes - 1) == 0)
        return add_parameter(c, key + sizeof shapes - 1, value);
    if (strcmp(key, "global_steps") == 0 && trace_parts_metadata(c->t, "step", value, c->error))
        return -1;
    return trace_parts_metadata(c->t, key, value, c->error);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int is_parameter(const zero_checkpoint *c, const char *name)
{
    return bsearch(&name, c->names, c->n, sizeof name, compare_names) != NULL;
}

/* "module/NAME" of the model states, if its elements are there (stage 3: those of buffers only). */
static int add_weight(zero_checkpoint *c, uint32_t source, const trace *from, size_t i)
{
    static const char module[] = "module/";
    const trace_tensor *x = &from->entries[i].tensor;
    const char *name = x->name + sizeof module - 1;
    if (strncmp(x->name, module, sizeof module - 1) != 0)
        return 0;
    const int weight = is_parameter(c, name);
    if (weight && x->count == 0)
        return 0;
    const size_t size = strlen(name) + sizeof "weight:";
    char *full = weight ? trace_alloc(c->t, size) : trace_string(c->t, x->name, strlen(x->name));
    if (full && weight)
        snprintf(full, size, "weight:%s", name);
    trace_entry *e = trace_parts_tensor(c->t, full, x, c->error);
    if (e) {
        e->bytes = from->entries[i].bytes;
        e->nowhere = from->entries[i].nowhere;
        e->tensor.unread = x->unread;
    }
    return e && !trace_parts_run(c->t, source, (uint32_t)i, 0, 0, x->count, c->error)
               ? trace_parts_whole(c->t, c->error)
               : -1;
}

static int read_model(zero_checkpoint *c)
{
    trace *t = c->t;
    uint32_t source;
    if (trace_parts_add(t, trace_parts_beside(t, c->model), 0, 0, &source, c->error))
        return -1;
    trace *from = trace_parts_use(t, source, c->error);
    int result = from ? 0 : -1;
    const char *key;
    for (size_t i = 0; from && result == 0 && (key = trace_metadata_key(from, i)); i++)
        result = model_value(c, key, trace_metadata_value(from, i));
    if (result == 0 && c->n == 0)
        result = trace_fail(from, c->error, TRACE_NO_OFFSET, "holds no param_shapes, the shapes of the parameters");
    if (result == 0 && !(c->names = malloc(c->n * sizeof *c->names)))
        result = trace_no_memory(t, c->error);
    for (size_t i = 0; i < c->n && result == 0; i++)
        c->names[i] = c->parameters[i].name;
    if (result == 0)
        qsort(c->names, c->n, sizeof *c->names, compare_names);
    for (size_t i = 0; from && result == 0 && i < from->count; i++)
        result = add_weight(c, source, from, i);
    if (from) {
        t->size += from->size;
        trace_parts_leave(t, source);
    }
    return result;
}

/* ---- vectors ---- */

/* The tensors of a rank's file that are its vectors, by the beginnings and ends of their names. */
static const struct vector_name {
    const char *before, *after;
    int kind, stage;
} vector_names[] = {
    {"optimizer_state_dict/single_partition_of_fp32_groups/", "", 0, 2},
    {"optimizer_state_dict/base_optimizer_state/state/", "/exp_avg", 1, 2},
    {"optimizer_state_dict/base_optimizer_state/state/", "/exp_avg_sq", 2, 2},
    {"optimizer_state_dict/base_optimizer_state/", "/exp_avg", 1, 2}, /* elastic checkpoints */
    {"optimizer_state_dict/base_optimizer_state/", "/exp_avg_sq", 2, 2},
    {"optimizer_state_dict/fp32_flat_groups/", "", 0, 3},
    {"optimizer_state_dict/optimizer_state_dict/state/", "/exp_avg", 1, 3},
    {"optimizer_state_dict/optimizer_state_dict/state/", "/exp_avg_sq", 2, 3},
};

static const struct vector_name *vector_name(const char *name, size_t *group)
{
    for (size_t i = 0; i < sizeof vector_names / sizeof vector_names[0]; i++) {
        const struct vector_name *v = &vector_names[i];
        const size_t n = strlen(v->before);
        const char *digits = name + n;
        if (strncmp(name, v->before, n) != 0)
            continue;
        const size_t length = strspn(digits, "0123456789");
        if (length == 0 || length > 5 || strcmp(digits + length, v->after) != 0)
            continue;
        *group = (size_t)strtoul(digits, NULL, 10);
        return *group < GROUPS_MAX ? v : NULL;
    }
    return NULL;
}

/* How many groups there are and of which stage, by rank 0. */
static int count_groups(zero_checkpoint *c, const trace *from)
{
    size_t group;
    for (size_t i = 0; i < from->count; i++) {
        const struct vector_name *v = vector_name(from->entries[i].tensor.name, &group);
        if (v && v->kind == 0) {
            c->stage = v->stage;
            c->groups = group >= c->groups ? group + 1 : c->groups;
        }
    }
    if (c->groups == 0)
        return trace_fail(from, c->error, TRACE_NO_OFFSET,
                          "holds neither single_partition_of_fp32_groups nor "
                          "fp32_flat_groups: no optimizer states of ZeRO");
    if (c->ranks * c->groups > TRACE_ITEMS_MAX || !(c->vectors = malloc(c->ranks * c->groups * sizeof *c->vectors)))
        return trace_no_memory(c->t, c->error);
    for (size_t i = 0; i < c->ranks * c->groups; i++)
        c->vectors[i] = (zero_vector){{PARTS_ONLY, PARTS_ONLY, PARTS_ONLY}, 0};
    return 0;
}

/* As many ranks as the partitions say: "partition_count", or one for each group. */
static int check_world(const zero_checkpoint *c, const trace *from)
{
    const char *count = trace_metadata(from, "optimizer_state_dict/partition_count");
    if (!count)
        count = trace_metadata(from, "optimizer_state_dict/partition_count/0");
    if (count && strtoull(count, NULL, 10) != c->ranks)
        return trace_fail(from, c->error, TRACE_NO_OFFSET, "is a partition of %.20s, but there are files of %zu ranks",
                          count, c->ranks);
    return 0;
}

static int read_vectors(zero_checkpoint *c, const trace *from, size_t rank)
{
    size_t group;
    zero_vector *row = c->vectors + rank * c->groups;
    for (size_t i = 0; i < from->count; i++) {
        const trace_tensor *x = &from->entries[i].tensor;
        const struct vector_name *v = vector_name(x->name, &group);
        if (!v || v->stage != c->stage)
            continue;
        if (group >= c->groups)
            return trace_fail(from, c->error, TRACE_NO_OFFSET, "has more groups than rank 0");
        if (!x->format || x->rank != 1)
            return trace_fail(from, c->error, TRACE_NO_OFFSET, "tensor '%s' is not a vector of floating-point numbers",
                              x->name);
        row[group].entry[v->kind] = (uint32_t)i;
        if (v->kind == 0)
            row[group].count = x->count;
    }
    for (size_t g = 0; g < c->groups; g++) {
        const zero_vector *v = &row[g], *zero = &c->vectors[g];
        if (v->entry[0] == PARTS_ONLY)
            return trace_fail(from, c->error, TRACE_NO_OFFSET, "holds no masters of group %zu", g);
        if (c->stage == 3 && v->count != zero->count)
            return trace_fail(from, c->error, TRACE_NO_OFFSET, "group %zu has %" PRIu64 " elements, in rank 0 %" PRIu64,
                              g, v->count, zero->count);
        for (int k = 1; k < ZERO_KINDS; k++) {
            if ((v->entry[k] == PARTS_ONLY) != (zero->entry[k] == PARTS_ONLY))
                return trace_fail(from, c->error, TRACE_NO_OFFSET, "group %zu has %s %s, unlike rank 0", g,
                                  v->entry[k] == PARTS_ONLY ? "no" : "an", trace_zero_kinds[k]);
            if (v->entry[k] != PARTS_ONLY && from->entries[v->entry[k]].tensor.count < v->count)
                return trace_fail(from, c->error, TRACE_NO_OFFSET, "%s of group %zu is shorter than its masters",
                                  trace_zero_kinds[k], g);
        }
    }
    return 0;
}

/* Padding behind parameters: lists in the order of param_shapes; files of older versions have none. */
static int read_paddings(zero_checkpoint *c, const trace *from)
{
    static const char paddings[] = "optimizer_state_dict/param_alignment_paddings/";
    const char *key;
    size_t n = 0;
    for (size_t i = 0; (key = trace_metadata_key(from, i)); i++) {
        if (strncmp(key, paddings, sizeof paddings - 1) != 0 || n++ >= c->n)
            continue;
        c->parameters[n - 1].padding = strtoull(trace_metadata_value(from, i), NULL, 10);
    }
    return n == 0 || n == c->n
               ? 0
               : trace_fail(from, c->error, TRACE_NO_OFFSET, "holds %zu paddings of %zu parameters", n, c->n);
}

static int read_ranks(zero_checkpoint *c)
{
    trace *t = c->t;
    if (!(c->sources = malloc(c->ranks * sizeof *c->sources)))
        return trace_no_memory(t, c->error);
    for (size_t r = 0; r < c->ranks; r++) {
        if (trace_parts_add(t, trace_parts_beside(t, c->files[r]), 0, 0, &c->sources[r], c->error))
            return -1;
        trace *from = trace_parts_use(t, c->sources[r], c->error);
        if (!from)
            return -1;
        t->size += from->size;
        int result = (r == 0 && count_groups(c, from)) || check_world(c, from) || read_vectors(c, from, r) ||
                             (r == 0 && c->stage < 3 && read_paddings(c, from))
                         ? -1
                         : 0;
        trace_parts_leave(t, c->sources[r]);
        if (result)
            return -1;
    }
    return 0;
}

static int open_zero(trace *t, const trace_options *options, trace_error *error)
{
    zero_checkpoint c = {.t = t, .error = error};
    int result = trace_parts_begin(t, options, error) || list_files(&c) || read_model(&c) || read_ranks(&c) ? -1 : 0;
    if (result == 0)
        result = trace_zero_tensors(&c) || trace_parts_names(t, error) ? -1 : 0;
    free(c.files);
    free(c.sources);
    free(c.parameters);
    free(c.names);
    free(c.vectors);
    return result;
}

const trace_layout_type trace_layout_zero = {.name = "DeepSpeed ZeRO",
                                             .open = open_zero,
                                             .codes = trace_parts_codes,
                                             .close = trace_parts_close,
                                             .has_parts = 1};
