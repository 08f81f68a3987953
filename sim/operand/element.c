/* element.c -- see element.h. */
#include "element.h"

#include "../cli/options.h"

#include "../array/need.h"
#include "../text/option.h"
#include "../text/words.h"

#include <mpsim/arith.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_number(const char *verb, const char *option, const char *text, int status)
{
    if (strlen(text) > EXACT_LONGEST)
        return fail(EXIT_USAGE, "%s: %s: a number of more than %d characters", verb, option, EXACT_LONGEST);
    return fail(EXIT_USAGE, "%s: %s: '%s' is %s", verb, option, text,
                status == NUMBER_RANGE ? "outside the range of binary64"
                                       : "neither a number, inf or nan, nor a code as 0x3c00");
}

/* The code of a text that exact_is_code takes for one. */
static int read_code(uint64_t *code, const char *verb, const char *option, const element_kind *kind, const char *text)
{
    const char *digits = text + 2 + strspn(text + 2, "0");
    const mpsim_format *f = kind->codes;
    if (*text == '-' || *text == '+')
        return fail(EXIT_USAGE, "%s: %s: '%s': a code has no sign, and a number is written %sp0", verb, option, text,
                    text);
    if (!f)
        return fail(EXIT_USAGE, "%s: %s: '%s' is a code%s%s; the number is written %sp0", verb, option, text,
                    kind->ask ? ", and its format is not known: name it by " : "", kind->ask ? kind->ask : "", text);
    *code = strlen(digits) <= 16 ? strtoull(text, NULL, 16) : 0;
    if (strlen(digits) > 16 || (f->bits < 64 && *code >> f->bits != 0))
        return fail(EXIT_USAGE, "%s: %s: '%s' is not a code of %s, which has %d bits", verb, option, text, f->name,
                    f->bits);
    return 0;
}

int element_read(exact_number *x, const char *verb, const char *option, const element_kind *kind, const char *text)
{
    uint64_t u;
    if (exact_is_code(text)) {
        const int code = read_code(&u, verb, option, kind, text);
        if (!code)
            exact_of_code(x, kind->codes, u);
        return code;
    }
    const int status = exact_parse(x, text);
    return status ? no_number(verb, option, text, status) : 0;
}

int element_parse(element *e, const char *verb, const char *option, const element_kind *kind, const char *text)
{
    exact_number x;
    unsigned flags = 0;
    mpsim_rounding r;
    const int code = element_read(&x, verb, option, kind, text);
    if (code)
        return code;
    *e = (element){.typed = text, .value = x.nearest, .given = x.nearest, .is_code = exact_is_code(text)};
    e->nan_of = x.nan_of;
    e->code = x.nan_of ? x.nan : 0;
    if (!kind->format)
        return 0;
    mpsim_rounding_init(&r, kind->mode);
    e->code = exact_encode(kind->format, &r, &x, 0, &flags, NULL);
    if (e->is_code && mpsim_format_same(kind->format, kind->codes))
        (void)read_code(&e->code, verb, option, kind, text); /* also that of a NaN */
    e->value = mpsim_decode(kind->format, e->code);
    e->nan_of = isnan(e->value) ? kind->format : NULL;
    e->rounded = (flags & MPSIM_FLAG_INEXACT) != 0 || (isinf(e->given) && !isinf(e->value)) ||
                 (isnan(e->given) && !isnan(e->value));
    return 0;
}

void element_exact(exact_number *x, const element *e)
{
    if (e->nan_of)
        exact_of_code(x, e->nan_of, e->code);
    else if (e->is_code || e->rounded || exact_parse(x, e->typed))
        exact_of(x, e->value);
}

int element_list(element **list, size_t *n, const char *verb, const char *option, const element_kind *kind,
                 const char *text)
{
    size_t room = 1;
    for (const char *s = text; *s; s++)
        room += *s == ',';
    *n = 0;
    *list = NULL;
    if (room > ELEMENTS_MOST)
        return fail(EXIT_USAGE, "%s: %s: at most %d numbers", verb, option, ELEMENTS_MOST);
    element *items = need_memory(room * sizeof *items + strlen(text) + 1, 1);
    char *word = strcpy((char *)(items + room), text), *comma = word;
    int code = 0;
    for (; comma && !code; word = comma + 1) {
        comma = strchr(word, ',');
        if (comma)
            *comma = '\0';
        code = element_parse(&items[(*n)++], verb, option, kind, word);
    }
    *list = code ? NULL : items;
    if (code)
        free(items);
    return code;
}

const char *const element_flag_words[] = {
    "invalid",   "division by zero", "overflow",       "underflow",
    "subnormal", "inexact",          "IEEE underflow", "IEEE underflow (tiny before rounding only)",
    NULL};

unsigned element_ieee_underflow(unsigned flags, unsigned tiny)
{
    return !(flags & MPSIM_FLAG_INEXACT) || !tiny ? 0
           : tiny & MPSIM_TINY_AFTER              ? ELEMENT_IEEE_UNDERFLOW
                                                  : ELEMENT_IEEE_UNDERFLOW_BEFORE;
}

size_t element_flags_list(const char *list[ELEMENT_FLAGS], unsigned flags)
{
    static const unsigned bits[ELEMENT_FLAGS] = {
        MPSIM_FLAG_INVALID,   MPSIM_FLAG_DIVBYZERO, MPSIM_FLAG_OVERFLOW,    MPSIM_FLAG_UNDERFLOW,
        MPSIM_FLAG_SUBNORMAL, MPSIM_FLAG_INEXACT,   ELEMENT_IEEE_UNDERFLOW, ELEMENT_IEEE_UNDERFLOW_BEFORE};
    size_t n = 0;
    for (size_t i = 0; i < ELEMENT_FLAGS; i++)
        if (flags & bits[i])
            list[n++] = element_flag_words[i];
    return n;
}

const char *element_flags_text(char *out, size_t size, unsigned flags)
{
    const char *list[ELEMENT_FLAGS];
    const size_t n = element_flags_list(list, flags);
    out[0] = '\0';
    for (size_t i = 0; i < n; i++)
        text_add(out, size, "%s%s", i ? ", " : "", list[i]);
    return out;
}

const char *element_code_text(char out[24], const mpsim_format *f, uint64_t code)
{
    snprintf(out, 24, "0x%0*" PRIx64, (f->bits + 3) / 4, code);
    return out;
}
