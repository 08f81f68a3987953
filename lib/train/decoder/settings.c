/* settings.c -- transformers: defaults, what is in range, layers; see train.h. */
#include "../trainer.h"

/* ---- defaults ---- */

void train_decoder_init(train_settings *s)
{
    train_decoder *d = &s->decoder;
    const int llama = strcmp(s->net, "llama") == 0;
    const train_text *text = train_text_bundled();
    s->width = 64;
    s->batch = 8;
    s->steps = 300;
    d->heads = d->kv_heads = 4;
    d->context = 64;
    d->vocabulary = text->vocabulary;
    d->norm = llama ? MPSIM_NORM_RMS : MPSIM_NORM_LAYER;
    d->activation = llama ? MPSIM_SWIGLU : MPSIM_GELU_TANH;
    d->hidden = train_decoder_hidden(s);
    d->rotary = (uint8_t)llama;
    d->biases = d->tied = !llama;
    strcpy(d->accumulate_format, "binary32");
    strcpy(d->wire, "binary32");
    strcpy(d->sum, "binary32");
    d->reduce = MPSIM_REDUCE_RING;
    d->decay = TRAIN_COSINE;
    d->warmup = 20;
    d->min_lr = 0.1;
    d->validation = 32;
    snprintf(d->text, sizeof d->text, "%.63s", text->name);
    d->text_digest = text->digest;
}

size_t train_head_size(const train_settings *s)
{
    return s->width / s->decoder.heads;
}

/* ---- checks ---- */

static int check_formats(const train_decoder *d, char *error)
{
    const struct {
        const char *what, *name;
        int may_miss;
    } all[] = {{"math of norms", d->math_norm, 1},
               {"math of softmax", d->math_softmax, 1},
               {"accumulation", d->accumulate_format, 0},
               {"wire", d->wire, 0},
               {"sums of ranks", d->sum, 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        mpsim_format f;
        if (all[i].may_miss && !all[i].name[0])
            continue;
        if (mpsim_format_parse(&f, all[i].name) || !train_fits_binary32(&f))
            return train_fail(error, "%s '%.15s': " TRAIN_NO_FIT, all[i].what, all[i].name);
    }
    return 0;
}

typedef struct range {
    const char *what;
    uint64_t value, from, to;
    const char *why; /* the upper end is where it is */
} range;

static int check_range(const range *r, char *error)
{
    return r->value >= r->from && r->value <= r->to
               ? 0
               : train_fail(error, "%s must be %llu to %llu%s%s, not %llu", r->what, (unsigned long long)r->from,
                            (unsigned long long)r->to, r->why ? ", " : "", r->why ? r->why : "",
                            (unsigned long long)r->value);
}

static int check_ranges(const train_settings *s, char *error)
{
    const train_decoder *d = &s->decoder;
    const range all[] = {
        {"heads", d->heads, 1, s->width, "the width"},
        {"kv_heads", d->kv_heads, 1, d->heads, "the number of heads"},
        {"hidden", d->hidden, 1, TRAIN_MOST_HIDDEN, NULL},
        {"context", d->context, 1, TRAIN_MOST_CONTEXT, NULL},
        {"vocabulary", d->vocabulary, 2, TRAIN_MOST_VOCABULARY, NULL},
        {"norm", d->norm, 0, MPSIM_NORM_RMS, NULL},
        {"activation", d->activation, 0, MPSIM_SWIGLU, NULL},
        {"rotary", d->rotary, 0, 1, NULL},
        {"biases", d->biases, 0, 1, NULL},
        {"tied", d->tied, 0, 1, NULL},
        {"tile", d->tile, 0, TRAIN_MOST_CONTEXT, NULL},
        {"accumulate", d->accumulate, 1, TRAIN_MOST_ACCUMULATE, NULL},
        {"ranks", d->ranks, 1, TRAIN_MOST_RANKS, NULL},
        {"reduce", d->reduce, 0, MPSIM_REDUCE_TREE, NULL},
        {"decay", d->decay, 0, TRAIN_COSINE, NULL},
        {"decay_all", d->decay_all, 0, 1, NULL},
        {"warmup", d->warmup, 0, TRAIN_MOST_SCHEDULE, NULL},
        {"cooldown", d->cooldown, 0, TRAIN_MOST_SCHEDULE, NULL},
        {"validation", d->validation, 1, TRAIN_MOST_VALIDATION, NULL},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (check_range(&all[i], error))
            return -1;
    return 0;
}

int train_decoder_check(const train_settings *s, char *error)
{
    const train_decoder *d = &s->decoder;
    if (check_ranges(s, error) || check_formats(d, error))
        return -1;
    if (s->width % d->heads != 0)
        return train_fail(error, "width %u is not a multiple of %u heads", (unsigned)s->width, (unsigned)d->heads);
    if (d->heads % d->kv_heads != 0)
        return train_fail(error, "%u heads are not a multiple of %u kv_heads", (unsigned)d->heads,
                          (unsigned)d->kv_heads);
    if (d->rotary && s->width / d->heads % 2 != 0)
        return train_fail(error, "heads have %u columns: rotary positions need an even number",
                          (unsigned)(s->width / d->heads));
    if (s->batchnorm)
        return train_fail(error, "%s has no batch normalisation", s->net);
    if (!(d->min_lr >= 0 && d->min_lr <= 1))
        return train_fail(error, "min_lr must be 0 to 1, not %g", d->min_lr);
    if (!d->text[0] || !memchr(d->text, 0, sizeof d->text) || strchr(d->text, ' '))
        return train_fail(error, "the name of the text must be one word of 1 to %zu bytes", sizeof d->text - 1);
    return 0;
}

/* ---- layers ---- */

typedef struct stack {
    train_layer *layers;
    size_t n;
    const char *block; /* "h0." */
} stack;

static train_layer *push(stack *s, train_type type, const char *name, size_t inputs, size_t outputs)
{
    train_layer *l = &s->layers[s->n++];
    memset(l, 0, sizeof *l);
    snprintf(l->name, sizeof l->name, "%.16s%.24s", s->block, name);
    l->type = (uint8_t)type;
    l->inputs = (uint32_t)inputs;
    l->outputs = (uint32_t)outputs;
    return l;
}

static void push_linear(stack *s, const train_decoder *d, const char *name, size_t inputs, size_t outputs)
{
    push(s, TRAIN_LINEAR, name, inputs, outputs)->plain = !d->biases;
}

static void push_norm(stack *s, const train_decoder *d, const char *name, size_t width)
{
    push(s, TRAIN_NORM, name, width, width)->plain = d->norm == MPSIM_NORM_RMS || !d->biases;
}

static void push_block(stack *b, const train_settings *s)
{
    const train_decoder *d = &s->decoder;
    const size_t width = s->width, size = train_head_size(s), context = d->context;
    const size_t qkv = (d->heads + 2 * (size_t)d->kv_heads) * size;
    const size_t fc = (d->activation == MPSIM_SWIGLU ? 2 : 1) * (size_t)d->hidden;
    size_t from = b->n;
    push_norm(b, d, "ln1", width);
    push_linear(b, d, "attn.qkv", width, qkv);
    push(b, TRAIN_HEADS, "attn.heads", qkv, size);
    push(b, TRAIN_SCORES, "attn.scores", size, context);
    push(b, TRAIN_SOFTMAX, "attn.softmax", context, context);
    push(b, TRAIN_CONTEXT, "attn.context", context, width);
    push_linear(b, d, "attn.proj", width, width);
    push(b, TRAIN_ADD, "add1", width, width)->from = (uint32_t)from;
    from = b->n;
    push_norm(b, d, "ln2", width);
    push_linear(b, d, "mlp.fc", width, fc);
    push(b, TRAIN_ACTIVATION, "mlp.act", fc, d->hidden);
    push_linear(b, d, "mlp.proj", d->hidden, width);
    push(b, TRAIN_ADD, "add2", width, width)->from = (uint32_t)from;
}

size_t train_decoder_layers(const train_settings *s, train_layer *layers)
{
    const train_decoder *d = &s->decoder;
    stack b = {layers, 0, ""};
    push(&b, TRAIN_EMBED, "wte", d->vocabulary, s->width);
    if (!d->rotary)
        push(&b, TRAIN_POSITIONS, "wpe", d->context, s->width);
    for (uint32_t k = 0; k < s->depth; k++) {
        char block[16];
        snprintf(block, sizeof block, "h%u.", (unsigned)k);
        b.block = block;
        push_block(&b, s);
    }
    b.block = "";
    push_norm(&b, d, "lnf", s->width);
    push(&b, TRAIN_LINEAR, "head", s->width, d->vocabulary)->plain = 1;
    push(&b, TRAIN_LOSS, "loss", d->vocabulary, d->vocabulary);
    return b.n;
}
