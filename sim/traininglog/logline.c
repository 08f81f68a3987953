/* logline.c -- see logline.h. */
#include "logline.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const step_words[] = {"global iter", "step",        "global_step",         "iteration", "iter",
                                         "num_updates", "global step", "trainer/global_step", NULL};

/* "rank 3", or the "3: " that srun puts before a line. */
static int64_t rank_of(const char *line)
{
    static const char *const words[] = {"rank", "rank_", NULL};
    const char *p = strstr(line, "[rank");
    const size_t n = strspn(line, "0123456789");
    if (p && traininglog_words_integer(p + 5) >= 0)
        return traininglog_words_integer(p + 5);
    if (n > 0 && n < 6 && line[n] == ':' && line[n + 1] == ' ')
        return traininglog_words_integer(line);
    return traininglog_words_integer_of(line, words);
}

/* ---- fixed phrases ---- */

/* A line with both of `phrase`, what it says, and behind what its scales stand. */
static const struct rule {
    log_dialect dialect;
    const char *phrase[2];
    unsigned what;
    const char *before, *after;
} rules[] = {
    {LOG_APEX, {"gradient overflow", "reducing loss scale to"}, LOG_OVERFLOW, NULL, "reducing loss scale to"},
    {LOG_DEEPSPEED,
     {"skipping step", "reducing hysteresis to"},
     LOG_OVERFLOW | LOG_TOLERATED,
     "attempted loss scale:",
     "attempted loss scale:"},
    {LOG_DEEPSPEED, {"attempted loss scale:", "reducing to"}, LOG_OVERFLOW, "attempted loss scale:", "reducing to"},
    {LOG_DEEPSPEED, {"skipping step", "attempted loss scale:"}, LOG_OVERFLOW, "attempted loss scale:", NULL},
    {LOG_DEEPSPEED, {"grad overflow on iteration", ""}, LOG_OVERFLOW | LOG_DETAIL, NULL, NULL},
    {LOG_DEEPSPEED, {"reducing dynamic loss scale from", " to "}, LOG_OVERFLOW | LOG_DETAIL, "loss scale from", " to "},
    {LOG_DEEPSPEED, {"increasing dynamic loss scale from", " to "}, LOG_GROWTH, "loss scale from", " to "},
    {LOG_DEEPSPEED, {"loss scale already at minimum", ""}, LOG_OVERFLOW | LOG_STOP, NULL, NULL},
    {LOG_DEEPSPEED, {"iterations in a row due to overflow", ""}, LOG_OVERFLOW | LOG_STOP, NULL, NULL}, /* GPT-NeoX */
    {LOG_DEEPSPEED,
     {"using dynamic loss scale of", ""},
     LOG_OVERFLOW | LOG_DETAIL,
     "loss scale of",
     NULL}, /* Apex of 2019, behind "Grad overflow on iteration" */
    {LOG_FAIRSEQ, {"overflow detected", "setting loss scale to"}, LOG_OVERFLOW, NULL, "setting loss scale to"},
    {LOG_FAIRSEQ, {"minimum loss scale reached", ""}, LOG_OVERFLOW | LOG_STOP, NULL, NULL},
    /* ColossalAI, MXNet, guided-diffusion, MindSpore, Paddle */
    {LOG_OTHERS, {"no overflow", "loss scale is adjusted to"}, LOG_GROWTH, NULL, "adjusted to"},
    {LOG_OTHERS, {"overflow occurs", "loss scale is adjusted to"}, LOG_OVERFLOW, NULL, "adjusted to"},
    {LOG_OTHERS, {"amp:", "decreasing loss scale to"}, LOG_OVERFLOW, NULL, "loss scale to"},
    {LOG_OTHERS, {"amp:", "increasing loss scale to"}, LOG_GROWTH, NULL, "loss scale to"},
    {LOG_OTHERS, {"found nan", "decreased lg_loss_scale to"}, LOG_OVERFLOW, NULL, "lg_loss_scale to"},
    {LOG_OTHERS, {"overflow, still update", "adjust to"}, LOG_OVERFLOW | LOG_TAKEN, NULL, "adjust to"},
    {LOG_OTHERS, {"overflow", "loss scale adjust to"}, LOG_OVERFLOW, NULL, "adjust to"},
    {LOG_OTHERS, {"found inf or nan", "decrease to"}, LOG_OVERFLOW, "current scale is", "decrease to"},
    /* scripts: an overflow without its scale */
    {LOG_OTHERS, {"overflow", "skipping update"}, LOG_OVERFLOW, NULL, NULL},
    {LOG_OTHERS, {"overflow", "skipping step"}, LOG_OVERFLOW, NULL, NULL},
    {LOG_OTHERS, {"overflow detected", "skip"}, LOG_OVERFLOW, NULL, NULL},
    {LOG_OTHERS, {"inf", "skipping optimizer step"}, LOG_OVERFLOW, NULL, NULL},
    {LOG_OTHERS, {"nan", "skipping optimizer step"}, LOG_OVERFLOW, NULL, NULL},
};

/* The scale of which p is the logarithm to base 2. */
static int scale_of_log(const char *p, double *to)
{
    double x;
    if (traininglog_words_value(p, &x) != VALUE_FINITE || x > 1000)
        return 0;
    *to = exp2(x);
    return 1;
}

static void take_scale(log_line *l, double *to, const char *line, const char *phrase)
{
    const char *p = phrase ? traininglog_words_after(line, phrase) : NULL;
    if (p && strncmp(phrase, "lg_", 3) == 0)
        l->bad |= !scale_of_log(p, to);
    else if (p && !traininglog_words_scale(p, to)) {
        *to = (double)NAN;
        l->bad = 1;
    }
}

/* A step skipped by a threshold of the norm is no overflow, whatever the phrase says besides: the norm is told, and it is finite. */
static int is_by_threshold(const char *line)
{
    static const char *const words[] = {"norm", "grad_norm", NULL};
    double x;
    return strstr(line, "skipping optimizer step") && traininglog_words_value_of(line, words, &x) == VALUE_FINITE;
}

static int parse_rule(log_line *l, const char *line)
{
    static const char *const scalers[] = {"loss scaler", NULL};
    if (is_by_threshold(line))
        return 0;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const struct rule *r = &rules[i];
        const char *p = traininglog_words_after(line, r->phrase[0]);
        if (!p || !strstr(line, r->phrase[1]))
            continue;
        l->dialect = r->dialect;
        l->what = r->what;
        l->rule = (int)i;
        take_scale(l, &l->before, line, r->before);
        /* " to " is common: the one behind the first phrase is meant */
        take_scale(l, &l->after, r->after && r->after[0] == ' ' ? p : line, r->after);
        l->step = traininglog_words_integer_of(line, step_words);
        const int64_t scaler = traininglog_words_integer_of(line, scalers);
        l->scaler = scaler < 0 ? 0 : scaler;
        return 1;
    }
    return 0;
}

/* ---- lines with a value for each name ---- */

static int parse_megatron(log_line *l, const char *line)
{
    static const char *const skipped[] = {"number of skipped iterations", NULL};
    const char *p = traininglog_words_find(line, "iteration"), *scale = traininglog_words_after(line, "loss scale:");
    const int64_t n = traininglog_words_integer_of(line, skipped);
    if (!p || !scale || n < 0)
        return 0;
    l->dialect = LOG_MEGATRON;
    l->what = LOG_STATUS | LOG_SKIPS;
    l->step = traininglog_words_integer(p);
    l->skipped = (uint64_t)n;
    take_scale(l, &l->after, line, "loss scale:");
    return 1;
}

/* Whether a line that says "scale" is about a training: a step, a skip, AMP, a loss, a bar. */
static int is_of_training(const log_line *l, const char *line, const char *skip)
{
    static const char *const words[] = {"amp", "loss", "grad_norm", "gradient", "lr", NULL};
    int64_t n, of;
    for (size_t i = 0; words[i]; i++)
        if (traininglog_words_find(line, words[i]))
            return 1;
    return l->step >= 0 || skip || strstr(line, "growth_tracker") || traininglog_words_fraction(line, &n, &of);
}

/* The value of a scale without a name of its own: not that of an image. */
static const char *plain_scale(const char *line)
{
    static const char *const others[] = {"image", "img",  "text",  "guidance", "lora", "font",
                                         "multi", "data", "logit", "lr",       "time", NULL};
    const char *value = traininglog_words_find(line, "scale");
    if (!value)
        return NULL;
    const char *end = value - strlen("scale"), *p;
    while (end > line && !isalnum((unsigned char)end[-1]))
        end--;
    for (p = end; p > line && isalnum((unsigned char)p[-1]);)
        p--;
    for (size_t i = 0; others[i]; i++)
        if ((size_t)(end - p) == strlen(others[i]) && strncmp(p, others[i], (size_t)(end - p)) == 0)
            return NULL;
    return value;
}

/* The value of a loss scale by one of its names. */
static const char *named_scale(const char *line)
{
    static const char *const scales[] = {
        "lg_loss_scale", "loss_scale",       "loss scale",    "loss-scale",  "lossscale",        "loss_scaling",
        "loss scaling",  "grad_scale",       "grad scale",    "amp_scale",   "scaler_scale",     "scaler.get_scale()",
        "get_scale()",   "current scale is", "current scale", "loss_scaler", "loss_scale_value", NULL};
    static const char *const joints[] = {"is small",     "changed to",   "updated to",  "reduced to",
                                         "increased to", "decreased to", "adjusted to", "now",
                                         "is",           "set to",       "value",       NULL};
    for (size_t i = 0; scales[i]; i++) {
        const char *value = traininglog_words_find(line, scales[i]);
        if (!value)
            continue;
        const char *p = traininglog_words_skip_marks(value);
        for (size_t k = 0; joints[k]; k++)
            if (strncmp(p, joints[k], strlen(joints[k])) == 0)
                return p + strlen(joints[k]);
        if (isdigit((unsigned char)*p) || (*p == '.' && isdigit((unsigned char)p[1])) || *p == '-' ||
            strncmp(p, "nan", 3) == 0 || strncmp(p, "inf", 3) == 0)
            return value;
    }
    return NULL;
}

/* A running mean: fairseq's, or that of a meter, which prints the mean of all behind it. */
static int is_average(const log_line *l, const char *line, const char *value)
{
    const char *behind = traininglog_words_skip_marks(value);
    behind += strspn(behind, "0123456789.");
    return l->after > 0 && !traininglog_words_is_power(l->after) &&
           (traininglog_words_find(line, "gnorm") || (behind[0] == ' ' && behind[1] == '('));
}

static int parse_values(log_line *l, const char *line)
{
    static const char *const skips[] = {"skipped", "overflow", "found_inf", "skip", NULL};
    static const char *const trackers[] = {"growth tracker", "growth_tracker", "_growth_tracker", NULL};
    const char *value = named_scale(line), *skip = NULL;
    double x = 0;
    l->step = traininglog_words_integer_of(line, step_words);
    for (size_t i = 0; skips[i] && !skip; i++)
        skip = traininglog_words_find(line, skips[i]);
    if (skip && strncmp(skip, " steps", 6) == 0) /* of all steps: a note */
        skip = NULL;
    if (!value && is_of_training(l, line, skip))
        value = plain_scale(line);
    if (!value)
        return 0;
    const char *at = traininglog_words_skip_marks(value);
    if (traininglog_words_find(line, "lg_loss_scale") == value) {
        l->bad = !scale_of_log(at, &l->after);
    } else if (!traininglog_words_scale(at, &x)) { /* words are no value; nan, inf and -1 are bad ones */
        if (strncmp(at, "nan", 3) != 0 && strncmp(at, "inf", 3) != 0 && *at != '-' && !isdigit((unsigned char)*at))
            return 0;
        l->bad = 1;
    } else {
        l->after = x;
        l->average = is_average(l, line, value);
        l->rounded = traininglog_words_unit(at) > 1;
    }
    l->dialect = LOG_VALUES;
    l->taken_only = traininglog_words_find(line, "num_updates") != NULL;
    l->what = LOG_STATUS;
    l->tracker = traininglog_words_integer_of(line, trackers);
    if (skip) {
        l->what |= LOG_SKIPS;
        l->skipped = (uint64_t)traininglog_words_say_yes(skip);
    }
    return 1;
}

static int parse_lower(log_line *l, const char *line)
{
    *l = (log_line){.step = -1, .rank = -1, .tracker = -1, .rule = -1, .before = (double)NAN, .after = (double)NAN};
    if (!parse_rule(l, line) && !parse_megatron(l, line) && !parse_values(l, line))
        return 0;
    l->rank = rank_of(line);
    return 1;
}

/* ---- what a terminal has wrapped ---- */

/* The phrases that are worth joining: those of the rules that are no common words, and names. */
static const char *phrase_at(size_t i)
{
    static const char *const names[] = {"loss scale:",
                                        "loss_scale",
                                        "loss_scale=",
                                        "loss_scale:",
                                        "attempted loss scale",
                                        "skipping step",
                                        "number of skipped iterations",
                                        "gradient overflow.",
                                        "[deepspeed] overflow!",
                                        "current scale:"};
    enum { RULES = sizeof rules / sizeof rules[0], NAMES = sizeof names / sizeof names[0] };
    const struct rule *r = &rules[i / 4 % RULES];
    const char *const four[] = {r->phrase[0], r->phrase[1], r->before, r->after};
    return i < 4 * RULES ? (four[i % 4] ? four[i % 4] : "") : i < 4 * RULES + NAMES ? names[i - 4 * RULES] : NULL;
}

enum { LEAST_PHRASE = 10 };

static int ends_with(const char *a, size_t n, const char *what, size_t length)
{
    return n >= length && memcmp(a + n - length, what, length) == 0;
}

/* Whether the number that ends the n bytes of a goes on in b, where a scale is expected: together
 * they are a power of two, and the first alone is none, or b is nothing but a number. */
static int goes_on(const char *a, size_t n, const char *b)
{
    static const char number[] = "0123456789.";
    char whole[64];
    size_t first = 0;
    double x = 0, alone = 0;
    while (first < n && first < 24 && strchr(number, a[n - 1 - first]))
        first++;
    const size_t rest = strspn(b, number);
    if (first == 0 || rest == 0 || rest > 24)
        return 0;
    snprintf(whole, sizeof whole, "%.*s", (int)first, a + n - first);
    (void)traininglog_words_number(whole, &alone);
    snprintf(whole, sizeof whole, "%.*s%.*s", (int)first, a + n - first, (int)rest, b);
    return traininglog_words_number(whole, &x) && traininglog_words_is_power(x) &&
           (!traininglog_words_is_power(alone) || b[rest] == 0);
}

enum { APART, TIGHT, SPACED };

/* How b goes on after the first n bytes of a, which end in no blank; b begins with none. */
static int junction(const char *a, size_t n, const char *b)
{
    const char *phrase, last = n > 0 ? a[n - 1] : 0; /* no blank */
    size_t number = n;
    while (number > 0 && strchr("0123456789.", a[number - 1]))
        number--;
    while (number > 0 && a[number - 1] == ' ')
        number--;
    for (size_t i = 0; (phrase = phrase_at(i)) != NULL; i++) {
        const size_t length = strlen(phrase);
        if (length < LEAST_PHRASE)
            continue;
        if (isdigit((unsigned char)*b) && ends_with(a, n, phrase, length))
            return SPACED;
        if (number < n && ends_with(a, number, phrase, length) && goes_on(a, n, b))
            return TIGHT;
        for (size_t k = 1; k < length; k++) {
            const int blank = phrase[k] == ' ';
            if (phrase[k - 1] == last && phrase[k + (size_t)blank] == *b && ends_with(a, n, phrase, k) &&
                strncmp(b, phrase + k + blank, length - k - (size_t)blank) == 0)
                return blank ? SPACED : TIGHT;
        }
    }
    return APART;
}

/* The line with its wide gaps closed where a word or a number goes on behind them; whether it has
 * any. */
static int unwrap(char *out, const char *line)
{
    enum { WIDE = 3 };
    size_t n = 0;
    int changed = 0;
    while (*line) {
        const size_t blanks = strspn(line, " ");
        if (blanks < WIDE || n == 0 || !line[blanks]) {
            out[n++] = *line++;
            continue;
        }
        const int how = junction(out, n, line + blanks);
        if (how != TIGHT)
            out[n++] = ' ';
        changed |= how != APART;
        line += blanks;
    }
    out[n] = 0;
    return changed;
}

int traininglog_line_join(char *a, const char *b)
{
    char first[LOG_WIDTH + 1], second[LOG_WIDTH + 1];
    size_t n = strlen(a);
    while (n > 0 && a[n - 1] == ' ')
        n--;
    b += strspn(b, " ");
    if (n == 0 || !*b || n + strlen(b) + 1 > LOG_WIDTH)
        return 0;
    traininglog_words_lower(first, sizeof first, a);
    traininglog_words_lower(second, sizeof second, b);
    const int how = junction(first, n, second);
    if (how == APART)
        return 0;
    if (how == SPACED)
        a[n++] = ' ';
    memcpy(a + n, b, strlen(b) + 1);
    return 1;
}

/* ---- lines ---- */

size_t traininglog_line_length(const char *text)
{
    static const char *const openings[] = {
        "gradient overflow",           "overflow!",           "overflow occurs", "grad overflow on",
        "reducing dynamic loss scale", "overflow detected, ", "found inf or nan"};
    char line[LOG_WIDTH + 1];
    traininglog_words_lower(line, sizeof line, text);
    for (size_t i = 0; i < sizeof openings / sizeof openings[0]; i++) {
        const char *p = traininglog_words_after(line, openings[i]);
        const char *next = p ? strstr(p, openings[i]) : NULL;
        if (next)
            return (size_t)(next - line);
    }
    return strlen(line);
}

int64_t traininglog_line_rank(const char *text)
{
    char line[LOG_WIDTH + 1];
    traininglog_words_lower(line, sizeof line, text);
    return rank_of(line);
}

static int is_odd(double scale)
{
    return !isnan(scale) && !traininglog_words_is_power(scale);
}

int traininglog_line_parse(log_line *l, const char *text)
{
    char line[LOG_WIDTH + 1], whole[LOG_WIDTH + 1];
    traininglog_words_lower(line, sizeof line, text);
    if (!strstr(line, "scal") && !strstr(line, "overflow") && !strstr(line, "skipping"))
        return 0;
    const int found = parse_lower(l, line);
    if (found && !l->bad && !is_odd(l->before) && !is_odd(l->after))
        return 1;
    log_line joined;
    if (unwrap(whole, line) && parse_lower(&joined, whole) && !joined.bad) {
        *l = joined;
        return 1;
    }
    return found;
}

/* ---- dialects ---- */

static const struct {
    const char *name;
    double starts[4];
} dialects[LOG_DIALECTS] = {
    [LOG_APEX] = {"Apex", {0x1p16}},
    [LOG_DEEPSPEED] = {"DeepSpeed", {0x1p16, 0x1p32}},
    [LOG_MEGATRON] = {"Megatron", {0x1p32, 0x1p16}},
    [LOG_FAIRSEQ] = {"fairseq", {0x1p7, 0x1p15}},
    [LOG_VALUES] = {"names and values", {0x1p16, 0x1p15, 0x1p32}},
    [LOG_OTHERS] = {"other phrases", {0x1p16, 0x1p15, 0x1p20}},
    [LOG_OWN] = {"own pattern", {0x1p16, 0x1p15, 0x1p32}},
};

const char *traininglog_dialect_name(log_dialect d)
{
    return (unsigned)d < LOG_DIALECTS ? dialects[d].name : "?";
}

int traininglog_dialect_grown(log_dialect d, double scale)
{
    double most = 0;
    for (size_t i = 0; i < 4; i++)
        most = fmax(most, dialects[d].starts[i]);
    return scale > most;
}

int traininglog_dialect_starts(log_dialect d, double scale)
{
    for (size_t i = 0; i < 4; i++)
        if (scale > 0 && dialects[d].starts[i] == scale)
            return 1;
    return 0;
}
