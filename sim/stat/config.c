/* config.c -- see config.h. */
#include "config.h"

#include "../array/array.h"
#include "../process/host.h"
#include "../text/json.h"

#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(stat_format, member)
static const record_field format_fields[] = {
    FIELD(TEXT, "name", IN_TREE, AT(name), NULL),
    FIELD(SIZE, "bits", IN_TREE, AT(bits), NULL),
    FIELD(SIZE, "exponent_bits", IN_TREE, AT(exponent_bits), NULL),
    FIELD(SIZE, "significand_bits", IN_TREE, AT(significand_bits), "Those that are stored."),
    FIELD(INTEGER, "bias", IN_TREE, AT(bias), "Of the exponent."),
    FIELD(REAL, "max", IN_TREE, AT(max), "The largest finite number."),
    FIELD(REAL, "min_normal", IN_TREE, AT(min_normal), "The smallest normal number above 0."),
    FIELD(REAL, "min_positive", IN_TREE, AT(min_positive), "The smallest number above 0."),
    FIELD(REAL, "epsilon", IN_TREE, AT(epsilon), "From 1 to the next number."),
    FIELD(TEXT, "preset", IN_TREE | FIELD_NULL, AT(preset), "The rules of overflow, infinity and NaN."),
    {0}};
#undef AT
const record_kind stat_format_record = {"format", NULL, sizeof(stat_format), format_fields};

#define AT(member) offsetof(stat_config, member)
static const record_field list_fields[] = {FIELD(TEXTS, "match", IN_TREE, offsetof(option_list, items),
                                                 "Patterns of --match.", .of = offsetof(option_list, count)),
                                           {0}};
static const record_kind match_record = {"match", NULL, sizeof(option_list), list_fields};
static const record_field kinds_fields[] = {
    FIELD(TEXTS, "kinds", IN_TREE, offsetof(option_list, items), "Of --kind.", .of = offsetof(option_list, count)),
    {0}};
static const record_kind kinds_record = {"kinds", NULL, sizeof(option_list), kinds_fields};

static const record_field config_fields[] = {
    FIELD(TEXT, "schema", IN_LINE, AT(schema), NULL, .words = (const char *const[]){"mpsim.stat/1", NULL}),
    FIELD(TEXT, "level", IN_LINE, AT(level), NULL, .words = (const char *const[]){"config", NULL}),
    FIELD(TEXT, "mpsim", IN_LINE, AT(version), "The version of mpsim."),
    FIELD(TEXTS, "formats", IN_JSON, AT(labels), NULL, .of = AT(n_formats)),
    FIELD(LIST, "formats", IN_LINE, AT(formats), NULL, .of = AT(n_formats), .record = &stat_format_record),
    FIELD(REALS, "scales", IN_TREE, AT(scales), "The factors of --scale.", .of = AT(n_scales)),
    FIELD(SET, "scaled_kinds", IN_TREE, AT(scaled_kinds), "Kinds of tensors that are multiplied by them.",
          .words = trace_kinds),
    FIELD(TEXT, "round", IN_TREE, AT(round), NULL, .words = target_modes),
    FIELD(COUNT, "random_bits", IN_TREE, AT(random_bits), "Of a stochastic rounding."),
    FIELD(COUNT, "seed", IN_TREE, AT(seed), NULL),
    FIELD(TEXT, "overflow", IN_TREE | FIELD_NULL, AT(overflow), "What --overflow asked for; null: the presets' way."),
    FIELD(BOOLEAN, "flush_subnormals", IN_TREE, AT(flush_subnormals), "Whether results that are subnormal become 0."),
    FIELD(BOOLEAN, "flush_inputs", IN_TREE, AT(flush_inputs), "Whether operands that are subnormal count as 0."),
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE | FIELD_POINTER, AT(match), NULL, .record = &match_record),
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE | FIELD_POINTER, AT(kinds), NULL, .record = &kinds_record),
    FIELD(BOOLEAN, "counts", IN_TREE | FIELD_OPTIONAL, AT(counts), "With --counts: no errors, means and norms."),
    FIELD(TEXTS, "recipes", IN_JSON | FIELD_IF | FIELD_OPTIONAL, AT(recipe_labels), "Block recipes.",
          .of = AT(n_recipes)),
    FIELD(LIST, "recipes", IN_LINE | FIELD_IF | FIELD_OPTIONAL, AT(recipes), "Block recipes.", .of = AT(n_recipes),
          .record = &recipe_record),
    FIELD(SET, "axes", IN_TREE | FIELD_IF | FIELD_OPTIONAL, AT(axes), "Along which the recipes' blocks lie.",
          .of = AT(n_recipes), .words = block_axes),
    FIELD(LISTS, "map", IN_TREE | FIELD_OPTIONAL, AT(map), "The rules of --map, by where they are from."),
    {0}};
#undef AT
const record_kind stat_config_record = {"config", "What was asked for.", sizeof(stat_config), config_fields};

/* ---- filling ---- */

static stat_format format_of(const target *t)
{
    const mpsim_format *f = &t->format;
    return (stat_format){.name = t->label,
                         .preset = t->preset,
                         .bits = f->bits,
                         .exponent_bits = f->ebits,
                         .significand_bits = f->mbits,
                         .bias = f->bias,
                         .max = mpsim_format_max(f),
                         .min_normal = mpsim_format_min_normal(f),
                         .min_positive = mpsim_format_min_positive(f),
                         .epsilon = mpsim_format_epsilon(f)};
}

static void fill_targets(stat_config *c, const target_list *l)
{
    c->n_formats = l->formats;
    for (size_t i = 0; i < l->formats; i++) {
        c->formats[i] = format_of(target_of_format(l, i));
        c->labels[i] = c->formats[i].name;
    }
    c->n_scales = l->count < l->scales ? l->count : l->scales;
    for (size_t i = 0; i < c->n_scales; i++)
        c->scales[i] = l->items[i].rounding.scale;
}

static void fill_recipes(stat_config *c, const block_list *l)
{
    for (size_t i = 0; i < l->count; i++) {
        c->axes |= 1u << l->items[i].axis;
        if (!block_is_first(l, i))
            continue;
        c->recipe_labels[c->n_recipes] = l->items[i].label;
        c->recipes[c->n_recipes++] = target_recipe(&l->items[i]);
    }
}

static void fill_settings(stat_config *c, const stat_settings *s, const target_list *targets)
{
    mpsim_rounding none;
    mpsim_rounding_init(&none, MPSIM_ROUND_NEAREST_EVEN);
    const mpsim_rounding *r = targets->count ? &targets->items[0].rounding : &none;
    c->round = mpsim_round_mode_name((mpsim_round_mode)r->mode);
    c->random_bits = r->sr_bits;
    c->seed = s->to.seed;
    c->overflow = s->to.overflow;
    c->flush_subnormals = r->flush_output;
    c->flush_inputs = r->flush_input;
    c->match = &s->from.wanted.match;
    c->kinds = &s->from.wanted.kinds;
    c->counts = s->counts ? 1 : -1;
    for (unsigned i = 0; trace_kinds[i]; i++)
        c->scaled_kinds |= (unsigned)stat_is_scaled(s, trace_kinds[i]) << i;
}

/* The rules for names, which are JSON already; of a part that was changed by hand perhaps not. */
static int fill_map(stat_config *c, const char *text)
{
    int no_memory = 0;
    c->map = text ? json_text(text, strlen(text), 0, NULL, &no_memory) : NULL;
    return no_memory ? host_no_memory() : 0;
}

int stat_config_make(stat_config *c, const stat_settings *s, const target_list *targets, const char *version)
{
    *c = (stat_config){.schema = "mpsim.stat/1", .level = "config", .version = version};
    c->labels = array_zeros(targets->formats, sizeof *c->labels);
    c->formats = array_zeros(targets->formats, sizeof *c->formats);
    c->scales = array_zeros(targets->count, sizeof *c->scales);
    c->recipe_labels = array_zeros(targets->blocks.count, sizeof *c->recipe_labels);
    c->recipes = array_zeros(targets->blocks.count, sizeof *c->recipes);
    if (!c->labels || !c->formats || !c->scales || !c->recipe_labels || !c->recipes)
        return host_no_memory();
    fill_targets(c, targets);
    fill_recipes(c, &targets->blocks);
    fill_settings(c, s, targets);
    return fill_map(c, s->names);
}

void stat_config_clear(stat_config *c)
{
    free(c->labels);
    free(c->formats);
    free(c->scales);
    free(c->recipe_labels);
    free(c->recipes);
    json_decref(c->map);
    *c = (stat_config){.map = NULL};
}
