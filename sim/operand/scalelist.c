/* scalelist.c -- see scalelist.h. */
#include "scalelist.h"

#include "../cli/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int parse_scale(double *scale, const char *text, const char *verb)
{
    const int status = parse_number(scale, text);
    if (status == NUMBER_RANGE)
        return fail(EXIT_USAGE, "%s: scale '%s' is outside the range of binary64", verb, text);
    if (status || !(*scale > 0))
        return fail(EXIT_USAGE, "%s: scale '%s' is not a positive number", verb, text);
    return 0;
}

/* The exponent of an end of a range. */
static int parse_end(int *power, const char *text, const char *word, const char *verb)
{
    double x;
    const int code = parse_scale(&x, text, verb);
    if (code)
        return code;
    if (frexp(x, power) > 0.5)
        return fail(EXIT_USAGE, "%s: scales '%s': %s is not a power of two; both ends of a range are, as in 2^0..2^16",
                    verb, word, text);
    --*power;
    return 0;
}

int scale_word_parse(double *first, size_t *count, const char *word, const char *verb)
{
    char from[64];
    int low, high;
    const char *dots = strstr(word, "..");
    *count = 1;
    if (!dots || dots - word >= (ptrdiff_t)sizeof from)
        return parse_scale(first, word, verb);
    if (dots == word || !dots[2] || dots[2] == '.' || strstr(dots + 2, ".."))
        return fail(EXIT_USAGE, "%s: scales '%s': a range needs two ends, as in 2^0..2^16", verb, word);
    snprintf(from, sizeof from, "%.*s", (int)(dots - word), word);
    int code = parse_end(&low, from, word, verb);
    if (!code)
        code = parse_end(&high, dots + 2, word, verb);
    if (code)
        return code;
    if (low > high)
        return fail(EXIT_USAGE, "%s: scales '%s': a range must increase: %s..%s", verb, word, dots + 2, from);
    *first = ldexp(1, low);
    *count = (size_t)(high - low) + 1;
    return 0;
}

/* The scales of a word, none of which may be there already. */
static int add_word(scale_list *l, const char *word, const char *verb)
{
    double first;
    size_t n;
    const int code = scale_word_parse(&first, &n, word, verb);
    if (code)
        return code;
    if (n > SCALES_MAX - l->count)
        return fail(EXIT_USAGE, "%s: more than %d scales", verb, SCALES_MAX);
    for (size_t i = 0; i < n; i++) {
        const double x = n > 1 ? ldexp(first, (int)i) : first;
        for (size_t k = 0; k < l->count; k++)
            if (l->items[k] == x)
                return n > 1 ? fail(EXIT_USAGE, "%s: scales '%s': %.17g is given twice", verb, word, x)
                             : fail(EXIT_USAGE, "%s: scale '%s' is given twice", verb, word);
        l->items[l->count++] = x;
    }
    return 0;
}

int scale_list_parse(scale_list *l, const char *text, const char *verb)
{
    static const char blanks[] = " \t";
    int code = 0;
    l->count = 0;
    for (const char *end = text; !code && end; text = end ? end + 1 : NULL) {
        text += strspn(text, blanks);
        end = strchr(text, ',');
        size_t n = end ? (size_t)(end - text) : strlen(text);
        while (n > 0 && strchr(blanks, text[n - 1]))
            n--;
        char *word = strndup(text, n);
        if (!word)
            return host_no_memory();
        code = add_word(l, word, verb);
        free(word);
    }
    return code;
}

void scale_run_see(scale_run *r, size_t k, int is)
{
    if (!is)
        r->from = k + 1;
    else if (r->last < r->first || k - r->from >= r->last - r->first) {
        r->first = r->from;
        r->last = k;
    }
}
