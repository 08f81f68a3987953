/* target.c -- see target.h. */
#include "target.h"

#include <stdlib.h>
#include <string.h>

/* ---- messages that help ---- */

/* Edit distance between two short words, for suggestions. */
static size_t distance(const char *a, const char *b)
{
    size_t row[64];
    const size_t n = strlen(b);
    if (n >= 64)
        return 64;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; *a; a++, i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            const size_t up = row[j], replace = diagonal + (*a != b[j - 1]);
            size_t best = up + 1 < row[j - 1] + 1 ? up + 1 : row[j - 1] + 1;
            if (replace < best)
                best = replace;
            diagonal = up;
            row[j] = best;
        }
    }
    return row[n];
}

static int unknown_format(const char *verb, const char *name)
{
    const char *best = NULL;
    size_t least = 3; /* farther away is no suggestion */
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const char *row = mpsim_format_at(i)->name;
        const size_t d = distance(name, row);
        if (d < least) {
            least = d;
            best = row;
        }
    }
    if (best)
        return fail(EXIT_USAGE, "%s: unknown format '%s': did you mean %s?", verb, name, best);
    return fail(EXIT_USAGE, "%s: unknown format '%s': see 'mpsim formats'", verb, name);
}

/* ---- lists ---- */

static void apply_options(mpsim_rounding *r, const target_options *o, mpsim_round_mode mode,
                          uint8_t sr_bits)
{
    r->mode = (uint8_t)mode;
    r->sr_bits = sr_bits;
    r->flush_input = (uint8_t)(o->flush_input != 0);
    r->flush_output = (uint8_t)(o->flush_output != 0);
    if (o->overflow)
        r->overflow = strcmp(o->overflow, "saturate") == 0 ? MPSIM_OVERFLOW_MAX
                                                           : MPSIM_OVERFLOW_INF;
}

/* One element of the format list, "NAME" or "NAME@PRESET", as a target with scale 1. */
static int parse_target(target *t, char *text, const target_options *o, const char *verb)
{
    mpsim_round_mode mode = MPSIM_ROUND_NEAREST_EVEN;
    uint8_t sr_bits = 32;
    if (o->round && mpsim_round_mode_parse(&mode, &sr_bits, o->round) != MPSIM_OK)
        return fail(EXIT_USAGE, "%s: unknown rounding mode '%s': see 'mpsim formats --modes'",
                    verb, o->round);
    if (o->overflow && strcmp(o->overflow, "inf") != 0 && strcmp(o->overflow, "saturate") != 0)
        return fail(EXIT_USAGE, "%s: --overflow is 'inf' or 'saturate', not '%s'", verb,
                    o->overflow);
    char *at = strchr(text, '@');
    const char *preset = at ? at + 1 : o->preset ? o->preset : "ieee";
    if (at)
        *at = '\0';
    const mpsim_status s = mpsim_format_parse(&t->format, text);
    const mpsim_preset *p = mpsim_preset_find(preset);
    if (s == MPSIM_ENOTFOUND)
        return unknown_format(verb, text);
    if (s == MPSIM_ERANGE)
        return fail(EXIT_USAGE, "%s: format '%s' reaches beyond binary64", verb, text);
    if (s != MPSIM_OK)
        return fail(EXIT_USAGE, "%s: format '%s' contradicts itself: see 'mpsim formats --help'",
                    verb, text);
    if (!p)
        return fail(EXIT_USAGE, "%s: unknown preset '%s': see 'mpsim formats --presets'", verb,
                    preset);
    if (at)
        *at = '@';
    mpsim_rounding_preset(&t->rounding, p, &t->format);
    apply_options(&t->rounding, o, mode, sr_bits);
    t->preset = p->name;
    t->label = text;
    return 0;
}

/* The next element of a comma-separated list, allocated; *list moves past it. */
static char *next_word(const char **list)
{
    const size_t n = strcspn(*list, ",");
    char *word = malloc(n + 1);
    if (!word)
        return NULL;
    memcpy(word, *list, n);
    word[n] = '\0';
    *list += n + ((*list)[n] == ',');
    return word;
}

static size_t count_words(const char *list)
{
    size_t n = 1;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

int target_list_make(target_list *l, const target_options *o, const char *verb,
                     const char *default_formats)
{
    const char *formats = o->formats ? o->formats : default_formats;
    const char *scales = o->scales ? o->scales : "1";
    const size_t nf = count_words(formats), ns = count_words(scales);
    memset(l, 0, sizeof *l);
    if (nf > 256 || ns > 256)
        return fail(EXIT_USAGE, "%s: more than 256 formats or scales", verb);
    l->items = calloc(nf * ns, sizeof *l->items);
    l->labels = calloc(nf, sizeof *l->labels);
    if (!l->items || !l->labels)
        return fail(EXIT_IO, "out of memory");
    for (size_t i = 0; i < nf; i++) {
        target t;
        memset(&t, 0, sizeof t);
        char *label = l->labels[l->label_count++] = next_word(&formats);
        if (!label)
            return fail(EXIT_IO, "out of memory");
        const int code = parse_target(&t, label, o, verb);
        if (code)
            return code;
        const char *rest = scales;
        for (size_t k = 0; k < ns; k++) {
            char *word = next_word(&rest);
            if (!word)
                return fail(EXIT_IO, "out of memory");
            const int bad = parse_number(&t.rounding.scale, word) != 0 || !(t.rounding.scale > 0);
            const int usage = bad ? fail(EXIT_USAGE, "%s: scale '%s' is not a positive number",
                                         verb, word)
                                  : 0;
            free(word);
            if (usage)
                return usage;
            l->items[l->count++] = t;
        }
    }
    return 0;
}

void target_list_clear(target_list *l)
{
    for (size_t i = 0; i < l->label_count; i++)
        free(l->labels[i]);
    free(l->labels);
    free(l->items);
    memset(l, 0, sizeof *l);
}

mpsim_rounding target_rounding(const target *t, const mpsim_format *source)
{
    mpsim_rounding r = t->rounding;
    r.flush_below = r.flush_input ? mpsim_format_min_normal(source) : 0;
    return r;
}

uint64_t target_stream(const char *name, int64_t step)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = 0; i < 8; i++)
        h = (h ^ ((uint64_t)step >> (8 * i) & 0xff)) * 0x100000001b3u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}
