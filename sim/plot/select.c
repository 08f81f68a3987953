/* select.c -- see select.h. A report is untrusted: every member is checked. */
#include "select.h"

#include "../array/need.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a report says of all ---- */

#define AT(member) offsetof(plot_format, member)
static const record_field format_fields[] = {
    FIELD(TEXT, "name", IN_JSON, AT(name), NULL),
    FIELD(REAL, "min_positive", IN_JSON | FIELD_FINITE, AT(min_positive), NULL),
    FIELD(REAL, "min_normal", IN_JSON | FIELD_FINITE, AT(min_normal), NULL),
    FIELD(REAL, "max", IN_JSON | FIELD_FINITE, AT(max), NULL),
    {0}};
static const record_kind format = {"format", NULL, sizeof(plot_format), format_fields};
static const record_field recipe_fields[] = {FIELD(TEXT, "name", IN_JSON, AT(name), NULL), {0}};
static const record_kind recipe = {"recipe", NULL, sizeof(plot_format), recipe_fields};
#undef AT

#define AT(member) offsetof(plot_settings, member)
static const record_field config_fields[] = {
    FIELD(REALS, "scales", IN_JSON, AT(scales), NULL, .of = AT(n_scales)),
    FIELD(TEXTS, "scaled_kinds", IN_JSON, AT(scaled_kinds), NULL, .of = AT(n_kinds)),
    {0}};
static const record_kind config = {"config", NULL, sizeof(plot_settings), config_fields};
static const record_field settings_fields[] = {
    FIELD(LIST, "formats", IN_JSON, AT(formats), NULL, .of = AT(n_formats), .record = &format),
    FIELD(LIST, "recipes", IN_JSON, AT(recipes), NULL, .of = AT(n_recipes), .record = &recipe),
    FIELD(RECORD, "config", IN_JSON, 0, NULL, .record = &config),
    FIELD(BOOLEAN, "scaled", IN_JSON, AT(scaled), NULL),
    {0}};
#undef AT
const record_kind plot_settings_record = {"settings", NULL, sizeof(plot_settings), settings_fields};

int plot_settings_read(plot_settings *s, const plot_report *r)
{
    return plot_read(r, &plot_settings_record, r->root, s, "");
}

void plot_settings_clear(plot_settings *s)
{
    record_forget(&plot_settings_record, s);
}

/* ---- formats ---- */

static int add_format(plot_formats *l, const plot_report *r, const plot_format *f)
{
    const double range[] = {f->min_positive, f->min_normal, f->max};
    if (!f->name)
        return plot_wrong_member(r, "name", "a string");
    for (const record_field *member = format_fields + 1; member->key; member++)
        if (isnan(range[member - format_fields - 1]))
            return plot_wrong_member(r, member->key, "a magnitude");
    if (!(f->min_positive > 0 && f->min_positive <= f->min_normal && f->min_normal <= f->max))
        return plot_malformed(r, "the range of a format is empty");
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->items[i].name, f->name) == 0)
            return 0;
    if (l->count == PLOT_FORMATS_MAX)
        return fail(EXIT_USAGE, "plot: at most %d formats fit: choose with --format", PLOT_FORMATS_MAX);
    l->items[l->count++] = *f;
    return 0;
}

static const plot_format *find_format(const plot_format *formats, size_t n, const char *name, size_t length)
{
    for (size_t i = 0; i < n; i++) {
        const char *s = formats[i].name;
        if (s && strlen(s) == length && memcmp(s, name, length) == 0)
            return &formats[i];
    }
    return NULL;
}

int plot_choose_formats(plot_formats *l, const plot_report *r, const plot_settings *s, const option_list *wanted)
{
    int code = s->formats ? 0 : plot_wrong_member(r, "formats", "an array");
    l->count = 0;
    for (size_t i = 0; !code && i < s->n_formats && !wanted->count; i++)
        code = add_format(l, r, &s->formats[i]);
    for (size_t i = 0; !code && i < wanted->count; i++)
        for (const char *at = wanted->items[i]; !code && at;) {
            const size_t n = strcspn(at, ",");
            const plot_format *found = find_format(s->formats, s->n_formats, at, n);
            code = found ? add_format(l, r, found)
                         : fail(EXIT_USAGE, "plot: --format: '%.*s' is not a format of this report", (int)n, at);
            at = at[n] ? at + n + 1 : NULL;
        }
    if (!code && l->count == 0)
        code = plot_malformed(r, "it has no formats");
    return code;
}

/* ---- scales ---- */

static int in_report(const plot_settings *s, double x)
{
    for (size_t i = 0; i < s->n_scales; i++)
        if (s->scales[i] == x)
            return 1;
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
static int add_wanted(scale_list *l, const plot_report *r, const plot_settings *s, const char *word)
{
    double first;
    size_t n;
    int code = scale_word_parse(&first, &n, word, "plot: --scale");
    for (size_t i = 0; !code && i < n; i++) {
        const double x = ldexp(first, (int)i);
        code = in_report(s, x) ? add_scale(l, r, x)
               : n > 1         ? fail(EXIT_USAGE, "plot: --scale: %.17g of %s is not a scale of this report", x, word)
                               : fail(EXIT_USAGE, "plot: --scale: %s is not a scale of this report", word);
    }
    return code;
}

int plot_choose_scales(scale_list *l, const plot_report *r, const plot_settings *s, const option_list *wanted)
{
    int code = s->scales ? 0 : plot_wrong_member(r, "scales", "an array");
    l->count = 0;
    for (size_t i = 0; i < s->n_scales; i++) {
        if (!(s->scales[i] > 0 && isfinite(s->scales[i])))
            return plot_malformed(r, "a scale is not a number above zero");
        if (!code && wanted->count == 0)
            code = add_scale(l, r, s->scales[i]);
    }
    for (size_t i = 0; !code && i < wanted->count; i++)
        for (const char *at = wanted->items[i]; !code && at;) {
            const size_t n = strcspn(at, ",");
            char *word = need_part(at, n);
            code = add_wanted(l, r, s, word);
            free(word);
            at = at[n] ? at + n + 1 : NULL;
        }
    return code;
}

/* ---- items ---- */

#define AT(member) offsetof(plot_label, member)
static const record_field name_fields[] = {FIELD(TEXT, "name", IN_JSON, AT(name), NULL), {0}},
                          kind_fields[] = {FIELD(TEXT, "kind", IN_JSON, AT(kind), NULL), {0}},
                          step_fields[] = {FIELD(STEP, "step", IN_JSON, AT(step), NULL), {0}};
#undef AT

plot_label plot_label_of(record_source item)
{
    static const record_kind kinds[] = {
        {"name", NULL, 0, name_fields}, {"kind", NULL, 0, kind_fields}, {"step", NULL, 0, step_fields}};
    const char *wanted;
    plot_label l;
    for (size_t i = 0; i < 3; i++)
        (void)record_read(&kinds[i], item, &l, "",
                          &wanted); /* which clears nothing, and leaves none where it does not fit */
    return l;
}

int plot_item_selected(const plot_label *l, const plot_selection *selection, uint64_t step)
{
    return plot_listed(&selection->kinds, l->kind, 0) && plot_listed(&selection->match, l->name, 1) &&
           (!selection->step || (l->step >= 0 && (uint64_t)l->step == step));
}

int plot_item_scaled(const plot_settings *s, const char *kind)
{
    for (size_t i = 0; kind && i < s->n_kinds; i++)
        if (strcmp(s->scaled_kinds[i], kind) == 0)
            return 1;
    return !s->scaled_kinds || !kind;
}

/* ---- one cast ---- */

char *plot_choose_target(const plot_report *r, const plot_settings *s, const option_list *wanted, int *code)
{
    const plot_format *const lists[] = {s->formats, s->recipes};
    const size_t counts[] = {s->n_formats, s->n_recipes};
    const char *word = wanted->count ? wanted->items[0] : NULL;
    for (size_t i = 0; i < 2; i++) {
        const plot_format *found = word        ? find_format(lists[i], counts[i], word, strlen(word))
                                   : counts[i] ? lists[i]
                                               : NULL;
        if (found && found->name && wanted->count < 2)
            return need_text(found->name);
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
