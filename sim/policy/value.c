/* value.c -- see value.h. */
#include "value.h"

#include "../array/want.h"
#include "../cli/rules.h"
#include "../text/words.h"

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

const option_range *policy_row_range(const policy_row *row)
{
    const option_range *r = &row->range;
    return r->least != 0 || r->most != 0 ? r : NULL;
}

/* A number in the range of its row; an integer that may be below 0 may be written as any number. */
static int read_number(policy_reader *r, const char *map, const policy_row *row, const yaml_item *item, double *x)
{
    const option_range *range = policy_row_range(row);
    const int whole = row->type != POLICY_NUMBER; /* then it has a range */
    const char *text = NULL;
    char wanted[96];
    uint64_t n = 0;
    if (policy_value_text(r, item->key, item->value, &text))
        return -1;
    const int is_count = whole && parse_count(&n, text) == 0;
    const int bad = whole && range->least >= 0 ? !is_count : !is_count && parse_number(x, text);
    *x = is_count ? (double)n : *x;
    if (!bad && (!range || range_has(range, *x)) && (!whole || *x == trunc(*x)))
        return 0;
    number_say(wanted, sizeof wanted, whole, range);
    return policy_bad(r, item->line, "%s%s%s: '%.60s' is not %s", map ? map : "", map ? ": " : "", item->key, text,
                      wanted);
}

static int set_number(policy_reader *r, const char *map, const policy_row *row, const yaml_item *item, void *at)
{
    double x = 0;
    if (read_number(r, map, row, item, &x))
        return -1;
    switch (row->type) {
    case POLICY_INT16:
        *(int16_t *)at = (int16_t)x;
        break;
    case POLICY_BYTE:
        *(uint8_t *)at = (uint8_t)x;
        break;
    case POLICY_COUNT:
        *(uint32_t *)at = (uint32_t)x;
        break;
    case POLICY_COUNT64:
        *(uint64_t *)at = (uint64_t)x;
        break;
    default:
        *(double *)at = x;
        break;
    }
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
    case POLICY_FORMAT:
        return policy_value_format(r, item->key, item->value, at);
    case POLICY_NUMBER:
    case POLICY_INT16:
    case POLICY_BYTE:
    case POLICY_COUNT:
    case POLICY_COUNT64:
        return set_number(r, map, row, item, at);
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

/* What rules see of a value: its word, "" where it has none, NULL where it is false. */
static const char *word_of(const policy_row *row, const void *to)
{
    const void *at = (const char *)to + row->at;
    switch (row->type) {
    case POLICY_YES:
        return *(const int *)at ? "" : NULL;
    case POLICY_FLAG:
        return *(const uint8_t *)at ? "" : NULL;
    case POLICY_WORD:
        return policy_words_at(row->words, *(const uint8_t *)at);
    default:
        return row->word ? row->word(to) : "";
    }
}

/* The line of the key that a term begins with. */
static unsigned line_of(const yaml_value *map, const char *term)
{
    for (size_t i = 0; i < map->count; i++)
        if (strncmp(map->items[i].key, term, strcspn(term, "=+ ")) == 0 && !map->items[i].key[strcspn(term, "=+ ")])
            return map->items[i].line;
    return map->line;
}

static int bad_rule(policy_reader *r, const policy_map *map, const yaml_value *v, const option_row *rule,
                    const char *text, const char *held)
{
    if (!held)
        return policy_bad(r, v->line, "%s: key '%.*s' is missing", map->name, (int)strcspn(rule->argument, " "),
                          rule->argument);
    return policy_bad(r, line_of(v, held), "%s: %s%s%s", map->name, text, rule->help ? ": " : "",
                      rule->help ? rule->help : "");
}

/* The keys that stand in a map, as options that were given. */
static int check_rules(policy_reader *r, const policy_map *map, const yaml_value *v, const void *to)
{
    enum { MOST = 32 };
    option_row keys[MOST];
    const option_row *rows[MOST];
    const char *texts[MOST], *held = NULL;
    char text[256];
    options_given given = {rows, texts, NULL, 0, 0, NULL, &rule_keys};
    for (size_t i = 0; i < v->count && i < MOST; i++) {
        const policy_row *row = row_of(map, v->items[i].key);
        keys[i] = (option_row){.name = row->key, .type = OPTION_STRING};
        rows[i] = &keys[i];
        texts[i] = word_of(row, to);
        given.n++;
    }
    const option_row *rule = map->rules ? rules_broken(map->rules, &given, text, sizeof text, &held) : NULL;
    return rule ? bad_rule(r, map, v, rule, text, held) : 0;
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
    return check_rules(r, map, v, to);
}
