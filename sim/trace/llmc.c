/* llmc.c -- the files of llm.c: checkpoints, debug states, optimizer states, tokens.
 *
 * Source: github.com/karpathy/llm.c, write_model and write_state of train_gpt2.py (fe04df9, and 0062707 for the
 * versions before the vocabulary was padded) and train_llama3.py (01bc4c6), gpt2_write_to_checkpoint of train_gpt2.cu
 * (00247dc), save_state of train_gpt2.cu as forks have it with the same magic and version, write_datafile and
 * write_evalfile of dev/data/data_common.py (16635d4), mt19937_state of llmc/rand.h (07752a6). All begin with 256
 * int32, the first of which says which file it is; numbers are little-endian.
 *
 * The files hold no names. Their arrays lie layer behind layer; here each layer is a tensor, named as the parameter
 * that train_gpt2.py writes there (transformer.h.0.attn.c_attn.weight; llm.c's own word for all layers is qkvw), so
 * that statistics show layers, and the tensors of the same model in PyTorch have the same names. The kind stands before
 * them: weight, wgrad, opt.m, opt.v, master.
 *
 * A debug state and an optimizer state do not say the sizes of the model. They follow from the size of the file if
 * the vocabulary and the context are GPT-2's (50257, padded to 50304, and 1024): that many parameters leave one choice
 * of channels (a multiple of 16) and layers. Where they leave none, or two, the moments are shown as one tensor each. */
#include "impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    HEADER = 1024,
    MAGIC_GPT2 = 20240326,
    MAGIC_DEBUG = 20240327,
    MAGIC_TOKENS = 20240520,
    MAGIC_EXAMPLES = 20240522,
    MAGIC_STATE = 20240527,
    MAGIC_TOKENS_LLAMA = 20240801,
    MAGIC_LLAMA = 20240803,
    VOCABULARY = 50257,
    VOCABULARY_PADDED = 50304,
    CONTEXT = 1024,
    GENERATOR = 2520 /* bytes of an mt19937_state */
};

/* The sizes of a model, by which shapes are described. */
enum { ONE, C, C3, C4, V, T, QKV, HIDDEN, SIZES };

typedef struct part {
    const char *name;
    uint8_t layered; /* one of each layer: the name is that within it */
    uint8_t shape[2];
} part;

static const part gpt2[] = {
    {"transformer.wte.weight", 0, {V, C}},
    {"transformer.wpe.weight", 0, {T, C}},
    {"ln_1.weight", 1, {C, ONE}},
    {"ln_1.bias", 1, {C, ONE}},
    {"attn.c_attn.weight", 1, {C3, C}},
    {"attn.c_attn.bias", 1, {C3, ONE}},
    {"attn.c_proj.weight", 1, {C, C}},
    {"attn.c_proj.bias", 1, {C, ONE}},
    {"ln_2.weight", 1, {C, ONE}},
    {"ln_2.bias", 1, {C, ONE}},
    {"mlp.c_fc.weight", 1, {C4, C}},
    {"mlp.c_fc.bias", 1, {C4, ONE}},
    {"mlp.c_proj.weight", 1, {C, C4}},
    {"mlp.c_proj.bias", 1, {C, ONE}},
    {"transformer.ln_f.weight", 0, {C, ONE}},
    {"transformer.ln_f.bias", 0, {C, ONE}},
    {NULL, 0, {0, 0}},
};

static const part llama3[] = {
    {"transformer.wte.weight", 0, {V, C}},
    {"ln_1.weight", 1, {C, ONE}},
    {"attn.c_attn.weight", 1, {QKV, C}},
    {"attn.c_proj.weight", 1, {C, C}},
    {"ln_2.weight", 1, {C, ONE}},
    {"mlp.c_fc.weight", 1, {HIDDEN, C}},
    {"mlp.c_fc2.weight", 1, {HIDDEN, C}},
    {"mlp.c_proj.weight", 1, {C, HIDDEN}},
    {"transformer.ln_f.weight", 0, {C, ONE}},
    {"lm_head.weight", 0, {V, C}},
    {NULL, 0, {0, 0}},
};

typedef struct llmc {
    trace *t;
    trace_error *error;
    uint64_t at; /* where the next tensor begins */
    int32_t header[HEADER / 4];
    uint64_t size[SIZES], layers;
} llmc;

static int32_t le32(const unsigned char *p)
{
    return (int32_t)((uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0]);
}

int trace_llmc_begins(const unsigned char *head, size_t n)
{
    static const int32_t magics[] = {MAGIC_GPT2,  MAGIC_DEBUG,        MAGIC_TOKENS, MAGIC_EXAMPLES,
                                     MAGIC_STATE, MAGIC_TOKENS_LLAMA, MAGIC_LLAMA};
    /* a version of 0 would be the length of a safetensors header */
    for (size_t i = 0; n >= 8 && le32(head + 4) && i < sizeof magics / sizeof magics[0]; i++)
        if (le32(head) == magics[i])
            return 1;
    return 0;
}

/* ---- tensors, one behind the other ---- */

/* The next tensor, of the dtype of safetensors. */
static int add(llmc *f, const char *name, const char *dtype, const uint64_t *shape, size_t rank)
{
    trace *t = f->t;
    const trace_dtype *d = trace_dtype_find(dtype);
    trace_entry *e = trace_add(t, f->error);
    if (!e)
        return -1;
    trace_tensor *x = &e->tensor;
    uint64_t *copy = trace_alloc(t, rank * sizeof *copy);
    if (!copy || !(x->name = trace_string(t, name, strlen(name))))
        return trace_no_memory(t, f->error);
    if (rank)
        memcpy(copy, shape, rank * sizeof *copy);
    x->shape = copy;
    x->rank = rank;
    x->dtype = d->name;
    x->format = d->format ? mpsim_format_find(d->format) : NULL;
    x->offset = f->at;
    if (trace_shape_bytes(shape, rank, d->bits, &x->count, &e->bytes))
        return trace_fail(t, f->error, 0, "the sizes in the header are too large");
    if (e->bytes > t->size - f->at)
        return trace_fail(t, f->error, f->at, "tensor '%s' has %" PRIu64 " bytes, but the file has %" PRIu64 " more",
                          name, e->bytes, t->size - f->at);
    f->at += e->bytes;
    return 0;
}

/* All parts of a model, as one kind. */
static int add_model(llmc *f, const char *kind, const part *parts, const char *dtype)
{
    char name[128];
    for (const part *p = parts; p->name; p++) {
        const uint64_t shape[2] = {f->size[p->shape[0]], f->size[p->shape[1]]};
        const size_t rank = p->shape[1] == ONE ? 1 : 2;
        for (uint64_t i = 0; i < (p->layered ? f->layers : 1); i++) {
            if (p->layered)
                snprintf(name, sizeof name, "%s:transformer.h.%" PRIu64 ".%s", kind, i, p->name);
            else
                snprintf(name, sizeof name, "%s:%s", kind, p->name);
            if (add(f, name, dtype, shape, rank))
                return -1;
        }
    }
    return 0;
}

static int no_more(llmc *f)
{
    return f->at == f->t->size
               ? 0
               : trace_fail(f->t, f->error, f->at, "%" PRIu64 " bytes after the last tensor", f->t->size - f->at);
}

/* ---- headers ---- */

/* A number of the header as metadata. */
static int say(llmc *f, const char *key, int i)
{
    char text[16];
    const int n = snprintf(text, sizeof text, "%" PRId32, f->header[i]);
    const char *value = trace_string(f->t, text, (size_t)n);
    return value ? trace_add_metadata(f->t, key, value, f->error) : trace_no_memory(f->t, f->error);
}

/* Sizes of the header: all positive. */
static int take_sizes(llmc *f, const char *const *keys, int first)
{
    for (int i = 0; keys[i]; i++) {
        if (f->header[first + i] < 1)
            return trace_fail(f->t, f->error, 4 * (uint64_t)(first + i), "%s is %" PRId32, keys[i],
                              f->header[first + i]);
        if (say(f, keys[i], first + i))
            return -1;
    }
    return 0;
}

static void set_sizes(llmc *f, uint64_t channels, uint64_t layers, uint64_t vocabulary, uint64_t context)
{
    f->layers = layers;
    f->size[ONE] = 1;
    f->size[C] = channels;
    f->size[C3] = 3 * channels;
    f->size[C4] = 4 * channels;
    f->size[V] = vocabulary;
    f->size[T] = context;
}

static int bad_version(llmc *f, const char *what)
{
    return trace_fail(f->t, f->error, 4, "version %" PRId32 " of %s is not known", f->header[1], what);
}

static int open_gpt2(llmc *f)
{
    static const char *const keys[] = {"max_seq_len", "vocab_size", "num_layers", "num_heads", "channels", NULL};
    static const char *const padded[] = {"padded_vocab_size", NULL};
    const int32_t *h = f->header, version = h[1], pads = version > 2;
    if (version != 1 && version != 2 && !((version == 3 || version == 5) && h[7]))
        return bad_version(f, "a checkpoint of llm.c");
    if (take_sizes(f, keys, 2) || (pads && take_sizes(f, padded, 7)))
        return -1;
    set_sizes(f, (uint64_t)h[6], (uint64_t)h[4], (uint64_t)h[pads ? 7 : 3], (uint64_t)h[2]);
    return add_model(f, "weight", gpt2, version == 5 ? "BF16" : "F32");
}

/* The width of the feed-forward layers follows from the size of the file. */
static int open_llama(llmc *f)
{
    static const char *const keys[] = {"max_seq_len",  "vocab_size", "num_layers",  "num_heads",
                                       "num_kv_heads", "channels",   "multiple_of", NULL};
    const int32_t *h = f->header;
    if (h[3] == 0 && h[4] == 0)
        return trace_fail(f->t, f->error, 4,
                          "a debug state of train_llama3.py, which does not say the sizes of its "
                          "model: pass --dtype, --shape and --offset");
    if ((h[1] != 3 && h[1] != 5) || f->t->size < 2 * HEADER)
        return bad_version(f, "a checkpoint of LLaMA 3 of llm.c");
    if (take_sizes(f, keys, 2))
        return -1;
    set_sizes(f, (uint64_t)h[7], (uint64_t)h[4], (uint64_t)h[3], (uint64_t)h[2]);
    const uint64_t c = f->size[C], heads = (uint64_t)h[5], pairs = (uint64_t)h[6], width = h[1] == 5 ? 2 : 4;
    f->size[QKV] = (heads + 2 * pairs) * (c / heads);
    const uint64_t all = (f->t->size - 2 * HEADER) / width, layer = 2 + f->size[QKV] + c, row = 3 * c * f->layers;
    const uint64_t rest = layer > all / f->layers ? UINT64_MAX : 2 * f->size[V] + 1 + f->layers * layer; /* times c */
    if (c % heads || rest > all / c || (all - c * rest) % row)
        return trace_fail(f->t, f->error, 8, "the sizes in the header are not those of a file of %" PRIu64 " bytes",
                          f->t->size);
    f->size[HIDDEN] = (all - c * rest) / row;
    if (f->size[HIDDEN] % (uint64_t)h[8])
        return trace_fail(f->t, f->error, 32,
                          "the file has room for feed-forward layers of %" PRIu64 ", no multiple of %" PRId32,
                          f->size[HIDDEN], h[8]);
    f->at = 2 * HEADER;
    return add_model(f, "weight", llama3, width == 2 ? "BF16" : "F32");
}

/* ---- sizes from the size of the file ---- */

/* The channels and layers of a GPT-2 of `most` parameters or fewer for which fits(f, parameters) holds: how many choices there
 * are, the last in f. */
static int solve(llmc *f, uint64_t vocabulary, uint64_t most,
                 int (*fits)(llmc *f, uint64_t parameters, const void *context), const void *context)
{
    enum { CHANNELS_MAX = 16384, LAYERS_MAX = 256, STEP = 16 };
    int found = 0;
    for (uint64_t c = STEP; c <= CHANNELS_MAX; c += STEP)
        for (uint64_t l = 1; l <= LAYERS_MAX; l++) {
            const uint64_t parameters = c * (vocabulary + CONTEXT + 2) + l * (12 * c * c + 13 * c);
            if (parameters > most)
                break;
            if (fits(f, parameters, context)) {
                found++;
                set_sizes(f, c, l, vocabulary, CONTEXT);
            }
        }
    return found;
}

static int is_equal(llmc *f, uint64_t parameters, const void *context)
{
    (void)f;
    return parameters == *(const uint64_t *)context;
}

static int open_debug(llmc *f)
{
    const uint64_t vocabulary = f->header[1] == 1 ? VOCABULARY : VOCABULARY_PADDED;
    static const char *const keys[] = {"batch_size", "sequence_length", NULL};
    if (f->header[1] != 1 && f->header[1] != 2)
        return bad_version(f, "a debug state of llm.c");
    if (take_sizes(f, keys, 2))
        return -1;
    const uint64_t shape[3] = {(uint64_t)f->header[2], (uint64_t)f->header[3], VOCABULARY};
    if (add(f, "x", "I32", shape, 2) || add(f, "y", "I32", shape, 2) || add(f, "out:logits", "F32", shape, 3) ||
        add(f, "loss", "F32", NULL, 0))
        return -1;
    const uint64_t left = f->t->size - f->at, parameters = left / 4;
    if (left % 4 || solve(f, vocabulary, parameters, is_equal, &parameters) != 1)
        return trace_fail(f->t, f->error, f->at,
                          "%" PRIu64 " bytes of gradients are not those of a GPT-2 with a "
                          "vocabulary of 50257 and a context of 1024, and the file does not say its sizes",
                          left);
    return add_model(f, "wgrad", gpt2, "F32");
}

/* ---- optimizer states ---- */

typedef struct moments {
    const char *const *kinds;
    int count;
} moments;

static int read_u64(llmc *f, uint64_t at, uint64_t *u)
{
    unsigned char p[8];
    if (f->t->size < 8 || at > f->t->size - 8 || trace_pread(f->t->fd, p, 8, at) != 8)
        return -1;
    *u = (uint64_t)(uint32_t)le32(p) | (uint64_t)(uint32_t)le32(p + 4) << 32;
    return 0;
}

/* Whether what follows that many parameters is the state of a data loader that shuffles: how many shards, their order,
 * how many samples, their order, a random generator. */
static int is_loader(llmc *f, uint64_t parameters, const void *context)
{
    const moments *m = context;
    const uint64_t data = (uint64_t)m->count * 4 * parameters, room = f->t->size - HEADER;
    uint64_t n;
    if (data > room || room - data < 16 + GENERATOR)
        return 0;
    uint64_t left = room - data - 16 - GENERATOR;
    if (left % 4 || left > UINT32_MAX || read_u64(f, HEADER + data, &n) || n == 0 || n > left / 4)
        return 0;
    left -= 4 * n;
    return read_u64(f, HEADER + data + 8 + 4 * n, &n) == 0 && n == left / 4;
}

/* Moments of which only the number of elements is known. */
static int add_flat(llmc *f, const moments *m, uint64_t parameters)
{
    char name[64];
    for (int i = 0; i < m->count; i++) {
        snprintf(name, sizeof name, "%s:parameters", m->kinds[i]);
        if (add(f, name, "F32", &parameters, 1))
            return -1;
    }
    return 0;
}

static int open_state(llmc *f)
{
    static const char *const kinds[] = {"opt.m", "opt.v", "master"};
    const int32_t *h = f->header;
    const moments m = {kinds, h[4] ? 3 : 2};
    const uint64_t room = f->t->size - HEADER, parameters = room / 4 / (uint64_t)m.count;
    if (h[1] != 1)
        return bad_version(f, "an optimizer state of llm.c");
    if (say(f, "step", 10) || say(f, "num_processes", 2) || say(f, "process_rank", 3))
        return -1;
    const int found = h[5] ? solve(f, VOCABULARY_PADDED, parameters, is_loader, &m)
                           : solve(f, VOCABULARY_PADDED, parameters, is_equal, &parameters);
    if (h[5] && found != 1)
        return trace_fail(f->t, f->error, HEADER,
                          "the moments are followed by the state of a data loader, and their "
                          "size is not that of a GPT-2 with a vocabulary of 50257 and a context of 1024");
    if (!h[5] && room % (4 * (uint64_t)m.count))
        return trace_fail(f->t, f->error, HEADER, "%" PRIu64 " bytes are not %d arrays of binary32 numbers of one size",
                          room, m.count);
    if (found != 1)
        return add_flat(f, &m, parameters);
    for (int i = 0; i < m.count; i++)
        if (add_model(f, kinds[i], gpt2, "F32"))
            return -1;
    if (h[5]) { /* shown, so that the whole file is */
        const uint64_t loader = f->t->size - f->at;
        return add(f, "loader", "U8", &loader, 1);
    }
    return 0;
}

/* ---- tokens ---- */

static int open_tokens(llmc *f)
{
    const int32_t magic = f->header[0];
    const int wide = magic == MAGIC_TOKENS_LLAMA;
    const uint64_t held = (f->t->size - HEADER) / (wide ? 4 : 2);
    const uint64_t n = magic == MAGIC_EXAMPLES || f->header[2] < 0 ? held : (uint64_t)f->header[2];
    if (f->header[1] != (wide ? 7 : 1))
        return bad_version(f, "a file of tokens of llm.c");
    return add(f, magic == MAGIC_EXAMPLES ? "examples" : "tokens", wide ? "U32" : "U16", &n, 1);
}

static int open_llmc(trace *t, const trace_options *options, trace_error *error)
{
    static const struct {
        int32_t magic;
        int (*open)(llmc *f);
    } rows[] = {
        {MAGIC_GPT2, open_gpt2},       {MAGIC_LLAMA, open_llama},   {MAGIC_DEBUG, open_debug},
        {MAGIC_STATE, open_state},     {MAGIC_TOKENS, open_tokens}, {MAGIC_TOKENS_LLAMA, open_tokens},
        {MAGIC_EXAMPLES, open_tokens},
    };
    unsigned char bytes[HEADER];
    (void)options;
    llmc f = {.t = t, .error = error, .at = HEADER};
    if (t->size < HEADER)
        return trace_fail(t, error, 0, "%" PRIu64 " bytes are too few for the header of a file of llm.c", t->size);
    if (trace_bytes(t, bytes, HEADER, error))
        return -1;
    for (int i = 0; i < HEADER / 4; i++)
        f.header[i] = le32(bytes + 4 * i);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].magic == f.header[0])
            return rows[i].open(&f) || no_more(&f) ? -1 : 0;
    return trace_fail(t, error, 0, "the file has changed");
}

const trace_layout_type trace_layout_llmc = {.name = "llm.c", .open = open_llmc};
