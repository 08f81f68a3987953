/* decoder.c -- see decoder.h. */
#include "decoder.h"

#include <string.h>

int train_is_decoder(const train_settings *s)
{
    return s->decoder.context > 0;
}

int train_read_format(void *name, const char *where, const char *text)
{
    enum { SIZE = sizeof((train_settings *)0)->math }; /* as of all of them */
    const mpsim_format *f = mpsim_format_find(text);
    (void)where;
    if (!f || strlen(f->name) >= SIZE)
        return -1;
    memset(name, 0, SIZE);
    strcpy(name, f->name);
    return 0;
}

/* ---- the network ---- */

void train_decoder_words_begin(const decoder_words *w, train_settings *s)
{
    train_decoder *d = &s->decoder;
    d->kv_heads = d->hidden = d->vocabulary = 0;
    if (!w->gpt2)
        return;
    s->depth = 12;
    s->width = 768;
    d->heads = 12;
    d->context = 1024;
    d->vocabulary = 50257;
}

/* What follows from others where it is not given. */
static void follow(const decoder_words *w, train_settings *s)
{
    train_decoder *d = &s->decoder;
    d->biases = w->biases ? 1 : w->no_biases ? 0 : d->biases;
    d->tied = w->tied ? 1 : w->own_head ? 0 : d->tied;
    d->decay_all = w->decay_all != 0;
    if (w->tiled && !d->tile)
        d->tile = d->context < 64 ? d->context : 64;
    if (!d->kv_heads)
        d->kv_heads = d->heads;
    if (!d->hidden)
        d->hidden = train_decoder_hidden(s);
}

/* ---- the text ---- */

static int read_text(const decoder_words *w, uint32_t vocabulary, text_file *own)
{
    trace_error error;
    if (!w->text && !w->tokens)
        return 0;
    return train_text_file_tokens(own, w->text ? w->text : w->tokens, w->tokens != NULL, vocabulary, &error)
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

int train_decoder_words_text(const decoder_words *w, train_run *r, const char *path, text_file *own)
{
    char line[TRAIN_ERROR];
    const train_decoder *d = &r->settings.decoder;
    const char *option = w->text ? "text" : "tokens";
    if (!train_is_decoder(&r->settings))
        return w->text || w->tokens ? fail(EXIT_USAGE, "train: --%s: '%s' trains the network %s, which reads no text",
                                           option, path, r->settings.net)
                                    : 0;
    if (!w->text && !w->tokens && strcmp(d->text, train_text_bundled()->name) != 0)
        return fail(EXIT_USAGE, "train: '%s' needs the text '%s': name its file with --text or --tokens", path,
                    d->text);
    const int code = read_text(w, d->vocabulary, own);
    if (code)
        return code;
    r->text = text_of(own);
    return train_text_check(r->text, &r->settings, line) ? fail(EXIT_DATA, "%s: %s", path, line) : 0;
}

/* ---- all of it ---- */

int train_decoder_words_read(const decoder_words *w, train_settings *s, text_file *own)
{
    char line[TRAIN_ERROR];
    if (!train_is_decoder(s))
        return 0;
    follow(w, s);
    const uint32_t vocabulary = s->decoder.vocabulary;
    const int code = read_text(w, vocabulary, own);
    if (code)
        return code;
    set_text(&s->decoder, text_of(own), vocabulary);
    return train_text_check(text_of(own), s, line)
               ? fail(w->text || w->tokens ? EXIT_DATA : EXIT_USAGE, "train: %s", line)
               : 0;
}
