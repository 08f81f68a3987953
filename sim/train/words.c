/* words.c -- see words.h. */
#include "train.h"

#include "../operand/scalerword.h"

#include <stdio.h>
#include <string.h>

int train_words_begin(void *words, const char *where, const char *text)
{
    train_words *w = words;
    (void)where;
    (void)text;
    train_settings_init(w->settings, w->net ? w->net : w->decoder.gpt2 ? "gpt" : "mlp");
    train_overrides_init(w->overrides);
    if (train_is_decoder(w->settings))
        train_decoder_words_begin(&w->decoder, w->settings);
    return 0;
}

/* ---- the argument of an option ---- */

int train_read_arch(void *arch, const char *where, const char *text)
{
    enum { SIZE = sizeof((train_settings *)0)->arch };
    if (strlen(text) >= SIZE)
        return fail(EXIT_USAGE, "%s: '%.40s...': the name is too long", where, text);
    strcpy(arch, text);
    return 0;
}

int train_read_optimizer(void *name, const char *where, const char *text)
{
    mpsim_optim_algorithm a;
    char list[128];
    *(const char **)name = text;
    return mpsim_optim_parse(&a, text) == MPSIM_OK
               ? 0
               : fail(EXIT_USAGE, "%s is %s, not '%s'", where, policy_plan_optimizers(list, sizeof list, " or "), text);
}

int train_read_variant(void *name, const char *where, const char *text)
{
    (void)where;
    *(const char **)name = text;
    return mpsim_optim_variant_find(text) ? 0 : -1;
}

int train_read_scaler(void *spec, const char *where, const char *text)
{
    mpsim_scaler_config scaler;
    const char *why = scaler_read(&scaler, text);
    *(const char **)spec = text;
    return why ? fail(EXIT_USAGE, "%s: '%s' is not a scaler of 'mpsim scaler --list': %s", where, text, why) : 0;
}

/* "1.0", "megatron:1.0", "none". */
int train_read_clip(void *words, const char *where, const char *text)
{
    train_words *w = words;
    const char *colon = strchr(text, ':');
    const int none = strcmp(text, "none") == 0;
    mpsim_clip_rule known;
    double x;
    (void)where;
    if (colon || none) {
        snprintf(w->rule, sizeof w->rule, "%.*s", colon ? (int)(colon - text) : 4, text);
        if (mpsim_clip_parse(&known, w->rule) != MPSIM_OK || (known == MPSIM_CLIP_NONE && !none))
            return -1;
        w->overrides->clip_rule = w->rule;
    }
    if (none)
        return 0;
    if (parse_number(&x, colon ? colon + 1 : text) || x < 1e-30 || x > 1e30)
        return -1;
    w->overrides->max_norm = x;
    return 0;
}

/* ---- what follows ---- */

/* FORMAT, or of transformers PART=FORMAT. */
static int read_math(const train_words *w, train_settings *s)
{
    int code = 0;
    for (size_t i = 0; i < w->math.count && !code; i++) {
        const char *text = w->math.items[i], *equals = strchr(text, '=');
        const size_t n = equals ? (size_t)(equals - text) : 0;
        const int norm = n == 4 && memcmp(text, "norm", 4) == 0, softmax = n == 7 && memcmp(text, "softmax", 7) == 0;
        if (equals && !train_is_decoder(s))
            return fail(EXIT_USAGE, "train: --math: '%s': norm= and softmax= need a transformer (--net gpt or llama)",
                        text);
        if (equals && !norm && !softmax)
            return fail(EXIT_USAGE, "train: --math: '%.*s' is not one of norm, softmax", (int)n, text);
        if (train_read_format(norm      ? s->decoder.math_norm
                              : softmax ? s->decoder.math_softmax
                                        : s->math,
                              NULL, equals ? equals + 1 : text))
            code = fail(EXIT_USAGE, "train: --math: '%s' is not " TRAIN_FORMATS, text);
    }
    return code;
}

/* The network, and where products run. */
static int check_names(const train_words *w, train_settings *s)
{
    char line[TRAIN_ERROR];
    train_layer layers[TRAIN_LAYERS];
    mpsim_model m;
    s->batchnorm = w->batchnorm ? 1 : w->no_batchnorm ? 0 : s->batchnorm;
    s->tf32 = w->tf32 != 0;
    if (train_network(s, layers, line) == 0)
        return fail(EXIT_USAGE, "train: %s", line);
    const mpsim_format *widest = mpsim_format_find(s->tf32 ? "tf32" : "binary32");
    return train_model(s, widest, widest, &m, line) ? fail(EXIT_USAGE, "train: %s", line) : 0;
}

int train_words_read(train_words *w)
{
    train_settings *s = w->settings;
    s->steps = w->steps ? w->steps : s->steps;
    int code = read_math(w, s);
    if (!code)
        code = train_decoder_words_read(&w->decoder, s, &w->text);
    return code ? code : check_names(w, s);
}

int train_words_text(train_words *w, train_run *r, const char *path)
{
    return train_decoder_words_text(&w->decoder, r, path, &w->text);
}

void train_words_clear(train_words *w)
{
    option_list_clear(&w->math);
    train_text_file_clear(&w->text);
}
