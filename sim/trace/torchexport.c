/* torchexport.c -- what torch.export.save writes (.pt2): a zip archive with a member of raw elements for each weight, and
 * data/weights/model_weights_config.json, which says which member is which:
 *
 *   {"config": {"NAME": {"path_name": "weight_0", "use_pickle": false, "tensor_meta": {"dtype": 7,
 *    "sizes": [{"as_int": 2}, ...], "strides": [{"as_int": 1}, ...], "storage_offset": {"as_int": 0}}}}}
 *
 * Weights whose elements do not follow each other in rows, or that are pickled, are listed. CRCs are not compared.
 * Sources: torch/export/pt2_archive of PyTorch 2.15; the numbers of dtypes, torch/_export/serde/schema.py (ScalarType). */
#include "impl.h"

#include "../array/array.h"
#include "../text/words.h"
#include "../text/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char config_name[] = "data/weights/model_weights_config.json";

/* The dtypes of safetensors for the same, by number. */
static const struct {
    uint8_t number;
    const char *dtype;
} dtypes[] = {{1, "U8"},           {2, "I8"},       {3, "I16"},      {4, "I32"},      {5, "I64"},
              {6, "F16"},          {7, "F32"},      {8, "F64"},      {10, "C64"},     {12, "BOOL"},
              {13, "BF16"},        {28, "U16"},     {29, "F8_E4M3"}, {30, "F8_E5M2"}, {31, "F8_E4M3FNUZ"},
              {32, "F8_E5M2FNUZ"}, {33, "F8_E8M0"}, {34, "U32"},     {35, "U64"}};

typedef struct archive {
    trace *t;
    const zip_member **members; /* by name */
    size_t n;
    char *path; /* of a member: room for what `room` says */
    size_t room;
    const char *folder; /* of the weights, `length` bytes */
    size_t length;
    const trace_options *options;
    trace_error *error;
} archive;

const zip_member *trace_torch_exported(const zip_member *members, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text_ends_with(members[i].name, config_name))
            return &members[i];
    return NULL;
}

static int compare_members(const void *a, const void *b)
{
    return strcmp((*(const zip_member *const *)a)->name, (*(const zip_member *const *)b)->name);
}

static const zip_member *member_of(const archive *a, const char *path)
{
    const int n = snprintf(a->path, a->room, "%.*s%s", (int)a->length, a->folder, path);
    const zip_member named = {.name = a->path}, *key = &named;
    const zip_member **found = n < 0 || (size_t)n >= a->room
                                   ? NULL
                                   : bsearch(&key, a->members, a->n, sizeof *a->members, compare_members);
    return found ? *found : NULL;
}

static int sort_members(archive *a, const zip_member *members)
{
    for (size_t i = 0; i < a->n; i++) {
        a->members[i] = &members[i];
        const size_t length = strlen(members[i].name);
        a->room = length >= a->room ? length + 1 : a->room;
    }
    qsort(a->members, a->n, sizeof *a->members, compare_members);
    return (a->path = malloc(a->room)) ? 0 : -1;
}

static int64_t whole(const json_t *v)
{
    const json_t *i = json_object_get(v, "as_int");
    return json_is_integer(i) ? json_integer_value(i) : -1;
}

/* Sizes, and whether the elements follow each other in rows. 0, or -1: these are no sizes. */
static int shape_of(const json_t *meta, uint64_t *shape, size_t *rank, int *follows)
{
    const json_t *sizes = json_object_get(meta, "sizes"), *strides = json_object_get(meta, "strides");
    *rank = json_array_size(sizes);
    *follows = json_array_size(strides) == *rank;
    if (!json_is_array(sizes) || *rank > TRACE_RANK_MAX)
        return -1;
    uint64_t stride = 1; /* what is too large trace_shape_bytes refuses */
    int none = 0;
    for (size_t i = *rank; i-- > 0;) {
        const int64_t size = whole(json_array_get(sizes, i)), step = whole(json_array_get(strides, i));
        if (size < 0)
            return -1;
        *follows &= size == 1 || (step >= 0 && (uint64_t)step == stride);
        shape[i] = (uint64_t)size;
        stride *= (uint64_t)size;
        none |= size == 0;
    }
    *follows |= none; /* nothing follows nothing */
    return 0;
}

static const trace_dtype *dtype_of(const json_t *meta)
{
    const json_int_t number = json_integer_value(json_object_get(meta, "dtype"));
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (dtypes[i].number == number)
            return trace_dtype_find(dtypes[i].dtype);
    return NULL;
}

static int bad(const archive *a, const char *name, const char *why)
{
    return trace_fail(a->t, a->error, TRACE_NO_OFFSET, "weight '%.200s': %s", name, why);
}

/* Where the elements are, in a member that is stored. */
static int place(const archive *a, const char *name, trace_entry *e, const zip_member *m, const json_t *meta,
                 unsigned bits)
{
    const int64_t offset = e->bytes ? whole(json_object_get(meta, "storage_offset")) : 0;
    if (m->method != 0)
        return bad(a, name, "its member is packed: torch stores it");
    if (trace_zip_check_local(a->t, m, a->error))
        return -1;
    if (offset < 0 || (uint64_t)offset > m->size || (uint64_t)offset * (bits / 8) > m->size ||
        e->bytes > m->size - (uint64_t)offset * (bits / 8))
        return bad(a, name, "its elements end past its member");
    if (trace_shows(a->t, a->options, e->bytes)) /* weights may have one member */
        return bad(a, name, "it and those before it show more bytes than --max-ratio times those of the file");
    e->tensor.offset = m->end - m->packed + (uint64_t)offset * (bits / 8);
    return 0;
}

static int add_weight(archive *a, const char *name, const json_t *v)
{
    const json_t *meta = json_object_get(v, "tensor_meta");
    const char *path = json_string_value(json_object_get(v, "path_name"));
    const trace_dtype *d = dtype_of(meta);
    const zip_member *m = path ? member_of(a, path) : NULL;
    uint64_t shape[TRACE_RANK_MAX];
    size_t rank;
    int follows;
    if (!m || shape_of(meta, shape, &rank, &follows))
        return bad(a, name, m ? "its sizes are not described" : "its member is not in the archive");
    trace_entry *e = trace_add(a->t, a->error);
    uint64_t *sides = trace_alloc(a->t, rank * sizeof *sides);
    char *own = trace_string(a->t, name, strlen(name));
    if (!e || !sides || !own)
        return e ? trace_no_memory(a->t, a->error) : -1;
    memcpy(sides, shape, rank * sizeof *sides);
    e->tensor = (trace_tensor){.name = own, .dtype = d ? d->name : "unknown", .shape = sides, .rank = rank};
    if (trace_shape_bytes(shape, rank, d ? d->bits : 8, &e->tensor.count, &e->bytes))
        return bad(a, name, "its shape is too large");
    if (!d || !follows || json_is_true(json_object_get(v, "use_pickle"))) {
        e->bytes = 0;
        e->nowhere = 1;
        e->tensor.unread = d && follows ? "it is pickled"
                           : d          ? "its elements do not follow each other in rows"
                                        : "its dtype is not known";
        e->tensor.dtype = "unread";
        snprintf(a->t->unread, sizeof a->t->unread, "'%.250s', and what is like it: %s", name, e->tensor.unread);
        return 0;
    }
    e->tensor.format = trace_dtype_format(d, a->options);
    if (e->tensor.format && mpsim_format_code_bytes(e->tensor.format) * 8 != d->bits)
        return bad(a, name, "its elements cannot be codes of the format that --as says");
    return place(a, name, e, m, meta, d->bits);
}

/* The weights that the list names. */
static int list_weights(archive *a, const zip_member *config)
{
    const char *name;
    json_t *v;
    if (config->method != 0 || config->size > a->t->max_header)
        return trace_fail(a->t, a->error, config->offset,
                          "the list of weights is packed, or above the cap of %" PRIu64 " bytes", a->t->max_header);
    if (trace_zip_check_local(a->t, config, a->error))
        return -1;
    char *text = array_memory(config->size, 1);
    if (!text)
        return trace_no_memory(a->t, a->error);
    a->t->at = config->end - config->packed;
    int result = trace_bytes(a->t, text, (size_t)config->size, a->error);
    int no_memory = 0;
    json_t *all = result ? NULL : json_text(text, (size_t)config->size, JSON_REJECT_DUPLICATES, NULL, &no_memory);
    free(text);
    if (no_memory)
        result = trace_no_memory(a->t, a->error);
    if (!result && !json_is_object(json_object_get(all, "config")))
        result = trace_fail(a->t, a->error, config->offset, "the list of weights is not JSON with a config");
    json_object_foreach(json_object_get(all, "config"), name, v) if (!result) result = add_weight(a, name, v);
    json_decref(all);
    if (!result && trace_order(a->t))
        result = trace_no_memory(a->t, a->error);
    return result;
}

int trace_torch_export_open(trace *t, const zip_member *members, size_t n, const zip_member *config,
                            const trace_options *options, trace_error *error)
{
    archive a = {.t = t,
                 .members = calloc(n, sizeof *a.members),
                 .n = n,
                 .folder = config->name,
                 .length = strlen(config->name) - strlen(strrchr(config_name, '/') + 1),
                 .options = options,
                 .error = error};
    const int failed = !a.members || sort_members(&a, members) ? trace_no_memory(t, error) : list_weights(&a, config);
    free(a.members);
    free(a.path);
    return failed;
}
const trace_layout_type trace_layout_torch_export = {.name = "torch.export"};
