/* option.c -- see option.h. */
#include "option.h"

#include "../array/array.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Whether the text begins with "2^" or, as Python writes it, "2**", "2.**", "2.0**"; *power is the integer after it, held to what a
 * long holds. NUMBER_BAD if there is none. 1: no power. */
static int parse_power(long *power, const char *text)
{
    char *end;
    const char *p = text + 1;
    if (text[0] != '2')
        return 1;
    p += *p == '.' ? 1 + strspn(p + 1, "0") : 0;
    if (text[1] != '^' && strncmp(p, "**", 2) != 0)
        return 1;
    p += *p == '^' ? 1 : 2;
    const size_t sign = *p == '-' || *p == '+';
    *power = strtol(p, &end, 10);
    return p[sign] < '0' || p[sign] > '9' || *end ? NUMBER_BAD : 0;
}

int parse_count(uint64_t *n, const char *text)
{
    static const struct {
        const char *suffix;
        uint64_t factor;
    } units[] = {{"", 1},
                 {"k", 1000},
                 {"M", 1000000},
                 {"G", 1000000000},
                 {"Ki", (uint64_t)1 << 10},
                 {"Mi", (uint64_t)1 << 20},
                 {"Gi", (uint64_t)1 << 30}};
    char *end;
    long power;
    const int kind = parse_power(&power, text);
    if (kind == 0 && power >= 0 && power <= 63)
        *n = (uint64_t)1 << power;
    if (kind <= 0)
        return kind || power < 0 ? NUMBER_BAD : power > 63 ? NUMBER_RANGE : 0;
    if (*text < '0' || *text > '9')
        return NUMBER_BAD;
    /* base 0 would read 010 as 8 */
    const int hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    errno = 0;
    const uint64_t v = strtoull(text, &end, hexadecimal ? 16 : 10);
    const int overflow = errno != 0;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].suffix) == 0) {
            if (overflow || v > UINT64_MAX / units[i].factor)
                return NUMBER_RANGE;
            *n = v * units[i].factor;
            return 0;
        }
    return NUMBER_BAD;
}

/* Whether a number as strtod reads it has a digit other than 0 before its exponent. */
static int is_written_non_zero(const char *text)
{
    text += strspn(text, "+-");
    const int hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    text += hexadecimal ? 2 : 0;
    return strcspn(text, hexadecimal ? "123456789abcdefABCDEF" : "123456789") <
           strcspn(text, hexadecimal ? "pP" : "eE");
}

int parse_number(double *x, const char *text)
{
    char *end;
    long power;
    const int kind = parse_power(&power, text);
    if (kind == 0 && power >= -1074 && power <= 1023)
        *x = ldexp(1, (int)power);
    if (kind <= 0)
        return kind ? kind : power < -1074 || power > 1023 ? NUMBER_RANGE : 0;
    const char first = text[strspn(text, "+-.")];
    if (first < '0' || first > '9') /* blanks, nan, infinity */
        return NUMBER_BAD;
    const double value = strtod(text, &end);
    if (end == text || *end)
        return NUMBER_BAD;
    if (!isfinite(value) || (value == 0 && is_written_non_zero(text)))
        return NUMBER_RANGE;
    *x = value;
    return 0;
}

int option_list_add(option_list *l, const char *text)
{
    if (array_room(&l->items, l->count, sizeof *l->items))
        return -1;
    l->items[l->count++] = text;
    return 0;
}

void option_list_clear(option_list *l)
{
    free(l->items);
    l->items = NULL;
    l->count = 0;
}

int option_list_has(const option_list *l, const char *word)
{
    for (size_t i = 0; i < l->count; i++)
        for (const char *p = l->items[i]; *p; p += *p == ',') {
            const size_t n = strcspn(p, ",");
            if (strlen(word) == n && memcmp(word, p, n) == 0)
                return 1;
            p += n;
        }
    return 0;
}
