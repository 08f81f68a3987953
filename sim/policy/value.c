/* value.c -- see value.h. */
#include "value.h"

#include "../array/want.h"
#include "../cli/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int policy_bad(policy_reader *r, unsigned line, const char *message, ...)
{
    char text[512];
    va_list args;
    va_start(args, message);
    vsnprintf(text, sizeof text, message, args);
    va_end(args);
    return trace_error_set(r->error, EXIT_DATA, r->path, UINT64_MAX, "line %u: %s", line, text);
}

void policy_remark(policy_reader *r, unsigned line, const char *message, ...)
{
    char *before = *r->remarks;
    va_list args;
    va_start(args, message);
    char *text = want_format_of(message, args);
    va_end(args);
    char *both = text ? want_format("%s%sline %u: %s", before ? before : "", before ? "\n" : "", line, text) : NULL;
    free(text);
    if (!both)
        return;
    free(before);
    *r->remarks = both;
}

int policy_value_text(policy_reader *r, const char *key, const yaml_value *v, const char **text)
{
    if (v->type != YAML_TEXT || !v->text[0])
        return policy_bad(r, v->line, "%s: one word or number is needed", key);
    *text = v->text;
    return 0;
}

int policy_value_number(policy_reader *r, const char *key, const yaml_value *v, double *x)
{
    const char *text = NULL;
    if (policy_value_text(r, key, v, &text))
        return -1;
    if (parse_number(x, text))
        return policy_bad(r, v->line, "%s: '%.60s' is not a number", key, text);
    return 0;
}

int policy_value_count(policy_reader *r, const char *key, const yaml_value *v, uint64_t *n)
{
    const char *text = NULL;
    if (policy_value_text(r, key, v, &text))
        return -1;
    if (parse_count(n, text))
        return policy_bad(r, v->line, "%s: '%.60s' is not a non-negative integer", key, text);
    return 0;
}

int policy_value_bool(policy_reader *r, const char *key, const yaml_value *v, int *b)
{
    static const char *const words[][2] = {{"false", "true"}, {"no", "yes"}, {"off", "on"}};
    const char *text = NULL;
    if (policy_value_text(r, key, v, &text))
        return -1;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int j = 0; j < 2; j++)
            if (strcasecmp(text, words[i][j]) == 0) {
                *b = j;
                return 0;
            }
    return policy_bad(r, v->line, "%s: '%.60s' is neither true nor false", key, text);
}

/* Formats of tensors: those whose numbers are all binary32 numbers. */
int policy_value_format(policy_reader *r, const char *key, const yaml_value *v, mpsim_format *f)
{
    const char *text = NULL;
    if (policy_value_text(r, key, v, &text))
        return -1;
    text += strncmp(text, "torch.", 6) == 0 ? 6 : 0;
    if (mpsim_format_parse(f, text))
        return policy_bad(r, v->line, "%s: '%.60s' is not a format", key, text);
    if (f->mbits > 23 || mpsim_format_max(f) > 0x1.fffffep127 || mpsim_format_min_positive(f) < 0x1p-149 ||
        !mpsim_format_is_signed(f))
        return policy_bad(r, v->line, "%s: %.40s is not a part of binary32", key, text);
    return 0;
}
