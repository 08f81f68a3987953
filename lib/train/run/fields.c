/* fields.c -- see fields.h. */
#include "fields.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables ---- */

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define AT(struct, member) offsetof(struct, member)

static const train_field settings_fields[] = {{"net", TEXT, AT(train_settings, net), 16, NULL},
                                              {"depth", U32, AT(train_settings, depth), 0, NULL},
                                              {"width", U32, AT(train_settings, width), 0, NULL},
                                              {"batchnorm", U32, AT(train_settings, batchnorm), 0, NULL},
                                              {"batch", U32, AT(train_settings, batch), 0, NULL},
                                              {"steps", U64, AT(train_settings, steps), 0, NULL},
                                              {"seed", U64, AT(train_settings, seed), 0, NULL},
                                              {"gain", F64, AT(train_settings, gain), 0, NULL},
                                              {"loss_factor", F64, AT(train_settings, loss_factor), 0, NULL},
                                              {"math", TEXT, AT(train_settings, math), 16, NULL},
                                              {"arch", TEXT, AT(train_settings, arch), 64, NULL},
                                              {"tf32", U32, AT(train_settings, tf32), 0, NULL}};

static const char *const norm_words[] = {"layernorm", "rmsnorm", NULL};
static const char *const activation_words[] = {"gelu-tanh", "gelu", "swiglu", NULL};
static const char *const reduce_words[] = {"sequential", "ring", "tree", NULL};
static const char *const decay_words[] = {"constant", "linear", "cosine", NULL};

static const train_field decoder_fields[] = {
    {"heads", U32, AT(train_decoder, heads), 0, NULL},
    {"kv_heads", U32, AT(train_decoder, kv_heads), 0, NULL},
    {"hidden", U32, AT(train_decoder, hidden), 0, NULL},
    {"context", U32, AT(train_decoder, context), 0, NULL},
    {"vocabulary", U32, AT(train_decoder, vocabulary), 0, NULL},
    {"norm", WORD, AT(train_decoder, norm), 0, norm_words},
    {"activation", WORD, AT(train_decoder, activation), 0, activation_words},
    {"rotary", FLAG, AT(train_decoder, rotary), 0, NULL},
    {"biases", FLAG, AT(train_decoder, biases), 0, NULL},
    {"tied", FLAG, AT(train_decoder, tied), 0, NULL},
    {"tile", U32, AT(train_decoder, tile), 0, NULL},
    {"math_norm", OPTION, AT(train_decoder, math_norm), 16, NULL},
    {"math_softmax", OPTION, AT(train_decoder, math_softmax), 16, NULL},
    {"accumulate", U32, AT(train_decoder, accumulate), 0, NULL},
    {"ranks", U32, AT(train_decoder, ranks), 0, NULL},
    {"accumulate_format", TEXT, AT(train_decoder, accumulate_format), 16, NULL},
    {"wire", TEXT, AT(train_decoder, wire), 16, NULL},
    {"sum", TEXT, AT(train_decoder, sum), 16, NULL},
    {"reduce", WORD, AT(train_decoder, reduce), 0, reduce_words},
    {"decay", WORD, AT(train_decoder, decay), 0, decay_words},
    {"decay_all", FLAG, AT(train_decoder, decay_all), 0, NULL},
    {"warmup", U64, AT(train_decoder, warmup), 0, NULL},
    {"cooldown", U64, AT(train_decoder, cooldown), 0, NULL},
    {"min_lr", F64, AT(train_decoder, min_lr), 0, NULL},
    {"validation", U32, AT(train_decoder, validation), 0, NULL},
    {"text", TEXT, AT(train_decoder, text), 64, NULL},
    {"text_digest", U64, AT(train_decoder, text_digest), 0, NULL}};

static const char *const store_words[] = {"nearest", "stochastic", "kahan", NULL};

static const train_field optim_fields[] = {{"store", WORD, AT(mpsim_optim, store), 0, store_words},
                                           {"nesterov", FLAG, AT(mpsim_optim, nesterov), 0, NULL},
                                           {"amsgrad", FLAG, AT(mpsim_optim, amsgrad), 0, NULL},
                                           {"maximize", FLAG, AT(mpsim_optim, maximize), 0, NULL},
                                           {"lr", F64, AT(mpsim_optim, lr), 0, NULL},
                                           {"momentum", F64, AT(mpsim_optim, momentum), 0, NULL},
                                           {"dampening", F64, AT(mpsim_optim, dampening), 0, NULL},
                                           {"weight_decay", F64, AT(mpsim_optim, weight_decay), 0, NULL},
                                           {"beta1", F64, AT(mpsim_optim, beta1), 0, NULL},
                                           {"beta2", F64, AT(mpsim_optim, beta2), 0, NULL},
                                           {"eps", F64, AT(mpsim_optim, eps), 0, NULL},
                                           {"beta2_decay", SPARE, AT(mpsim_optim, beta2_decay), 0, NULL},
                                           {"eps2", SPARE, AT(mpsim_optim, eps2), 0, NULL},
                                           {"d", SPARE, AT(mpsim_optim, d), 0, NULL}};

static const char *const amax_words[] = {"max", "most-recent", NULL};
static const char *const delayed_words[] = {"bulk", "legacy", "python", NULL};

static const train_field history_fields[] = {{"history", U32, AT(mpsim_delayed_config, history), 0, NULL},
                                             {"algorithm", WORD, AT(mpsim_delayed_config, algorithm), 0, amax_words},
                                             {"variant", WORD, AT(mpsim_delayed_config, variant), 0, delayed_words},
                                             {"margin", I16, AT(mpsim_delayed_config, margin), 0, NULL}};

#define PLACE(role) AT(train_placement, format) + (role) * sizeof(mpsim_format)
#define ROW(role) AT(train_placement, recipe) + (role) * sizeof(const mpsim_block_recipe *)

static const train_field layer_fields[] = {{"act", FORMAT, PLACE(TRAIN_ACT), 0, NULL},
                                           {"out", FORMAT, PLACE(TRAIN_OUT), 0, NULL},
                                           {"weight", FORMAT, PLACE(TRAIN_WEIGHT), 0, NULL},
                                           {"agrad", FORMAT, PLACE(TRAIN_AGRAD), 0, NULL},
                                           {"dgrad", FORMAT, PLACE(TRAIN_DGRAD), 0, NULL},
                                           {"wgrad", FORMAT, PLACE(TRAIN_WGRAD), 0, NULL},
                                           {"storage", FORMAT, AT(train_placement, storage), 0, NULL},
                                           {"kept", FORMAT, AT(train_placement, kept), 0, NULL},
                                           {"state", FORMAT, AT(train_placement, state), 0, NULL},
                                           {"act.recipe", RECIPE, ROW(TRAIN_ACT), 0, NULL},
                                           {"weight.recipe", RECIPE, ROW(TRAIN_WEIGHT), 0, NULL},
                                           {"agrad.recipe", RECIPE, ROW(TRAIN_AGRAD), 0, NULL},
                                           {"hadamard", DEPTH, AT(train_placement, hadamard), 0, NULL},
                                           {"promote", DEPTH, AT(train_placement, promote), 0, NULL},
                                           {"muon", DEPTH, AT(train_placement, muon), 0, NULL},
                                           {"states", STATES, AT(train_placement, states), 0, NULL}};

static const char *const form_words[] = {"torch", "keller", NULL};
static const char *const scale_words[] = {"original", "match_rms_adamw", "spectral", "none", NULL};

static const train_field muon_fields[] = {
    {"form", WORD, AT(mpsim_muon, form), 0, form_words},
    {"adjust_lr", WORD, AT(mpsim_muon, scale), 0, scale_words},
    {"nesterov", FLAG, AT(mpsim_muon, nesterov), 0, NULL},
    {"ns_steps", U8, AT(mpsim_muon, steps), 0, NULL},
    {"lr", F64, AT(mpsim_muon, lr), 0, NULL},
    {"momentum", F64, AT(mpsim_muon, momentum), 0, NULL},
    {"weight_decay", F64, AT(mpsim_muon, weight_decay), 0, NULL},
    {"eps", F64, AT(mpsim_muon, eps), 0, NULL},
    {"a", F64, AT(mpsim_muon, a), 0, NULL},
    {"b", F64, AT(mpsim_muon, b), 0, NULL},
    {"c", F64, AT(mpsim_muon, c), 0, NULL},
    {"ns_dtype", FORMAT, AT(mpsim_muon, format), 0, NULL},
    {"model", TEXT, AT(mpsim_muon, model.name), sizeof((mpsim_model *)0)->name, NULL}};

const char *const train_master_words[] = {"none", "master", "split", NULL};

static const char *const growth_words[] = {"counter", "interval", "multiple", NULL};
static const char *const floor_words[] = {"clamp", "raise", "stop", NULL};
static const char *const order_words[] = {"after-step", "before-step", "before-unscale", NULL};
static const char *const unscale_words[] = {"reciprocal", "divide", "rounded", NULL};
static const char *const arithmetic_words[] = {"f32-f64", "f32", "f64", NULL};
static const char *const check_words[] = {"elements", "norm", NULL};
static const char *const refill_words[] = {"never",   "clean",         "growth",         "clean+growth",
                                           "backoff", "clean+backoff", "growth+backoff", "clean+growth+backoff",
                                           NULL};

/* Keys as mpsim_scaler_parse has them, which reads them, too. */
static const train_field scaler_fields[] = {
    {"init", F64, AT(mpsim_scaler_config, init), 0, NULL},
    {"growth", F64, AT(mpsim_scaler_config, growth), 0, NULL},
    {"backoff", F64, AT(mpsim_scaler_config, backoff), 0, NULL},
    {"window", U64, AT(mpsim_scaler_config, window), 0, NULL},
    {"hysteresis", U32, AT(mpsim_scaler_config, hysteresis), 0, NULL},
    {"floor", F64, AT(mpsim_scaler_config, floor), 0, NULL},
    {"ceiling", F64, AT(mpsim_scaler_config, ceiling), 0, NULL},
    {"tolerance", F64, AT(mpsim_scaler_config, tolerance), 0, NULL},
    {"threshold", F64, AT(mpsim_scaler_config, threshold), 0, NULL},
    {"skip", FLAG, AT(mpsim_scaler_config, skip), 0, NULL},
    {"dynamic", FLAG, AT(mpsim_scaler_config, dynamic), 0, NULL},
    {"guard", FLAG, AT(mpsim_scaler_config, guard), 0, NULL},
    {"refill", WORD, AT(mpsim_scaler_config, refill), 0, refill_words},
    {"growth-rule", WORD, AT(mpsim_scaler_config, growth_rule), 0, growth_words},
    {"floor-rule", WORD, AT(mpsim_scaler_config, floor_rule), 0, floor_words},
    {"order", WORD, AT(mpsim_scaler_config, order), 0, order_words},
    {"unscale", WORD, AT(mpsim_scaler_config, unscale), 0, unscale_words},
    {"arithmetic", WORD, AT(mpsim_scaler_config, arithmetic), 0, arithmetic_words},
    {"check", WORD, AT(mpsim_scaler_config, check), 0, check_words}};

const train_fields train_settings_fields = {settings_fields, COUNT(settings_fields)};
const train_fields train_decoder_fields = {decoder_fields, COUNT(decoder_fields)};
const train_fields train_optim_fields = {optim_fields, COUNT(optim_fields)};
const train_fields train_history_fields = {history_fields, COUNT(history_fields)};
const train_fields train_layer_fields = {layer_fields, COUNT(layer_fields)};
const train_fields train_muon_fields = {muon_fields, COUNT(muon_fields)};
const train_fields train_scaler_fields = {scaler_fields, COUNT(scaler_fields)};

/* ---- writing ---- */

void train_write_value(FILE *out, const train_field *f, const void *base)
{
    const char *at = (const char *)base + f->offset;
    switch ((train_field_type)f->type) {
    case TEXT:
        fputs(at, out);
        break;
    case OPTION:
        fputs(*at ? at : "-", out);
        break;
    case U8:
    case FLAG:
        fprintf(out, "%u", (unsigned)*(const uint8_t *)at);
        break;
    case DEPTH:
    case U32:
        fprintf(out, "%lu", (unsigned long)*(const uint32_t *)(const void *)at);
        break;
    case U64:
        fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)(const void *)at);
        break;
    case I16:
        fprintf(out, "%d", (int)*(const int16_t *)(const void *)at);
        break;
    case SPARE:
    case F64:
        fprintf(out, "%a", *(const double *)(const void *)at);
        break;
    case WORD:
        fputs(f->words[*(const uint8_t *)at], out);
        break;
    case FORMAT:
        fputs(((const mpsim_format *)(const void *)at)->name, out);
        break;
    case RECIPE:
        fputs((*(const mpsim_block_recipe *const *)(const void *)at)->name, out);
        break;
    case STATES:
        fputs((*(const mpsim_states *const *)(const void *)at)->name, out);
        break;
    }
}

int train_is_missing(const train_field *f, const void *base)
{
    const char *at = (const char *)base + f->offset;
    if (f->type == DEPTH)
        return *(const uint32_t *)(const void *)at == 0;
    if (f->type == SPARE)
        return *(const double *)(const void *)at == 0;
    return (f->type == RECIPE && !*(const mpsim_block_recipe *const *)(const void *)at) ||
           (f->type == STATES && !*(const mpsim_states *const *)(const void *)at);
}

int train_may_miss(const train_field *f)
{
    return f->type == RECIPE || f->type == DEPTH || f->type == SPARE || f->type == STATES;
}

/* ---- reading: values ---- */

int train_read_integer(const char *text, uint64_t max, uint64_t *value)
{
    uint64_t v = 0;
    if (!*text || (text[0] == '0' && text[1]))
        return -1;
    for (; *text; text++) {
        const unsigned digit = (unsigned)(*text - '0');
        if (*text < '0' || digit > 9 || v > (max - digit) / 10)
            return -1;
        v = 10 * v + digit;
    }
    *value = v;
    return v > max ? -1 : 0;
}

static int read_signed(const char *text, int64_t limit, int64_t *value)
{
    uint64_t v;
    const int minus = text[0] == '-';
    if (train_read_integer(text + minus, (uint64_t)limit, &v))
        return -1;
    *value = minus ? -(int64_t)v : (int64_t)v;
    return 0;
}

static int read_number(const char *text, double *value)
{
    char *end;
    if (!*text || text[strspn(text, "0123456789abcdefxpABCDEFXPin.+-")])
        return -1;
    *value = strtod(text, &end);
    return *end || isnan(*value) ? -1 : 0;
}

int train_read_word(const char *text, const char *const *words, unsigned *value)
{
    for (unsigned i = 0; words[i]; i++)
        if (strcmp(words[i], text) == 0) {
            *value = i;
            return 0;
        }
    return -1;
}

static int read_recipe(const char *text, const mpsim_block_recipe **recipe)
{
    *recipe = mpsim_block_find(text);
    return *recipe ? 0 : -1;
}

int train_read_text(const char *text, char *to, size_t size)
{
    if (strlen(text) >= size)
        return -1;
    for (const char *c = text; *c; c++)
        if (*c <= ' ' || *c >= 127)
            return -1;
    memset(to, 0, size);
    strcpy(to, text);
    return 0;
}

int train_read_value(const train_field *f, void *base, const char *text)
{
    void *at = (char *)base + f->offset;
    const uint64_t max = f->type == FLAG                      ? 1
                         : f->type == U8                      ? UINT8_MAX
                         : f->type == U32 || f->type == DEPTH ? UINT32_MAX
                                                              : UINT64_MAX;
    uint64_t u = 0;
    int64_t s = 0;
    unsigned word = 0;
    int code = -1;
    switch ((train_field_type)f->type) {
    case TEXT:
        return train_read_text(text, at, f->size);
    case OPTION:
        return train_read_text(strcmp(text, "-") == 0 ? "" : text, at, f->size);
    case SPARE:
    case F64:
        return read_number(text, at);
    case FORMAT:
        return mpsim_format_parse(at, text) ? -1 : 0;
    case RECIPE:
        return read_recipe(text, at);
    case STATES:
        return (*(const mpsim_states **)at = mpsim_states_find(text)) ? 0 : -1;
    case WORD:
        code = train_read_word(text, f->words, &word);
        u = word;
        break;
    case I16:
        code = read_signed(text, INT16_MAX, &s);
        break;
    default:
        code = train_read_integer(text, max, &u);
    }
    if (code)
        return -1;
    if (f->type == FLAG || f->type == WORD || f->type == U8)
        *(uint8_t *)at = (uint8_t)u;
    else if (f->type == U32 || f->type == DEPTH)
        *(uint32_t *)at = (uint32_t)u;
    else if (f->type == U64)
        *(uint64_t *)at = u;
    else
        *(int16_t *)at = (int16_t)s;
    return 0;
}
