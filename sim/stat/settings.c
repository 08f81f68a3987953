/* settings.c -- see settings.h. */
#include "settings.h"

#include "../pass/tiles.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char default_formats[] = "fp16,bf16,e4m3,e5m2";

/* ---- checks ---- */

/* Blocks are worked through as a whole, and what is requantised in squares of them. */
static int check_blocks(const block_list *l, const char *verb)
{
    for (size_t i = 0; i < l->count; i++) {
        const block_unit u = pass_block_unit_of(&l->items[i], 0);
        if (u.rows > BLOCK_TILE_MOST / u.cols)
            return fail(EXIT_USAGE, "%s: %s: %s of more than %d elements", verb, l->items[i].label,
                        l->items[i].axis == BLOCK_REQUANTISED
                            ? "--axis both: the smallest square of whole blocks along both axes is"
                            : "a block is",
                        BLOCK_TILE_MOST);
    }
    return 0;
}

int stat_settings_targets(const stat_settings *s, target_list *targets, const char *verb)
{
    target_options to = s->to;
    to.recipes = 1;
    int code = target_list_make(targets, &to, verb, default_formats);
    if (!code)
        code = check_blocks(&targets->blocks, verb);
    return code ? code : input_check_kinds(verb, "scale-kinds", &s->scaled, "all");
}

void stat_settings_clear(stat_settings *s)
{
    input_options_clear(&s->from);
    option_list_clear(&s->scaled);
}

/* The rules of one map: 0, or -1 without memory. */
static int put_rules(json_t *v, const namemap *map, size_t first)
{
    char label[1024];
    json_t *rules = json_array();
    int bad = 0;
    for (size_t k = first; k < trace_namemap_count(map) && !bad; k++) {
        char rule[4 * NAMEMAP_LONGEST + 1];
        bad = json_array_append_new(rules, json_string(escape_text(rule, sizeof rule, trace_namemap_rule(map, k))));
    }
    return bad ? (json_decref(rules), -1)
               : json_object_set_new(v, escape_text(label, sizeof label, trace_namemap_label(map)), rules);
}

/* All rules with where they are from, for the configuration of a report; NULL without memory. */
static char *maps_json(const input_maps *m)
{
    json_t *v = json_object();
    int bad = !v;
    for (size_t i = 0; i < m->count + 1 && !bad; i++) {
        const namemap *map = i < m->count ? m->folders[i].map : m->given;
        if (map)
            bad = put_rules(v, map, i < m->count && m->given ? trace_namemap_count(m->given) : 0);
    }
    char *text = bad ? NULL : json_dumps(v, JSON_COMPACT);
    json_decref(v);
    return text;
}

int stat_settings_names(stat_settings *copy, const stat_settings *s, const input *in, char **text)
{
    const int are_there = in->maps.given || in->maps.count;
    *text = are_there ? maps_json(&in->maps) : NULL;
    *copy = *s;
    copy->names = *text;
    return are_there && !*text ? host_no_memory() : 0;
}

int stat_is_scaled(const stat_settings *s, const char *kind)
{
    static const char *const gradients[] = {"agrad", "dgrad", "wgrad"};
    const option_list *kinds = &s->scaled;
    int is = !kind || option_list_has(kinds, kind) || option_list_has(kinds, "all");
    for (size_t i = 0; i < sizeof gradients / sizeof gradients[0]; i++)
        is |= !kinds->count && kind && strcmp(kind, gradients[i]) == 0;
    return is;
}

/* ---- settings as words ---- */

/* One for each option that decides numbers; what stat learns is a row more. */
static const struct {
    const char *name;
    option_type type;
    size_t at;
} rows[] = {
    {"format", OPTION_STRING, offsetof(stat_settings, to.formats)},
    {"scale", OPTION_STRING, offsetof(stat_settings, to.scales)},
    {"scale-kinds", OPTION_LIST, offsetof(stat_settings, scaled)},
    {"round", OPTION_STRING, offsetof(stat_settings, to.round)},
    {"preset", OPTION_STRING, offsetof(stat_settings, to.preset)},
    {"overflow", OPTION_STRING, offsetof(stat_settings, to.overflow)},
    {"flush-subnormals", OPTION_FLAG, offsetof(stat_settings, to.flush_output)},
    {"flush-inputs", OPTION_FLAG, offsetof(stat_settings, to.flush_input)},
    {"seed", OPTION_COUNT, offsetof(stat_settings, to.seed)},
    {"match", OPTION_LIST, offsetof(stat_settings, from.wanted.match)},
    {"kind", OPTION_LIST, offsetof(stat_settings, from.wanted.kinds)},
    {"map", OPTION_LIST, offsetof(stat_settings, from.wanted.map)},
    {"names", OPTION_STRING, offsetof(stat_settings, names)},
    {"dtype", OPTION_STRING, offsetof(stat_settings, from.wanted.dtype)},
    {"shape", OPTION_STRING, offsetof(stat_settings, from.wanted.shape)},
    {"offset", OPTION_COUNT, offsetof(stat_settings, from.wanted.offset)},
    {"big-endian", OPTION_FLAG, offsetof(stat_settings, from.wanted.big_endian)},
    {"assume", OPTION_STRING, offsetof(stat_settings, from.wanted.assume)},
    {"as", OPTION_STRING, offsetof(stat_settings, from.wanted.as)},
    {"stored", OPTION_STRING, offsetof(stat_settings, from.wanted.stored)},
    {"max-header", OPTION_COUNT, offsetof(stat_settings, from.wanted.max_header)},
    {"max-ratio", OPTION_COUNT, offsetof(stat_settings, from.wanted.max_ratio)},
    {"keep-going", OPTION_FLAG, offsetof(stat_settings, from.keep_going)},
    {"counts", OPTION_FLAG, offsetof(stat_settings, counts)},
    {"histogram", OPTION_FLAG, offsetof(stat_settings, histogram)},
    {"without-roundoff", OPTION_FLAG, offsetof(stat_settings, without_roundoff)},
    {"rht", OPTION_STRING, offsetof(stat_settings, to.hadamard)},
    {"axis", OPTION_STRING, offsetof(stat_settings, to.axis)},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* Word k of a row: 1, or 0 where the row has no such word. */
static int row_word(const stat_settings *s, size_t row, size_t k, stat_word *w)
{
    const void *at = (const char *)s + rows[row].at;
    const option_list *list = at;
    uint64_t n = 0;
    w->name = rows[row].name;
    w->text = NULL;
    switch (rows[row].type) {
    case OPTION_STRING:
        w->text = *(const char *const *)at;
        return k == 0 && w->text;
    case OPTION_LIST:
        w->text = k < list->count ? list->items[k] : NULL;
        return w->text != NULL;
    case OPTION_FLAG:
        n = (uint64_t)(*(const int *)at != 0);
        break;
    case OPTION_COUNT:
        n = *(const uint64_t *)at;
        break;
    default: /* none is in the table */
        break;
    }
    snprintf(w->value, sizeof w->value, "%" PRIu64, n);
    return k == 0 && n;
}

int stat_settings_word(const stat_settings *s, size_t i, stat_word *word)
{
    for (size_t row = 0; row < ROWS; row++)
        for (size_t k = 0; row_word(s, row, k, word); k++)
            if (i-- == 0)
                return 1;
    return 0;
}

const char *stat_word_value(const stat_word *w)
{
    return w->text ? w->text : w->value;
}

int stat_settings_put(stat_settings *s, const char *name, const char *value)
{
    size_t row = 0;
    uint64_t n = 0;
    while (row < ROWS && strcmp(rows[row].name, name) != 0)
        row++;
    if (row == ROWS)
        return SETTING_UNKNOWN;
    void *at = (char *)s + rows[row].at;
    if (rows[row].type == OPTION_LIST)
        return option_list_add(at, value) ? SETTING_NO_MEMORY : 0;
    if (rows[row].type == OPTION_STRING)
        *(const char **)at = value;
    else if (parse_count(&n, value))
        return SETTING_BAD;
    else if (rows[row].type == OPTION_FLAG)
        *(int *)at = n != 0;
    else
        *(uint64_t *)at = n;
    return 0;
}
