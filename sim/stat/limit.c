/* limit.c -- see limit.h. */
#include "limit.h"

#include "../text/option.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *sign;
    limit_comparison means;
} signs[] = {
    {">=", LIMIT_AT_LEAST}, {"<=", LIMIT_AT_MOST}, {">", LIMIT_ABOVE}, {"<", LIMIT_BELOW}}; /* the longer ones first */
enum { SIGNS = sizeof signs / sizeof *signs };

int stat_limit_read(limit *l, const char **text)
{
    char number[64];
    int k = 0;
    while (k < SIGNS && strncmp(*text, signs[k].sign, strlen(signs[k].sign)) != 0)
        k++;
    if (k == SIGNS)
        return LIMIT_NO_COMPARISON;
    l->comparison = signs[k].means;
    *text += strlen(signs[k].sign);
    *text += strspn(*text, " ");
    const size_t length = strlen(*text), n = length && (*text)[length - 1] == '%' ? length - 1 : length;
    snprintf(number, sizeof number, "%.*s", (int)(n < sizeof number ? n : 0), *text);
    for (size_t i = strlen(number); i > 0 && number[i - 1] == ' ';)
        number[--i] = '\0';
    l->per_cent = n < length;
    return parse_number(&l->value, number) ? LIMIT_NO_NUMBER : 0;
}

int stat_limit_holds(const limit *l, double x)
{
    switch (l->comparison) {
    case LIMIT_ABOVE:
        return x > l->value;
    case LIMIT_BELOW:
        return x < l->value;
    case LIMIT_AT_LEAST:
        return x >= l->value;
    default:
        return x <= l->value;
    }
}

int stat_limit_is_upper(const limit *l)
{
    return l->comparison == LIMIT_ABOVE || l->comparison == LIMIT_AT_LEAST;
}
