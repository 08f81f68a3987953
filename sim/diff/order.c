/* order.c -- see order.h. */
#include "order.h"

#include "../array/need.h"
#include "../input/names.h"

#include <stdlib.h>
#include <string.h>

/* What a kind is part of, and its place there among the tensors of a module. */
enum { STATE, FORWARD, BACKWARD };

static const struct {
    const char *kind;
    int phase, place;
    int of_module; /* its name is a module's; else a parameter's: a module's and one part more */
} parts[] = {
    {"opt.m", STATE, 0, 0},    {"opt.v", STATE, 1, 0},    {"opt.vmax", STATE, 2, 0}, {"master", STATE, 3, 0},
    {"weight", STATE, 4, 0},   {"act", FORWARD, 0, 1},    {"out", FORWARD, 1, 1},    {"agrad", BACKWARD, 0, 1},
    {"dgrad", BACKWARD, 1, 1}, {"wgrad", BACKWARD, 2, 0}, {NULL, FORWARD, 2, 0},
};

static size_t part_of(const char *kind)
{
    size_t i = 0;
    while (parts[i].kind && !(kind && strcmp(parts[i].kind, kind) == 0))
        i++;
    return i;
}

/* Modules and their places. */
typedef struct modules {
    char **names;
    size_t n;
    nameindex index;
} modules;

static void add_module(modules *m, const char *name, size_t length)
{
    char *own = need_part(name, length);
    if (nameindex_find(&m->index, own) >= 0) {
        free(own);
        return;
    }
    m->names[m->n] = own;
    nameindex_add(&m->index, own, m->n++);
}

static void clear_modules(modules *m)
{
    nameindex_clear(&m->index);
    for (size_t i = 0; i < m->n; i++)
        free(m->names[i]);
    free(m->names);
}

/* How much of a tensor's name is the module's. */
static size_t module_length(const side_tensor *t)
{
    const char *dot = strrchr(t->fqn, '.'), *slash = strrchr(t->fqn, '/');
    if (parts[part_of(t->kind)].of_module || (!dot && !slash))
        return strlen(t->fqn);
    return (size_t)((dot > slash ? dot : slash) - t->fqn);
}

static void split_modules(modules *m, const char *list)
{
    size_t room = 1;
    for (const char *p = list; *p; p++)
        room += *p == ',';
    m->names = need_memory(room, sizeof *m->names);
    while (*list) {
        const size_t n = strcspn(list, ",");
        add_module(m, list, n);
        list += n + (list[n] == ',');
    }
}

/* ---- files that are sorted by names ---- */

/* What a module's name tells of its place: the first of these words in it. Logits come last, embeddings first. */
enum { EMBEDDING, LAYER, REST, LOGITS };

static int has_part(const char *name, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = name; (p = strstr(p, word)); p++)
        if ((p == name || p[-1] == '.' || p[-1] == '/') && (!p[n] || p[n] == '.' || p[n] == '/'))
            return 1;
    return 0;
}

/* The number of its layer, or -1: the first part that is digits. */
static long layer_of(const char *name)
{
    for (const char *p = name; p; p = strpbrk(p, "./"), p = p ? p + 1 : NULL) {
        const size_t n = strspn(p, "0123456789");
        if (n && n < 10 && (!p[n] || p[n] == '.' || p[n] == '/'))
            return atol(p);
    }
    return -1;
}

static int class_of(const char *name)
{
    static const char *const logits[] = {"lm_head", "head",         "logits",   "classifier",
                                         "score",   "output_layer", "embed_out"};
    static const char *const embeddings[] = {
        "embeddings",      "embedding",      "embed", "embed_tokens", "embed_positions", "embed_in",
        "word_embeddings", "tok_embeddings", "wte",   "wpe",          "shared",          "patch_embed"};
    if (layer_of(name) >= 0)
        return LAYER;
    for (size_t i = 0; i < sizeof logits / sizeof logits[0]; i++)
        if (has_part(name, logits[i]))
            return LOGITS;
    for (size_t i = 0; i < sizeof embeddings / sizeof embeddings[0]; i++)
        if (has_part(name, embeddings[i]))
            return EMBEDDING;
    return REST;
}

/* Where a part of a layer comes in it, by the names that models of Hugging Face, Meta and GPT-2 give it. */
static const struct {
    const char *part;
    int place;
} places[] = {
    {"input_layernorm", 0},
    {"input_norm", 0},
    {"pre_norm", 0},
    {"ln_1", 0},
    {"norm1", 0},
    {"attn_norm", 0},
    {"attention_norm", 0},
    {"layernorm_before", 0},
    {"self_attn", 10},
    {"attn", 10},
    {"attention", 10},
    {"self_attention", 10},
    {"q_proj", 11},
    {"query", 11},
    {"q", 11},
    {"wq", 11},
    {"qkv", 11},
    {"qkv_proj", 11},
    {"query_key_value", 11},
    {"c_attn", 11},
    {"self", 11},
    {"k_proj", 12},
    {"key", 12},
    {"k", 12},
    {"wk", 12},
    {"v_proj", 13},
    {"value", 13},
    {"v", 13},
    {"wv", 13},
    {"q_norm", 14},
    {"k_norm", 15},
    {"o_proj", 16},
    {"out_proj", 16},
    {"o", 16},
    {"dense", 16},
    {"encoder_attn", 20},
    {"cross_attn", 20},
    {"crossattention", 20},
    {"post_attention_layernorm", 30},
    {"self_attn_layer_norm", 30},
    {"ln_2", 30},
    {"norm2", 30},
    {"ffn_norm", 30},
    {"layernorm_after", 30},
    {"pre_feedforward_layernorm", 31},
    {"mlp", 40},
    {"ffn", 40},
    {"feed_forward", 40},
    {"block_sparse_moe", 40},
    {"intermediate", 40},
    {"gate", 41},
    {"gate_proj", 42},
    {"fc1", 42},
    {"c_fc", 42},
    {"w1", 42},
    {"wi", 42},
    {"wi_0", 42},
    {"dense_h_to_4h", 42},
    {"up_proj", 43},
    {"w3", 43},
    {"wi_1", 43},
    {"down_proj", 46},
    {"fc2", 46},
    {"c_proj", 46},
    {"w2", 46},
    {"wo", 46},
    {"dense_4h_to_h", 46},
    {"output", 50},
    {"post_feedforward_layernorm", 55},
    {"final_layer_norm", 55},
};

static int place_of_part(const char *part, size_t n)
{
    enum { UNKNOWN = 45 };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (strncmp(places[i].part, part, n) == 0 && !places[i].part[n])
            return places[i].place;
    return UNKNOWN;
}

/* Names of one layer: at the first part that differs, by its place; else by the names. */
static int by_parts(const char *x, const char *y)
{
    for (const char *p = x, *q = y; *p && *q;) {
        const size_t m = strcspn(p, "./"), n = strcspn(q, "./");
        if (m != n || strncmp(p, q, n) != 0) {
            const int a = place_of_part(p, m), b = place_of_part(q, n);
            return a != b ? a - b : strverscmp(x, y);
        }
        p += m + (p[m] != '\0');
        q += n + (q[n] != '\0');
    }
    return strverscmp(x, y);
}

/* An encoder comes before its decoder, which has embeddings and layers of its own. */
static int by_layer(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    const int class_x = class_of(x), class_y = class_of(y), decoder_x = has_part(x, "decoder"),
              decoder_y = has_part(y, "decoder");
    const long layer_x = layer_of(x), layer_y = layer_of(y);
    if ((class_x == LOGITS) != (class_y == LOGITS))
        return class_x - class_y;
    if (decoder_x != decoder_y)
        return decoder_x - decoder_y;
    if (class_x != class_y)
        return class_x - class_y;
    return layer_x != layer_y ? (layer_x > layer_y) - (layer_x < layer_y) : by_parts(x, y);
}

/* The last name of a dtype in a file. */
typedef struct last_name {
    const char *dtype, *name;
} last_name;

/* Whether the names of each file are in alphabetical order, or those of each dtype, one after another, as
 * safetensors sorts them: then the order of the file tells nothing. */
static int is_sorted(const side_group *g)
{
    enum { DTYPES = 32 };
    last_name seen[DTYPES];
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++) {
        const side_tensor *t = &g->tensors[i];
        size_t k = 0;
        n = i && t->file == g->tensors[i - 1].file ? n : 0;
        while (k < n && strcmp(seen[k].dtype, t->dtype) != 0)
            k++;
        if (k == DTYPES || (k < n && (k + 1 < n || strcmp(seen[k].name, t->name) > 0)))
            return 0;
        seen[k] = (last_name){t->dtype, t->name};
        n += k == n;
    }
    return 1;
}

/* Modules as the names of the tensors tell them. */
static void find_modules(modules *m, side_group *g)
{
    m->names = need_memory(g->n, sizeof *m->names);
    for (size_t i = 0; i < g->n; i++)
        add_module(m, g->tensors[i].fqn, module_length(&g->tensors[i]));
    if (!is_sorted(g))
        return;
    g->sorted = m->n > 1;
    qsort(m->names, m->n, sizeof *m->names, by_layer);
    nameindex_clear(&m->index);
    for (size_t i = 0; i < m->n; i++)
        nameindex_add(&m->index, m->names[i], i);
}

/* The place of a module or, if it has none, of what it is part of: blocks.0 for blocks.0.attn. */
static size_t module_place(const modules *m, const side_tensor *t)
{
    size_t n = module_length(t);
    char *name = need_part(t->fqn, n);
    ptrdiff_t found = -1;
    while (n && (found = nameindex_find(&m->index, name)) < 0) {
        while (n && name[n - 1] != '.' && name[n - 1] != '/')
            n--;
        n -= n > 0;
        name[n] = '\0';
    }
    free(name);
    return found < 0 ? m->n : (size_t)found;
}

static int by_order(const void *a, const void *b)
{
    const side_tensor *x = a, *y = b;
    for (size_t i = 0; i < sizeof x->at / sizeof x->at[0]; i++)
        if (x->at[i] != y->at[i])
            return x->at[i] < y->at[i] ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

void diff_order_group(side_group *g)
{
    modules m = {0};
    if (g->modules)
        split_modules(&m, g->modules);
    else
        find_modules(&m, g);
    for (size_t i = 0; i < g->n; i++) {
        side_tensor *t = &g->tensors[i];
        const size_t part = part_of(t->kind), place = module_place(&m, t);
        const int phase = parts[part].phase;
        t->at[0] = (size_t)phase;
        t->at[1] = phase == STATE ? (size_t)parts[part].place : phase == FORWARD ? place : m.n - place;
        t->at[2] = phase == STATE ? place : (size_t)parts[part].place;
    }
    clear_modules(&m);
    if (g->n)
        qsort(g->tensors, g->n, sizeof *g->tensors, by_order);
}
