/* element.c -- see element.h. */
#include "element.h"

#include "options.h"

#include "../array/need.h"
#include "../text/words.h"

#include <mpsim/arith.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int number_parse(double *x, const char *text)
{
    const char *magnitude = text + (*text == '-' || *text == '+');
    const double sign = *text == '-' ? -1 : 1;
    if (strcmp(magnitude, "inf") == 0)
        *x = sign * (double)INFINITY;
    else if (strcmp(magnitude, "nan") == 0)
        *x = copysign((double)NAN, sign);
    else
        return parse_number(x, text) ? -1 : 0;
    return 0;
}

static int is_code(const char *text)
{
    return text[0] == '0' && (text[1] == 'x' || text[1] == 'X') && text[2] &&
           strspn(text + 2, "0123456789abcdefABCDEF") == strlen(text + 2);
}

int element_parse(element *e, const char *verb, const char *option, const mpsim_format *f, const char *text)
{
    memset(e, 0, sizeof *e);
    e->is_code = is_code(text);
    if (e->is_code) {
        const char *digits = text + 2 + strspn(text + 2, "0");
        e->code = strlen(digits) <= 16 ? strtoull(text, NULL, 16) : 0;
        if (strlen(digits) > 16 || (f->bits < 64 && e->code >> f->bits != 0))
            return fail(EXIT_USAGE, "%s: %s: '%s' is not a code of %s, which has %d bits", verb, option, text, f->name,
                        f->bits);
    } else {
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        if (number_parse(&e->given, text))
            return fail(EXIT_USAGE, "%s: %s: '%s' is neither a number of binary64, inf or nan, nor a code as 0x3c00",
                        verb, option, text);
        e->code = mpsim_encode_f64(f, &r, e->given, 0, NULL);
    }
    e->value = mpsim_decode(f, e->code);
    if (e->is_code)
        e->given = e->value;
    e->rounded = !(e->value == e->given || (isnan(e->value) && isnan(e->given)));
    return 0;
}

int element_list(element **list, size_t *n, const char *verb, const char *option, const mpsim_format *f,
                 const char *text)
{
    size_t room = 1;
    char word[64];
    for (const char *s = text; *s; s++)
        room += *s == ',';
    *n = 0;
    *list = NULL;
    if (room > ELEMENTS_MOST)
        return fail(EXIT_USAGE, "%s: %s: at most %d numbers", verb, option, ELEMENTS_MOST);
    element *items = need_memory(room, sizeof *items);
    int code = 0;
    for (const char *s = text; !code; s++) {
        const size_t length = strcspn(s, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word), s);
        code = element_parse(&items[(*n)++], verb, option, f, word);
        s += length;
        if (!*s)
            break;
    }
    *list = code ? NULL : items;
    if (code)
        free(items);
    return code;
}

const element_flag element_flags[] = {
    {MPSIM_FLAG_INVALID, "invalid"},
    {MPSIM_FLAG_DIVBYZERO, "division by zero"},
    {MPSIM_FLAG_OVERFLOW, "overflow"},
    {MPSIM_FLAG_UNDERFLOW, "underflow"},
    {MPSIM_FLAG_SUBNORMAL, "subnormal"},
    {MPSIM_FLAG_INEXACT, "inexact"},
    {ELEMENT_IEEE_UNDERFLOW, "IEEE underflow"},
    {ELEMENT_IEEE_UNDERFLOW_BEFORE, "IEEE underflow (tiny before rounding only)"},
    {0, NULL},
};

unsigned element_ieee_underflow(unsigned flags, unsigned tiny)
{
    return !(flags & MPSIM_FLAG_INEXACT) || !tiny ? 0
           : tiny & MPSIM_TINY_AFTER              ? ELEMENT_IEEE_UNDERFLOW
                                                  : ELEMENT_IEEE_UNDERFLOW_BEFORE;
}

const char *element_flags_text(char *out, size_t size, unsigned flags)
{
    out[0] = '\0';
    for (const element_flag *f = element_flags; f->name; f++)
        if (flags & f->flag)
            text_add(out, size, "%s%s", *out ? ", " : "", f->name);
    return out;
}

const char *element_code_text(char out[24], const mpsim_format *f, uint64_t code)
{
    snprintf(out, 24, "0x%0*" PRIx64, (f->bits + 3) / 4, code);
    return out;
}

void element_put_code(void *codes, size_t bytes, size_t i, uint64_t code)
{
    const uint8_t one = (uint8_t)code;
    const uint16_t two = (uint16_t)code;
    const uint32_t four = (uint32_t)code;
    const void *from = bytes == 1   ? (const void *)&one
                       : bytes == 2 ? (const void *)&two
                       : bytes == 4 ? (const void *)&four
                                    : (const void *)&code;
    memcpy((unsigned char *)codes + i * bytes, from, bytes);
}
