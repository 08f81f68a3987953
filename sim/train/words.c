/* words.c -- see words.h. */
#include "words.h"

#include "../operand/scalerword.h"
#include "typed.h"

#include <stdio.h>
#include <string.h>

static int read_numbers(const train_words *w, train_settings *s, train_overrides *o)
{
    const typed_row rows[] = {
        {"steps", w->steps, TYPED_COUNT, 1, 1e9, &s->steps},
        {"batch", w->batch, TYPED_COUNT32, 0, UINT32_MAX, &s->batch},
        {"seed", w->seed, TYPED_COUNT, 0, 0x1p63 - 1024, &s->seed},
        {"depth", w->depth, TYPED_COUNT32, 0, UINT32_MAX, &s->depth},
        {"width", w->width, TYPED_COUNT32, 0, UINT32_MAX, &s->width},
        {"gain", w->gain, TYPED_NUMBER, 1e-18, 1e18, &s->gain},
        {"loss-factor", w->loss_factor, TYPED_NUMBER, 1e-18, 1e18, &s->loss_factor},
        {"lr", w->lr, TYPED_NUMBER, 0, 1e6, &o->lr},
        {"momentum", w->momentum, TYPED_NUMBER, 0, 1, &o->momentum},
        {"dampening", w->dampening, TYPED_NUMBER, 0, 1, &o->dampening},
        {"weight-decay", w->weight_decay, TYPED_NUMBER, 0, 1e6, &o->weight_decay},
        {"beta1", w->beta1, TYPED_NUMBER, 0, 1, &o->beta1},
        {"beta2", w->beta2, TYPED_NUMBER, 0, 1, &o->beta2},
        {"eps", w->eps, TYPED_NUMBER, 0, 1e6, &o->eps},
    };
    return typed_numbers(rows, sizeof rows / sizeof *rows);
}

/* "1.0", "megatron:1.0", "none". */
static int read_clip(train_words *w, train_overrides *o)
{
    const char *text = w->clip, *colon = text ? strchr(text, ':') : NULL;
    mpsim_clip_rule known;
    if (!text)
        return 0;
    const int none = strcmp(text, "none") == 0;
    if (colon || none) {
        snprintf(w->rule, sizeof w->rule, "%.*s", colon ? (int)(colon - text) : 4, text);
        if (mpsim_clip_parse(&known, w->rule) != MPSIM_OK || (known == MPSIM_CLIP_NONE && !none))
            return fail(EXIT_USAGE,
                        "train: --clip: '%s' is not a rule: torch, apex, megatron, "
                        "deepspeed, ... (data/policies/README.md)",
                        w->rule);
        o->clip_rule = w->rule;
    }
    return none ? 0 : typed_number("clip", colon ? colon + 1 : text, TYPED_NUMBER, 1e-30, 1e30, &o->max_norm);
}

/* FORMAT, or of transformers PART=FORMAT. */
static int read_math(const train_words *w, train_settings *s)
{
    int code = 0;
    for (size_t i = 0; i < w->math.count && !code; i++) {
        const char *text = w->math.items[i], *equals = strchr(text, '=');
        const size_t n = equals ? (size_t)(equals - text) : 0;
        const int norm = n == 4 && memcmp(text, "norm", 4) == 0, softmax = n == 7 && memcmp(text, "softmax", 7) == 0;
        if (equals && !is_decoder(s))
            return fail(EXIT_USAGE, "train: --math: '%s': parts are for transformers, --net gpt or llama", text);
        if (equals && !norm && !softmax)
            return fail(EXIT_USAGE, "train: --math: '%.*s' is not one of norm, softmax", (int)n, text);
        code = typed_format("math", equals ? equals + 1 : text,
                            norm      ? s->decoder.math_norm
                            : softmax ? s->decoder.math_softmax
                                      : s->math,
                            sizeof s->math);
    }
    return code;
}

/* The names among the options: the network, where products run. */
static int read_names(const train_words *w, train_settings *s)
{
    char line[TRAIN_ERROR];
    train_layer layers[TRAIN_LAYERS];
    mpsim_model m;
    if (w->arch && strlen(w->arch) >= sizeof s->arch)
        return fail(EXIT_USAGE, "train: --arch: '%.40s...' is too long a name", w->arch);
    if (w->arch)
        strcpy(s->arch, w->arch);
    if (is_decoder(s) && (w->batchnorm || w->no_batchnorm))
        return fail(EXIT_USAGE, "train: --%s is for --net mlp or cnn, not for %s",
                    w->batchnorm ? "batchnorm" : "no-batchnorm", s->net);
    if (w->batchnorm && w->no_batchnorm)
        return fail(EXIT_USAGE, "train: --batchnorm and --no-batchnorm exclude each other");
    s->batchnorm = w->batchnorm ? 1 : w->no_batchnorm ? 0 : s->batchnorm;
    s->tf32 = w->tf32 != 0;
    if (train_network(s, layers, line) == 0)
        return fail(EXIT_USAGE, "train: %s", line);
    const mpsim_format *widest = mpsim_format_find(s->tf32 ? "tf32" : "binary32");
    if (train_model(s, widest, widest, &m, line))
        return fail(EXIT_USAGE, "train: %s", line);
    return 0;
}

static int read_optimizer(const train_words *w, train_overrides *o)
{
    mpsim_optim_algorithm a;
    mpsim_scaler_config scaler;
    char list[128];
    if (w->optimizer && mpsim_optim_parse(&a, w->optimizer) != MPSIM_OK)
        return fail(EXIT_USAGE, "train: --optimizer is %s, not '%s'", plan_optimizers(list, sizeof list, " or "),
                    w->optimizer);
    if (w->variant && !mpsim_optim_variant_find(w->variant))
        return fail(EXIT_USAGE,
                    "train: --variant: '%s' is not one of ieee, torch, torch-foreach, apex, ... (mpsim/optim.h)",
                    w->variant);
    const char *why = w->scaler ? scaler_read(&scaler, w->scaler) : NULL;
    if (why)
        return fail(EXIT_USAGE, "train: --loss-scaling: '%s' is not a scaler of 'mpsim scaler --list': %s", w->scaler,
                    why);
    o->optimizer = w->optimizer;
    o->variant = w->variant;
    o->scaler = w->scaler;
    return 0;
}

int train_words_read(train_words *w, train_settings *s, train_overrides *o)
{
    static const char *const nets[] = {"mlp", "cnn", "gpt", "llama"};
    const char *net = w->net ? w->net : w->decoder.gpt2 ? "gpt" : "mlp";
    int known = 0;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
        known |= strcmp(nets[i], net) == 0;
    if (!known)
        return fail(EXIT_USAGE, "train: --net is mlp, cnn, gpt or llama, not '%s'", net);
    train_settings_init(s, net);
    train_overrides_init(o);
    int code = read_optimizer(w, o);
    if (!code)
        code = decoder_words_sizes(&w->decoder, s, w->net, w->depth, w->width);
    if (!code)
        code = read_numbers(w, s, o);
    if (!code)
        code = read_clip(w, o);
    if (!code)
        code = read_math(w, s);
    if (!code)
        code = decoder_words_read(&w->decoder, s, &w->text);
    return code ? code : read_names(w, s);
}

int train_words_text(train_words *w, train_run *r, const char *path)
{
    return decoder_words_text(&w->decoder, r, path, &w->text);
}

void train_words_clear(train_words *w)
{
    option_list_clear(&w->math);
    text_file_clear(&w->text);
}

int train_words_steps(const train_words *w, train_settings *s)
{
    return typed_number("steps", w->steps, TYPED_COUNT, 1, 1e9, &s->steps);
}

const char *train_words_given(const train_words *w, const char *but)
{
    const struct {
        const char *option;
        int given;
    } rows[] = {
        {"net", w->net != NULL},
        {"steps", w->steps != NULL},
        {"batch", w->batch != NULL},
        {"seed", w->seed != NULL},
        {"depth", w->depth != NULL},
        {"width", w->width != NULL},
        {"gain", w->gain != NULL},
        {"loss-factor", w->loss_factor != NULL},
        {"math", w->math.count > 0},
        {"arch", w->arch != NULL},
        {"optimizer", w->optimizer != NULL},
        {"variant", w->variant != NULL},
        {"lr", w->lr != NULL},
        {"momentum", w->momentum != NULL},
        {"dampening", w->dampening != NULL},
        {"weight-decay", w->weight_decay != NULL},
        {"beta1", w->beta1 != NULL},
        {"beta2", w->beta2 != NULL},
        {"eps", w->eps != NULL},
        {"clip", w->clip != NULL},
        {"loss-scaling", w->scaler != NULL},
        {"batchnorm", w->batchnorm},
        {"no-batchnorm", w->no_batchnorm},
        {"tf32", w->tf32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].given && (!but || strcmp(rows[i].option, but) != 0))
            return rows[i].option;
    return decoder_words_given(&w->decoder);
}
