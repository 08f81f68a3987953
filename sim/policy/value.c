/* value.c -- see value.h. */
#include "value.h"

#include "../array/want.h"
#include "../cli/options.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int policy_bad(policy_reader *r, unsigned line, const char *message, ...)
{
    char text[512];
    va_list args;
    va_start(args, message);
    vsnprintf(text, sizeof text, message, args);
    va_end(args);
    return trace_error_set(r->error, EXIT_DATA, r->path, UINT64_MAX, "line %u: %s", line, text);
}

void policy_remark(policy_reader *r, unsigned line, const char *message, ...)
{
    char *before = *r->remarks;
    va_list args;
    va_start(args, message);
    char *text = want_format_of(message, args);
    va_end(args);
    char *both = text ? want_format("%s%sline %u: %s", before ? before : "", before ? "\n" : "", line, text) : NULL;
    free(text);
    if (!both)
        return;
    free(before);
    *r->remarks = both;
}

int policy_value_text(policy_reader *r, const char *key, const yaml_value *v, const char **text)
{
    if (v->type != YAML_TEXT || !v->text[0])
        return policy_bad(r, v->line, "%s: one word or number is needed", key);
    *text = v->text;
    return 0;
}

int policy_value_number(policy_reader *r, const char *key, const yaml_value *v, double *x)
{
    const char *text = NULL;
    if (policy_value_text(r, key, v, &text))
        return -1;
    if (parse_number(x, text))
        return policy_bad(r, v->line, "%s: '%.60s' is not a number", key, text);
    return 0;
}

int policy_value_count(policy_reader *r, const char *key, const yaml_value *v, uint64_t *n)
{
    const char *text = NULL;
    if (policy_value_text(r, key, v, &text))
        return -1;
    if (parse_count(n, text))
        return policy_bad(r, v->line, "%s: '%.60s' is not a non-negative integer", key, text);
    return 0;
}

int policy_value_bool(policy_reader *r, const char *key, const yaml_value *v, int *b)
{
    static const char *const words[][2] = {{"false", "true"}, {"no", "yes"}, {"off", "on"}};
    const char *text = NULL;
    if (policy_value_text(r, key, v, &text))
        return -1;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int j = 0; j < 2; j++)
            if (strcasecmp(text, words[i][j]) == 0) {
                *b = j;
                return 0;
            }
    return policy_bad(r, v->line, "%s: '%.60s' is neither true nor false", key, text);
}

/* Formats of tensors: those whose numbers are all binary32 numbers. */
int policy_value_format(policy_reader *r, const char *key, const yaml_value *v, mpsim_format *f)
{
    const char *text = NULL;
    if (policy_value_text(r, key, v, &text))
        return -1;
    text += strncmp(text, "torch.", 6) == 0 ? 6 : 0;
    if (mpsim_format_parse(f, text))
        return policy_bad(r, v->line, "%s: '%.60s' is not a format", key, text);
    if (f->mbits > 23 || mpsim_format_max(f) > 0x1.fffffep127 || mpsim_format_min_positive(f) < 0x1p-149 ||
        !mpsim_format_is_signed(f))
        return policy_bad(r, v->line, "%s: %.40s is not a part of binary32", key, text);
    return 0;
}

int policy_word(policy_reader *r, unsigned line, const char *key, const char *word, const policy_words *words)
{
    char list[384];
    const int i = policy_words_find(words, word);
    if (i >= 0)
        return i;
    if (words->count == 2)
        return policy_bad(r, line, "%s: '%.60s' is neither %s nor %s", key, word, policy_words_at(words, 0),
                          policy_words_at(words, 1));
    return policy_bad(r, line, "%s: '%.60s' is not one of %s", key, word, policy_words_text(words, list, sizeof list));
}

/* ---- maps ---- */

static int set_word(policy_reader *r, const char *map, const policy_row *row, const yaml_item *item, uint8_t *to)
{
    const char *word = NULL;
    char label[64];
    snprintf(label, sizeof label, "%s%s%s", map ? map : "", map ? ": " : "", item->key);
    if (policy_value_text(r, item->key, item->value, &word))
        return -1;
    const int i = policy_word(r, item->line, row->label ? row->label : label, word, row->words);
    *to = (uint8_t)i;
    return i < 0 ? -1 : 0;
}

static int set_flag(policy_reader *r, const yaml_item *item, uint8_t *to)
{
    int yes = 0;
    const int code = policy_value_bool(r, item->key, item->value, &yes);
    *to = (uint8_t)yes;
    return code;
}

/* An integer in the range of its row; one that may be below 0 may also be written as a number. */
static int set_integer(policy_reader *r, const policy_row *row, const yaml_item *item, void *to)
{
    uint64_t n = 0;
    double x = 0;
    if (row->least < 0 ? policy_value_number(r, item->key, item->value, &x)
                       : policy_value_count(r, item->key, item->value, &n))
        return -1;
    x = row->least < 0 ? x : (double)n;
    if (!(x >= row->least && x <= row->most && x == trunc(x)))
        return policy_bad(r, item->line, "%s: an integer from %.0f to %.0f is needed", item->key, row->least,
                          row->most);
    if (row->type == POLICY_INT16)
        *(int16_t *)to = (int16_t)x;
    else
        *(uint32_t *)to = (uint32_t)x;
    return 0;
}

int policy_row_read(policy_reader *r, const char *map, const policy_row *row, const yaml_item *item, void *to)
{
    void *at = (char *)to + row->at;
    switch (row->type) {
    case POLICY_OWN:
        return row->set(r, item, to);
    case POLICY_YES:
        return policy_value_bool(r, item->key, item->value, at);
    case POLICY_FLAG:
        return set_flag(r, item, at);
    case POLICY_NUMBER:
        return policy_value_number(r, item->key, item->value, at);
    case POLICY_FORMAT:
        return policy_value_format(r, item->key, item->value, at);
    case POLICY_INT16:
    case POLICY_COUNT:
        return set_integer(r, row, item, at);
    case POLICY_WORD:
        return set_word(r, map, row, item, at);
    case POLICY_LATER:
        break;
    }
    return 0;
}

static const policy_row *row_of(const policy_map *map, const char *key)
{
    for (size_t k = 0; k < map->count; k++)
        if (strcmp(map->rows[k].key, key) == 0)
            return &map->rows[k];
    return NULL;
}

int policy_map_read(policy_reader *r, const policy_map *map, const yaml_value *v, void *to)
{
    const yaml_item text = {(char *)(uintptr_t)map->name, v->line, (yaml_value *)(uintptr_t)v};
    if (v->type == YAML_TEXT && map->text)
        return policy_row_read(r, NULL, map->text, &text, to);
    if (v->type != YAML_MAP)
        return policy_bad(r, v->line, "%s: %s needed", map->name, map->needed);
    for (size_t i = 0; i < v->count; i++) {
        const yaml_item *item = &v->items[i];
        const policy_row *row = row_of(map, item->key);
        if (!row)
            return policy_bad(r, item->line, "%s: unknown key '%.60s'", map->name, item->key);
        if (policy_row_read(r, map->name, row, item, to))
            return -1;
    }
    return 0;
}
