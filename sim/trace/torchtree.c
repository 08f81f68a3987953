/* torchtree.c -- from the tree of a pickle to tensors and metadata.
 *
 * A name is the path to a value: keys of dicts, indices of lists, attributes of objects, joined by "/". What is one
 * value becomes metadata under its path. A value that contains itself is read once; objects of classes that are not
 * known are, too, whatever refers to them. */
#include "torch.h"

#include "../text/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Sharing could make a way through a small tree endless. A value on it is a step, and so are these bytes: of the
     * path to it, of a key, of items that are looked at. There are steps for so many bytes of the tree, and some more. */
    STEP_OF_PATH = 256,
    STEP_OF_TEXT = 32,
    STEP_OF_ITEMS = 4, /* of items: how many */
    STEPS_OF_BYTES = 2,
    STEPS_LEAST = 100000,
    TEXTS_OF_BYTES = 4,
    TEXTS_LEAST = 1 << 20, /* likewise of all values that become text    */
    METADATA_MAX = 100000, /* pairs                                                            */
    LIST_MAX = 1000,       /* scalars of a list that are metadata each                         */
    ON_THE_WAY = 1,
    SEEN = 2 /* marks of a value                                                 */
};

static int walk(torch_walker *w, pickle_ref r, int depth);
static int walk_nested(torch_walker *w, pickle_ref r, int depth);

/* ---- notes and metadata ---- */

static void spend(uint64_t *left, uint64_t n)
{
    *left -= n < *left ? n : *left;
}

/* Adds to a list of names for a note, while there is room. */
static void note(char *list, size_t size, uint64_t *n, const char *name)
{
    if (strstr(list, name))
        return;
    ++*n;
    if (strlen(list) + strlen(name) + 2 < size)
        text_add(list, size, "%s%s", *list ? ", " : "", name);
}

static int add_metadata(torch_walker *w, const char *key, const char *value)
{
    trace *t = w->t;
    torch_state *s = t->state;
    if (t->n_metadata >= METADATA_MAX || t->arena_bytes > TRACE_MEMORY) {
        s->n_dropped++;
        return 0;
    }
    char *k = trace_string(t, key, strlen(key)), *v = trace_string(t, value, strlen(value));
    return k && v ? trace_add_metadata(t, k, v, w->error) : trace_no_memory(t, w->error);
}

static int scalar(torch_walker *w, pickle_ref r)
{
    if (*w->texts == 0) {
        ((torch_state *)w->t->state)->n_dropped++;
        return 0;
    }
    trace_torch_text(w->tree->p, r, w->text, sizeof w->text);
    spend(w->texts, strlen(w->text));
    return add_metadata(w, w->path, w->text);
}

/* ---- the path ---- */

static int push_text(torch_walker *w, const char *name, int depth)
{
    const size_t n = strlen(name);
    if (w->path_bytes + n + 2 > TORCH_NAME_MAX)
        return trace_fail(w->t, w->error, TRACE_NO_OFFSET, "the path to a tensor is longer than %d bytes",
                          TORCH_NAME_MAX);
    w->path_bytes += (size_t)sprintf(w->path + w->path_bytes, "%s%s", depth ? "/" : "", name);
    return 0;
}

static int push_key(torch_walker *w, pickle_ref key, int depth)
{
    const pickle_type type = pickle_type_of(w->tree->p, key);
    if (type == PICKLE_DICT || type == PICKLE_LIST)
        return trace_fail(w->t, w->error, TRACE_NO_OFFSET, "the pickle has a dict or a list as a key");
    if (push_text(w, "", depth))
        return -1;
    if (trace_torch_text(w->tree->p, key, w->path + w->path_bytes, TORCH_NAME_MAX - w->path_bytes))
        return trace_fail(w->t, w->error, TRACE_NO_OFFSET, "the path to a tensor is longer than %d bytes",
                          TORCH_NAME_MAX);
    const size_t n = strlen(w->path + w->path_bytes);
    spend(w->steps, n / STEP_OF_TEXT);
    w->path_bytes += n;
    return 0;
}

/* One level down, to what has this key (or name), and back. */
static int walk_below(torch_walker *w, pickle_ref key, const char *name, pickle_ref r, int depth)
{
    const size_t before = w->path_bytes;
    int failed = key ? push_key(w, key, depth) : push_text(w, name, depth);
    failed = failed || walk(w, r, depth + 1);
    w->path_bytes = before;
    w->path[before] = 0;
    return failed ? -1 : 0;
}

/* ---- containers ---- */

static int is_scalar(const pickle *p, pickle_ref r)
{
    const pickle_type type = pickle_type_of(p, r);
    return type >= PICKLE_NONE && type <= PICKLE_TEXT;
}

static int walk_items(torch_walker *w, pickle_ref r, int depth)
{
    const pickle *p = w->tree->p;
    const size_t n = pickle_count(p, r);
    size_t scalars = 0;
    char index[24];
    while (scalars < n && is_scalar(p, pickle_item(p, r, scalars)))
        scalars++;
    spend(w->steps, scalars / STEP_OF_ITEMS);
    if (n > LIST_MAX && scalars == n)
        return scalar(w, r);
    for (size_t i = 0; i < n; i++) {
        snprintf(index, sizeof index, "%zu", i);
        if (walk_below(w, 0, index, pickle_item(p, r, i), depth))
            return -1;
    }
    return 0;
}

static int walk_pairs(torch_walker *w, pickle_ref r, int depth)
{
    const pickle *p = w->tree->p;
    for (size_t i = 0; i < pickle_count(p, r); i++)
        if (walk_below(w, pickle_key(p, r, i), NULL, pickle_item(p, r, i), depth))
            return -1;
    return 0;
}

/* [(key, value), ...], of which an OrderedDict is made in old protocols */
static int is_list_of_pairs(torch_walker *w, pickle_ref r)
{
    const pickle *p = w->tree->p;
    const size_t n = pickle_count(p, r);
    spend(w->steps, n / STEP_OF_ITEMS);
    for (size_t i = 0; i < n; i++)
        if (pickle_count(p, pickle_item(p, r, i)) != 2 || pickle_type_of(p, pickle_item(p, r, i)) == PICKLE_DICT)
            return 0;
    return 1;
}

static int walk_content(torch_walker *w, pickle_ref r, const char *name, int depth)
{
    const pickle *p = w->tree->p;
    const pickle_ref first = pickle_item(p, pickle_args(p, r), 0);
    if (pickle_type_of(p, first) == PICKLE_DICT && walk_pairs(w, first, depth))
        return -1;
    if (strcmp(name, "collections.OrderedDict") == 0 && is_list_of_pairs(w, first)) {
        for (size_t i = 0; i < pickle_count(p, first); i++) {
            const pickle_ref pair = pickle_item(p, first, i);
            if (walk_below(w, pickle_item(p, pair, 0), NULL, pickle_item(p, pair, 1), depth))
                return -1;
        }
    } else if (pickle_type_of(p, first) != PICKLE_DICT && walk_items(w, first, depth)) {
        return -1;
    }
    return walk_pairs(w, pickle_dict(p, r), depth) || walk_items(w, pickle_list(p, r), depth) ? -1 : 0;
}

/* ---- objects of any class ---- */

static int walk_attributes(torch_walker *w, pickle_ref state, int depth)
{
    const pickle *p = w->tree->p;
    switch (pickle_type_of(p, state)) {
    case PICKLE_NOTHING:
    case PICKLE_NONE:
        return 0;
    case PICKLE_DICT:
        return walk_pairs(w, state, depth);
    default:
        return walk_items(w, state, depth);
    }
}

/* Attributes: a dict, or a tuple of two of them (one may be None), or whatever __setstate__ takes. */
static int walk_state(torch_walker *w, pickle_ref state, int depth)
{
    const pickle *p = w->tree->p;
    const pickle_ref slots = pickle_item(p, state, 1);
    if (pickle_type_of(p, state) == PICKLE_TUPLE && pickle_count(p, state) == 2 &&
        pickle_type_of(p, slots) == PICKLE_DICT)
        return walk_attributes(w, pickle_item(p, state, 0), depth) || walk_pairs(w, slots, depth) ? -1 : 0;
    return walk_attributes(w, state, depth);
}

/* Arguments that have names, and the type of elements. */
static int walk_arguments(torch_walker *w, const char *const *names, pickle_ref args, const char *element, int depth)
{
    const pickle *p = w->tree->p;
    const size_t before = w->path_bytes;
    for (size_t i = 0; i < pickle_count(p, args) && names[i]; i++) {
        const pickle_ref value = pickle_item(p, args, i);
        if (!*names[i] || pickle_type_of(p, value) == PICKLE_NONE)
            continue;
        int failed;
        if (trace_torch_is_element(names[i]))
            failed = push_text(w, names[i], depth) || add_metadata(w, w->path, element);
        else
            failed = walk_below(w, 0, names[i], value, depth);
        if (failed)
            return -1;
        w->path_bytes = before;
        w->path[before] = 0;
    }
    return 0;
}

static int walk_data(torch_walker *w, pickle_ref r, int known, const char *name, int depth)
{
    const pickle *p = w->tree->p;
    torch_state *s = w->t->state;
    const char *element = NULL, *const * names;
    if (w->marks[r] & SEEN)
        return 0;
    w->marks[r] |= SEEN;
    if (!known)
        note(s->classes, sizeof s->classes, &s->n_classes, name);
    if (!known && (names = trace_torch_quantised(p, name, pickle_args(p, r), &element)))
        return walk_arguments(w, names, pickle_args(p, r), element, depth);
    if (!known && (names = trace_torch_fields(name)))
        return walk_arguments(w, names, pickle_args(p, r), NULL, depth);
    if (!known && pickle_use_of(p, r) == PICKLE_CALLED) {
        snprintf(w->text, sizeof w->text, "%s (%s)", w->path, name);
        if (pickle_count(p, pickle_args(p, r)) > 1) /* more than an enumeration has */
            note(s->skipped, sizeof s->skipped, &s->n_skipped, w->text);
        if (scalar(w, r))
            return -1;
    } else if (!known && walk_items(w, pickle_args(p, r), depth)) {
        return -1;
    }
    return walk_state(w, pickle_state(p, r), depth) || walk_pairs(w, pickle_dict(p, r), depth) ||
                   walk_items(w, pickle_list(p, r), depth)
               ? -1
               : 0;
}

/* ---- what functions of the table make ---- */

/* The tensors of which one consists that is no array. */
static int walk_parts(torch_walker *w, const torch_global *g, pickle_ref args, int depth)
{
    static const char *const names[][4] = {{"indices", "values", NULL, NULL},
                                           {"crow_indices", "col_indices", "values", NULL},
                                           {"ccol_indices", "row_indices", "values", NULL},
                                           {"buffer", "sizes", "strides", "storage_offsets"}};
    const pickle *p = w->tree->p;
    char layout[64];
    trace_torch_text(p, pickle_item(p, pickle_args(p, pickle_item(p, args, 0)), 0), layout, sizeof layout);
    const int row = g->role == TORCH_PARTS                                         ? 3
                    : strstr(layout, "coo")                                        ? 0
                    : strstr(layout, "sparse_bsc") || strstr(layout, "sparse_csc") ? 2
                                                                                   : 1;
    const pickle_ref parts = g->role == TORCH_PARTS ? args : pickle_item(p, args, 1);
    for (size_t i = 0; i < 4 && names[row][i]; i++)
        if (walk_below(w, 0, names[row][i], pickle_item(p, parts, i), depth))
            return -1;
    return add_metadata(w, w->path, g->role == TORCH_PARTS ? "a nested tensor" : layout);
}

static int add_array(torch_walker *w, pickle_ref r)
{
    torch_state *s = w->t->state;
    const int result = trace_torch_add_array(w->t, w->options, w->tree, w->path, r, w->error);
    if (result <= 0)
        return result;
    snprintf(w->text, sizeof w->text, "%s (an array of no numbers)", w->path);
    note(s->skipped, sizeof s->skipped, &s->n_skipped, w->text);
    return 0;
}

/* What a function of the table makes of arguments. */
static int make(torch_walker *w, const torch_global *g, pickle_ref args, pickle_ref r, int depth)
{
    const pickle *p = w->tree->p;
    char text[64];
    switch (g->role) {
    case TORCH_TENSOR:
    case TORCH_NOWHERE:
        return trace_torch_rebuild(w, g, args);
    case TORCH_SPARSE:
    case TORCH_PARTS:
        return walk_parts(w, g, args, depth);
    case TORCH_ARGUMENT:
        return pickle_count(p, args) ? walk(w, pickle_item(p, args, 0), depth + 1)
                                     : trace_torch_bad_tensor(w, "arguments are missing");
    case TORCH_ARRAY:
        return add_array(w, r);
    case TORCH_SCALAR:
        return trace_torch_scalar_text(w->t, w->tree, r, text, sizeof text) ? scalar(w, r)
                                                                            : add_metadata(w, w->path, text);
    case TORCH_CONTENT:
        return walk_content(w, r, g->name, depth);
    case TORCH_BYTES:
        return walk_nested(w, r, depth);
    case TORCH_DATA:
        return walk_data(w, r, 1, g->name, depth);
    default:
        return scalar(w, r);
    }
}

/* _rebuild_from_type_v2(function, type, arguments, state) */
static int from_type(torch_walker *w, pickle_ref args, int depth)
{
    const pickle *p = w->tree->p;
    torch_state *s = w->t->state;
    const char *type = pickle_global(p, pickle_item(p, args, 1));
    const torch_global *g = trace_torch_global_find(pickle_global(p, pickle_item(p, args, 0)));
    if (!g || pickle_type_of(p, pickle_item(p, args, 2)) != PICKLE_TUPLE)
        return trace_torch_bad_tensor(w, "it is not described as torch does it");
    if (type && strcmp(type, "torch.Tensor") != 0 && strcmp(type, "torch.nn.parameter.Parameter") != 0)
        note(s->classes, sizeof s->classes, &s->n_classes, type);
    if (g->role == TORCH_FROM_TYPE || g->role == TORCH_ARRAY || g->role == TORCH_CONTENT || g->role == TORCH_BYTES ||
        g->role == TORCH_DATA || g->role == TORCH_SCALAR)
        return trace_torch_bad_tensor(w, "it is not described as torch does it");
    return make(w, g, pickle_item(p, args, 2), 0, depth) || walk_state(w, pickle_item(p, args, 3), depth) ? -1 : 0;
}

static int walk_object(torch_walker *w, pickle_ref r, int depth)
{
    const pickle *p = w->tree->p;
    const char *made = trace_torch_callable(p, pickle_callable(p, r), w->made, sizeof w->made);
    const torch_global *g = trace_torch_global_find(made);
    if (!g)
        return walk_data(w, r, 0, made ? made : "?", depth);
    if (g->role == TORCH_FROM_TYPE)
        return from_type(w, pickle_args(p, r), depth);
    if (strcmp(g->name, "copyreg._reconstructor") == 0) {
        const char *class = pickle_global(p, pickle_item(p, pickle_args(p, r), 0));
        torch_state *s = w->t->state;
        if (class && !trace_torch_global_find(class))
            note(s->classes, sizeof s->classes, &s->n_classes, class);
    }
    return make(w, g, pickle_args(p, r), r, depth);
}

static int walk_persistent(torch_walker *w, pickle_ref r)
{
    const pickle *p = w->tree->p;
    const pickle_ref id = pickle_persistent(p, r);
    if (pickle_is_text(p, pickle_item(p, id, 0), "module"))
        return scalar(w, pickle_item(p, id, 1));
    return trace_torch_rebuild_storage(w, r);
}

static int walk(torch_walker *w, pickle_ref r, int depth)
{
    const pickle *p = w->tree->p;
    torch_state *s = w->t->state;
    int failed;
    if (*w->steps == 0)
        return trace_fail(w->t, w->error, TRACE_NO_OFFSET, "the pickle leads to the same values again and again");
    spend(w->steps, 1 + w->path_bytes / STEP_OF_PATH);
    if (depth > TORCH_DEPTH_MAX)
        return trace_fail(w->t, w->error, TRACE_NO_OFFSET, "the pickle is nested deeper than %d", TORCH_DEPTH_MAX);
    if (w->marks[r] & ON_THE_WAY) {
        s->n_cycles++;
        return 0;
    }
    w->marks[r] |= ON_THE_WAY;
    switch (pickle_type_of(p, r)) {
    case PICKLE_NOTHING:
        failed = 0;
        break;
    case PICKLE_LIST:
    case PICKLE_TUPLE:
        failed = walk_items(w, r, depth);
        break;
    case PICKLE_DICT:
        failed = walk_pairs(w, r, depth);
        break;
    case PICKLE_OBJECT:
        failed = walk_object(w, r, depth);
        break;
    case PICKLE_PERSISTENT:
        failed = walk_persistent(w, r);
        break;
    default:
        failed = scalar(w, r);
    }
    w->marks[r] &= (unsigned char)~ON_THE_WAY;
    return failed ? -1 : 0;
}

/* Walks a tree below the path of w, or, of the outermost one, from its root on. */
static int walk_tree(torch_walker *w, torch_tree *tree, int depth)
{
    torch_walker inner = *w;
    inner.tree = tree;
    inner.storages = NULL;
    inner.storage_of = NULL;
    inner.n_storages = 0;
    *w->steps += pickle_memory(tree->p) / STEPS_OF_BYTES;
    *w->texts += pickle_memory(tree->p) * TEXTS_OF_BYTES;
    inner.marks = calloc(pickle_values(tree->p), 1);
    const int failed = inner.marks ? walk(&inner, pickle_root(tree->p), depth) : trace_no_memory(w->t, w->error);
    free(inner.marks);
    free(inner.storages);
    free(inner.storage_of);
    return failed ? -1 : 0;
}

/* A file within the pickle. */
static int walk_nested(torch_walker *w, pickle_ref r, int depth)
{
    torch_tree sub;
    if (trace_torch_open_nested(w->t, w->tree, pickle_item(w->tree->p, pickle_args(w->tree->p, r), 0), &sub, w->error))
        return -1;
    const int failed = walk_tree(w, &sub, depth);
    trace_torch_tree_clear(w->t, &sub);
    return failed;
}

static int add_notes(torch_walker *w)
{
    const torch_state *s = w->t->state;
    char text[TORCH_VALUE_MAX];
    int failed = 0;
    if (s->n_classes) {
        snprintf(text, sizeof text, "objects of these classes are read as data: %s", s->classes);
        failed |= add_metadata(w, "mpsim.note.classes", text);
    }
    if (s->n_skipped) {
        snprintf(text, sizeof text, "not read: %s", s->skipped);
        failed |= add_metadata(w, "mpsim.note.skipped", text);
    }
    if (s->n_cycles)
        failed |= add_metadata(w, "mpsim.note.cycles", "values that contain themselves are read once");
    if (s->no_numbers)
        failed |= add_metadata(w, "mpsim.note.nowhere", "some tensors have no elements in the file");
    if (s->no_crc)
        failed |= add_metadata(w, "mpsim.note.crc", "the archive was saved without CRCs: damage would not be found");
    if (s->rest)
        failed |= add_metadata(w, "mpsim.note.rest", "something follows what was read, as if the file were two");
    if (s->script)
        failed |= add_metadata(w, "mpsim.note.script",
                               "a TorchScript archive: parameters and buffers are read, not its code and constants");
    if (s->n_dropped)
        failed |= add_metadata(w, "mpsim.note.dropped", "there are more scalars than are listed");
    return failed;
}

/* What is spent on all trees of a file. */
typedef struct way {
    torch_walker w;
    uint64_t steps, texts;
} way;

torch_walker *trace_torch_walk_begin(trace *t, const trace_options *options, trace_error *error)
{
    way *all = calloc(1, sizeof *all);
    char *path = calloc(TORCH_NAME_MAX, 1);
    if (!all || !path) {
        free(all);
        free(path);
        trace_no_memory(t, error);
        return NULL;
    }
    *all = (way){.steps = STEPS_LEAST, .texts = TEXTS_LEAST};
    all->w = (torch_walker){
        .t = t, .options = options, .error = error, .path = path, .steps = &all->steps, .texts = &all->texts};
    return &all->w;
}

int trace_torch_walk(torch_walker *w, const char *path, torch_tree *tree)
{
    if (!w)
        return -1;
    w->path_bytes = (size_t)snprintf(w->path, TORCH_NAME_MAX, "%s", path);
    if (w->path_bytes >= TORCH_NAME_MAX)
        return trace_fail(w->t, w->error, TRACE_NO_OFFSET, "the name of a pickle has more than %d bytes",
                          TORCH_NAME_MAX);
    return walk_tree(w, tree, *path != 0);
}

int trace_torch_walk_end(torch_walker *w, int failed)
{
    int no_memory = 0;
    if (!w)
        return -1;
    trace *t = w->t;
    failed = failed || add_notes(w);
    const char *const *twice = !failed && t->count ? trace_duplicate(&t->entries[0].tensor.name, t->count,
                                                                     sizeof *t->entries, &no_memory)
                                                   : NULL;
    if (no_memory)
        failed = trace_no_memory(t, w->error);
    if (twice)
        failed = trace_fail(t, w->error, TRACE_NO_OFFSET, "two tensors have the name '%.200s'", *twice);
    free(w->path);
    free(w); /* which begins what it is a part of */
    return failed ? -1 : 0;
}
