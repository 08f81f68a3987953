/* config.c -- see config.h. A table of architectures (family.c) says what layers there are, the file how large they are. */
#include "config.h"

#include "../array/need.h"
#include "../policy/plan.h"
#include "../text/json.h"
#include "../text/words.h"
#include "../trace/textfile.h"
#include "../trace/trace.h"
#include "family.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MOST = 4 << 20, LAYERS_MOST = 16384, EXPERTS_MOST = 65536, SIZE_BITS = 26 };

typedef struct config {
    shape *s;
    const json_t *root; /* of the language model */
    const char *path;
    const family *f;
    const char *bad; /* the first key whose value is of no use, or NULL */
    uint64_t hidden, heads, kv_heads, head, ffn, vocab;
    int mlp_bias, qkv_bias, out_bias, norm_bias;
    char block[96]; /* names of the layer at hand begin with it */
} config;

/* ---- what the file says ---- */

/* The first of the keys, which end with NULL, that the file has, and that is not null. */
static const json_t *value(const config *c, const char *const *keys, const char **key)
{
    for (size_t i = 0; keys[i]; i++) {
        const json_t *v = json_object_get(c->root, keys[i]);
        *key = keys[i];
        if (v && !json_is_null(v))
            return v;
    }
    return NULL;
}

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A size, or `otherwise` where the file has none; 0 there: it must have one. */
static uint64_t size_of(config *c, const char *const *keys, uint64_t otherwise)
{
    const char *key = keys[0];
    const json_t *v = value(c, keys, &key);
    const json_int_t n = json_integer_value(v);
    if (v && json_is_integer(v) && n >= 0 && n <= (json_int_t)1 << SIZE_BITS && (n || otherwise != 0))
        return (uint64_t)n;
    if (!v && otherwise)
        return otherwise;
    c->bad = c->bad ? c->bad : keys[0];
    return 1;
}

/* The same of what there may be none of. */
static uint64_t count_of(config *c, const char *const *keys)
{
    const char *key;
    return value(c, keys, &key) ? size_of(c, keys, 1) : 0;
}

static int flag_of(const config *c, const char *const *keys, int otherwise)
{
    const char *key;
    const json_t *v = value(c, keys, &key);
    return v && json_is_boolean(v) ? json_is_true(v) : otherwise;
}

static int has(const config *c, unsigned trait)
{
    return (c->f->traits & trait) != 0;
}

/* ---- parameters ---- */

static const char *layer_name(const config *c, char out[256], const char *name, int in_block)
{
    snprintf(out, 256, "%s%s", in_block ? c->block : "", name);
    return out;
}

static void add(config *c, const char *layer, int weight_rank, int rank, uint64_t rows, uint64_t cols)
{
    shape *s = c->s;
    need_room(&s->tensors, s->count, sizeof *s->tensors);
    need_room(&s->names, s->count, sizeof *s->names);
    s->names[s->count] = need_text(layer);
    s->tensors[s->count] = (shape_tensor){.layer = s->names[s->count],
                                          .weight_rank = weight_rank,
                                          .rank = rank,
                                          .n = rows * cols,
                                          .rows = rows,
                                          .cols = cols,
                                          .inner = rows};
    s->count++;
    s->parameters += rows * cols;
}

static void add_matrix(config *c, const char *name, uint64_t rows, uint64_t cols, int bias, int in_block)
{
    char layer[256];
    layer_name(c, layer, name, in_block);
    add(c, layer, 2, 2, rows, cols);
    if (bias)
        add(c, layer, 2, 1, 1, rows);
}

static void matrix(config *c, const char *name, uint64_t rows, uint64_t cols, int bias)
{
    add_matrix(c, name, rows, cols, bias, 1);
}

static void add_norm(config *c, const char *name, uint64_t n, int bias, int in_block)
{
    char layer[256];
    layer_name(c, layer, name, in_block);
    add(c, layer, 1, 1, 1, n);
    if (bias)
        add(c, layer, 1, 1, 1, n);
}

static void add_table(config *c, const char *name, uint64_t rows)
{
    add(c, name, POLICY_TABLE, 2, rows, c->hidden);
}

/* ---- attention ---- */

static void add_query_norms(config *c)
{
    const int wide = has(c, FAMILY_WIDE_NORMS);
    if (!wide && !has(c, FAMILY_HEAD_NORMS))
        return;
    add_norm(c, "self_attn.q_norm", wide ? c->heads * c->head : c->head, 0, 1);
    add_norm(c, "self_attn.k_norm", wide ? c->kv_heads * c->head : c->head, 0, 1);
}

/* DeepSeek: queries, and keys and values, through matrices of low rank; keys have a part that is rotated, for all heads one. */
static void add_latent(config *c)
{
    const uint64_t nope = size_of(c, KEYS("qk_nope_head_dim"), 0), rope = size_of(c, KEYS("qk_rope_head_dim"), 0);
    const uint64_t v = size_of(c, KEYS("v_head_dim"), 0), rank = size_of(c, KEYS("kv_lora_rank"), 0);
    const uint64_t low = count_of(c, KEYS("q_lora_rank"));
    if (low) {
        matrix(c, "self_attn.q_a_proj", low, c->hidden, c->qkv_bias);
        add_norm(c, "self_attn.q_a_layernorm", low, 0, 1);
        matrix(c, "self_attn.q_b_proj", c->heads * (nope + rope), low, 0);
    } else {
        matrix(c, "self_attn.q_proj", c->heads * (nope + rope), c->hidden, 0);
    }
    matrix(c, "self_attn.kv_a_proj_with_mqa", rank + rope, c->hidden, c->qkv_bias);
    add_norm(c, "self_attn.kv_a_layernorm", rank, 0, 1);
    matrix(c, "self_attn.kv_b_proj", c->heads * (nope + v), rank, 0);
    matrix(c, c->f->names->out, c->hidden, c->heads * v, c->out_bias);
}

static void add_attention(config *c)
{
    const family_names *n = c->f->names;
    const uint64_t q = c->heads * c->head, kv = c->kv_heads * c->head;
    char layer[256];
    if (has(c, FAMILY_LATENT)) {
        add_latent(c);
        return;
    }
    if (has(c, FAMILY_SINKS))
        add(c, layer_name(c, layer, "self_attn", 1), 1, 1, 1, c->heads);
    if (has(c, FAMILY_FUSED_QKV)) {
        matrix(c, n->fused, q + 2 * kv, c->hidden, c->qkv_bias);
    } else {
        matrix(c, n->query, q, c->hidden, c->qkv_bias);
        matrix(c, n->key, kv, c->hidden, c->qkv_bias);
        matrix(c, n->value, kv, c->hidden, c->qkv_bias);
    }
    matrix(c, n->out, c->hidden, q, c->out_bias);
    add_query_norms(c);
}

/* ---- the MLP, and experts ---- */

/* prefix: "" or "mlp.experts.3." */
static void add_mlp(config *c, const char *prefix, uint64_t ffn)
{
    const family_names *n = c->f->names;
    const struct {
        const char *name;
        uint64_t rows, cols;
    } gated[] = {{n->gate, ffn, c->hidden}, {n->up, ffn, c->hidden}, {n->down, c->hidden, ffn}},
      fused[] = {{n->fused_gate, 2 * ffn, c->hidden}, {n->down, c->hidden, ffn}};
    const int one = has(c, FAMILY_FUSED_GATE) && !*prefix, first = has(c, FAMILY_GATED) ? 0 : 1;
    for (int i = one ? 0 : first; i < (one ? 2 : 3); i++) {
        const char *name = one ? fused[i].name : gated[i].name, *dot = strrchr(name, '.');
        char both[160];
        snprintf(both, sizeof both, "%s%s", prefix, *prefix && dot ? dot + 1 : name);
        matrix(c, both, one ? fused[i].rows : gated[i].rows, one ? fused[i].cols : gated[i].cols, c->mlp_bias);
    }
}

/* gpt-oss: all experts of a layer are two tensors with biases. */
static void add_packed(config *c, uint64_t experts)
{
    char layer[256];
    matrix(c, "mlp.router", experts, c->hidden, 1);
    layer_name(c, layer, "mlp.experts", 1);
    add(c, layer, 3, 3, experts * c->hidden, 2 * c->ffn);
    add(c, layer, 3, 2, experts, 2 * c->ffn);
    add(c, layer, 3, 3, experts * c->ffn, c->hidden);
    add(c, layer, 3, 2, experts, c->hidden);
}

static void add_experts(config *c, uint64_t experts)
{
    const family_names *n = c->f->names;
    const uint64_t ffn = size_of(c, KEYS("moe_intermediate_size"), c->ffn);
    const uint64_t shared = count_of(c, KEYS("n_shared_experts")) * ffn +
                            count_of(c, KEYS("shared_expert_intermediate_size"));
    char prefix[96];
    if (has(c, FAMILY_PACKED)) {
        add_packed(c, experts);
        return;
    }
    matrix(c, n->router, experts, c->hidden, 0);
    for (uint64_t i = 0; i < experts; i++) {
        snprintf(prefix, sizeof prefix, "%s%llu.", n->experts, (unsigned long long)i);
        add_mlp(c, prefix, ffn);
    }
    if (!shared)
        return;
    snprintf(prefix, sizeof prefix, "%s.", n->shared);
    add_mlp(c, prefix, shared);
    if (has(c, FAMILY_SHARED_GATE))
        matrix(c, "mlp.shared_expert_gate", 1, c->hidden, 0);
}

static int is_listed(const config *c, const char *key, uint64_t layer)
{
    const json_t *list = json_object_get(c->root, key);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_integer_value(json_array_get(list, i)) == (json_int_t)layer)
            return 1;
    return 0;
}

/* How many experts a layer has; 0: a plain MLP. */
static uint64_t experts_of(config *c, uint64_t layer)
{
    const uint64_t experts = count_of(c, KEYS("num_local_experts", "num_experts", "n_routed_experts"));
    const uint64_t step = size_of(c, KEYS("decoder_sparse_step", "moe_layer_freq"), 1);
    if (experts > EXPERTS_MOST)
        c->bad = c->bad ? c->bad : "num_experts";
    if (layer < count_of(c, KEYS("first_k_dense_replace")) || is_listed(c, "mlp_only_layers", layer))
        return 0;
    return step == 0 || (json_object_get(c->root, "decoder_sparse_step") ? layer + 1 : layer) % step ? 0 : experts;
}

/* ---- all of it ---- */

/* Falcon's two generations: blocks side by side with one norm, or two. */
static int norms_of(const config *c)
{
    const int parallel = flag_of(c, KEYS("parallel_attn"), 1);
    return strcmp(c->f->type, "falcon") == 0 && parallel && !flag_of(c, KEYS("new_decoder_architecture"), 0)
               ? 1
               : c->f->norms;
}

static void add_block(config *c, uint64_t i)
{
    const uint64_t experts = experts_of(c, i);
    snprintf(c->block, sizeof c->block, "%s%llu.", c->f->names->block, (unsigned long long)i);
    add_attention(c);
    if (experts)
        add_experts(c, experts);
    else
        add_mlp(c, "", c->ffn);
    for (int k = 0; k < norms_of(c); k++)
        add_norm(c, c->f->names->norms[k], c->hidden, c->norm_bias, 1);
}

static void add_head(config *c)
{
    const family_names *n = c->f->names;
    const int tied = flag_of(c, KEYS("tie_word_embeddings"), has(c, FAMILY_TIED));
    if (has(c, FAMILY_ENCODER)) {
        add_matrix(c, "pooler.dense", c->hidden, c->hidden, 1, 0);
        return;
    }
    add_norm(c, n->last_norm, c->hidden, c->norm_bias, 0);
    add_matrix(c, n->head, c->vocab, c->hidden, has(c, FAMILY_HEAD_BIAS), 0);
    if (!tied)
        return;
    const size_t at = c->s->count - 1 - (size_t)has(c, FAMILY_HEAD_BIAS);
    c->s->tensors[at].of = n->embed;
    c->s->parameters -= c->s->tensors[at].n;
}

static void add_model(config *c)
{
    const family_names *n = c->f->names;
    const uint64_t layers = size_of(c, KEYS("num_hidden_layers", "n_layer", "num_layers"), 0);
    add_table(c, n->embed, c->vocab);
    if (has(c, FAMILY_POSITIONS))
        add_table(c, n->positions, size_of(c, KEYS("max_position_embeddings", "n_positions"), 0) + c->f->offset);
    if (has(c, FAMILY_ENCODER))
        add_table(c, n->types, size_of(c, KEYS("type_vocab_size"), 2));
    if (has(c, FAMILY_EMBED_NORM))
        add_norm(c, n->embed_norm, c->hidden, 1, 0);
    if (layers > LAYERS_MOST)
        c->bad = c->bad ? c->bad : "num_hidden_layers";
    for (uint64_t i = 0; i < layers && !c->bad; i++)
        add_block(c, i);
    add_head(c);
}

static void read_sizes(config *c)
{
    const int all = flag_of(c, KEYS("use_bias", "bias", "attention_bias"), 0);
    const int single = has(c, FAMILY_MULTI_QUERY) && flag_of(c, KEYS("multi_query"), 1) &&
                       !flag_of(c, KEYS("new_decoder_architecture"), 0);
    c->hidden = size_of(c, KEYS("hidden_size", "n_embd", "n_embed", "d_model"), 0);
    c->heads = size_of(c, KEYS("num_attention_heads", "n_head"), 0);
    c->vocab = size_of(c, KEYS("vocab_size"), 0);
    c->kv_heads = single ? 1 : size_of(c, KEYS("num_key_value_heads", "num_kv_heads"), c->heads);
    c->head = size_of(c, KEYS("head_dim"), c->f->head ? c->f->head : c->hidden / (c->heads ? c->heads : 1));
    c->ffn = size_of(c, KEYS("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"), 4 * c->hidden);
    c->norm_bias = has(c, FAMILY_NORM_BIAS);
    c->mlp_bias = has(c, FAMILY_MLP_BIAS) ? flag_of(c, KEYS("use_bias"), 1) : flag_of(c, KEYS("mlp_bias", "bias"), 0);
    c->qkv_bias = has(c, FAMILY_QKV_BIAS) ? flag_of(c, KEYS("use_bias", "attention_bias"), 1)
                                          : flag_of(c, KEYS("use_qkv_bias"), 0) || all;
    c->out_bias = has(c, FAMILY_OUT_BIAS) ? flag_of(c, KEYS("use_bias", "attention_bias"), 1) : all;
}

static int unknown(const config *c, const char *type)
{
    char list[1024] = "", name[128];
    const family *f;
    for (int i = 0; (f = memory_family_at(i)); i++)
        text_add(list, sizeof list, "%s%s", i ? " " : "", f->type);
    return fail(EXIT_DATA, "memory: %s: model_type '%s' is not among those that are known: %s; --params takes a number",
                c->path, escape_text(name, sizeof name, type), list);
}

static int count(config *c)
{
    static const uint64_t most = 1000000000000000;
    const char *type = json_string_value(json_object_get(c->root, "model_type"));
    c->f = memory_family_find(type ? type : "");
    if (!c->f)
        return unknown(c, type ? type : "");
    read_sizes(c);
    if (!c->bad && (c->heads == 0 || c->hidden == 0))
        c->bad = "num_attention_heads";
    if (!c->bad)
        add_model(c);
    if (c->bad)
        return fail(EXIT_DATA, "memory: %s: \"%s\" is missing, or not from 1 to 2^%d", c->path, c->bad, SIZE_BITS);
    return c->s->parameters <= most ? 0 : fail(EXIT_DATA, "memory: %s: more than 10^15 parameters", c->path);
}

/* A model that sees or hears has a part that reads and writes text, which alone is counted. */
static const json_t *language_model(shape *s, const json_t *root)
{
    static const char *const parts[] = {"text_config", "language_config", "llm_config"};
    static const char *const others[] = {"vision_config", "audio_config", "visual"};
    const json_t *text = NULL;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !text; i++)
        text = json_object_get(root, parts[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (json_object_get(root, others[i]))
            text_add(s->uncounted, sizeof s->uncounted, "%s%s", *s->uncounted ? ", " : "", others[i]);
    return json_is_object(text) ? text : root;
}

int memory_shape_of_config(shape *s, const char *path, int *is)
{
    trace_error error;
    char name[512];
    int code = 0, no_memory = 0;
    size_t n;
    *s = (shape){.tensor_parallel = 1};
    *is = 0;
    if (strcmp(path, "-") == 0 || !input_is_file(path) || trace_probe(path, NULL))
        return 0;
    char *text = trace_text_file_whole(path, FILE_MOST, &n, &error);
    json_t *root = text ? json_text(text, n, 0, NULL, &no_memory) : NULL;
    free(text);
    const json_t *part = language_model(s, root);
    *is = json_is_string(json_object_get(root, "model_type")) || json_is_string(json_object_get(part, "model_type"));
    if (no_memory)
        code = fail(EXIT_IO, "memory: out of memory");
    if (*is && !code) {
        config c = {.s = s, .root = part, .path = escape_text(name, sizeof name, path)};
        code = count(&c);
    }
    json_decref(root);
    return code;
}
