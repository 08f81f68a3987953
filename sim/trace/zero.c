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
 * Source: deepspeed/utils/zero_to_fp32.py of DeepSpeed 0.19.8; checkpoints that it wrote (tests/trace/parts). */
#include "parts.h"
#include "zeroname.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 65536, GROUPS_MAX = 65536, KINDS = 3 };

static const char *const kinds[KINDS] = {"master", "opt.m", "opt.v"};

typedef struct parameter {
    const char *name;
    uint64_t *shape, count, padding; /* padding: behind it, stages 1 and 2 */
    size_t rank;
    uint32_t group;
} parameter;

/* A vector of one rank and group: the tensor of each kind in the rank's file, and how much of it is used. */
typedef struct vector {
    uint32_t entry[KINDS]; /* PARTS_ONLY: there is none */
    uint64_t count;
} vector;

typedef struct checkpoint {
    trace *t;
    trace_error *error;
    int stage; /* 2: 1 or 2 */
    const char **files; /* by rank */
    uint32_t *sources;
    size_t ranks, ranks_room, groups;
    const char *model;
    parameter *parameters;
    const char **names; /* of them, sorted */
    size_t n, room;
    vector *vectors; /* [rank][group] */
} checkpoint;

/* ---- the files ---- */

static int add_rank(checkpoint *c, const zero_name *name, const char *file)
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
        return trace_fail(t, c->error, TRACE_NO_OFFSET, "rank %" PRIu64 " has two files of optimizer states: '%s' and "
                          "'%s'", name->rank, c->files[name->rank], file);
    c->files[name->rank] = trace_string(t, file, strlen(file));
    if (name->rank >= c->ranks)
        c->ranks = (size_t)name->rank + 1;
    return c->files[name->rank] ? 0 : trace_no_memory(t, c->error);
}

static int add_name(checkpoint *c, const char *file)
{
    zero_name name;
    if (zero_name_parse(file, &name))
        return 0;
    if (name.expert)
        return trace_fail(c->t, c->error, TRACE_NO_OFFSET, "'%s': partitions of experts are not read; convert with "
                          "DeepSpeed's ds_to_universal.py", file);
    if (name.model_rank > 0)
        return trace_fail(c->t, c->error, TRACE_NO_OFFSET, "'%s': several model-parallel ranks are not read; convert "
                          "with DeepSpeed's ds_to_universal.py", file);
    if (name.optimizer)
        return name.other ? 0 : add_rank(c, &name, file);
    if (name.rank == 0 && !c->model && !(c->model = trace_string(c->t, file, strlen(file))))
        return trace_no_memory(c->t, c->error);
    return 0;
}

static int list_files(checkpoint *c)
{
    trace *t = c->t;
    DIR *dir = opendir(t->path);
    const struct dirent *e;
    int result = 0;
    if (!dir)
        return trace_error_set(c->error, TRACE_EXIT_IO, t->path, TRACE_NO_OFFSET, "cannot read the directory: %s",
                               strerror(errno));
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

static int add_parameter(checkpoint *c, const char *path, const char *value)
{
    uint64_t shape[TRACE_RANK_MAX], bytes;
    parameter p = {.padding = 0};
    char *end;
    const unsigned long long group = strtoull(path, &end, 10);
    if (end == path || *end != '/' || group >= GROUPS_MAX || read_shape(value, shape, &p.rank) ||
        trace_shape_bytes(shape, p.rank, 32, &p.count, &bytes))
        return trace_fail(c->t, c->error, TRACE_NO_OFFSET, "param_shapes/%.200s: '%.200s' is no shape", path, value);
    if (c->n == TRACE_ITEMS_MAX)
        return trace_fail(c->t, c->error, TRACE_NO_OFFSET, "more than %d parameters", TRACE_ITEMS_MAX);
    if (c->n == c->room) {
        const size_t room = c->room ? 2 * c->room : 64;
        parameter *q = realloc(c->parameters, room * sizeof *q);
        if (!q)
            return trace_no_memory(c->t, c->error);
        c->parameters = q;
        c->room = room;
    }
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
static int model_value(checkpoint *c, const char *key, const char *value)
{
    static const char shapes[] = "param_shapes/";
    if (strncmp(key, shapes, sizeof shapes - 1) == 0)
        return add_parameter(c, key + sizeof shapes - 1, value);
    if (strcmp(key, "global_steps") == 0 && parts_metadata(c->t, "step", value, c->error))
        return -1;
    return parts_metadata(c->t, key, value, c->error);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int is_parameter(const checkpoint *c, const char *name)
{
    return bsearch(&name, c->names, c->n, sizeof name, compare_names) != NULL;
}

/* "module/NAME" of the model states, if its elements are there (stage 3: those of buffers only). */
static int add_weight(checkpoint *c, uint32_t source, const trace *from, size_t i)
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
    return parts_tensor(c->t, full, x, c->error) &&
                   !parts_run(c->t, source, (uint32_t)i, 0, 0, x->count, c->error)
               ? parts_whole(c->t, c->error)
               : -1;
}

static int read_model(checkpoint *c)
{
    trace *t = c->t;
    uint32_t source;
    if (parts_add(t, parts_beside(t, c->model), 0, 0, &source, c->error))
        return -1;
    trace *from = parts_use(t, source, c->error);
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
        parts_leave(t, source);
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
static int count_groups(checkpoint *c, const trace *from)
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
        return trace_fail(from, c->error, TRACE_NO_OFFSET, "holds neither single_partition_of_fp32_groups nor "
                          "fp32_flat_groups: no optimizer states of ZeRO");
    if (c->ranks * c->groups > TRACE_ITEMS_MAX ||
        !(c->vectors = malloc(c->ranks * c->groups * sizeof *c->vectors)))
        return trace_no_memory(c->t, c->error);
    for (size_t i = 0; i < c->ranks * c->groups; i++)
        c->vectors[i] = (vector){{PARTS_ONLY, PARTS_ONLY, PARTS_ONLY}, 0};
    return 0;
}

/* As many ranks as the partitions say: "partition_count", or one for each group. */
static int check_world(const checkpoint *c, const trace *from)
{
    const char *count = trace_metadata(from, "optimizer_state_dict/partition_count");
    if (!count)
        count = trace_metadata(from, "optimizer_state_dict/partition_count/0");
    if (count && strtoull(count, NULL, 10) != c->ranks)
        return trace_fail(from, c->error, TRACE_NO_OFFSET, "is a partition of %.20s, but there are files of %zu ranks",
                          count, c->ranks);
    return 0;
}

static int read_vectors(checkpoint *c, const trace *from, size_t rank)
{
    size_t group;
    vector *row = c->vectors + rank * c->groups;
    for (size_t i = 0; i < from->count; i++) {
        const trace_tensor *x = &from->entries[i].tensor;
        const struct vector_name *v = vector_name(x->name, &group);
        if (!v || v->stage != c->stage)
            continue;
        if (group >= c->groups)
            return trace_fail(from, c->error, TRACE_NO_OFFSET, "has more groups than rank 0");
        if (!x->format || x->rank != 1)
            return trace_fail(from, c->error, TRACE_NO_OFFSET, "tensor '%s' is no vector of floating-point numbers",
                              x->name);
        row[group].entry[v->kind] = (uint32_t)i;
        if (v->kind == 0)
            row[group].count = x->count;
    }
    for (size_t g = 0; g < c->groups; g++) {
        const vector *v = &row[g], *zero = &c->vectors[g];
        if (v->entry[0] == PARTS_ONLY)
            return trace_fail(from, c->error, TRACE_NO_OFFSET, "holds no masters of group %zu", g);
        if (c->stage == 3 && v->count != zero->count)
            return trace_fail(from, c->error, TRACE_NO_OFFSET, "group %zu has %" PRIu64 " elements, in rank 0 %" PRIu64,
                              g, v->count, zero->count);
        for (int k = 1; k < KINDS; k++) {
            if ((v->entry[k] == PARTS_ONLY) != (zero->entry[k] == PARTS_ONLY))
                return trace_fail(from, c->error, TRACE_NO_OFFSET, "group %zu has %s %s, unlike rank 0", g,
                                  v->entry[k] == PARTS_ONLY ? "no" : "an", kinds[k]);
            if (v->entry[k] != PARTS_ONLY && from->entries[v->entry[k]].tensor.count < v->count)
                return trace_fail(from, c->error, TRACE_NO_OFFSET, "%s of group %zu is shorter than its masters",
                                  kinds[k], g);
        }
    }
    return 0;
}

/* Padding behind parameters: lists in the order of param_shapes; files of older versions have none. */
static int read_paddings(checkpoint *c, const trace *from)
{
    static const char paddings[] = "optimizer_state_dict/param_alignment_paddings/";
    const char *key;
    size_t n = 0;
    for (size_t i = 0; (key = trace_metadata_key(from, i)); i++) {
        if (strncmp(key, paddings, sizeof paddings - 1) != 0 || n++ >= c->n)
            continue;
        c->parameters[n - 1].padding = strtoull(trace_metadata_value(from, i), NULL, 10);
    }
    return n == 0 || n == c->n ? 0 : trace_fail(from, c->error, TRACE_NO_OFFSET, "holds %zu paddings of %zu "
                                                "parameters", n, c->n);
}

static int read_ranks(checkpoint *c)
{
    trace *t = c->t;
    if (!(c->sources = malloc(c->ranks * sizeof *c->sources)))
        return trace_no_memory(t, c->error);
    for (size_t r = 0; r < c->ranks; r++) {
        if (parts_add(t, parts_beside(t, c->files[r]), 0, 0, &c->sources[r], c->error))
            return -1;
        trace *from = parts_use(t, c->sources[r], c->error);
        if (!from)
            return -1;
        t->size += from->size;
        int result = (r == 0 && count_groups(c, from)) || check_world(c, from) || read_vectors(c, from, r) ||
                     (r == 0 && c->stage < 3 && read_paddings(c, from)) ? -1 : 0;
        parts_leave(t, c->sources[r]);
        if (result)
            return -1;
    }
    return 0;
}

/* ---- tensors ---- */

static uint64_t parts_of(uint64_t n, uint64_t parts)
{
    return n / parts + (n % parts != 0);
}

/* A tensor of a kind, named "KIND:NAME", with the dtype that the vector of rank 0 has. */
static int begin_tensor(checkpoint *c, const parameter *p, int kind, size_t group)
{
    trace *t = c->t;
    const size_t size = strlen(kinds[kind]) + strlen(p->name) + 2;
    char *name = trace_alloc(t, size);
    trace *from = name ? parts_use(t, c->sources[0], c->error) : NULL;
    if (name)
        snprintf(name, size, "%s:%s", kinds[kind], p->name);
    else
        trace_no_memory(t, c->error);
    if (!from)
        return -1;
    const trace_tensor *x = &from->entries[c->vectors[group].entry[kind]].tensor;
    const trace_tensor like = {.dtype = x->dtype, .format = x->format, .shape = p->shape, .rank = p->rank};
    const int result = parts_tensor(t, name, &like, c->error) ? 0 : -1;
    parts_leave(t, c->sources[0]);
    return result;
}

/* Stages 1 and 2: parameter p is elements [at, at + count) of the vector of its group, which the ranks' parts make
 * up. `rank` is the one that holds element `at`, whose part begins at `begins`. */
static int flat_pieces(checkpoint *c, const parameter *p, int kind, uint64_t at, size_t rank, uint64_t begins)
{
    for (uint64_t done = 0; done < p->count; rank++) {
        if (rank == c->ranks)
            return trace_fail(c->t, c->error, TRACE_NO_OFFSET, "the partitions of group %" PRIu32 " end within '%s'",
                              p->group, p->name);
        const vector *v = &c->vectors[rank * c->groups + p->group];
        const uint64_t from = at + done - begins, left = v->count - from;
        const uint64_t n = left < p->count - done ? left : p->count - done;
        if (parts_run(c->t, c->sources[rank], v->entry[kind], from, done, done + n, c->error))
            return -1;
        done += n;
        begins += v->count;
    }
    return 0;
}

/* Where the walk through the vectors is: stages 1 and 2, for each group. */
typedef struct place {
    uint64_t at, begins;
    size_t rank;
} place;

static int flat_tensors(checkpoint *c, int kind)
{
    place *places = calloc(c->groups, sizeof *places);
    int result = places ? 0 : trace_no_memory(c->t, c->error);
    for (size_t i = 0; i < c->n && result == 0; i++) {
        const parameter *p = &c->parameters[i];
        if (p->group >= c->groups) {
            result = trace_fail(c->t, c->error, TRACE_NO_OFFSET, "no partition holds group %" PRIu32 ", which has "
                                "'%s'", p->group, p->name);
            break;
        }
        place *w = &places[p->group];
        const vector *v = &c->vectors[p->group];
        if (v->entry[kind] == PARTS_ONLY)
            continue;
        while (w->rank < c->ranks && w->at - w->begins >= v[w->rank * c->groups].count)
            w->begins += v[w->rank++ * c->groups].count;
        result = begin_tensor(c, p, kind, p->group) || flat_pieces(c, p, kind, w->at, w->rank, w->begins) ||
                 parts_whole(c->t, c->error) ? -1 : 0;
        if (p->padding > UINT64_MAX / 4 - p->count || w->at > UINT64_MAX / 4)
            result = trace_fail(c->t, c->error, TRACE_NO_OFFSET, "the padding behind '%s' is too large", p->name);
        w->at += p->count + p->padding;
    }
    for (size_t g = 0; g < c->groups && result == 0 && kind == 0; g++) {
        uint64_t there = 0, align = 2 * (uint64_t)c->ranks;
        for (size_t r = 0; r < c->ranks; r++)
            there += c->vectors[r * c->groups + g].count;
        if (parts_of(there, align) != parts_of(places[g].at, align))
            result = trace_fail(c->t, c->error, TRACE_NO_OFFSET, "the partitions of group %zu have %" PRIu64
                                " elements, its parameters need %" PRIu64, g, there, places[g].at);
    }
    free(places);
    return result;
}

/* Stage 3: elements [at, at + part) of each rank's vectors, one behind the other, are the rank's part of p. Vector
 * `group` holds element `at`, it begins at `begins`. */
static int cut_pieces(checkpoint *c, const parameter *p, int kind, uint64_t at, size_t group, uint64_t begins)
{
    const uint64_t part = parts_of(p->count, c->ranks);
    for (size_t r = 0; r < c->ranks; r++) {
        size_t g = group;
        uint64_t start = begins, done = r * part;
        const uint64_t end = p->count - done < part ? p->count : done + part;
        for (uint64_t from = at; done < p->count && done < end; g++) {
            if (g == c->groups)
                return trace_fail(c->t, c->error, TRACE_NO_OFFSET, "the partitions end within '%s'", p->name);
            const vector *v = &c->vectors[r * c->groups + g];
            const uint64_t left = v->count - (from - start), n = left < end - done ? left : end - done;
            if (parts_run(c->t, c->sources[r], v->entry[kind], from - start, done, done + n, c->error))
                return -1;
            done += n;
            from += n;
            start += v->count;
        }
        if (done >= p->count)
            break;
    }
    return 0;
}

static int cut_tensors(checkpoint *c, int kind)
{
    uint64_t at = 0, begins = 0, there = 0;
    size_t g = 0;
    for (size_t i = 0; i < c->groups; i++) {
        there += c->vectors[i].count;
        if (c->vectors[i].entry[kind] == PARTS_ONLY)
            return 0;
    }
    for (size_t i = 0; i < c->n; i++) {
        const parameter *p = &c->parameters[i];
        while (g < c->groups && at - begins >= c->vectors[g].count)
            begins += c->vectors[g++].count;
        if (begin_tensor(c, p, kind, g < c->groups ? g : 0) || cut_pieces(c, p, kind, at, g, begins) ||
            parts_whole(c->t, c->error))
            return -1;
        at += parts_of(p->count, c->ranks);
    }
    return at == there ? 0 : trace_fail(c->t, c->error, TRACE_NO_OFFSET, "the partitions have %" PRIu64 " elements, the "
                                        "parameters need %" PRIu64 " of each rank", there, at);
}

static int open_zero(trace *t, const trace_options *options, trace_error *error)
{
    checkpoint c = {.t = t, .error = error};
    int result = parts_begin(t, options, error) || list_files(&c) || read_model(&c) || read_ranks(&c) ? -1 : 0;
    for (int kind = 0; kind < KINDS && result == 0; kind++)
        result = c.stage == 3 ? cut_tensors(&c, kind) : flat_tensors(&c, kind);
    if (result == 0)
        result = parts_names(t, error);
    free(c.files);
    free(c.sources);
    free(c.parameters);
    free(c.names);
    free(c.vectors);
    return result;
}

const trace_layout_type trace_layout_zero = {
    .name = "DeepSpeed ZeRO", .open = open_zero, .codes = parts_codes, .close = parts_close, .has_parts = 1};
