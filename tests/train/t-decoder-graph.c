/* t-decoder-graph.c -- the graph of transformers: layers and settings, tensors of a pass by name, gradients
 * against differences of the loss, attention in both forms. Bits are the business of t-decoder. */
#include "lib/train/trainer.h"
#include "support/trainruns.h"

/* ---- layers and settings ---- */

typedef struct layer_row {
    const char *name;
    unsigned type, inputs, outputs, from, plain;
} layer_row;

static void check_layers(const train_settings *s, const layer_row *rows, size_t n)
{
    train_layer layers[TRAIN_LAYERS];
    char error[TRAIN_ERROR] = "";
    ck_assert_msg(train_network(s, layers, error) == n, "%s", error);
    for (size_t i = 0; i < n; i++) {
        const train_layer *l = &layers[i];
        ck_assert_str_eq(l->name, rows[i].name);
        ck_assert_msg(l->type == rows[i].type && l->inputs == rows[i].inputs && l->outputs == rows[i].outputs &&
                          l->from == rows[i].from && l->plain == rows[i].plain && l->side == 0,
                      "%s: type %u, %u to %u, from %u, plain %u", l->name, l->type, l->inputs, l->outputs, l->from,
                      l->plain);
    }
}

CASE("layers", 20);

TEST(layers_of_gpt)
{
    static const layer_row rows[] = {{"wte", TRAIN_EMBED, 256, 64, 0, 0},
                                     {"wpe", TRAIN_POSITIONS, 64, 64, 0, 0},
                                     {"h0.ln1", TRAIN_NORM, 64, 64, 0, 0},
                                     {"h0.attn.qkv", TRAIN_LINEAR, 64, 192, 0, 0},
                                     {"h0.attn.heads", TRAIN_HEADS, 192, 16, 0, 0},
                                     {"h0.attn.scores", TRAIN_SCORES, 16, 64, 0, 0},
                                     {"h0.attn.softmax", TRAIN_SOFTMAX, 64, 64, 0, 0},
                                     {"h0.attn.context", TRAIN_CONTEXT, 64, 64, 0, 0},
                                     {"h0.attn.proj", TRAIN_LINEAR, 64, 64, 0, 0},
                                     {"h0.add1", TRAIN_ADD, 64, 64, 2, 0},
                                     {"h0.ln2", TRAIN_NORM, 64, 64, 0, 0},
                                     {"h0.mlp.fc", TRAIN_LINEAR, 64, 256, 0, 0},
                                     {"h0.mlp.act", TRAIN_ACTIVATION, 256, 256, 0, 0},
                                     {"h0.mlp.proj", TRAIN_LINEAR, 256, 64, 0, 0},
                                     {"h0.add2", TRAIN_ADD, 64, 64, 10, 0},
                                     {"lnf", TRAIN_NORM, 64, 64, 0, 0},
                                     {"head", TRAIN_LINEAR, 64, 256, 0, 1},
                                     {"loss", TRAIN_LOSS, 256, 256, 0, 0}};
    train_settings s;
    train_settings_init(&s, "gpt");
    ck_assert_uint_eq(s.depth, 2);
    s.depth = 1;
    check_layers(&s, rows, sizeof rows / sizeof *rows);
}

TEST(layers_of_llama)
{
    static const layer_row rows[] = {{"wte", TRAIN_EMBED, 256, 64, 0, 0},
                                     {"h0.ln1", TRAIN_NORM, 64, 64, 0, 1},
                                     {"h0.attn.qkv", TRAIN_LINEAR, 64, 128, 0, 1},
                                     {"h0.attn.heads", TRAIN_HEADS, 128, 16, 0, 0},
                                     {"h0.attn.scores", TRAIN_SCORES, 16, 64, 0, 0},
                                     {"h0.attn.softmax", TRAIN_SOFTMAX, 64, 64, 0, 0},
                                     {"h0.attn.context", TRAIN_CONTEXT, 64, 64, 0, 0},
                                     {"h0.attn.proj", TRAIN_LINEAR, 64, 64, 0, 1},
                                     {"h0.add1", TRAIN_ADD, 64, 64, 1, 0},
                                     {"h0.ln2", TRAIN_NORM, 64, 64, 0, 1},
                                     {"h0.mlp.fc", TRAIN_LINEAR, 64, 352, 0, 1},
                                     {"h0.mlp.act", TRAIN_ACTIVATION, 352, 176, 0, 0},
                                     {"h0.mlp.proj", TRAIN_LINEAR, 176, 64, 0, 1},
                                     {"h0.add2", TRAIN_ADD, 64, 64, 9, 0},
                                     {"lnf", TRAIN_NORM, 64, 64, 0, 1},
                                     {"head", TRAIN_LINEAR, 64, 256, 0, 1},
                                     {"loss", TRAIN_LOSS, 256, 256, 0, 0}};
    train_settings s;
    train_settings_init(&s, "llama");
    s.depth = 1;
    s.decoder.kv_heads = 2;
    check_layers(&s, rows, sizeof rows / sizeof *rows);
}

TEST(depth_of_gpt2_and_the_deepest_fit)
{
    train_layer layers[TRAIN_LAYERS];
    char error[TRAIN_ERROR];
    train_settings s;
    train_settings_init(&s, "gpt");
    s.depth = 12;
    ck_assert_uint_eq(train_network(&s, layers, error), 161);
    ck_assert_str_eq(layers[157].name, "h11.add2");
    s.depth = 19;
    ck_assert_uint_eq(train_network(&s, layers, error), 252);
    s.depth = 20;
    ck_assert_uint_eq(train_network(&s, layers, error), 0);
    ck_assert_str_eq(error, "gpt: depth must be 1 to 19, not 20");
}

typedef void spoiler(train_settings *s);

#define SPOILER(name, what)             \
    static void name(train_settings *s) \
    {                                   \
        what;                           \
    }
SPOILER(three_heads, s->decoder.heads = s->decoder.kv_heads = 3)
SPOILER(no_heads, s->decoder.heads = 0)
SPOILER(three_kv_heads, s->decoder.kv_heads = 3)
SPOILER(more_kv_heads, s->decoder.kv_heads = 8)
SPOILER(odd_heads, s->width = 60; s->decoder.rotary = 1)
SPOILER(no_context, s->decoder.context = 0)
SPOILER(no_vocabulary, s->decoder.vocabulary = 1)
SPOILER(wide_tile, s->decoder.tile = 1u << 20)
SPOILER(other_norm, s->decoder.norm = 2)
SPOILER(other_activation, s->decoder.activation = 3)
SPOILER(no_math, strcpy(s->decoder.math_norm, "binary64"))
SPOILER(no_softmax, strcpy(s->decoder.math_softmax, "e9m9x"))
SPOILER(no_sums, strcpy(s->decoder.accumulate_format, ""))
SPOILER(no_ranks, s->decoder.ranks = 0)
SPOILER(other_decay, s->decoder.decay = 3)
SPOILER(high_min_lr, s->decoder.min_lr = 1.5)
SPOILER(no_min_lr, s->decoder.min_lr = (double)NAN)
SPOILER(no_text, s->decoder.text[0] = 0)
SPOILER(batchnorm, s->batchnorm = 1)
SPOILER(all_large, s->decoder.context = 8192; s->batch = TRAIN_IMAGES; s->width = 8192)
SPOILER(many_scores, s->decoder.context = 8192; s->decoder.tile = 4096; s->batch = 17)
SPOILER(many_logits, s->decoder.context = 1024; s->batch = 43; s->decoder.vocabulary = 50257)
SPOILER(wide_hidden, s->decoder.context = 1024; s->batch = 64; s->decoder.hidden = 1u << 16)
SPOILER(long_head, s->width = 4096; s->batch = 1; s->decoder.vocabulary = 1u << 20)
SPOILER(every_rank, s->width = 2048; s->depth = 19; s->decoder.hidden = 8192; s->decoder.ranks = 64)

static const struct {
    spoiler *spoil;
    const char *line;
} spoilt[] = {{three_heads, "width 64 is not a multiple of 3 heads"},
              {no_heads, "heads must be 1 to 64, the width, not 0"},
              {three_kv_heads, "4 heads are not a multiple of 3 kv_heads"},
              {more_kv_heads, "kv_heads must be 1 to 4, the number of heads, not 8"},
              {odd_heads, "heads have 15 columns: rotary positions need an even number"},
              {no_context, "context must be 1 to 16384, not 0"},
              {no_vocabulary, "vocabulary must be 2 to 1048576, not 1"},
              {wide_tile, "tile must be 0 to 16384, not 1048576"},
              {other_norm, "norm must be 0 to 1, not 2"},
              {other_activation, "activation must be 0 to 2, not 3"},
              {no_math, "math of norms 'binary64': no signed format within binary32 with a NaN"},
              {no_softmax, "math of softmax 'e9m9x': no signed format within binary32 with a NaN"},
              {no_sums, "accumulation '': no signed format within binary32 with a NaN"},
              {no_ranks, "ranks must be 1 to 4096, not 0"},
              {other_decay, "decay must be 0 to 2, not 3"},
              {high_min_lr, "min_lr must be 0 to 1, not 1.5"},
              {no_min_lr, "min_lr must be 0 to 1, not nan"},
              {no_text, "the name of the text must be one word of 1 to 63 bytes"},
              {batchnorm, "gpt has no batch normalisation"},
              {all_large, "wte: a tensor of 11771904 x 8192 numbers: at most 2147483648 in all"},
              {many_scores, "h0.attn.scores: a tensor of 557056 x 4096 numbers: at most 2147483648 in all"},
              {many_logits, "head: a tensor of 44032 x 50257 numbers: at most 2147483648 in all"},
              {wide_hidden, "h0.mlp.fc: a tensor of 65536 x 65536 numbers: at most 2147483648 in all"},
              {long_head, "wte: a tensor of 1048576 x 4096 numbers: at most 2147483648 in all"},
              {every_rank, "957466624 parameters on 64 ranks: at most 8589934592 in all"}};

TESTS(settings_out_of_range, sizeof spoilt / sizeof *spoilt)
{
    train_layer layers[TRAIN_LAYERS];
    char error[TRAIN_ERROR];
    train_settings s;
    train_settings_init(&s, "gpt");
    spoilt[_i].spoil(&s);
    ck_assert_uint_eq(train_network(&s, layers, error), 0);
    ck_assert_str_eq(error, spoilt[_i].line);
}

TEST(gpt2_is_not_too_large)
{
    train_layer layers[TRAIN_LAYERS];
    char error[TRAIN_ERROR];
    train_settings s;
    train_settings_init(&s, "gpt");
    s.depth = 12;
    s.width = 768;
    s.decoder.heads = s.decoder.kv_heads = 12;
    s.decoder.hidden = 3072;
    s.decoder.context = 1024;
    s.decoder.vocabulary = 50257;
    for (s.decoder.ranks = 1; s.decoder.ranks <= 64; s.decoder.ranks++)
        ck_assert_msg(train_network(&s, layers, error) == 161, "%s", error);
    s.decoder.ranks = 1;
    s.batch = 41; /* logits of 2.1e9 numbers */
    ck_assert_msg(train_network(&s, layers, error) == 161, "%s", error);
}

TEST(other_networks_have_no_decoder)
{
    train_decoder none;
    train_settings s;
    memset(&none, 0, sizeof none);
    none.accumulate = none.ranks = 1;
    train_settings_init(&s, "cnn");
    ck_assert(memcmp(&s.decoder, &none, sizeof none) == 0);
    ck_assert(!train_is_text(&s));
}

/* ---- small runs ---- */

enum { TOKENS = 400, VOCABULARY = 13, CONTEXT = 11, BATCH = 2, WIDTH = 12 };

typedef struct small {
    const char *net;
    unsigned heads, kv_heads, tile;
    const char *low, *recipe;
    int exact_gelu, no_biases, other_head; /* untie gpt's head, tie llama's */
} small;

static const small smalls[] = {
    {"gpt", 3, 3, 0, "binary32", NULL, 0, 0, 0},   {"gpt", 3, 1, 0, "binary32", NULL, 1, 1, 1},
    {"gpt", 2, 2, 4, "binary32", NULL, 0, 0, 0},   {"llama", 3, 3, 0, "binary32", NULL, 0, 0, 0},
    {"llama", 6, 2, 0, "binary32", NULL, 0, 0, 1}, {"llama", 6, 3, 3, "binary32", NULL, 0, 0, 0},
    {"llama", 3, 1, 11, "binary32", NULL, 1, 0, 0}};
enum { SMALLS = sizeof smalls / sizeof *smalls };

static uint8_t tokens[TOKENS];
static train_text text = {"letters", tokens, 1, 300, TOKENS - 300, VOCABULARY, 0};

static void make_text(void)
{
    uint8_t bytes[4 * TOKENS] = {0};
    for (size_t i = 0; i < TOKENS; i++) {
        tokens[i] = (uint8_t)(mpsim_rng_word(3, 5, i) % VOCABULARY);
        bytes[4 * i] = tokens[i];
    }
    text.digest = mpsim_digest_bytes(bytes, sizeof bytes, 0);
}

static void make_small(train_run *r, const small *c)
{
    const recipe_of_run recipe = {.low = c->low, .optimizer = "sgd", .recipe = c->recipe};
    char error[TRAIN_ERROR];
    train_decoder *d = &r->settings.decoder;
    make_text();
    memset(r, 0, sizeof *r);
    train_settings_init(&r->settings, c->net);
    r->settings.width = WIDTH;
    r->settings.batch = BATCH;
    r->settings.seed = 9;
    r->settings.gain = 10;
    strcpy(r->settings.arch, c->recipe ? "hopper" : "exact");
    d->heads = c->heads;
    d->kv_heads = c->kv_heads;
    d->tile = c->tile;
    d->hidden = 8;
    d->context = CONTEXT;
    d->vocabulary = VOCABULARY;
    if (c->exact_gelu)
        d->activation = MPSIM_GELU;
    if (c->no_biases)
        d->biases = 0;
    if (c->other_head)
        d->tied = !d->tied;
    d->validation = 2;
    strcpy(d->text, text.name);
    d->text_digest = text.digest;
    r->text = &text;
    r->n_layers = train_network(&r->settings, r->layers, error);
    ck_assert_msg(r->n_layers > 0, "%s", error);
    r->n_plans = 1;
    r->plans = calloc(1, sizeof *r->plans);
    ck_assert_ptr_nonnull(r->plans);
    fill_plan(&r->plans[0], r, &recipe, c->low);
    for (size_t i = 0; i < r->n_layers && c->recipe; i++)
        if (r->layers[i].type == TRAIN_SCORES || r->layers[i].type == TRAIN_CONTEXT)
            for (int k = 0; k < TRAIN_ROLES; k++)
                r->plans[0].layers[i].recipe[k] = k == TRAIN_ACT || k == TRAIN_WEIGHT || k == TRAIN_AGRAD
                                                      ? mpsim_block_find(c->recipe)
                                                      : NULL;
}

/* The first places of the text through a pass: the loss; gradients in a pass that trains. */
static double run_pass(train *t, train_pass *p)
{
    char error[TRAIN_ERROR] = "";
    for (size_t i = 0; i < p->images * CONTEXT; i++) {
        p->tokens[i] = tokens[i];
        t->labels[i] = tokens[i + 1];
    }
    t->coefficient = 1.0f / (BATCH * CONTEXT);
    t->scores[p->micro].correct = 0;
    const int code = train_pass_do(t, p, error);
    ck_assert_msg(code == 0, "%s", error);
    ck_assert_int_eq(t->e->ops->finish(t->e), 0);
    return (double)t->scores[p->micro].loss;
}

/* ---- tensors by name ---- */

typedef struct tensor_row {
    const char *name;
    size_t rows, cols;
} tensor_row;

enum { R = BATCH * CONTEXT, H = 3 * R, V = VOCABULARY, W = WIDTH, Z = WIDTH / 3 };

/* gpt of one block with three heads, one of keys and values: Q 12 columns, K and V 4 each. */
/* clang-format off */
static const tensor_row materialised[] = {
    {"out:wte", R, W}, {"out:wpe", R, W}, {"act:h0.ln1", R, W}, {"weight.in:h0.ln1", 1, W},
    {"bias.in:h0.ln1", 1, W}, {"out:h0.ln1", R, W}, {"mean:h0.ln1", R, 1},
    {"inverse:h0.ln1", R, 1}, {"act:h0.attn.qkv", R, W}, {"weight.in:h0.attn.qkv", 20, W},
    {"bias.in:h0.attn.qkv", 1, 20}, {"out:h0.attn.qkv", R, 20}, {"out:h0.attn.heads", H, Z},
    {"out.key:h0.attn.heads", R, Z}, {"out.value:h0.attn.heads", R, Z},
    {"act:h0.attn.scores", H, Z}, {"key:h0.attn.scores", R, Z},
    {"out:h0.attn.scores", H, CONTEXT}, {"act:h0.attn.softmax", H, CONTEXT},
    {"out:h0.attn.softmax", H, CONTEXT}, {"act:h0.attn.context", H, CONTEXT},
    {"value:h0.attn.context", R, Z}, {"out.heads:h0.attn.context", H, Z},
    {"out:h0.attn.context", R, W}, {"act:h0.attn.proj", R, W}, {"weight.in:h0.attn.proj", W, W},
    {"bias.in:h0.attn.proj", 1, W}, {"out:h0.attn.proj", R, W}, {"out:h0.add1", R, W},
    {"act:h0.ln2", R, W}, {"weight.in:h0.ln2", 1, W}, {"bias.in:h0.ln2", 1, W},
    {"out:h0.ln2", R, W}, {"mean:h0.ln2", R, 1}, {"inverse:h0.ln2", R, 1}, {"act:h0.mlp.fc", R, W},
    {"weight.in:h0.mlp.fc", 8, W}, {"bias.in:h0.mlp.fc", 1, 8}, {"out:h0.mlp.fc", R, 8},
    {"out:h0.mlp.act", R, 8}, {"act:h0.mlp.proj", R, 8}, {"weight.in:h0.mlp.proj", W, 8},
    {"bias.in:h0.mlp.proj", 1, W}, {"out:h0.mlp.proj", R, W}, {"out:h0.add2", R, W},
    {"act:lnf", R, W}, {"weight.in:lnf", 1, W}, {"bias.in:lnf", 1, W}, {"out:lnf", R, W},
    {"mean:lnf", R, 1}, {"inverse:lnf", R, 1}, {"act:head", R, W}, {"weight.in:head", V, W},
    {"out:head", R, V}, {"act:loss", R, V}, {"dgrad:loss", R, V}, {"agrad:head", R, V},
    {"dgrad:head", R, W}, {"agrad:lnf", R, W}, {"dgrad:lnf", R, W}, {"wgrad:lnf.weight", 1, W},
    {"wgrad:lnf.bias", 1, W}, {"agrad:h0.add2", R, W}, {"agrad:h0.mlp.proj", R, W},
    {"dgrad:h0.mlp.proj", R, 8}, {"wgrad:h0.mlp.proj.weight", W, 8},
    {"wgrad:h0.mlp.proj.bias", 1, W}, {"dgrad:h0.mlp.act", R, 8}, {"agrad:h0.mlp.fc", R, 8},
    {"dgrad:h0.mlp.fc", R, W}, {"wgrad:h0.mlp.fc.weight", 8, W}, {"wgrad:h0.mlp.fc.bias", 1, 8},
    {"agrad:h0.ln2", R, W}, {"dgrad:h0.ln2", R, W}, {"wgrad:h0.ln2.weight", 1, W},
    {"wgrad:h0.ln2.bias", 1, W}, {"dgrad:h0.add2", R, W}, {"agrad:h0.add1", R, W},
    {"agrad:h0.attn.proj", R, W}, {"dgrad:h0.attn.proj", R, W}, {"wgrad:h0.attn.proj.weight", W, W},
    {"wgrad:h0.attn.proj.bias", 1, W}, {"agrad:h0.attn.context", R, W},
    {"agrad.heads:h0.attn.context", H, Z}, {"dgrad:h0.attn.context", H, CONTEXT},
    {"dgrad.values:h0.attn.context", H, Z}, {"dgrad.value:h0.attn.context", R, Z},
    {"agrad:h0.attn.softmax", H, CONTEXT}, {"dgrad:h0.attn.softmax", H, CONTEXT},
    {"agrad:h0.attn.scores", H, CONTEXT}, {"dgrad:h0.attn.scores", H, Z},
    {"dgrad.keys:h0.attn.scores", H, Z}, {"dgrad.key:h0.attn.scores", R, Z},
    {"dgrad:h0.attn.heads", R, 20}, {"agrad:h0.attn.qkv", R, 20}, {"dgrad:h0.attn.qkv", R, W},
    {"wgrad:h0.attn.qkv.weight", 20, W}, {"wgrad:h0.attn.qkv.bias", 1, 20},
    {"agrad:h0.ln1", R, W}, {"dgrad:h0.ln1", R, W}, {"wgrad:h0.ln1.weight", 1, W},
    {"wgrad:h0.ln1.bias", 1, W}, {"dgrad:h0.add1", R, W}, {"agrad:wpe", R, W},
    {"wgrad:wpe.weight", CONTEXT, W}, {"agrad:wte", R, W}, {"wgrad:wte.weight", V, W},
    {"grad:wte.weight", V, W}};
/* clang-format on */

/* What is not as above: from the first of these names to the last. */
static const tensor_row in_tiles[] = {{"value:h0.attn.context", R, Z},
                                      {"out.heads:h0.attn.context", H, Z},
                                      {"lse:h0.attn.context", H, 1},
                                      {"out:h0.attn.context", R, W}};
static const tensor_row in_tiles_back[] = {
    {"agrad.heads:h0.attn.context", H, Z}, {"dots:h0.attn.context", H, 1},      {"dgrad.values:h0.attn.context", H, Z},
    {"dgrad:h0.attn.scores", H, Z},        {"dgrad.keys:h0.attn.scores", H, Z}, {"dgrad.value:h0.attn.context", R, Z},
    {"dgrad.key:h0.attn.scores", R, Z},    {"dgrad:h0.attn.heads", R, 20}};

typedef struct expected {
    const tensor_row *rows;
    size_t n, at;
} expected;

static int is_traced(const char *name)
{
    static const char *const kinds[] = {"act:", "out:", "agrad:", "dgrad:", "wgrad:"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(name, kinds[i], strlen(kinds[i])) == 0)
            return 1;
    return 0;
}

static int compare_row(const train_item *x, void *context)
{
    expected *e = context;
    if (e->at == e->n)
        return 1;
    const tensor_row *r = &e->rows[e->at++];
    ck_assert_str_eq(x->name, r->name);
    ck_assert_msg(x->tensor->rows == r->rows && x->tensor->cols == r->cols, "%s: %zu x %zu", x->name, x->tensor->rows,
                  x->tensor->cols);
    if (strncmp(x->name, "wgrad", 5) != 0 && !x->state)
        ck_assert_uint_eq(x->rank, 2);
    ck_assert_int_eq(x->traced, is_traced(x->name));
    return 0;
}

static size_t index_of(const tensor_row *rows, const char *name)
{
    size_t i = 0;
    while (strcmp(rows[i].name, name) != 0)
        i++;
    return i;
}

static size_t copy_rows(tensor_row *to, const tensor_row *from, size_t first, size_t end)
{
    memcpy(to, from + first, (end - first) * sizeof *to);
    return end - first;
}

CASE("graph", 60);

TESTS(tensors_of_a_pass, 2)
{
    const small c = {"gpt", 3, 1, _i ? 4 : 0, "binary32", NULL, 0, 0, 0};
    enum { N = sizeof materialised / sizeof *materialised };
    tensor_row rows[N];
    const tensor_row *m = materialised;
    train_engine e;
    train_run r;
    char error[TRAIN_ERROR];
    size_t n = 0;
    make_small(&r, &c);
    r.settings.depth = 1;
    r.n_layers = train_network(&r.settings, r.layers, error);
    r.plans[0].layers[r.n_layers - 3] = r.plans[0].layers[2];
    if (_i) {
        n += copy_rows(rows + n, m, 0, index_of(m, "out:h0.attn.scores"));
        n += copy_rows(rows + n, in_tiles, 0, 4);
        n += copy_rows(rows + n, m, index_of(m, "act:h0.attn.proj"), index_of(m, "agrad.heads:h0.attn.context"));
        n += copy_rows(rows + n, in_tiles_back, 0, 8);
        n += copy_rows(rows + n, m, index_of(m, "agrad:h0.attn.qkv"), N);
    } else {
        n += copy_rows(rows, m, 0, N);
    }
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    expected x = {rows, n, 0};
    ck_assert_int_eq(train_visit(t, compare_row, &x), 1);
    ck_assert_uint_eq(x.at, n);
    train_close(t);
    train_engine_close(&e);
    train_run_clear(&r);
}

/* ---- gradients ---- */

static double norm(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* The parameter moved by `far` along a direction of length 1. */
static double loss_at(train *t, train_param *p, const float *values, const float *direction, double far)
{
    const size_t n = p->kept.rows * p->kept.cols;
    float *moved = malloc(n * sizeof *moved);
    ck_assert_ptr_nonnull(moved);
    for (size_t i = 0; i < n; i++)
        moved[i] = (float)((double)values[i] + far * (double)direction[i]);
    ck_assert_int_eq(t->e->ops->put(t->e, &p->kept, moved), 0);
    free(moved);
    return run_pass(t, &t->batch);
}

/* The slope along `direction` by differences of fourth order, against the gradient's. */
static void check_direction(train *t, train_param *p, const float *values, const float *gradient,
                            const float *direction, double size, double tolerance)
{
    const size_t n = p->kept.rows * p->kept.cols;
    const double h = 0.02;
    double slope = 0;
    for (size_t i = 0; i < n; i++)
        slope += (double)gradient[i] * (double)direction[i];
    const double one = loss_at(t, p, values, direction, h) - loss_at(t, p, values, direction, -h);
    const double two = loss_at(t, p, values, direction, 2 * h) - loss_at(t, p, values, direction, -2 * h);
    const double found = (8 * one - two) / (12 * h);
    ck_assert_msg(fabs(found - slope) <= tolerance * size + 3e-5, "%s: %g by differences, %g", p->name, found, slope);
    ck_assert_int_eq(t->e->ops->put(t->e, &p->kept, values), 0);
}

static void check_parameter(train *t, train_param *p)
{
    const size_t n = p->kept.rows * p->kept.cols;
    float *values = malloc(n * sizeof *values), *gradient = malloc(n * sizeof *gradient);
    float *direction = malloc(n * sizeof *direction);
    ck_assert(values && gradient && direction);
    ck_assert_int_eq(t->e->ops->get(t->e, &p->kept, values), 0);
    ck_assert_int_eq(t->e->ops->get(t->e, &p->wgrad, gradient), 0);
    const double size = norm(gradient, n);
    ck_assert_msg(size > 1e-3, "%s: a gradient of length %g", p->name, size);
    for (size_t i = 0; i < n; i++)
        direction[i] = (float)((double)gradient[i] / size);
    check_direction(t, p, values, gradient, direction, size, 2e-3);
    for (uint64_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < n; i++)
            direction[i] = (float)((mpsim_rng_word(7, k, i) & 1 ? 1 : -1) / sqrt((double)n));
        check_direction(t, p, values, gradient, direction, size, 2e-3);
    }
    free(values);
    free(gradient);
    free(direction);
}

TESTS(gradients_are_those_of_the_loss, SMALLS)
{
    if (!test_in_part((uint64_t)_i, 1))
        return;
    train_engine e;
    train_run r;
    make_small(&r, &smalls[_i]);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    run_pass(t, &t->batch);
    for (size_t i = 0; i < t->n_params; i++) {
        check_parameter(t, &t->params[i]);
        run_pass(t, &t->batch); /* gradients of the parameters as they were */
    }
    train_close(t);
    train_engine_close(&e);
    train_run_clear(&r);
}

/* ---- forms of attention ---- */

/* All gradients of a run, one after the other. */
static float *gradients_of(const small *c, double *loss, size_t *n)
{
    train_engine e;
    train_run r;
    float *all = NULL;
    make_small(&r, c);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    *loss = run_pass(t, &t->batch);
    *n = 0;
    for (size_t i = 0; i < t->n_params; i++) {
        const train_tensor *g = &t->params[i].wgrad;
        all = realloc(all, (*n + g->rows * g->cols) * sizeof *all);
        ck_assert_ptr_nonnull(all);
        ck_assert_int_eq(e.ops->get(&e, g, all + *n), 0);
        *n += g->rows * g->cols;
    }
    train_close(t);
    train_engine_close(&e);
    train_run_clear(&r);
    return all;
}

static const struct {
    small c;
    double tolerance;
} forms[] = {{{"gpt", 3, 3, 0, "binary32", NULL, 0, 0, 0}, 1e-5},
             {{"llama", 6, 2, 0, "binary32", NULL, 0, 0, 0}, 1e-5},
             {{"llama", 6, 3, 0, "bf16", NULL, 0, 0, 0}, 0.05},
             {{"gpt", 3, 1, 0, "bf16", "te-current", 0, 0, 0}, 0.2}};

TESTS(both_forms_of_attention_agree, sizeof forms / sizeof *forms)
{
    static const unsigned tiles[] = {1, 4, 11, 100};
    double loss[2];
    size_t n;
    float *whole = gradients_of(&forms[_i].c, &loss[0], &n);
    const double size = norm(whole, n);
    for (size_t k = 0; k < sizeof tiles / sizeof *tiles; k++) {
        small c = forms[_i].c;
        c.tile = tiles[k];
        float *tiled = gradients_of(&c, &loss[1], &n);
        for (size_t i = 0; i < n; i++)
            tiled[i] -= whole[i];
        ck_assert_msg(norm(tiled, n) <= forms[_i].tolerance * size, "tiles of %u: %g of %g", tiles[k], norm(tiled, n),
                      size);
        ck_assert_msg(fabs(loss[0] - loss[1]) <= forms[_i].tolerance, "%g, %g", loss[0], loss[1]);
        free(tiled);
    }
    free(whole);
}

TEST(attention_takes_no_blocks)
{
    const small c = {"gpt", 3, 3, 0, "bf16", "mxfp8", 0, 0, 0};
    char error[TRAIN_ERROR] = "";
    train_engine e;
    train_run r;
    make_small(&r, &c);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    ck_assert_ptr_null(train_open(&r, &e, 0, error));
    ck_assert_str_eq(error, "h0.attn.scores: recipe mxfp8: attention takes recipes with one scale per tensor");
    train_engine_close(&e);
    train_run_clear(&r);
}

/* ---- passes without a way back ---- */

static int add_digest(const train_item *x, void *context)
{
    uint64_t *all = context, digest;
    train *t = *(train **)(void *)(all + 1);
    ck_assert_int_eq(t->e->ops->digest(t->e, x->tensor, &digest), 0);
    *all = train_hash(*all, digest);
    return 0;
}

static uint64_t digest_of_all(train *t)
{
    struct {
        uint64_t all;
        train *t;
    } context = {TRAIN_HASH, t};
    ck_assert_int_eq(train_visit(t, add_digest, &context), 0);
    return context.all;
}

/* Copies of weights have one memory there; the loss is the same, and the other pass keeps its own. */
TESTS(evaluating_changes_nothing, 3)
{
    static const small cases[] = {{"gpt", 3, 3, 0, "bf16", "te-current", 0, 0, 0},
                                  {"llama", 6, 2, 4, "bf16", NULL, 0, 0, 0},
                                  {"gpt", 3, 1, 0, "binary32", NULL, 0, 0, 0}};
    char error[TRAIN_ERROR] = "";
    train_engine e;
    train_run r;
    make_small(&r, &cases[_i]);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    const double loss = run_pass(t, &t->batch);
    const uint64_t before = digest_of_all(t);
    ck_assert_int_eq(train_pass_open(t, &t->test, BATCH, 0, error), 0);
    for (int k = 0; k < 2; k++)
        ck_assert_double_eq(run_pass(t, &t->test), loss);
    ck_assert_uint_eq(digest_of_all(t), before);
    train_close(t);
    train_engine_close(&e);
    train_run_clear(&r);
}

/* ---- initial values ---- */

TEST(initial_weights_are_normal)
{
    train_engine e;
    train_run r;
    const small c = {"gpt", 3, 3, 0, "binary32", NULL, 0, 0, 1};
    make_small(&r, &c);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    for (size_t i = 0; i < t->n_params; i++) {
        const train_param *p = &t->params[i];
        const size_t n = p->kept.rows * p->kept.cols;
        const int proj = strstr(p->name, ".proj.") != NULL;
        float *x = malloc(n * sizeof *x);
        ck_assert_ptr_nonnull(x);
        ck_assert_int_eq(e.ops->get(&e, &p->kept, x), 0);
        const double deviation = norm(x, n) / sqrt((double)n), due = proj ? 0.1 : 0.2;
        ck_assert_uint_eq(p->rank, p->kept.rows == 1 ? 1 : 2);
        if (p->rank == 2)
            ck_assert_msg(fabs(deviation / due - 1) < 4 / sqrt(2.0 * (double)n), "%s: %g", p->name, deviation);
        else
            ck_assert_msg(deviation == (p->bias ? 0 : 1), "%s: %g", p->name, deviation);
        free(x);
    }
    train_close(t);
    train_engine_close(&e);
    train_run_clear(&r);
}

TEST_MAIN("train-decoder-graph");
