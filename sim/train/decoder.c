/* decoder.c -- see decoder.h. */
#include "decoder.h"

#include "typed.h"

#include <string.h>

int is_decoder(const train_settings *s)
{
    return s->decoder.context > 0;
}

/* What was typed, option by option; flags have "". */
static const char *given(const decoder_words *w, size_t i, const char **option)
{
    const struct {
        const char *option, *text;
    } rows[] = {
        {"gpt2", w->gpt2 ? "" : NULL},
        {"heads", w->heads},
        {"kv-heads", w->kv_heads},
        {"hidden", w->hidden},
        {"context", w->context},
        {"vocabulary", w->vocabulary},
        {"norm", w->norm},
        {"activation", w->activation},
        {"positions", w->positions},
        {"biases", w->biases ? "" : NULL},
        {"no-biases", w->no_biases ? "" : NULL},
        {"tied", w->tied ? "" : NULL},
        {"own-head", w->own_head ? "" : NULL},
        {"attention", w->attention},
        {"tile", w->tile},
        {"validation", w->validation},
        {"accumulate", w->accumulate},
        {"accumulate-format", w->accumulate_format},
        {"ranks", w->ranks},
        {"reduce", w->reduce},
        {"wire", w->wire},
        {"wire-sum", w->sum},
        {"schedule", w->decay},
        {"warmup", w->warmup},
        {"cooldown", w->cooldown},
        {"min-lr", w->min_lr},
        {"decay-all", w->decay_all ? "" : NULL},
        {"text", w->text},
        {"tokens", w->tokens},
    };
    *option = i < sizeof rows / sizeof *rows ? rows[i].option : NULL;
    return *option ? rows[i].text : NULL;
}

const char *decoder_words_given(const decoder_words *w)
{
    const char *option;
    for (size_t i = 0; given(w, i, &option) || option; i++)
        if (given(w, i, &option) && strcmp(option, "text") != 0 && strcmp(option, "tokens") != 0)
            return option;
    return NULL;
}

/* ---- the network ---- */

int decoder_words_sizes(const decoder_words *w, train_settings *s, const char *net, const char *depth,
                        const char *width)
{
    const struct {
        const char *given, *option;
    } fixed[] = {{depth, "depth"},          {width, "width"},      {w->heads, "heads"},
                 {w->kv_heads, "kv-heads"}, {w->hidden, "hidden"}, {w->vocabulary, "vocabulary"}};
    if (!w->gpt2)
        return 0;
    if (net && strcmp(net, "gpt") != 0)
        return fail(EXIT_USAGE, "train: --gpt2 is a network of --net gpt, not of %s", net);
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (fixed[i].given)
            return fail(EXIT_USAGE, "train: --gpt2 says it: --%s cannot change it", fixed[i].option);
    s->depth = 12;
    s->width = 768;
    s->decoder.heads = s->decoder.kv_heads = 12;
    s->decoder.context = 1024;
    s->decoder.vocabulary = 50257;
    return 0;
}

static int exclude(int a, int b, const char *first, const char *second)
{
    return a && b ? fail(EXIT_USAGE, "train: --%s and --%s exclude each other", first, second) : 0;
}

static int read_numbers(const decoder_words *w, train_decoder *d)
{
    const typed_row rows[] = {
        {"heads", w->heads, TYPED_COUNT32, 1, TRAIN_MOST_WIDTH, &d->heads},
        {"kv-heads", w->kv_heads, TYPED_COUNT32, 1, TRAIN_MOST_WIDTH, &d->kv_heads},
        {"hidden", w->hidden, TYPED_COUNT32, 1, TRAIN_MOST_HIDDEN, &d->hidden},
        {"context", w->context, TYPED_COUNT32, 1, TRAIN_MOST_CONTEXT, &d->context},
        {"vocabulary", w->vocabulary, TYPED_COUNT32, 2, TRAIN_MOST_VOCABULARY, &d->vocabulary},
        {"tile", w->tile, TYPED_COUNT32, 1, TRAIN_MOST_CONTEXT, &d->tile},
        {"validation", w->validation, TYPED_COUNT32, 1, TRAIN_MOST_VALIDATION, &d->validation},
        {"accumulate", w->accumulate, TYPED_COUNT32, 1, TRAIN_MOST_ACCUMULATE, &d->accumulate},
        {"ranks", w->ranks, TYPED_COUNT32, 1, TRAIN_MOST_RANKS, &d->ranks},
        {"warmup", w->warmup, TYPED_COUNT, 0, TRAIN_MOST_SCHEDULE, &d->warmup},
        {"cooldown", w->cooldown, TYPED_COUNT, 0, TRAIN_MOST_SCHEDULE, &d->cooldown},
        {"min-lr", w->min_lr, TYPED_NUMBER, 0, 1, &d->min_lr},
    };
    return typed_numbers(rows, sizeof rows / sizeof *rows);
}

static int read_choices(const decoder_words *w, train_decoder *d)
{
    static const char *const norms[] = {"layernorm", "rmsnorm", NULL},
                             *const activations[] = {"gelu-tanh", "gelu", "swiglu", NULL},
                             *const positions[] = {"learned", "rotary", NULL},
                             *const orders[] = {"sequential", "ring", "tree", NULL},
                             *const decays[] = {"constant", "linear", "cosine", NULL};
    int code = typed_word("norm", w->norm, norms, &d->norm);
    if (!code)
        code = typed_word("activation", w->activation, activations, &d->activation);
    if (!code)
        code = typed_word("positions", w->positions, positions, &d->rotary);
    if (!code)
        code = typed_word("reduce", w->reduce, orders, &d->reduce);
    if (!code)
        code = typed_word("schedule", w->decay, decays, &d->decay);
    if (!code)
        code = exclude(w->biases, w->no_biases, "biases", "no-biases");
    if (!code)
        code = exclude(w->tied, w->own_head, "tied", "own-head");
    d->biases = w->biases ? 1 : w->no_biases ? 0 : d->biases;
    d->tied = w->tied ? 1 : w->own_head ? 0 : d->tied;
    d->decay_all = w->decay_all != 0;
    return code;
}

static int read_formats(const decoder_words *w, train_decoder *d)
{
    const struct {
        const char *option, *text;
        char *to;
    } rows[] = {{"accumulate-format", w->accumulate_format, d->accumulate_format},
                {"wire", w->wire, d->wire},
                {"wire-sum", w->sum, d->sum}};
    int code = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !code; i++)
        code = typed_format(rows[i].option, rows[i].text, rows[i].to, sizeof d->wire);
    return code;
}

/* Tiles, and what needs another option. */
static int read_attention(const decoder_words *w, const train_settings *s, train_decoder *d)
{
    static const char *const forms[] = {"materialised", "tiled", NULL};
    unsigned char tiled = 0;
    const int code = typed_word("attention", w->attention, forms, &tiled);
    if (!code && w->tile && !tiled)
        return fail(EXIT_USAGE, "train: --tile goes with --attention tiled");
    if (tiled && !w->tile)
        d->tile = s->decoder.context < 64 ? s->decoder.context : 64;
    return code;
}

static int check_needs(const decoder_words *w, const train_decoder *d)
{
    const typed_need rows[] = {
        {w->accumulate_format != NULL, "accumulate-format", d->accumulate > 1, "--accumulate of at least 2"},
        {w->reduce != NULL, "reduce", d->ranks > 1, "--ranks of at least 2"},
        {w->wire != NULL, "wire", d->ranks > 1, "--ranks of at least 2"},
        {w->sum != NULL, "wire-sum", d->ranks > 1, "--ranks of at least 2"},
        {w->min_lr != NULL, "min-lr", d->decay != TRAIN_CONSTANT, "--schedule linear or cosine"},
    };
    return typed_needs(rows, sizeof rows / sizeof *rows);
}

/* What follows from others where it is not given. */
static void follow(const decoder_words *w, train_settings *s)
{
    train_decoder *d = &s->decoder;
    if (!w->kv_heads)
        d->kv_heads = d->heads;
    if (!w->hidden)
        d->hidden = train_decoder_hidden(s);
}

/* ---- the text ---- */

static int read_text(const decoder_words *w, uint32_t vocabulary, text_file *own)
{
    trace_error error;
    if (exclude(w->text != NULL, w->tokens != NULL, "text", "tokens"))
        return EXIT_USAGE;
    if (!w->text && !w->tokens)
        return 0;
    return text_file_tokens(own, w->text ? w->text : w->tokens, w->tokens != NULL, vocabulary, &error)
               ? fail(error.exit, "%s", error.text)
               : 0;
}

static void set_text(train_decoder *d, const train_text *t, uint32_t vocabulary)
{
    memset(d->text, 0, sizeof d->text);
    strncpy(d->text, t->name, sizeof d->text - 1);
    d->text_digest = t->digest;
    d->vocabulary = vocabulary ? vocabulary : t->vocabulary;
}

static const train_text *text_of(const text_file *own)
{
    return own->text.bytes ? &own->text : train_text_bundled();
}

int decoder_words_text(const decoder_words *w, train_run *r, const char *path, text_file *own)
{
    char line[TRAIN_ERROR];
    const train_decoder *d = &r->settings.decoder;
    const char *option = w->text ? "text" : "tokens";
    if (!is_decoder(&r->settings))
        return w->text || w->tokens ? fail(EXIT_USAGE, "train: --%s: the network of '%s' is %s, which reads no text",
                                           option, path, r->settings.net)
                                    : 0;
    if (!w->text && !w->tokens && strcmp(d->text, train_text_bundled()->name) != 0)
        return fail(EXIT_USAGE, "train: '%s' is trained on the text '%s': --text or --tokens must give it", path,
                    d->text);
    const int code = read_text(w, d->vocabulary, own);
    if (code)
        return code;
    r->text = text_of(own);
    return train_text_check(r->text, &r->settings, line) ? fail(EXIT_DATA, "%s: %s", path, line) : 0;
}

/* ---- all of it ---- */

int decoder_words_read(const decoder_words *w, train_settings *s, text_file *own)
{
    char line[TRAIN_ERROR];
    const char *option;
    if (!is_decoder(s)) {
        for (size_t i = 0; given(w, i, &option) || option; i++)
            if (given(w, i, &option))
                return fail(EXIT_USAGE, "train: --%s is for transformers, --net gpt or llama, not for %s", option,
                            s->net);
        return 0;
    }
    train_decoder *d = &s->decoder;
    const uint32_t all = d->vocabulary;
    d->vocabulary = 0;
    int code = read_numbers(w, d);
    if (!code)
        code = read_choices(w, d);
    if (!code)
        code = read_formats(w, d);
    if (!code)
        code = read_attention(w, s, d);
    if (!code)
        code = check_needs(w, d);
    if (code)
        return code;
    follow(w, s);
    const uint32_t vocabulary = w->gpt2 ? all : d->vocabulary;
    code = read_text(w, vocabulary, own);
    if (code)
        return code;
    set_text(d, text_of(own), vocabulary);
    return train_text_check(text_of(own), s, line)
               ? fail(w->text || w->tokens ? EXIT_DATA : EXIT_USAGE, "train: %s", line)
               : 0;
}
