/* typed.c -- see typed.h. */
#include "typed.h"

#include "../cli/options.h"
#include "../text/words.h"

#include <mpsim/mpsim.h>

#include <stdio.h>
#include <string.h>

int typed_number(const char *option, const char *text, typed_type type, double least, double most, void *to)
{
    uint64_t n = 0;
    double x = 0;
    if (!text)
        return 0;
    if (type == TYPED_NUMBER ? parse_number(&x, text) != 0 : parse_count(&n, text) != 0)
        return fail(EXIT_USAGE, "train: --%s: '%s' is not a %s", option, text,
                    type == TYPED_NUMBER ? "number" : "non-negative integer");
    const double value = type == TYPED_NUMBER ? x : (double)n;
    if (value < least || value > most)
        return type == TYPED_NUMBER
                   ? fail(EXIT_USAGE, "train: --%s: %s is not in %g to %g", option, text, least, most)
                   : fail(EXIT_USAGE, "train: --%s: %s is not in %.0f to %.0f", option, text, least, most);
    if (type == TYPED_NUMBER)
        *(double *)to = x;
    else if (type == TYPED_COUNT)
        *(uint64_t *)to = n;
    else
        *(uint32_t *)to = (uint32_t)n;
    return 0;
}

int typed_numbers(const typed_row *rows, size_t n)
{
    int code = 0;
    for (const typed_row *r = rows; r < rows + n && !code; r++)
        code = typed_number(r->option, r->text, r->type, r->least, r->most, r->to);
    return code;
}

int typed_needs(const typed_need *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].given && !rows[i].met)
            return fail(EXIT_USAGE, "train: --%s goes with %s", rows[i].option, rows[i].needs);
    return 0;
}

int typed_word(const char *option, const char *text, const char *const *words, unsigned char *to)
{
    char list[128] = "";
    if (!text)
        return 0;
    for (unsigned i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0) {
            *to = (unsigned char)i;
            return 0;
        }
        text_add(list, sizeof list, "%s%s", i ? ", " : "", words[i]);
    }
    return fail(EXIT_USAGE, "train: --%s: '%s' is not one of %s", option, text, list);
}

int typed_format(const char *option, const char *text, char *to, size_t size)
{
    const mpsim_format *f = text ? mpsim_format_find(text) : NULL;
    if (!text)
        return 0;
    if (!f || strlen(f->name) >= size)
        return fail(EXIT_USAGE, "train: --%s: '%s' is not one of binary32, fp16, bf16", option, text);
    memset(to, 0, size);
    strcpy(to, f->name);
    return 0;
}
