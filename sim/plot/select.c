/* select.c -- see select.h. A report is untrusted: every member is checked. */
#include "select.h"

#include "../array/need.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- formats ---- */

static int add_format(plot_formats *l, const plot_report *r, const json_t *object)
{
    plot_format f;
    int code = plot_get_string(r, object, "name", &f.name);
    code = code ? code : plot_get_magnitude(r, object, "min_positive", &f.min_positive);
    code = code ? code : plot_get_magnitude(r, object, "min_normal", &f.min_normal);
    code = code ? code : plot_get_magnitude(r, object, "max", &f.max);
    if (code)
        return code;
    if (!(f.min_positive > 0 && f.min_positive <= f.min_normal && f.min_normal <= f.max))
        return plot_malformed(r, "the range of a format is empty");
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->items[i].name, f.name) == 0)
            return 0;
    if (l->count == PLOT_FORMATS_MAX)
        return fail(EXIT_USAGE, "plot: at most %d formats fit: choose with --format", PLOT_FORMATS_MAX);
    l->items[l->count++] = f;
    return 0;
}

static const json_t *find_format(const json_t *formats, const char *name, size_t length)
{
    size_t i;
    json_t *f;
    json_array_foreach(formats, i, f)
    {
        const char *s = json_string_value(json_object_get(f, "name"));
        if (s && strlen(s) == length && memcmp(s, name, length) == 0)
            return f;
    }
    return NULL;
}

int plot_choose_formats(plot_formats *l, const plot_report *r, const option_list *wanted)
{
    const json_t *formats;
    size_t i;
    json_t *f;
    l->count = 0;
    int code = plot_get_array(r, r->json, "formats", &formats);
    if (!code && wanted->count == 0)
        json_array_foreach(formats, i, f) if (!code) code = add_format(l, r, f);
    for (i = 0; !code && i < wanted->count; i++)
        for (const char *s = wanted->items[i]; !code && s;) {
            const size_t n = strcspn(s, ",");
            const json_t *found = find_format(formats, s, n);
            code = found ? add_format(l, r, found)
                         : fail(EXIT_USAGE, "plot: --format: '%.*s' is not a format of this report", (int)n, s);
            s = s[n] ? s + n + 1 : NULL;
        }
    if (!code && l->count == 0)
        code = plot_malformed(r, "it has no formats");
    return code;
}

/* ---- scales ---- */

static int in_report(const json_t *scales, double x)
{
    size_t i;
    json_t *v;
    json_array_foreach(scales, i, v) if (json_number_value(v) == x) return 1;
    return 0;
}

static int add_scale(scale_list *l, const plot_report *r, double x)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i] == x)
            return 0;
    if (l->count == SCALES_MAX)
        return plot_malformed(r, "too many scales");
    l->items[l->count++] = x;
    return 0;
}

/* The scales of one word of --scale, all of which the report has. */
static int add_wanted(scale_list *l, const plot_report *r, const json_t *scales, const char *word)
{
    double first;
    size_t n;
    int code = scale_word_parse(&first, &n, word, "plot: --scale");
    for (size_t i = 0; !code && i < n; i++) {
        const double x = ldexp(first, (int)i);
        code = in_report(scales, x) ? add_scale(l, r, x)
               : n > 1 ? fail(EXIT_USAGE, "plot: --scale: %.17g of %s is not a scale of this report", x, word)
                       : fail(EXIT_USAGE, "plot: --scale: %s is not a scale of this report", word);
    }
    return code;
}

int plot_choose_scales(scale_list *l, const plot_report *r, const option_list *wanted)
{
    const json_t *scales;
    size_t i;
    json_t *v;
    int code = plot_get_array(r, json_object_get(r->json, "config"), "scales", &scales);
    l->count = 0;
    json_array_foreach(scales, i, v)
    {
        if (!json_is_number(v) || !(json_number_value(v) > 0))
            return plot_malformed(r, "a scale is not a number above zero");
        if (!code && wanted->count == 0)
            code = add_scale(l, r, json_number_value(v));
    }
    for (i = 0; !code && i < wanted->count; i++)
        for (const char *s = wanted->items[i]; !code && s;) {
            const size_t n = strcspn(s, ",");
            char *word = need_part(s, n);
            code = add_wanted(l, r, scales, word);
            free(word);
            s = s[n] ? s + n + 1 : NULL;
        }
    return code;
}

/* ---- items ---- */

int plot_item_step(const json_t *item, uint64_t *step)
{
    const json_t *v = json_object_get(item, "step");
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return 0;
    *step = (uint64_t)json_integer_value(v);
    return 1;
}

int plot_item_selected(const json_t *item, const plot_selection *selection, uint64_t step)
{
    uint64_t s;
    return plot_listed(&selection->kinds, json_string_value(json_object_get(item, "kind")), 0) &&
           plot_listed(&selection->match, json_string_value(json_object_get(item, "name")), 1) &&
           (!selection->step || (plot_item_step(item, &s) && s == step));
}

int plot_item_scaled(const json_t *item, const plot_report *r)
{
    const json_t *kinds = json_object_get(json_object_get(r->json, "config"), "scaled_kinds");
    const char *kind = json_string_value(json_object_get(item, "kind"));
    size_t i;
    json_t *v;
    if (!json_is_array(kinds) || !kind)
        return 1;
    json_array_foreach(kinds, i, v) if (json_string_value(v) && strcmp(json_string_value(v), kind) == 0) return 1;
    return 0;
}

/* ---- one cast ---- */

char *plot_choose_target(const plot_report *r, const option_list *wanted, int *code)
{
    const json_t *lists[] = {json_object_get(r->json, "formats"), json_object_get(r->json, "recipes")};
    const char *word = wanted->count ? wanted->items[0] : NULL;
    for (size_t i = 0; i < 2; i++) {
        const json_t *found = word ? find_format(lists[i], word, strlen(word)) : json_array_get(lists[i], 0);
        const char *name = json_string_value(json_object_get(found, "name"));
        if (name && wanted->count < 2)
            return need_text(name);
    }
    *code = word ? fail(EXIT_USAGE, "plot: --format: '%s' is not one format or recipe of this report", word)
                 : plot_malformed(r, "it has no formats");
    return NULL;
}

/* ---- what several items share ---- */

int plot_put_steps(FILE *to, const plot_steps *s)
{
    const int several = s->has && s->first < s->last;
    if (several)
        fprintf(to, "steps %" PRIu64 " to %" PRIu64 " together", s->first, s->last);
    return several;
}

char *plot_layer_name(const char *name, const char *kind)
{
    static const char *const of_modules[] = {"act", "out", "agrad", "dgrad"};
    const char *colon = kind ? strchr(name, ':') : NULL;
    const char *layer = colon ? colon + 1 : name, *dot = strrchr(layer, '.');
    for (size_t i = 0; kind && i < sizeof of_modules / sizeof of_modules[0]; i++)
        if (strcmp(kind, of_modules[i]) == 0)
            dot = NULL;
    return dot ? need_part(layer, (size_t)(dot - layer)) : need_text(layer);
}
