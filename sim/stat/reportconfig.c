/* reportconfig.c -- see reportconfig.h. */
#include "reportconfig.h"

#include "../text/json.h"

#include <string.h>

/* What a format name of the report means, so that it can be read without mpsim. */
static void put_format(jsonout *o, const target *t)
{
    const mpsim_format *f = &t->format;
    jsonout_begin(o, NULL, '{');
    jsonout_text(o, "name", t->label);
    jsonout_count(o, "bits", f->bits);
    jsonout_count(o, "exponent_bits", f->ebits);
    jsonout_count(o, "significand_bits", f->mbits);
    jsonout_integer(o, "bias", f->bias);
    jsonout_real(o, "max", mpsim_format_max(f));
    jsonout_real(o, "min_normal", mpsim_format_min_normal(f));
    jsonout_real(o, "min_positive", mpsim_format_min_positive(f));
    jsonout_real(o, "epsilon", mpsim_format_epsilon(f));
    jsonout_text(o, "preset", t->preset);
    jsonout_end(o, '}');
}

void config_formats(jsonout *o, const char *key, const target_list *l)
{
    jsonout_begin(o, key, '[');
    for (size_t i = 0; i < l->formats; i++)
        put_format(o, target_of_format(l, i));
    jsonout_end(o, ']');
}

void config_recipes(jsonout *o, const char *key, const block_list *l)
{
    jsonout_begin(o, key, '[');
    for (size_t i = 0; i < l->count; i++)
        if (block_is_first(l, i)) {
            const target_recipe_row row = target_recipe(&l->items[i]);
            record_json(o, NULL, &recipe_record, &row, IN_JSON);
        }
    jsonout_end(o, ']');
}

/* ---- settings ---- */

static void put_list(jsonout *o, const char *key, const option_list *l)
{
    jsonout_begin(o, key, '[');
    for (size_t i = 0; i < l->count; i++)
        jsonout_text(o, NULL, l->items[i]);
    jsonout_end(o, ']');
}

static void put_labels(jsonout *o, const target_list *targets)
{
    jsonout_begin(o, "formats", '[');
    for (size_t f = 0; f < targets->formats; f++)
        jsonout_text(o, NULL, target_of_format(targets, f)->label);
    jsonout_end(o, ']');
}

static void put_scales(jsonout *o, const stat_settings *s, const target_list *targets)
{
    const char *kind;
    jsonout_begin(o, "scales", '[');
    for (size_t i = 0; i < targets->count && i < targets->scales; i++)
        jsonout_real(o, NULL, targets->items[i].rounding.scale);
    jsonout_end(o, ']');
    jsonout_begin(o, "scaled_kinds", '[');
    for (int i = 0; (kind = trace_kind_at(i)); i++)
        if (stat_is_scaled(s, kind))
            jsonout_text(o, NULL, kind);
    jsonout_end(o, ']');
}

/* The recipes by name, and along which axes. */
static void put_recipes(jsonout *o, const block_list *l, int whole)
{
    if (whole) {
        config_recipes(o, "recipes", l);
    } else {
        jsonout_begin(o, "recipes", '[');
        for (size_t i = 0; i < l->count; i++)
            if (block_is_first(l, i))
                jsonout_text(o, NULL, l->items[i].label);
        jsonout_end(o, ']');
    }
    jsonout_begin(o, "axes", '[');
    for (size_t i = 0; i < l->count && strcmp(l->items[i].label, l->items[0].label) == 0; i++)
        jsonout_text(o, NULL, block_axis_name(l->items[i].axis));
    jsonout_end(o, ']');
}

/* The rules for names, which are JSON already; of a part that was changed by hand perhaps not. */
static void put_names(jsonout *o, const char *text)
{
    int no_memory = 0;
    json_t *v = json_text(text, strlen(text), 0, NULL, &no_memory);
    if (v)
        jsonout_value(o, "map", v);
    if (no_memory)
        (void)host_no_memory();
    json_decref(v);
}

void config_settings(jsonout *o, const stat_settings *s, const target_list *targets, int whole)
{
    mpsim_rounding none;
    mpsim_rounding_init(&none, MPSIM_ROUND_NEAREST_EVEN);
    const mpsim_rounding *r = targets->count ? &targets->items[0].rounding : &none;
    if (whole)
        config_formats(o, "formats", targets);
    else
        put_labels(o, targets);
    put_scales(o, s, targets);
    jsonout_text(o, "round", mpsim_round_mode_name((mpsim_round_mode)r->mode));
    jsonout_count(o, "random_bits", r->sr_bits);
    jsonout_count(o, "seed", s->to.seed);
    jsonout_text(o, "overflow", s->to.overflow);
    jsonout_boolean(o, "flush_subnormals", r->flush_output);
    jsonout_boolean(o, "flush_inputs", r->flush_input);
    put_list(o, "match", &s->from.wanted.match);
    put_list(o, "kinds", &s->from.wanted.kinds);
    if (s->counts)
        jsonout_boolean(o, "counts", 1);
    if (targets->blocks.count)
        put_recipes(o, &targets->blocks, whole);
    if (s->names)
        put_names(o, s->names);
}
