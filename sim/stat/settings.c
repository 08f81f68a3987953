/* settings.c -- see settings.h. */
#include "settings.h"

#include "../pass/tiles.h"

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
#define AT(member) offsetof(stat_settings, member)
#define TEXT_OF(option, member) FIELD(TEXT, option, IN_TREE, AT(member), NULL)
#define TEXTS_OF(option, member) FIELD(TEXTS, option, IN_TREE, AT(member.items), NULL, .of = AT(member.count))
#define FLAG_OF(option, member) FIELD(BOOLEAN, option, IN_TREE, AT(member), NULL)
#define COUNT_OF(option, member) FIELD(COUNT, option, IN_TREE, AT(member), NULL)
static const record_field fields[] = {
    TEXT_OF("format", to.formats),
    TEXT_OF("scale", to.scales),
    TEXTS_OF("scale-kinds", scaled),
    TEXT_OF("round", to.round),
    TEXT_OF("preset", to.preset),
    TEXT_OF("overflow", to.overflow),
    FLAG_OF("flush-subnormals", to.flush_output),
    FLAG_OF("flush-inputs", to.flush_input),
    COUNT_OF("seed", to.seed),
    TEXTS_OF("match", from.wanted.match),
    TEXTS_OF("kind", from.wanted.kinds),
    TEXTS_OF("map", from.wanted.map),
    TEXT_OF("names", names),
    TEXT_OF("dtype", from.wanted.dtype),
    TEXT_OF("shape", from.wanted.shape),
    COUNT_OF("offset", from.wanted.offset),
    FLAG_OF("big-endian", from.wanted.big_endian),
    TEXT_OF("assume", from.wanted.assume),
    TEXT_OF("as", from.wanted.as),
    TEXT_OF("stored", from.wanted.stored),
    COUNT_OF("max-header", from.wanted.max_header),
    COUNT_OF("max-ratio", from.wanted.max_ratio),
    FLAG_OF("keep-going", from.keep_going),
    FLAG_OF("counts", counts),
    FLAG_OF("histogram", histogram),
    FLAG_OF("without-roundoff", without_roundoff),
    TEXT_OF("rht", to.hadamard),
    TEXT_OF("axis", to.axis),
    {0},
};

const record_kind stat_settings_record = {"settings", NULL, sizeof(stat_settings), fields};
