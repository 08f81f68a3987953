/* target.c -- see target.h. */
#include "target.h"

#include "../array/array.h"
#include "../array/need.h"
#include "scalelist.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- messages that help ---- */

#define BLOCKS ": block recipes are for stat and cast; its elements are "

/* Names that people try and that are not formats here; patterns of folded names. */
static const struct {
    const char *pattern, *text;
} hints[] = {
    {"fp8", " is e4m3 or e5m2: name one"},
    {"f8", " is e4m3 or e5m2: name one"},
    {"float8", " is e4m3 or e5m2: name one"},
    {"fp6", " is e3m2 or e2m3: name one"},
    {"f6", " is e3m2 or e2m3: name one"},
    {"float6", " is e3m2 or e2m3: name one"},
    {"float4", " is e2m1"},
    {"mxfp8*", BLOCKS "e4m3 or e5m2, its scales e8m0"},
    {"mxfp6*", BLOCKS "e3m2 or e2m3, its scales e8m0"},
    {"mxfp4*", BLOCKS "e2m1, its scales e8m0"},
    {"nvfp4*", BLOCKS "e2m1, its scales e4m3"},
    {"mxint8*", ": integers are not there yet"},
    {"int[0-9]*", ": integers are not there yet"},
    {"uint[0-9]*", ": integers are not there yet"},
    {"[iu][0-9]*", ": integers are not there yet"},
};

/* Copy the n characters at text, as many as fit. */
static void copy_word(char *out, size_t size, const char *text, size_t n)
{
    snprintf(out, size, "%.*s", (int)(n < size ? n : size - 1), text);
}

/* Copy the first word of a list of words separated by `stops`; returns what follows it. */
static const char *first_word(char *out, size_t size, const char *list, const char *stops)
{
    const size_t n = strcspn(list, stops);
    copy_word(out, size, list, n);
    return list + n + strspn(list + n, stops);
}

/* recipes: block recipes are taken, too. */
static int unknown_format(const char *verb, const char *name, int recipes)
{
    char folded[64], head[64];
    suggestion s;
    fold_word(folded, sizeof folded, name);
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (!(recipes && strstr(hints[i].text, BLOCKS)) && fnmatch(hints[i].pattern, folded, 0) == 0)
            return fail(EXIT_USAGE, "%s: %s%s", verb, name, hints[i].text);
    first_word(head, sizeof head, name, ":");
    if (strchr(name, ':') && mpsim_format_find(head))
        return fail(EXIT_USAGE, "%s: unknown format '%s': options follow eXmY only, as in e5m7:fn", verb, name);
    suggestion_init(&s, name);
    if (recipes)
        block_list_suggest(&s);
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        suggestion_consider(&s, f->name);
        for (const char *rest = f->aliases; *rest;) {
            char alias[64];
            rest = first_word(alias, sizeof alias, rest, " ");
            suggestion_consider(&s, alias);
        }
    }
    return fail(EXIT_USAGE, "%s: unknown format '%s'%s", verb, name, suggestion_end(&s, ": see 'mpsim formats'"));
}

/* Options of eXmY names, one row for those that exclude each other. */
static const char *const option_groups[] = {" ieee fn fnuz finite ", " inf noinf ", " unsigned ", " bias "};
enum { LAYOUTS, INFINITIES, UNSIGNED, BIAS, GROUPS };

/* The options of one name, each as typed; "" where there is none. */
typedef struct named_options {
    char words[GROUPS][64];
} named_options;

static int group_of(const char *option)
{
    char folded[64], word[64], key[72];
    fold_word(folded, sizeof folded, option);
    first_word(word, sizeof word, folded, "=");
    snprintf(key, sizeof key, " %s ", word);
    int g = 0;
    while (g < GROUPS && !strstr(option_groups[g], key))
        g++;
    return g;
}

/* What is wrong with the options themselves: 1 and the reason, or 0. */
static int options_reason(char *why, size_t size, named_options *o, const char *list)
{
    while (*list++ == ':') {
        char word[64], alone[80];
        const size_t n = strcspn(list, ":");
        mpsim_format f;
        copy_word(word, sizeof word, list, n);
        list += n;
        const int g = group_of(word);
        snprintf(alone, sizeof alone, "e5m7:%s", word); /* the library knows what it takes */
        if (n == 0)
            return snprintf(why, size, "an empty option");
        if (g == BIAS && mpsim_format_parse(&f, alone) == MPSIM_EINVAL)
            return snprintf(why, size, "bias=N takes an integer from -1200 to 1200");
        if (g == GROUPS || mpsim_format_parse(&f, alone) == MPSIM_EINVAL)
            return snprintf(why, size, "unknown option '%s'", word);
        if (o->words[g][0])
            return snprintf(why, size, "'%s' and '%s' exclude each other", o->words[g], word);
        memcpy(o->words[g], word, sizeof word);
    }
    return 0;
}

/* Why mpsim_format_parse refuses a name with MPSIM_EINVAL or MPSIM_ERANGE. */
static void parse_reason(char *why, size_t size, const char *name, mpsim_status status)
{
    char head[64], lower[64];
    int ebits = 1, mbits = 0;
    named_options o = {0};
    const char *layout = o.words[LAYOUTS];
    first_word(head, sizeof head, name, ":");
    fold_word(lower, sizeof lower, head);
    const char *options = name + strlen(head);
    const int is_exmy = sscanf(lower, "e%dm%d", &ebits, &mbits) == 2;
    const mpsim_format *row = mpsim_format_find(head);
    if (status == MPSIM_ERANGE && is_exmy && (ebits < 1 || ebits > 11 || mbits > 52))
        snprintf(why, size, "in eXmY X is 1 to 11 and Y 0 to 52");
    else if (status == MPSIM_ERANGE)
        snprintf(why, size, "reaches beyond binary64");
    else if (options_reason(why, size, &o, options))
        return;
    else if (row && !*layout) /* the row is no IEEE layout */
        snprintf(why, size, "say %s:%s%s or %s:%s%s", head, mbits ? "ieee" : "finite", options, head,
                 row->nan == MPSIM_NAN_NONE ? "finite" : "fn", options);
    else if (mbits == 0 && (!*layout || strcasecmp(layout, "ieee") == 0))
        snprintf(why, size, "no room for NaN beside the infinity: add :fn, :fnuz or :finite");
    else if (*o.words[UNSIGNED] && strcasecmp(layout, "fnuz") == 0)
        snprintf(why, size, "fnuz needs a sign: its NaN is the code of -0");
    else
        snprintf(why, size, "no normal number");
}

static int bad_format(const char *verb, const char *name, mpsim_status status, int recipes)
{
    char why[256];
    if (status == MPSIM_ENOTFOUND)
        return unknown_format(verb, name, recipes);
    parse_reason(why, sizeof why, name, status);
    return fail(EXIT_USAGE, "%s: format '%s': %s", verb, name, why);
}

int format_read(mpsim_format *f, const char *where, const char *name)
{
    const mpsim_status status = mpsim_format_parse(f, name);
    if (status == MPSIM_OK)
        return 0;
    if (strchr(name, '@'))
        return fail(EXIT_USAGE, "%s: '%s': presets as @cuda are not allowed here", where, name);
    return *name ? bad_format(where, name, status, 0) : fail(EXIT_USAGE, "%s: an empty name", where);
}

int format_option(void *format, const char *where, const char *text)
{
    return format_read(format, where, text);
}

int formats_option(void *two, const char *where, const char *text)
{
    mpsim_format *f = two;
    const size_t n = strcspn(text, ",");
    const char *second = text[n] ? text + n + 1 : text;
    if (strchr(second, ','))
        return -1;
    char first[128];
    snprintf(first, sizeof first, "%.*s", (int)n, text);
    const int code = format_read(&f[0], where, first);
    return code ? code : format_read(&f[1], where, second);
}

int mode_option(void *mode, const char *where, const char *text)
{
    mpsim_round_mode *m = mode;
    uint8_t bits;
    (void)where;
    return mpsim_round_mode_parse(m, &bits, text) == MPSIM_OK && *m < MPSIM_ROUND_STOCHASTIC_A ? 0 : -1;
}

static int unknown_preset(const char *verb, const char *name)
{
    suggestion s;
    suggestion_init(&s, name);
    for (size_t i = 0; i < mpsim_preset_count(); i++)
        suggestion_consider(&s, mpsim_preset_at(i)->name);
    return fail(EXIT_USAGE, "%s: unknown preset '%s'%s", verb, name,
                suggestion_end(&s, ": see 'mpsim formats --presets'"));
}

static int bad_mode(const char *verb, const char *name)
{
    static const char *const more[] = {"rne", "rna", "rtz", "rup", "rdn",       "rto",
                                       "sr",  "sra", "srb", "src", "stochastic"};
    mpsim_round_mode mode;
    uint8_t bits;
    char head[64];
    suggestion s;
    first_word(head, sizeof head, name, ":");
    if (strchr(name, ':') && mpsim_round_mode_parse(&mode, &bits, head) == MPSIM_OK)
        return fail(EXIT_USAGE,
                    mode < MPSIM_ROUND_STOCHASTIC_A ? "%s: rounding mode '%s': only stochastic modes take a "
                                                      "number of random bits"
                                                    : "%s: rounding mode '%s': 1 to 32 random bits",
                    verb, name);
    suggestion_init(&s, head);
    for (int m = 0; m < MPSIM_ROUND_MODES; m++)
        suggestion_consider(&s, mpsim_round_mode_name((mpsim_round_mode)m));
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        suggestion_consider(&s, more[i]);
    return fail(EXIT_USAGE, "%s: unknown rounding mode '%s'%s", verb, name,
                suggestion_end(&s, ": see 'mpsim formats --modes'"));
}

/* ---- lists ---- */

/* A mode that was typed replaces the preset's. */
static void apply_options(mpsim_rounding *r, const target_options *o, mpsim_round_mode mode, uint8_t sr_bits)
{
    r->mode = o->round ? (uint8_t)mode : r->mode;
    r->sr_bits = sr_bits;
    r->flush_input = (uint8_t)(o->flush_input != 0);
    r->flush_output = (uint8_t)(o->flush_output != 0);
    if (o->overflow)
        r->overflow = strcmp(o->overflow, "saturate") == 0 ? MPSIM_OVERFLOW_MAX : MPSIM_OVERFLOW_INF;
}

/* One element of the format list, "NAME" or "NAME@PRESET", as a target with scale 1. */
static int parse_target(target *t, char *text, const target_options *o, const char *verb)
{
    mpsim_round_mode mode = MPSIM_ROUND_NEAREST_EVEN;
    uint8_t sr_bits = 32;
    if (o->round && mpsim_round_mode_parse(&mode, &sr_bits, o->round) != MPSIM_OK)
        return bad_mode(verb, o->round);
    if (o->overflow && strcmp(o->overflow, "inf") != 0 && strcmp(o->overflow, "saturate") != 0)
        return fail(EXIT_USAGE, "%s: --overflow is 'inf' or 'saturate', not '%s'", verb, o->overflow);
    if (!*text)
        return fail(EXIT_USAGE, "%s: an empty name in the list of formats", verb);
    char *at = strchr(text, '@');
    const char *preset = at ? at + 1 : o->preset ? o->preset : "ieee";
    if (at)
        *at = '\0';
    const mpsim_status s = mpsim_format_parse(&t->format, text);
    if (s != MPSIM_OK)
        return bad_format(verb, text, s, o->recipes);
    const mpsim_preset *p = mpsim_preset_find(preset);
    if (!p)
        return unknown_preset(verb, preset);
    if (at)
        *at = '@';
    mpsim_rounding_preset_from(&t->rounding, p, &t->format, mpsim_format_find("binary32"));
    apply_options(&t->rounding, o, mode, sr_bits);
    t->preset = p->name;
    t->label = text;
    return 0;
}

/* An earlier target of the same format and preset, or NULL. */
static const target *find_same(const target_list *l, const target *t)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->items[i].format.name, t->format.name) == 0 && l->items[i].preset == t->preset)
            return &l->items[i];
    return NULL;
}

/* The next element of a comma-separated list without the blanks around it, to be freed, or NULL without memory; *list
 * moves past it. */
static char *next_word(const char **list)
{
    static const char blanks[] = " \t";
    const char *first = *list + strspn(*list, blanks);
    const char *end = *list + strcspn(*list, ",");
    *list = end + (*end == ',');
    while (end > first && strchr(blanks, end[-1]))
        end--;
    return strndup(first, (size_t)(end - first));
}

static size_t count_words(const char *list)
{
    size_t n = 1;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

/* What concerns scalar formats alone, where there is none. */
static int check_unused(const target_list *l, const target_options *o, const char *verb)
{
    const struct {
        const char *name;
        int given;
    } rows[] = {{"scale", o->scales != NULL},          {"round", o->round != NULL},
                {"preset", o->preset != NULL},         {"overflow", o->overflow != NULL},
                {"flush-subnormals", o->flush_output}, {"flush-inputs", o->flush_input}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && l->count == 0; i++)
        if (rows[i].given)
            return fail(EXIT_USAGE, "%s: --%s needs a number format in -f: recipes have their own scales and roundings",
                        verb, rows[i].name);
    if (l->blocks.count == 0 && (o->hadamard || o->axis))
        return fail(EXIT_USAGE, "%s: --%s needs a block recipe, as in -f mxfp8", verb, o->hadamard ? "rht" : "axis");
    return 0;
}

/* A format, with each of the scales. */
static int add_format(target_list *l, char *label, const target_options *o, const scale_list *scales, const char *verb)
{
    target t;
    memset(&t, 0, sizeof t);
    const int code = parse_target(&t, label, o, verb);
    if (code)
        return code;
    const target *same = find_same(l, &t);
    if (same)
        return fail(EXIT_USAGE, "%s: format '%s' repeats '%s'", verb, label, same->label);
    for (size_t k = 0; k < scales->count; k++) {
        target *next = &l->items[l->count++];
        *next = t;
        next->rounding.scale = scales->items[k];
    }
    l->formats++;
    return 0;
}

int target_list_make(target_list *l, const target_options *o, const char *verb, const char *default_formats)
{
    const char *formats = o->formats ? o->formats : default_formats;
    const size_t nf = count_words(formats);
    scale_list scales;
    memset(l, 0, sizeof *l);
    if (nf > 256)
        return fail(EXIT_USAGE, "%s: more than 256 formats", verb);
    int code = scale_list_parse(&scales, o->scales ? o->scales : "1", verb);
    if (code)
        return code;
    l->scales = scales.count;
    l->items = array_zeros(nf * scales.count, sizeof *l->items);
    l->labels = array_zeros(nf, sizeof *l->labels);
    if (!l->items || !l->labels)
        return host_no_memory();
    for (size_t i = 0; i < nf && !code; i++) {
        int is_recipe = 0;
        char *label = l->labels[l->label_count++] = next_word(&formats);
        if (!label)
            return host_no_memory();
        if (o->recipes)
            code = block_list_add(&l->blocks, label, o->hadamard, o->axis, verb, &is_recipe);
        if (!code && !is_recipe)
            code = add_format(l, label, o, &scales, verb);
    }
    return !code && o->recipes ? check_unused(l, o, verb) : code;
}

const target *target_of_format(const target_list *l, size_t f)
{
    return &l->items[f * l->scales];
}

void target_list_clear(target_list *l)
{
    for (size_t i = 0; i < l->label_count; i++)
        free(l->labels[i]);
    free(l->labels);
    free(l->items);
    block_list_clear(&l->blocks);
    memset(l, 0, sizeof *l);
}

int target_list_one_format(mpsim_format *f, const target_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        if (!mpsim_format_same(&l->items[0].format, &l->items[i].format))
            return 0;
    if (!l->count || l->blocks.count)
        return 0;
    *f = l->items[0].format;
    return 1;
}

mpsim_rounding target_rounding(const target *t, const mpsim_format *source)
{
    mpsim_rounding r = t->rounding, of_source;
    mpsim_rounding_preset_from(&of_source, mpsim_preset_find(t->preset), &t->format, source);
    r.nan = of_source.nan;
    r.flush_below = r.flush_input ? mpsim_format_min_normal(source) : 0;
    return r;
}

/* ---- what a recipe stores ---- */

const char *target_scale_format(const mpsim_block_recipe *b)
{
    switch (b->rule) {
    case MPSIM_SCALE_AMAX_TE:
    case MPSIM_SCALE_AMAX_TORCHAO:
    case MPSIM_SCALE_AMAX_DEEPSEEK:
    case MPSIM_SCALE_MSAMP:
    case MPSIM_SCALE_GIVEN:
        return "binary32";
    case MPSIM_SCALE_NVFP4_TE:
    case MPSIM_SCALE_NVFP4_TORCHAO:
    case MPSIM_SCALE_NVFP4_1LEVEL:
        return "e4m3";
    default:
        return "e8m0";
    }
}

int target_has_tensor_scale(const mpsim_block_recipe *b)
{
    return b->rule == MPSIM_SCALE_NVFP4_TE || b->rule == MPSIM_SCALE_NVFP4_TORCHAO;
}

/* Words of --help. */
const char *const target_modes[] = {"nearest-even", "nearest-away", "toward-zero",  "up",           "down",
                                    "to-odd",       "stochastic-a", "stochastic-b", "stochastic-c", NULL};

enum { RULES = MPSIM_SCALE_E8M0_DEEPGEMM + 1 };
static const char *const rule_words[] = {[MPSIM_SCALE_E8M0_FLOOR] = "floor",
                                         [MPSIM_SCALE_E8M0_EVEN] = "even",
                                         [MPSIM_SCALE_E8M0_CEIL] = "ceil",
                                         [MPSIM_SCALE_E8M0_RCEIL] = "rceil",
                                         [MPSIM_SCALE_E8M0_TE] = "te",
                                         [MPSIM_SCALE_E8M0_MICROX] = "microx",
                                         [MPSIM_SCALE_AMAX_TE] = "amax",
                                         [MPSIM_SCALE_AMAX_TORCHAO] = "amax-torchao",
                                         [MPSIM_SCALE_MSAMP] = "ms-amp",
                                         [MPSIM_SCALE_NVFP4_TE] = "nvfp4",
                                         [MPSIM_SCALE_NVFP4_TORCHAO] = "nvfp4-torchao",
                                         [MPSIM_SCALE_GIVEN] = "given",
                                         [MPSIM_SCALE_AMAX_DEEPSEEK] = "f32",
                                         [MPSIM_SCALE_E8M0_DEEPGEMM] = "ue8m0",
                                         [MPSIM_SCALE_NVFP4_1LEVEL] = "nvfp4-1level",
                                         [MPSIM_SCALE_TORCHAO_018_FLOOR] = "floor-torchao-0.18",
                                         [MPSIM_SCALE_TORCHAO_018_EVEN] = "even-torchao-0.18",
                                         [MPSIM_SCALE_TORCHAO_018_CEIL] = "ceil-torchao-0.18",
                                         [MPSIM_SCALE_TORCHAO_018_RCEIL] = "rceil-torchao-0.18",
                                         [RULES] = "other",
                                         NULL};

const char *target_scale_rule(const mpsim_block_recipe *b)
{
    return rule_words[b->rule < RULES && rule_words[b->rule] ? b->rule : RULES];
}

#define AT(member) offsetof(target_recipe_row, member)
static const record_field recipe_fields[] = {
    FIELD(TEXT, "name", IN_ALL, AT(name), NULL, .title = "<recipe"),
    FIELD(TEXT, "element", IN_ALL, AT(element), "The format of the elements.", .title = "<element"),
    FIELD(CHARS, NULL, 0, AT(block), NULL, .title = "<block"),
    FIELD(CHARS, NULL, 0, AT(scales), NULL, .title = "<scales"),
    FIELD(TEXT, "rule", IN_ALL, AT(rule), "How a scale is found.", .title = "<rule", .words = rule_words),
    FIELD(SIZE, "block_rows", IN_ALL, AT(rows), "Rows of a block; 0: all of the tensor."),
    FIELD(SIZE, "block_cols", IN_ALL, AT(cols), "Columns of a block; 0: all of the tensor."),
    FIELD(TEXT, "scale_format", IN_ALL, AT(scale_format), NULL),
    FIELD(BOOLEAN, "tensor_scale", IN_ALL, AT(tensor_scale), "Whether the tensor has a scale, too."),
    FIELD(SIZE, "transform", IN_ALL, AT(transform), "Size of the Hadamard transform before the cast; 0: none."),
    FIELD(TEXT, "source", IN_ALL, AT(source), "Where the rule is from; empty: not said.", .title = "<source",
          .spare = 3),
    {0}};
#undef AT
const record_kind recipe_record = {"recipe", "A block recipe.", sizeof(target_recipe_row), recipe_fields};

static void describe(target_recipe_row *row, const mpsim_block_recipe *b)
{
    if (b->block_cols)
        snprintf(row->block, sizeof row->block, "%u x %u", (unsigned)b->block_rows, (unsigned)b->block_cols);
    else
        snprintf(row->block, sizeof row->block, "%s", b->block_rows ? "row" : "tensor");
    snprintf(row->scales, sizeof row->scales, "%s%s", row->scale_format, row->tensor_scale ? ", tensor binary32" : "");
}

target_recipe_row target_recipe(const block_target *t)
{
    const mpsim_block_recipe *b = &t->recipe;
    target_recipe_row row = {.name = t->label,
                             .element = b->element,
                             .rule = target_scale_rule(b),
                             .scale_format = target_scale_format(b),
                             .source = b->source ? b->source : "",
                             .rows = b->block_rows,
                             .cols = b->block_cols,
                             .transform = t->transform,
                             .tensor_scale = target_has_tensor_scale(b)};
    describe(&row, b);
    return row;
}

/* The library knows: it refuses even an empty array otherwise. */
int format_is_narrow(const mpsim_format *f)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return mpsim_round_array_f32(f, &r, NULL, NULL, NULL, 0, NULL) == MPSIM_OK;
}
