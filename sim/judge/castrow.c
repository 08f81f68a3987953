/* castrow.c -- see castrow.h. */
#include "castrow.h"

#include "../text/option.h"
#include "../text/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const modes[] = {"nearest-even", "nearest-away", "toward-zero", "up", "down", "to-odd", NULL};
static const char *const overflows[] = {"inf", "max", NULL};
static const char *const infinities[] = {"keep", "max", NULL};
static const char *const no_infs[] = {"nan", "max", NULL};
static const char *const nans[] = {"signed",     "positive",    "payload", "ones", "ones-signed",
                                   "minus-ones", "ones-or-cut", "cut",     NULL};
static const char *const no_nans[] = {"max", "zero", "antizero", NULL};
static const char *const negatives[] = {"nan", "min", "abs", NULL};
static const char *const no_zeros[] = {"min", "nan", "nan-min", NULL};
static const char *const belows[] = {"none", "least", "normal", NULL};
static const char *const vias[] = {"none", "binary32", "fp16", "bf16", NULL};

#define AT(member) offsetof(cast_row, rounding.member)
const cast_choice judge_cast_choices[CAST_CHOICES] = {
    {"", modes, AT(mode), "mode"},
    {"via", vias, offsetof(cast_row, via), "double-rounding"},
    {"flush-inputs", NULL, AT(flush_input), "subnormal-inputs"},
    {"flush-subnormals", NULL, AT(flush_output), "subnormal-results"},
    {"flush-below", belows, offsetof(cast_row, below), "subnormal-results"},
    {"negative", negatives, AT(negative), "negative"},
    {"no-zero", no_zeros, AT(no_zero), "zero"},
    {"overflow", overflows, AT(overflow), "overflow"},
    {"infinity", infinities, AT(infinity), "infinity"},
    {"no-inf", no_infs, AT(no_inf), "infinity"},
    {"nan", nans, offsetof(cast_row, nan), "nan"},
    {"no-nan", no_nans, AT(no_nan), "nan"},
};
#undef AT

int judge_cast_is_choice(const char *cause)
{
    for (const cast_choice *c = judge_cast_choices; c < judge_cast_choices + CAST_CHOICES; c++)
        if (strcmp(c->cause, cause) == 0)
            return 1;
    return strcmp(cause, "stochastic") == 0;
}

unsigned judge_cast_values(const cast_choice *c)
{
    unsigned n = 0;
    if (!c->values)
        return 2;
    while (c->values[n])
        n++;
    return n;
}

void judge_cast_row_of(cast_row *row, const mpsim_format *format, const mpsim_preset *preset,
                       const mpsim_format *source)
{
    memset(row, 0, sizeof *row);
    row->format = *format;
    row->preset = preset;
    row->source = *source;
    mpsim_rounding_preset_from(&row->rounding, preset, format, source);
    row->via = row->rounding.via_binary32 && judge_cast_via_acts(CAST_VIA_BINARY32, source) ? CAST_VIA_BINARY32
                                                                                            : CAST_DIRECT;
    row->rounding.via_binary32 = 0;
    row->nan = row->rounding.nan;
}

/* ---- reading ---- */

static int set_value(cast_row *row, const cast_choice *c, const char *value)
{
    const unsigned n = judge_cast_values(c);
    for (unsigned i = 0; i < n; i++)
        if (strcasecmp(c->values[i], value) == 0) {
            *judge_cast_choice_at(row, c) = (uint8_t)i;
            return 0;
        }
    return -1;
}

static int set_scale(cast_row *row, const char *value)
{
    double x;
    if (parse_number(&x, value) || !(x > 0) || x * 0 != 0)
        return -1;
    row->rounding.scale = x;
    return 0;
}

/* One word behind the format: a mode, a switch, or CHOICE=VALUE. */
static int set_word(cast_row *row, const char *word)
{
    const char *equals = strchr(word, '=');
    const size_t n = equals ? (size_t)(equals - word) : 0;
    uint8_t bits;
    mpsim_round_mode mode;
    if (!equals && mpsim_round_mode_parse(&mode, &bits, word) == MPSIM_OK && mode < MPSIM_ROUND_STOCHASTIC_A) {
        row->rounding.mode = (uint8_t)mode;
        return 0;
    }
    if (equals && n == 5 && strncasecmp(word, "scale", n) == 0)
        return set_scale(row, equals + 1);
    for (const cast_choice *c = judge_cast_choices + 1; c < judge_cast_choices + CAST_CHOICES; c++) {
        if (!c->values && !equals && strcasecmp(word, c->word) == 0) {
            *judge_cast_choice_at(row, c) = 1;
            return 0;
        }
        if (c->values && equals && strlen(c->word) == n && strncasecmp(word, c->word, n) == 0)
            return set_value(row, c, equals + 1);
    }
    return -1;
}

/* The longest beginning of `text` that ends at a ':' or at the end, and is a format: some names of formats have words of their own. */
static char *take_format(mpsim_format *f, char *text)
{
    for (char *end = text + strlen(text);;) {
        const char kept = *end;
        *end = '\0';
        const int found = mpsim_format_parse(f, text) == MPSIM_OK;
        *end = kept;
        if (found)
            return end;
        do
            end--;
        while (end > text && *end != ':');
        if (end <= text)
            return NULL;
    }
}

static const mpsim_preset *take_preset(char *text)
{
    char *at = strchr(text, '@');
    if (!at)
        return mpsim_preset_at(0);
    char name[64];
    const size_t n = strcspn(at + 1, ":");
    snprintf(name, sizeof name, "%.*s", (int)n, at + 1);
    memmove(at, at + 1 + n, strlen(at + 1 + n) + 1);
    return mpsim_preset_find(name);
}

int judge_cast_row_parse(cast_row *row, const char *text, const mpsim_format *source, char *why, size_t size)
{
    char copy[MPSIM_JUDGE_ROW];
    mpsim_format f;
    if (strlen(text) >= sizeof copy)
        return snprintf(why, size, "expected a row of fewer than %zu characters", sizeof copy), -1;
    snprintf(copy, sizeof copy, "%s", text);
    const mpsim_preset *preset = take_preset(copy);
    if (!preset)
        return snprintf(why, size, "'%s': no such preset; see mpsim formats --presets", text), -1;
    char *rest = take_format(&f, copy), *next;
    if (!rest)
        return snprintf(why, size, "'%s' does not begin with a format; see mpsim formats", text), -1;
    judge_cast_row_of(row, &f, preset, source);
    for (char *word = strtok_r(rest, ":", &next); word; word = strtok_r(NULL, ":", &next))
        if (set_word(row, word))
            return snprintf(why, size,
                            "'%s': '%s' is neither a rounding mode nor a choice of a cast; see mpsim calc --help=all",
                            text, word),
                   -1;
    if (!judge_cast_via_acts(row->via, source))
        row->via = CAST_DIRECT;
    return 0;
}

/* ---- writing ---- */

void judge_cast_row_name(char out[MPSIM_JUDGE_ROW], const cast_row *row)
{
    cast_row plain;
    judge_cast_row_of(&plain, &row->format, row->preset, &row->source);
    out[0] = '\0';
    (void)text_add(out, MPSIM_JUDGE_ROW, "%s", row->format.name);
    if (row->preset != mpsim_preset_at(0))
        (void)text_add(out, MPSIM_JUDGE_ROW, "@%s", row->preset->name);
    for (const cast_choice *c = judge_cast_choices; c < judge_cast_choices + CAST_CHOICES; c++) {
        const uint8_t value = judge_cast_value(row, c);
        if (value != judge_cast_value(&plain, c))
            (void)text_add(out, MPSIM_JUDGE_ROW, ":%s%s%s", c->word, c->values && *c->word ? "=" : "",
                           c->values ? c->values[value] : "");
    }
    if (row->rounding.scale != 1)
        (void)text_add(out, MPSIM_JUDGE_ROW, ":scale=%.17g", row->rounding.scale);
}
