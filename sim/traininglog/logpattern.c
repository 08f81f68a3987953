/* logpattern.c -- see logpattern.h. */
#include "logpattern.h"

#include "../array/need.h"
#include "../text/words.h"

#include <ctype.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum part {
    PART_SCALE,
    PART_BEFORE,
    PART_AFTER,
    PART_OVERFLOW,
    PART_SKIPPED,
    PART_STEP,
    PART_EPOCH,
    PART_RANK,
    PART_LOSS,
    PART_NORM,
    PARTS
} part;

static const char *const names[PARTS] = {"scale", "before", "after", "overflow", "skipped",
                                         "step",  "epoch",  "rank",  "loss",     "norm"};

typedef struct own_pattern {
    regex_t regex;
    size_t group[PARTS]; /* which parenthesis; 0: none */
    size_t groups;
} own_pattern;

struct log_pattern {
    size_t count;
    own_pattern patterns[LOG_PATTERNS];
};

/* ---- compiling ---- */

static int name_at(const char *p, size_t length)
{
    for (int i = 0; i < PARTS; i++)
        if (strlen(names[i]) == length && strncmp(p, names[i], length) == 0)
            return i;
    return -1;
}

/* -1; *reason: of `n` bytes, a brace and a word, that the word is not a name, and which are. */
static int unknown(const char **reason, const char *found, size_t n)
{
    static char message[200];
    snprintf(message, sizeof message, "'%.*s%s' is not one of", n < 40 ? (int)n : 40, found,
             found[n] && n <= 40 ? "}" : "");
    for (int i = 0; i < PARTS; i++)
        text_add(message, sizeof message, "%s {%s}", i ? "," : "", names[i]);
    *reason = message;
    return -1;
}

/* The regular expression of a pattern, and which of its parentheses are the names'. */
static int translate(own_pattern *own, char *out, size_t size, const char *text, const char **reason)
{
    static const char value[] = "[[:space:]]*([^][:space:],;|)(}'\"]+)";
    size_t n = 0;
    while (*text) {
        size_t length = *text == '[' ? text_bracket(text, strlen(text)) : *text == '\\' && text[1] ? 2 : 1;
        const size_t end = *text == '{' ? strcspn(text, "}") : 0;
        if (n + sizeof value + length >= size) {
            *reason = "it is too long";
            return -1;
        }
        if (*text == '{') {
            const int i = text[end] ? name_at(text + 1, end - 1) : -1;
            if (i < 0)
                return unknown(reason, text, end);
            if (own->group[i]) {
                *reason = "a name stands there twice";
                return -1;
            }
            own->group[i] = ++own->groups;
            memcpy(out + n, value, sizeof value - 1);
            n += sizeof value - 1;
            text += end + 1;
            continue;
        }
        own->groups += *text == '(';
        memcpy(out + n, text, length);
        n += length;
        text += length;
    }
    out[n] = 0;
    return 0;
}

int traininglog_pattern_add(log_pattern **all, const char *text, const char **reason)
{
    static char message[160];
    char expression[4 * LOG_PATTERN_TEXT];
    own_pattern own = {.groups = 0};
    if (!*all)
        *all = need_memory(1, sizeof **all);
    if ((*all)->count == LOG_PATTERNS || strlen(text) > LOG_PATTERN_TEXT) {
        *reason = (*all)->count == LOG_PATTERNS ? "there are eight already" : "it is too long";
        return -1;
    }
    if (translate(&own, expression, sizeof expression, text, reason))
        return -1;
    *reason = "it has none of {scale}, {after} and {overflow}";
    if (!own.group[PART_SCALE] && !own.group[PART_AFTER] && !own.group[PART_OVERFLOW])
        return -1;
    const int bad = regcomp(&own.regex, expression, REG_EXTENDED);
    if (bad) {
        regerror(bad, &own.regex, message, sizeof message);
        *reason = message;
        return -1;
    }
    (*all)->patterns[(*all)->count++] = own;
    return 0;
}

void traininglog_pattern_free(log_pattern *all)
{
    for (size_t i = 0; all && i < all->count; i++)
        regfree(&all->patterns[i].regex);
    free(all);
}

/* ---- matching ---- */

enum { GROUPS = 64, VALUE = 64 };

/* The text of a part, in lower case; empty if it has none. */
static const char *value_of(char out[VALUE], const own_pattern *own, part i, const regmatch_t *at, const char *line)
{
    const size_t g = own->group[i];
    size_t n = 0;
    if (g > 0 && g < GROUPS && at[g].rm_so >= 0)
        for (const char *p = line + at[g].rm_so; p < line + at[g].rm_eo && n + 1 < VALUE; p++)
            out[n++] = (char)tolower((unsigned char)*p);
    out[n] = 0;
    return out;
}

static void take_scale(log_line *l, double *to, const char *text)
{
    if (*text && !traininglog_words_scale(text, to)) {
        *to = (double)NAN;
        l->bad = 1;
    }
}

static void take_note(log_note *n, const own_pattern *own, const regmatch_t *at, const char *line)
{
    char value[VALUE];
    double x;
    if (*value_of(value, own, PART_LOSS, at, line))
        n->loss = traininglog_words_value(value, &n->loss_value);
    if (*value_of(value, own, PART_NORM, at, line))
        n->norm = traininglog_words_value(value, &n->norm_value);
    if (*value_of(value, own, PART_EPOCH, at, line) && traininglog_words_number(value, &x))
        n->epoch = x;
    if (*value_of(value, own, PART_STEP, at, line))
        n->step = traininglog_words_integer(value);
}

static void take_line(log_line *l, const own_pattern *own, const regmatch_t *at, const char *line)
{
    char value[VALUE];
    *l = (log_line){.dialect = LOG_OWN,
                    .step = -1,
                    .rank = -1,
                    .tracker = -1,
                    .rule = -1,
                    .before = (double)NAN,
                    .after = (double)NAN};
    take_scale(l, &l->before, value_of(value, own, PART_BEFORE, at, line));
    take_scale(l, &l->after, value_of(value, own, PART_AFTER, at, line));
    l->what = own->group[PART_AFTER] || !own->group[PART_SCALE] ? LOG_OVERFLOW : LOG_STATUS;
    if (l->what == LOG_STATUS)
        take_scale(l, &l->after, value_of(value, own, PART_SCALE, at, line));
    if (*value_of(value, own, PART_STEP, at, line))
        l->step = traininglog_words_integer(value);
    if (*value_of(value, own, PART_RANK, at, line))
        l->rank = traininglog_words_integer(value);
    if (*value_of(value, own, PART_OVERFLOW, at, line)) {
        l->skipped = (uint64_t)traininglog_words_say_yes(value);
        l->what |= l->what == LOG_STATUS ? LOG_SKIPS : 0;
    }
    if (*value_of(value, own, PART_SKIPPED, at, line)) {
        const int64_t n = traininglog_words_integer(value);
        l->skipped = n > 0 ? (uint64_t)n : 0;
        l->what |= l->what == LOG_STATUS ? LOG_SKIPS : 0;
    }
}

int traininglog_pattern_match(const log_pattern *all, log_line *l, log_note *n, const char *line)
{
    for (size_t i = 0; i < all->count; i++) {
        const own_pattern *own = &all->patterns[i];
        regmatch_t at[GROUPS];
        if (regexec(&own->regex, line, GROUPS, at, 0) != 0)
            continue;
        take_line(l, own, at, line);
        take_note(n, own, at, line);
        /* an {overflow} that says no, and no scale: nothing happened */
        if (l->what & LOG_OVERFLOW && own->group[PART_OVERFLOW] && !l->skipped)
            return 0;
        if (l->what & LOG_OVERFLOW)
            l->skipped = 0;
        return 1;
    }
    return 0;
}
