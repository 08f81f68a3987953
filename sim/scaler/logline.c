/* logline.c -- see logline.h. */
#include "logline.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- bytes to lines ---- */

enum { PLAIN, AFTER_ESC, CSI, STRING, STRING_ESC };

/* Whether the byte belongs to an escape sequence: ESC [ ... letter, ESC ] ... BEL, ESC x. */
static int in_escape(log_reader *r, unsigned char c)
{
    switch (r->escape) {
    case AFTER_ESC:
        r->escape = c == '[' ? CSI : c == ']' ? STRING : PLAIN;
        return 1;
    case CSI:
        if (c >= 0x40 && c <= 0x7e)
            r->escape = PLAIN;
        return 1;
    case STRING:
        r->escape = c == 7 ? PLAIN : c == 27 ? STRING_ESC : STRING;
        return 1;
    case STRING_ESC:
        r->escape = PLAIN;
        return 1;
    default:
        if (c == 27)
            r->escape = AFTER_ESC;
        return c == 27;
    }
}

static int end_line(log_reader *r, int (*visit)(const char *line, void *context), void *context)
{
    r->escape = PLAIN; /* a sequence does not go over the end of a line */
    if (r->n == 0)
        return 0;
    r->line[r->n] = 0;
    r->n = 0;
    r->lines++;
    r->cut += (uint64_t)r->is_cut;
    r->is_cut = 0;
    return visit(r->line, context);
}

int log_reader_bytes(log_reader *r, const char *bytes, size_t n,
                     int (*visit)(const char *line, void *context), void *context)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        if (c == '\n' || c == '\r') {
            const int stop = end_line(r, visit, context);
            r->ends += c == '\n';
            if (stop)
                return stop;
        } else if (c == 0 || in_escape(r, c)) {
            continue;
        } else if (r->n < LOG_WIDTH) {
            r->line[r->n++] = c < ' ' || c >= 0x7f ? ' ' : (char)c;
        } else { /* the rest of a line that is too long */
            const char *end = memchr(bytes + i, '\n', n - i);
            const size_t left = end ? (size_t)(end - bytes) - i : n - i;
            const char *carriage = memchr(bytes + i, '\r', left);
            i += (carriage ? (size_t)(carriage - bytes) - i : left) - 1;
            r->is_cut = 1;
        }
    }
    return 0;
}

int log_reader_end(log_reader *r, int (*visit)(const char *line, void *context), void *context)
{
    return end_line(r, visit, context);
}

/* ---- words and numbers in a line, which is in lower case ---- */

static const char *after(const char *line, const char *phrase)
{
    const char *p = strstr(line, phrase);
    return p ? p + strlen(phrase) : NULL;
}

/* What stands between a name and its value. */
static const char *skip_marks(const char *p)
{
    return p + strspn(p, " \t:=\"'([");
}

/* Digits in groups: one to three, the first no 0, then commas with three each. Their number is
 * returned, without the commas; 0: p is no such text; -1: nor anything else, as a comma stands
 * between its first three digits and others. */
static int grouped(const char *p)
{
    static const char digits[] = "0123456789";
    const size_t first = strspn(p, digits);
    size_t n = first;
    if (first < 1 || first > 3 || p[first] != ',' || !isdigit((unsigned char)p[first + 1]))
        return 0;
    for (p += first; *p == ',' && strspn(p + 1, digits) == 3; p += 4)
        n += 3;
    return *p == ',' && isdigit((unsigned char)p[1]) ? -1 : (int)n;
}

/* p with the commas of grouped digits gone; what follows the number is cut somewhere. */
static const char *ungrouped(char out[64], const char *p)
{
    int digits = grouped(p);
    size_t n = 0;
    if (digits <= 0 || *p == '0')
        return digits < 0 || (digits && *p == '0') ? "" : p;
    for (; *p && n < 63; p++) {
        if (*p == ',' && digits > 0)
            continue;
        digits -= digits > 0;
        out[n++] = *p;
    }
    out[n] = 0;
    return out;
}

/* A magnitude, finite: 1; else 0. */
static int number_at(const char *p, double *x)
{
    char plain[64], *end;
    p = ungrouped(plain, skip_marks(p));
    if (!(isdigit((unsigned char)*p) || (*p == '.' && isdigit((unsigned char)p[1]))))
        return 0;
    *x = strtod(p, &end);
    return isfinite(*x) && !isalpha((unsigned char)*end);
}

/* The number after a phrase. 1; 0: no such phrase; -1: no number there. */
static int number_after(const char *line, const char *phrase, double *x)
{
    const char *p = after(line, phrase);
    return !p ? 0 : number_at(p, x) ? 1 : -1;
}

static int64_t integer_at(const char *p)
{
    char plain[64];
    int64_t v = 0;
    p = ungrouped(plain, skip_marks(p));
    if (!isdigit((unsigned char)*p))
        return -1;
    for (; isdigit((unsigned char)*p); p++) {
        if (v > INT64_MAX / 10 - 1)
            return -1;
        v = 10 * v + (*p - '0');
    }
    return v;
}

/* The first place where `word` is a word of its own: letters, digits and '_' end elsewhere. */
static const char *find_word(const char *line, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = line; (p = strstr(p, word)) != NULL; p++) {
        const unsigned char before = p == line ? ' ' : (unsigned char)p[-1];
        const unsigned char behind = (unsigned char)p[n];
        if (!isalnum(before) && before != '_' && !isalpha(behind) && behind != '_')
            return p + n;
    }
    return NULL;
}

/* The integer behind the first of some words; -1. */
static int64_t integer_of(const char *line, const char *const *words)
{
    for (; *words; words++) {
        const char *p = find_word(line, *words);
        const int64_t v = p ? integer_at(p) : -1;
        if (v >= 0)
            return v;
    }
    return -1;
}

static const char *const step_words[] = {"step", "global_step", "iteration", "iter", "num_updates",
                                         NULL};

/* "rank 3", or the "3: " that srun puts before a line. */
static int64_t rank_of(const char *line)
{
    static const char *const words[] = {"rank", "rank_", NULL};
    const char *p = strstr(line, "[rank");
    const size_t digits = strspn(line, "0123456789");
    if (p && integer_at(p + 5) >= 0)
        return integer_at(p + 5);
    if (digits > 0 && digits < 6 && line[digits] == ':' && line[digits + 1] == ' ')
        return integer_at(line);
    return integer_of(line, words);
}

/* ---- dialects ---- */

/* Fixed phrases: a line with both of `phrase`, what it says, and behind what its scales stand. */
static const struct rule {
    log_dialect dialect;
    const char *phrase[2];
    unsigned what;
    const char *before, *after;
} rules[] = {
    {LOG_APEX, {"gradient overflow", "reducing loss scale to"}, LOG_OVERFLOW, NULL,
     "reducing loss scale to"},
    {LOG_DEEPSPEED, {"skipping step", "reducing hysteresis to"}, LOG_OVERFLOW | LOG_TOLERATED,
     "attempted loss scale:", "attempted loss scale:"},
    {LOG_DEEPSPEED, {"attempted loss scale:", "reducing to"}, LOG_OVERFLOW,
     "attempted loss scale:", "reducing to"},
    {LOG_DEEPSPEED, {"grad overflow on iteration", ""}, LOG_OVERFLOW | LOG_DETAIL, NULL, NULL},
    {LOG_DEEPSPEED, {"reducing dynamic loss scale from", " to "}, LOG_OVERFLOW | LOG_DETAIL,
     "loss scale from", " to "},
    {LOG_DEEPSPEED, {"increasing dynamic loss scale from", " to "}, LOG_GROWTH,
     "loss scale from", " to "},
    {LOG_DEEPSPEED, {"loss scale already at minimum", ""}, LOG_OVERFLOW | LOG_STOP, NULL, NULL},
    {LOG_FAIRSEQ, {"overflow detected", "setting loss scale to"}, LOG_OVERFLOW, NULL,
     "setting loss scale to"},
    {LOG_FAIRSEQ, {"minimum loss scale reached", ""}, LOG_OVERFLOW | LOG_STOP, NULL, NULL},
};

static void take_scale(log_line *l, double *to, const char *line, const char *phrase)
{
    double x;
    const int found = phrase ? number_after(line, phrase, &x) : 0;
    if (found > 0)
        *to = x;
    l->bad |= found < 0;
}

static int parse_rule(log_line *l, const char *line)
{
    static const char *const scalers[] = {"loss scaler", NULL};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const struct rule *r = &rules[i];
        const char *p = after(line, r->phrase[0]);
        if (!p || !strstr(line, r->phrase[1]))
            continue;
        l->dialect = r->dialect;
        l->what = r->what;
        l->rule = (int)i;
        take_scale(l, &l->before, line, r->before);
        /* " to " is common: the one behind the first phrase is meant */
        take_scale(l, &l->after, r->after && r->after[0] == ' ' ? p : line, r->after);
        l->step = integer_of(line, step_words);
        const int64_t scaler = integer_of(line, scalers);
        l->scaler = scaler < 0 ? 0 : scaler;
        return 1;
    }
    return 0;
}

static int parse_megatron(log_line *l, const char *line)
{
    static const char *const skipped[] = {"number of skipped iterations", NULL};
    const char *p = find_word(line, "iteration"), *scale = after(line, "loss scale:");
    const int64_t n = integer_of(line, skipped);
    if (!p || !scale || n < 0)
        return 0;
    l->dialect = LOG_MEGATRON;
    l->what = LOG_STATUS | LOG_SKIPS;
    l->step = integer_at(p);
    l->skipped = (uint64_t)n;
    take_scale(l, &l->after, line, "loss scale:");
    return 1;
}

/* Whether what follows "skipped" or "overflow" says yes: 1, true, y, yes, or nothing at all. */
static int says_yes(const char *p)
{
    static const char *const no[] = {"0", "n", "no", "none", "false", NULL};
    p = skip_marks(p);
    const size_t n = strcspn(p, " \t,;|)]}\"'.");
    for (size_t i = 0; no[i]; i++)
        if (strlen(no[i]) == n && strncmp(p, no[i], n) == 0)
            return 0;
    return 1;
}

static int parse_values(log_line *l, const char *line)
{
    static const char *const scales[] = {"loss_scale", "loss scale", "loss-scale", "lossscale",
                                         "grad_scale", "grad scale", "amp_scale", "scaler_scale",
                                         "scaler.get_scale()", NULL};
    static const char *const skips[] = {"skipped", "overflow", "found_inf", "skip", NULL};
    const char *value = NULL, *skip = NULL;
    double x = 0;
    for (size_t i = 0; scales[i] && !value; i++)
        value = find_word(line, scales[i]);
    l->step = integer_of(line, step_words);
    for (size_t i = 0; skips[i] && !skip; i++)
        skip = find_word(line, skips[i]);
    if (!value && (l->step >= 0 || skip || strstr(line, "growth_tracker") || strstr(line, "[amp]")))
        value = find_word(line, "scale");
    if (!value)
        return 0;
    const char *at = skip_marks(value);
    if (!number_at(at, &x)) { /* words about a scale are no value; nan, inf and -1 are bad ones */
        if (strncmp(at, "nan", 3) != 0 && strncmp(at, "inf", 3) != 0 && *at != '-' &&
            !isdigit((unsigned char)*at))
            return 0;
        l->bad = 1;
    } else {
        l->after = x;
    }
    l->dialect = LOG_VALUES;
    l->what = LOG_STATUS;
    if (skip) {
        l->what |= LOG_SKIPS;
        l->skipped = (uint64_t)says_yes(skip);
    }
    return 1;
}

/* What a line says of the loss: the first value behind a word for it. */
static int loss_of(const char *line)
{
    static const char *const words[] = {"loss", "train_loss", "training_loss", "lm_loss",
                                        "total_loss", "loss_value", NULL};
    double x;
    for (size_t i = 0; words[i]; i++)
        for (const char *p = line; (p = find_word(p, words[i])) != NULL;) {
            const char *value = skip_marks(p);
            value += *value == '-' || *value == '+';
            if (strncmp(value, "nan", 3) == 0 && !isalnum((unsigned char)value[3]))
                return LOSS_NAN;
            if (strncmp(value, "inf", 3) == 0)
                return LOSS_INF;
            if (number_at(value, &x))
                return LOSS_FINITE;
        }
    return LOSS_UNSAID;
}

int log_line_parse(log_line *l, const char *text)
{
    char line[LOG_WIDTH + 1];
    size_t n = 0;
    for (; text[n] && n < LOG_WIDTH; n++)
        line[n] = (char)tolower((unsigned char)text[n]);
    line[n] = 0;
    if (!strstr(line, "scale") && !strstr(line, "grad overflow"))
        return 0;
    *l = (log_line){.step = -1, .rank = -1, .rule = -1, .before = (double)NAN,
                    .after = (double)NAN};
    if (!parse_rule(l, line) && !parse_megatron(l, line) && !parse_values(l, line))
        return 0;
    l->rank = rank_of(line);
    l->loss = loss_of(line);
    return 1;
}

const char *log_dialect_name(log_dialect d)
{
    static const char *const names[LOG_DIALECTS] = {
        [LOG_APEX] = "Apex", [LOG_DEEPSPEED] = "DeepSpeed", [LOG_MEGATRON] = "Megatron",
        [LOG_FAIRSEQ] = "fairseq", [LOG_VALUES] = "names and values",
    };
    return (unsigned)d < LOG_DIALECTS ? names[d] : "?";
}
